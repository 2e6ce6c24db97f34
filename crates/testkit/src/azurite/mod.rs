//! Azurite, Microsoft's own emulator of Azure Blob storage: one for the whole test process, a container for each test.
//!
//! It checks signatures as the real one does. It ends with the process, however that ends; a missing program fails the
//! test, it does not skip it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use parking_lot::Mutex;

use crate::supervisor::Supervisor;

/// The account that every Azurite has, with the key that everybody knows.
pub const ACCOUNT: &str = "devstoreaccount1";
pub const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

#[derive(Debug)]
pub struct Azurite {
    _supervisor: Mutex<Supervisor>,
    /// With the account, as clients of an emulator want it.
    pub endpoint: String,
}

impl Azurite {
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Azurite> = OnceLock::new();
        SHARED.get_or_init(|| {
            let mut command = Command::new("sh");
            command.arg("-c").arg(include_str!("supervise.sh")).arg("supervise").arg(program());
            let (mut supervisor, _) = Supervisor::launch(command);
            let address =
                supervisor.order("start").unwrap_or_else(|why| panic!("Azurite did not start: {why}"));
            let endpoint = format!("{}/{ACCOUNT}", address.trim().trim_end_matches('/'));
            Self { _supervisor: Mutex::new(supervisor), endpoint }
        })
    }

    /// Coordinators never make containers: a PUT without a body to this address makes one. Signed for the account, as
    /// `tests/blobs/azure.rs` of `giga-blobs` computes it; nothing of the container is in the signature.
    pub fn to_make(&self, container: &str) -> String {
        format!(
            "{}/{container}?restype=container&sv=2018-11-09&ss=b&srt=sco&sp=rwdlac&se=2100-01-01T00:00:00Z\
             &spr=https,http&sig=GC%2BChk%2Ffr2kGYxbx3ScPyFgz5bjf1gcFtmNtRsA6N6U%3D",
            self.endpoint
        )
    }

    /// What a coordinator would be started with.
    pub fn variables(&self) -> Vec<(String, String)> {
        [
            ("AZURE_STORAGE_ENDPOINT", self.endpoint.as_str()),
            ("AZURE_STORAGE_ACCOUNT_KEY", KEY),
            ("AZURE_ALLOW_HTTP", "true"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }
}

/// Where `cargo xtask setup` puts it.
fn program() -> PathBuf {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/azurite");
    let program = home.join("node_modules/.bin/azurite-blob");
    assert!(program.exists(), "there is no Azurite: run `cargo xtask setup`, which installs one");
    program
}

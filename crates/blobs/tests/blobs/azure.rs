//! Azure Blob storage against the exported suite, on Azurite, with a container for each case.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine;
use base64::prelude::BASE64_STANDARD as STANDARD;
use giga_blobs::open;
use giga_ports::{Artifacts, BlobError, Logs};
use giga_testkit::azurite::{ACCOUNT, Azurite, KEY};
use giga_testkit::blob_suite::BlobFixture;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Coordinators never make containers, so the client cannot either: the address that makes one, signed for the account.
fn to_make(endpoint: &str, container: &str) -> String {
    let (permissions, end, version) = ("rwdlac", "2100-01-01T00:00:00Z", "2018-11-09");
    let text = format!("{ACCOUNT}\n{permissions}\nb\nsco\n\n{end}\n\nhttps,http\n{version}\n");
    let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(KEY).unwrap()).unwrap();
    mac.update(text.as_bytes());
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    format!(
        "{endpoint}/{container}?restype=container&sv={version}&ss=b&srt=sco&sp={permissions}&se={end}\
         &spr=https,http&sig={signature}"
    )
}

struct Container {
    name: String,
}

impl Container {
    /// The emulator is one for all cases of this process; its containers are not.
    async fn make() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let server = tokio::task::spawn_blocking(Azurite::shared).await.unwrap();
        let name = format!("container-{}", NEXT.fetch_add(1, Ordering::SeqCst));
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let made =
            http.put(to_make(&server.endpoint, &name)).header("content-length", 0).send().await.unwrap();
        assert_eq!(made.status(), 201, "{}", made.text().await.unwrap());
        Self { name }
    }

    fn place(&self) -> String {
        format!("az://{ACCOUNT}/{}/some/prefix", self.name)
    }
}

impl BlobFixture for Container {
    fn open(&self) -> (Arc<dyn Artifacts>, Arc<dyn Logs>) {
        let places = open(&self.place(), &Azurite::shared().variables()).unwrap();
        (places.artifacts, places.logs)
    }
}

giga_testkit::blob_conformance!(Container::make().await);

#[tokio::test]
async fn links_work_for_one_file_and_for_a_while() {
    let container = Container::make().await;
    let (artifacts, _) = container.open();
    let tamper = |url: &str| {
        let (head, signature) = url.split_once("sig=").unwrap();
        let flipped = if signature.starts_with('A') { "B" } else { "A" };
        format!("{head}sig={flipped}{}", &signature[1..])
    };
    let extend = |url: &str| {
        let (head, rest) = url.split_once("se=").unwrap();
        format!("{head}se=2{rest}").replacen("se=22", "se=23", 1)
    };
    crate::links::work_for_one_file_and_for_a_while(&*artifacts, tamper, extend).await;
}

#[tokio::test]
async fn a_wrong_key_or_container_shows_at_the_start_and_the_key_never() {
    let container = Container::make().await;
    let mut variables = Azurite::shared().variables();
    open(&container.place(), &variables).unwrap().check().await.unwrap();
    let missing = open(&format!("az://{ACCOUNT}/missing"), &variables).unwrap().check().await;
    assert!(missing.is_err());
    let wrong = KEY.replacen("Eby8", "Abcd", 1);
    for (name, value) in &mut variables {
        if name == "AZURE_STORAGE_ACCOUNT_KEY" {
            value.clone_from(&wrong);
        }
    }
    let refused = open(&container.place(), &variables).unwrap().check().await.unwrap_err();
    assert!(matches!(refused, BlobError::Unavailable { .. }), "{refused}");
    assert!(!format!("{refused} {refused:?}").contains(&wrong[..20]), "{refused:?}");
}

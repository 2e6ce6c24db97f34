//! A manifest on its way from a file to the coordinator, byte for byte. What it says is the coordinator's to judge.

use std::io::Read;
use std::path::Path;

use giga_api::client::{ClientError, Idempotency};
use giga_api::wire::ProblemCode;
use giga_domain::limits;
use giga_domain::manifest::Draft;
use giga_ports::{Clock, Randomness};

use crate::exit::CliError;
use crate::system::{SystemClock, SystemRandomness};

/// What the keys begin with that nobody chose.
const MADE_UP: &str = "cli-";

/// Nobody wants to read these.
pub(super) fn is_made_up(key: &str) -> bool {
    key.starts_with(MADE_UP)
}

pub(super) struct ManifestFile {
    /// For messages: the path, or `<stdin>`.
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl ManifestFile {
    pub(super) async fn read(file: &str) -> Result<Self, CliError> {
        let name = if file == "-" { "<stdin>".to_owned() } else { file.to_owned() };
        let given = file.to_owned();
        let read = tokio::task::spawn_blocking(move || read_all(&given)).await;
        let bytes = read.map_err(|_| CliError::Interrupted)?.map_err(|why| no_manifest(&name, &why))?;
        if std::str::from_utf8(&bytes).is_err() {
            return Err(no_manifest(&name, "it is not UTF-8 text"));
        }
        Ok(Self { name, bytes })
    }

    /// A manifest without a key gets one that lives as long as this invocation: a submit whose answer was lost can
    /// be repeated, and submitting the same file again still makes another job.
    pub(super) fn idempotency(&self) -> Idempotency {
        // What a profile will fill in is not known here, so it is not judged, only looked at.
        match Draft::from_markdown(&self.bytes) {
            // It will be refused.
            Err(_) => Idempotency::Nothing,
            Ok(draft) if draft.has_idempotency_key() => Idempotency::InManifest,
            Ok(_) => Idempotency::Key(format!("{MADE_UP}{}", SystemRandomness.job_id(SystemClock.now()))),
        }
    }

    /// The coordinator's refusal, in terms of the file.
    pub(super) fn refused(&self, error: ClientError) -> CliError {
        match error {
            ClientError::Problem(problem)
                if !problem.errors.is_empty() || problem.code == ProblemCode::InvalidManifest =>
            {
                CliError::Manifest { file: self.name.clone(), problem }
            }
            other => other.into(),
        }
    }
}

fn read_all(file: &str) -> Result<Vec<u8>, String> {
    // One byte more than may be: enough to be refused, not enough to fill the memory.
    let limit = limits::MANIFEST_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    let read = if file == "-" {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        if Path::new(file).is_dir() {
            return Err("it is a folder".to_owned());
        }
        std::fs::File::open(file).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    match read {
        Ok(_) if bytes.len() as u64 == limit => Err("it is larger than 1 MiB".to_owned()),
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err("there is no such file".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn no_manifest(name: &str, why: &str) -> CliError {
    CliError::failed_but(
        format!("cannot read the manifest {name}: {why}"),
        "`giga job init FILE` writes one to start from",
    )
}

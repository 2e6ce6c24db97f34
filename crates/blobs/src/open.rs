//! From a place, as people write it, to where artifacts and logs go.
//!
//! A place is a folder or the URL of a bucket. What a bucket needs beyond that comes from the variables that its
//! vendor's own tools read; whatever is missing is named. Nothing here reads the environment itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use giga_ports::{Artifacts, BlobError, Logs};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{BackoffConfig, RetryConfig};
use thiserror::Error;

use crate::bucket::Bucket;
use crate::mark::{self, PlaceId};
use crate::{FolderLogs, ObjectArtifacts, PieceLogs};

/// Long enough for a cloud that has to look credentials up; whoever starts a coordinator waits for it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where bytes go.
#[derive(Clone)]
pub struct Places {
    pub artifacts: Arc<dyn Artifacts>,
    pub logs: Arc<dyn Logs>,
    /// All of it, for its mark.
    root: Bucket,
}

impl std::fmt::Debug for Places {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Places").finish_non_exhaustive()
    }
}

/// What is wrong with a place, and what would be right.
#[derive(Debug, Error)]
#[error("{message}")]
pub struct OpenError {
    pub message: String,
    pub remedy: &'static str,
}

const FORMS: &str = "a folder, s3://BUCKET/PREFIX, az://ACCOUNT/CONTAINER/PREFIX or gs://BUCKET/PREFIX; what else a bucket needs comes from \
     AWS_*, AZURE_* or GOOGLE_* variables";
const S3_KEYS: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_REGION), or run where an instance role gives credentials";
const AZURE_KEYS: &str = "set AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_KEY, or AZURE_TENANT_ID with AZURE_CLIENT_ID and \
     AZURE_CLIENT_SECRET, or run where a managed identity gives credentials";
const GOOGLE_KEYS: &str = "set GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT to the file of a service account, or run \
     where the metadata server gives credentials";

/// `variables` is the environment. Nothing is asked of the place yet; [`Places::check`] does that.
pub fn open(place: &str, variables: &[(String, String)]) -> Result<Places, OpenError> {
    let bucket = match place.split_once("://") {
        None => return folder(Path::new(place.strip_prefix("file:").unwrap_or(place))),
        Some(("file", path)) => return folder(Path::new(path)),
        Some(("s3", rest)) => s3(place, rest, variables)?,
        Some(("az" | "azure", rest)) => azure(place, rest, variables)?,
        Some(("gs", rest)) => google(place, rest, variables)?,
        Some((scheme, _)) => {
            let message = format!("`{scheme}://` is no place for artifacts");
            return Err(OpenError { message, remedy: FORMS });
        }
    };
    Ok(Places {
        artifacts: Arc::new(ObjectArtifacts::bucket(bucket.below("artifacts"))),
        logs: Arc::new(PieceLogs::new(bucket.below("logs"))),
        root: bucket,
    })
}

impl Places {
    /// Writes something small and deletes it again, so that what is wrong shows before anything depends on it.
    pub async fn check(&self) -> Result<(), BlobError> {
        tokio::time::timeout(PATIENCE, self.artifacts.check()).await.unwrap_or_else(|_| {
            let reason = format!("no answer within {} seconds", PATIENCE.as_secs());
            Err(BlobError::Unavailable { reason, source: None })
        })
    }

    /// What tells this place from others; `fresh` becomes it where there is none yet.
    pub async fn id(&self, fresh: [u8; 32]) -> Result<PlaceId, BlobError> {
        tokio::time::timeout(PATIENCE, mark::read_or_write(&self.root, fresh)).await.unwrap_or_else(|_| {
            let reason = format!("no answer within {} seconds", PATIENCE.as_secs());
            Err(BlobError::Unavailable { reason, source: None })
        })
    }
}

fn folder(path: &Path) -> Result<Places, OpenError> {
    if path.as_os_str().is_empty() {
        return Err(OpenError { message: "the place for artifacts is empty".to_owned(), remedy: FORMS });
    }
    let unusable = |error: BlobError| OpenError {
        message: format!("{}: {error}", path.display()),
        remedy: "choose a folder that this user may write to",
    };
    let artifacts = ObjectArtifacts::folder(&path.join("artifacts")).map_err(unusable)?;
    let logs = FolderLogs::new(PathBuf::from(path).join("logs"));
    let root =
        LocalFileSystem::new_with_prefix(path).map_err(|error| unusable(BlobError::unavailable(error)))?;
    Ok(Places { artifacts: Arc::new(artifacts), logs: Arc::new(logs), root: Bucket::folder(root) })
}

fn s3(place: &str, rest: &str, variables: &[(String, String)]) -> Result<Bucket, OpenError> {
    let (bucket, prefix) = bucket_and_prefix(place, rest, "bucket")?;
    both_or_none(variables, ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"], S3_KEYS)?;
    let mut builder = AmazonS3Builder::new().with_bucket_name(bucket).with_retry(retries());
    for (name, value) in with_prefix(variables, "AWS_") {
        if let Ok(key) = name.parse() {
            builder = builder.with_config(key, value);
        }
    }
    let store = builder.build().map_err(|error| unusable(place, &error, S3_KEYS))?;
    Ok(Bucket::cloud(Arc::new(store), prefix, secrets(variables)))
}

fn azure(place: &str, rest: &str, variables: &[(String, String)]) -> Result<Bucket, OpenError> {
    let (account, rest) = rest.split_once('/').unwrap_or((rest, ""));
    if account.is_empty() || rest.is_empty() {
        let message = format!("`{place}` names no storage account with a container");
        return Err(OpenError { message, remedy: FORMS });
    }
    let (container, prefix) = bucket_and_prefix(place, rest, "container")?;
    both_or_none(variables, ["AZURE_CLIENT_ID", "AZURE_TENANT_ID"], AZURE_KEYS)?;
    let mut builder = MicrosoftAzureBuilder::new().with_retry(retries());
    for (name, value) in with_prefix(variables, "AZURE_") {
        if let Ok(key) = name.parse() {
            builder = builder.with_config(key, value);
        }
    }
    // The place stands above the environment.
    let builder = builder.with_account(account).with_container_name(container);
    let store = builder.build().map_err(|error| unusable(place, &error, AZURE_KEYS))?;
    Ok(Bucket::cloud(Arc::new(store), prefix, secrets(variables)))
}

fn google(place: &str, rest: &str, variables: &[(String, String)]) -> Result<Bucket, OpenError> {
    let (bucket, prefix) = bucket_and_prefix(place, rest, "bucket")?;
    let mut builder = GoogleCloudStorageBuilder::new().with_bucket_name(bucket).with_retry(retries());
    for (name, value) in with_prefix(variables, "GOOGLE_") {
        if let Ok(key) = name.parse() {
            builder = builder.with_config(key, value);
        }
    }
    let store = builder.build().map_err(|error| unusable(place, &error, GOOGLE_KEYS))?;
    Ok(Bucket::cloud(Arc::new(store), prefix, secrets(variables)))
}

fn bucket_and_prefix<'a>(place: &str, rest: &'a str, what: &str) -> Result<(&'a str, Key), OpenError> {
    let wrong = |message: String| OpenError { message, remedy: FORMS };
    if rest.contains(['?', '#', '@']) {
        // Not repeated: somebody may have put a key there.
        return Err(wrong("a place for artifacts has neither `?` nor `#` nor `@`".to_owned()));
    }
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(wrong(format!("`{place}` names no {what}")));
    }
    let prefix = Key::parse(prefix).map_err(|error| wrong(format!("`{place}`: {error}")))?;
    Ok((bucket, prefix))
}

/// In the lower case that the builders read.
fn with_prefix<'a>(
    variables: &'a [(String, String)],
    prefix: &'static str,
) -> impl Iterator<Item = (String, &'a str)> {
    let ours = variables.iter().filter(move |(name, value)| name.starts_with(prefix) && !value.is_empty());
    ours.map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()))
}

fn both_or_none(
    variables: &[(String, String)],
    [one, other]: [&str; 2],
    remedy: &'static str,
) -> Result<(), OpenError> {
    let is_set = |wanted: &str| variables.iter().any(|(name, value)| name == wanted && !value.is_empty());
    let (set, missing) = match (is_set(one), is_set(other)) {
        (true, false) => (one, other),
        (false, true) => (other, one),
        _ => return Ok(()),
    };
    Err(OpenError { message: format!("{set} is set and {missing} is not"), remedy })
}

/// What may never be shown: the values of variables that are named like secrets.
fn secrets(variables: &[(String, String)]) -> Vec<String> {
    let secret = |name: &str| {
        ["AWS_", "AZURE_", "GOOGLE_"].iter().any(|vendor| name.starts_with(vendor))
            && ["SECRET", "KEY", "TOKEN", "SAS", "PASSWORD"].iter().any(|word| name.contains(word))
    };
    let long_enough = |value: &str| value.len() >= 6;
    let found = variables.iter().filter(|(name, value)| secret(name) && long_enough(value));
    found.map(|(_, value)| value.clone()).collect()
}

fn unusable(place: &str, error: &object_store::Error, remedy: &'static str) -> OpenError {
    OpenError { message: format!("{place}: {error}"), remedy }
}

/// A caller waits for each of these; what takes longer is better answered "try again".
fn retries() -> RetryConfig {
    RetryConfig { backoff: BackoffConfig::default(), max_retries: 4, retry_timeout: Duration::from_secs(20) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_is_no_place_is_refused_by_name() {
        let none: &[(&str, &str)] = &[];
        for (place, given, expected) in [
            ("", none, "the place for artifacts is empty"),
            ("ftp://host/x", none, "`ftp://` is no place for artifacts"),
            ("s3://", none, "`s3://` names no bucket"),
            ("gs:///x", none, "`gs:///x` names no bucket"),
            ("az://account", none, "`az://account` names no storage account with a container"),
            ("az:///container", none, "`az:///container` names no storage account with a container"),
            ("s3://me:secret@bucket/x", none, "a place for artifacts has neither `?` nor `#` nor `@`"),
            (
                "s3://bucket",
                &[("AWS_ACCESS_KEY_ID", "AKIA")],
                "AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not",
            ),
            (
                "az://account/container",
                &[("AZURE_CLIENT_ID", "me")],
                "AZURE_CLIENT_ID is set and AZURE_TENANT_ID is not",
            ),
        ] {
            let refused = open(place, &variables(given)).map(|_| ()).unwrap_err();
            assert_eq!(refused.message, expected, "{place}");
            assert!(!refused.remedy.is_empty());
        }
    }

    #[test]
    fn a_malformed_setting_is_named_and_never_repeated_as_a_secret() {
        let given = variables(&[("GOOGLE_SERVICE_ACCOUNT_KEY", "{\"private_key\": \"s3cr3t\"")]);
        let refused = open("gs://bucket", &given).map(|_| ()).unwrap_err();
        assert!(!refused.message.contains("s3cr3t"), "{}", refused.message);
        assert!(refused.remedy.contains("GOOGLE_SERVICE_ACCOUNT"));
    }

    #[test]
    fn no_debug_print_shows_a_credential() {
        let given = variables(&[("AWS_ACCESS_KEY_ID", "AKIA1234"), ("AWS_SECRET_ACCESS_KEY", "s3cr3t-key")]);
        let bucket = s3("s3://bucket/a/b", "bucket/a/b", &given).unwrap();
        let shown = format!("{bucket:?} {:?}", open("s3://bucket/a/b", &given).unwrap());
        assert!(shown.contains("a/b") && !shown.contains("s3cr3t") && !shown.contains("AKIA"), "{shown}");
        let error = BlobError::Unavailable {
            reason: bucket.without_secrets(&std::io::Error::other("at ?sig=s3cr3t-key of AKIA1234")),
            source: None,
        };
        assert!(!format!("{error} {error:?}").contains("s3cr3t"), "{error}");
    }
}

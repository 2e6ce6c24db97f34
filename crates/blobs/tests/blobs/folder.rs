//! A folder against the exported suite.

use std::sync::Arc;

use giga_ports::{Artifacts, Logs};
use giga_testkit::blob_suite::BlobFixture;

struct Fixture(tempfile::TempDir);

impl Fixture {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl BlobFixture for Fixture {
    fn open(&self) -> (Arc<dyn Artifacts>, Arc<dyn Logs>) {
        let places = giga_blobs::open(self.0.path().to_str().unwrap(), &[]).unwrap();
        (places.artifacts, places.logs)
    }
}

giga_testkit::blob_conformance!(Fixture::new());

#[tokio::test]
async fn a_folder_signs_nothing_itself() {
    let (artifacts, _) = Fixture::new().open();
    assert_eq!(artifacts.signed_url("a", std::time::Duration::from_secs(1)).await.unwrap(), None);
}

#[tokio::test]
async fn a_file_where_the_folder_should_be_is_named() {
    let fixture = Fixture::new();
    let place = fixture.0.path().join("taken");
    std::fs::write(&place, "x").unwrap();
    let refused = giga_blobs::open(place.to_str().unwrap(), &[]).unwrap_err();
    assert!(refused.message.contains("taken"), "{refused}");
}

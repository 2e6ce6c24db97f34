//! S3 against the exported suite: a server in this process that checks every signature.

use std::sync::Arc;

use giga_blobs::open;
use giga_ports::{Artifacts, BlobError, Logs};
use giga_testkit::blob_suite::BlobFixture;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::AbortHandle;

const KEY_ID: &str = "AKIAGIGAFACTORY";
const KEY: &str = "wJalrXUtnFEMI-a-secret-key";

struct S3 {
    url: String,
    server: AbortHandle,
    folder: tempfile::TempDir,
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl S3 {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("bucket")).unwrap();
        let mut builder = S3ServiceBuilder::new(FileSystem::new(folder.path()).unwrap());
        builder.set_auth(SimpleAuth::from_single(KEY_ID, KEY));
        let service = builder.build();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        // One request at a time: S3 promises that a conditional put is one step, this server in a folder does not.
        let turn = Arc::new(Mutex::new(()));
        let serve = async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let (service, turn) = (service.clone(), turn.clone());
                tokio::spawn(async move {
                    let one_by_one = service_fn(|request: Request<Incoming>| {
                        let (service, turn) = (service.clone(), turn.clone());
                        async move {
                            let _turn = turn.lock().await;
                            service.call(request.map(s3s::Body::from)).await
                        }
                    });
                    let connection = auto::Builder::new(TokioExecutor::new());
                    let _ = connection.serve_connection(TokioIo::new(stream), one_by_one).await;
                });
            }
        };
        Self { url, server: tokio::spawn(serve).abort_handle(), folder }
    }

    fn variables(&self, key: &str) -> Vec<(String, String)> {
        [
            ("AWS_ACCESS_KEY_ID", KEY_ID),
            ("AWS_SECRET_ACCESS_KEY", key),
            ("AWS_ENDPOINT_URL", self.url.as_str()),
            ("AWS_ALLOW_HTTP", "true"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }
}

impl BlobFixture for S3 {
    fn open(&self) -> (Arc<dyn Artifacts>, Arc<dyn Logs>) {
        let places = open("s3://bucket/some/prefix", &self.variables(KEY)).unwrap();
        (places.artifacts, places.logs)
    }
}

giga_testkit::blob_conformance!(S3::start().await);

#[tokio::test]
async fn links_work_for_one_file_and_for_a_while() {
    let s3 = S3::start().await;
    let (artifacts, _) = s3.open();
    let tamper = |url: &str| {
        let (head, signature) = url.split_once("X-Amz-Signature=").unwrap();
        let flipped = if signature.starts_with('0') { "1" } else { "0" };
        format!("{head}X-Amz-Signature={flipped}{}", &signature[1..])
    };
    let extend = |url: &str| url.replace("X-Amz-Expires=600", "X-Amz-Expires=60000");
    crate::links::work_for_one_file_and_for_a_while(&*artifacts, tamper, extend).await;
}

#[tokio::test]
async fn a_wrong_key_shows_at_the_start_and_is_not_shown() {
    let s3 = S3::start().await;
    open("s3://bucket", &s3.variables(KEY)).unwrap().check().await.unwrap();
    let wrong = "another-secret-key";
    let refused = open("s3://bucket", &s3.variables(wrong)).unwrap().check().await.unwrap_err();
    assert!(matches!(refused, BlobError::Unavailable { .. }), "{refused}");
    assert!(refused.to_string().contains("SignatureDoesNotMatch"), "{refused}");
    assert!(!format!("{refused} {refused:?}").contains(wrong), "{refused:?}");
}

#[tokio::test]
async fn many_pieces_of_a_log_become_few_objects() {
    let s3 = S3::start().await;
    let (_, logs) = s3.open();
    let id = giga_domain::JobId::from_parts(giga_domain::Timestamp::from_millis(1), 1);
    for offset in 0..100 {
        logs.append(id, giga_domain::Epoch(1), offset, b"x").await.unwrap();
    }
    let at = s3.folder.path().join(format!("bucket/some/prefix/logs/{id}/1"));
    let objects = std::fs::read_dir(at).unwrap().count();
    assert!(objects < 40, "{objects} objects");
}

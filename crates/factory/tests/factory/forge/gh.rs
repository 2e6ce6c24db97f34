//! Over the `gh` command line: a script stands in for it, keeps its requests in a file, and can be told to fail.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use giga_factory::forge::{Forge, ForgeError, GhCli, GitHub};

use super::fake::request;

const FAKE: &str = r#"#!/bin/sh
cd "$(dirname "$0")" || exit 9
echo "$@" >> calls
case "$*" in
"api --include --hostname github.com --method GET repos/org/app/pulls?"*)
    printf 'HTTP/2.0 200 OK\r\nContent-Type: application/json\r\n\r\n[%s]' "$(cat pull 2>/dev/null)"
    ;;
"api --include --hostname github.com --method POST --input - repos/org/app/pulls")
    cat > posted
    printf '{"number":7,"html_url":"https://github.com/org/app/pull/7","body":"","head":{"ref":"%s"}}' \
        "$(cat head)" > pull
    if [ -e lose ]; then rm lose; echo "connection reset" >&2; exit 1; fi
    printf 'HTTP/2.0 201 Created\r\n\r\n'; cat pull
    ;;
*) echo "unexpected: $*" >&2; exit 2 ;;
esac
"#;

fn install(folder: &Path, script: &str) -> GitHub {
    let program = folder.join("gh");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(folder.join("head"), request().head).unwrap();
    GitHub::new(GhCli::new("github.com", program)).with_retry_wait(Duration::from_millis(1))
}

fn posts(folder: &Path) -> usize {
    let calls = std::fs::read_to_string(folder.join("calls")).unwrap();
    calls.lines().filter(|line| line.contains("--method POST")).count()
}

#[tokio::test]
async fn opens_once_also_when_the_reply_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let github = install(folder.path(), FAKE);
    std::fs::write(folder.path().join("lose"), "").unwrap();
    let opened = github.open_request(&request()).await.unwrap().unwrap();
    assert_eq!((opened.number, opened.existed), (7, true));
    let again = github.open_request(&request()).await.unwrap().unwrap();
    assert_eq!(again.number, 7);
    assert_eq!(posts(folder.path()), 1);
    let posted = std::fs::read_to_string(folder.path().join("posted")).unwrap();
    assert!(posted.contains("Fix the greeting") && posted.contains("gigafactory-request"), "{posted}");
}

#[tokio::test]
async fn job_text_reaches_gh_as_input_not_as_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let github = install(folder.path(), FAKE);
    let mut request = request();
    request.title = "--hostname evil $(touch canary) `touch canary`".to_owned();
    request.body = "'; touch canary; '".to_owned();
    github.open_request(&request).await.unwrap().unwrap();
    let calls = std::fs::read_to_string(folder.path().join("calls")).unwrap();
    assert!(!calls.contains("evil") && !calls.contains("canary"), "{calls}");
    assert!(!folder.path().join("canary").exists());
}

#[tokio::test]
async fn a_missing_or_signed_out_gh_says_so() {
    let missing =
        GitHub::new(GhCli::new("github.com", "/nowhere/gh")).with_retry_wait(Duration::from_millis(1));
    let error = missing.open_request(&request()).await.unwrap_err();
    assert!(matches!(error, ForgeError::Unavailable(_)), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let script = "#!/bin/sh\necho 'To get started with GitHub CLI, please run:  gh auth login' >&2\nexit 4\n";
    let error = install(folder.path(), script).open_request(&request()).await.unwrap_err();
    assert!(matches!(error, ForgeError::Unauthorised(_)) && !error.is_retryable(), "{error}");
}

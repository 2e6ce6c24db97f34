//! The page that this build carries: whole, within its budget, and nothing in it that the policy would stop.
//!
//! Where Node is missing there is no page to look at; `cargo xtask test` builds with `GIGA_WEB=require`.

use giga_web::{Body, NONCE_PLACEHOLDER, Page};

/// For the first screen, packed with gzip.
const SCRIPT_BUDGET: usize = 300 * 1024;

fn page() -> &'static Page {
    giga_web::page().expect("this build has no page; install Node with npm and build with GIGA_WEB=require")
}

/// The values of an attribute, wherever it stands in the document.
fn values(attribute: &str) -> Vec<&'static str> {
    let mark = format!(" {attribute}=\"");
    let index = page().index;
    let after = index.match_indices(&mark).map(|(at, _)| &index[at + mark.len()..]);
    after.filter_map(|rest| rest.split('"').next()).collect()
}

fn is_script(path: &&str) -> bool {
    page().asset(path).is_some_and(|asset| asset.content_type.starts_with("text/javascript"))
}

#[test]
fn what_the_document_loads_is_there() {
    let loaded: Vec<_> = values("src").into_iter().chain(values("href")).collect();
    assert!(loaded.iter().any(is_script), "{loaded:?}");
    for path in loaded {
        assert!(page().asset(path).is_some(), "{path} is missing; nothing may come from elsewhere");
    }
}

#[test]
fn the_document_obeys_its_own_policy() {
    let index = page().index;
    assert_eq!(index.matches(NONCE_PLACEHOLDER).count(), 1, "{index}");
    assert!(index.contains(&format!("<meta name=\"csp-nonce\" content=\"{NONCE_PLACEHOLDER}\"")), "{index}");
    for script in index.split("<script").skip(1) {
        let tag = script.split('>').next().unwrap_or_default();
        assert!(tag.contains(" src=\"/assets/"), "an inline script would not run: <script{tag}>");
    }
    for stopped in
        ["<style", " style=", " onload=", " onclick=", "javascript:", "<base", "http://", "https://"]
    {
        assert!(!index.contains(stopped), "`{stopped}` in {index}");
    }
}

#[test]
fn what_can_be_kept_for_ever_has_a_name_of_its_own() {
    for asset in page().assets {
        assert_eq!(asset.hashed, asset.path.starts_with("/assets/"), "{asset:?}");
        assert!(!asset.path.contains(".map"), "{asset:?} is for those who build it");
        if asset.hashed {
            // Eight letters, a `-` among them perhaps, behind a `-`.
            let stem = asset.path.rsplit_once('.').map_or(asset.path, |(stem, _)| stem);
            let mark = stem.len().checked_sub(9).map(|at| stem.as_bytes()[at]);
            assert_eq!(mark, Some(b'-'), "{asset:?} has no hash in its name");
        }
    }
}

#[test]
fn what_is_packed_is_smaller_and_comes_out_whole() {
    let mut packed = 0;
    for asset in page().assets {
        let plain = asset.body.plain();
        if let Body::Packed { gzip, brotli } = asset.body {
            assert!(gzip.len() < plain.len() && brotli.len() < plain.len(), "{asset:?}");
            packed += 1;
        }
        if asset.content_type.starts_with("text/") {
            assert!(std::str::from_utf8(&plain).is_ok(), "{asset:?}");
        }
    }
    assert!(packed > 0, "the scripts are packed");
}

#[test]
fn the_first_screen_keeps_to_its_budget() {
    let scripts = values("src").into_iter().chain(values("href")).filter(is_script);
    let size = |path| match page().asset(path).map(|asset| asset.body) {
        Some(Body::Packed { gzip, .. }) => gzip.len(),
        Some(Body::Plain(bytes)) => bytes.len(),
        None => 0,
    };
    let total: usize = scripts.map(size).sum();
    assert!(total > 0 && total < SCRIPT_BUDGET, "{total} bytes of script before anything is seen");
}

#[test]
fn a_name_is_a_name_and_no_path() {
    let known = page().assets.first().expect("a page has files").path;
    assert!(page().asset(known).is_some());
    for path in ["", "/", "/assets", "/assets/", "/assets/../index.html", "/index.html"] {
        assert!(page().asset(path).is_none(), "{path}");
    }
    assert!(page().asset(&known[1..]).is_none());
    assert!(page().asset(&format!("{known}/")).is_none());
}

//! An image, made of a small program in the place of `giga`, read again by its digests.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tar::EntryType;

/// Linked as `giga` is, with the C library.
const SMALL: &str = "/bin/true";

fn xtask(words: &[&str]) -> Output {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    xtask.arg("image").args(words).env("SOURCE_DATE_EPOCH", "1700000000").output().unwrap()
}

fn image(folder: &Path, name: &str) -> Vec<u8> {
    let out = folder.join(name);
    let output = xtask(&["coordinator", "--binary", SMALL, "--out", out.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(out).unwrap()
}

fn files(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(archive);
    let entries = archive.entries().unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.header().entry_type() == EntryType::Regular).map(|mut entry| {
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (entry.path().unwrap().display().to_string(), bytes)
    });
    files.collect()
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", const_hex::encode(Sha256::digest(bytes)))
}

/// The blob that a description names, if it is what the description says.
fn blob<'a>(files: &'a BTreeMap<String, Vec<u8>>, described: &Value) -> &'a [u8] {
    let named = described["digest"].as_str().unwrap();
    let bytes = &files[&format!("blobs/sha256/{}", named.strip_prefix("sha256:").unwrap())];
    assert_eq!(digest(bytes), named);
    assert_eq!(described["size"], bytes.len());
    bytes
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn a_coordinators_image_is_whole_small_and_runs_as_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let written = image(folder.path(), "a.tar");
    assert!(written.len() < 8 << 20, "{} bytes around a program of a few", written.len());
    let files = files(&written);
    assert_eq!(json(&files["oci-layout"])["imageLayoutVersion"], "1.0.0");
    let index = json(&files["index.json"]);
    let described = &index["manifests"][0];
    assert_eq!(described["platform"]["os"], "linux");
    let name = format!("localhost/gigafactory-coordinator:{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(described["annotations"]["org.opencontainers.image.ref.name"], name.as_str());
    let manifest = json(blob(&files, described));
    let config = json(blob(&files, &manifest["config"]));
    assert_eq!(config["created"], "2023-11-14T22:13:20Z");
    assert_eq!(config["config"]["User"], "10001:10001");
    assert_eq!(config["config"]["Entrypoint"][0], "/usr/bin/giga");
    assert_eq!(config["config"]["Cmd"][0], "serve");
    assert!(config["config"]["Volumes"]["/var/lib/giga"].is_object());
    assert!(config["config"]["ExposedPorts"]["7717/tcp"].is_object());

    let layers = manifest["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 2);
    assert_eq!(files.len(), 3 + 2 + layers.len(), "nothing that nobody refers to");
    let old = &json(&files["manifest.json"])[0];
    assert_eq!(old["RepoTags"][0], name.as_str());
    let same = |old: &Value, described: &Value| {
        let digest = described["digest"].as_str().unwrap().replace("sha256:", "blobs/sha256/");
        assert_eq!(old.as_str(), Some(digest.as_str()));
    };
    same(&old["Config"], &manifest["config"]);
    for (old, layer) in old["Layers"].as_array().unwrap().iter().zip(layers) {
        same(old, layer);
    }
    let mut seen = BTreeMap::new();
    for (layer, unpacked) in layers.iter().zip(config["rootfs"]["diff_ids"].as_array().unwrap()) {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(blob(&files, layer)).read_to_end(&mut plain).unwrap();
        assert_eq!(digest(&plain), unpacked.as_str().unwrap());
        let mut archive = tar::Archive::new(plain.as_slice());
        for entry in archive.entries().unwrap() {
            let entry = entry.unwrap();
            let header = entry.header();
            let path = entry.path().unwrap().display().to_string().trim_end_matches('/').to_owned();
            let (mode, kind) = (header.mode().unwrap(), header.entry_type());
            assert_eq!(mode & 0o6000, 0, "{path} is setuid or setgid");
            assert!(
                matches!(kind, EntryType::Regular | EntryType::Directory | EntryType::Symlink),
                "{path} is a {kind:?}"
            );
            assert_eq!(header.mtime().unwrap(), 0, "{path}");
            let owner = header.uid().unwrap();
            assert_eq!(owner, if path == "var/lib/giga" { 10001 } else { 0 }, "{path}");
            let is_for_all = mode & 0o002 != 0 && kind != EntryType::Symlink;
            assert_eq!(is_for_all, path == "tmp", "{path} can be written by everybody");
            let link = entry.link_name().unwrap().map(|link| link.display().to_string());
            seen.insert(path, (mode, header.size().unwrap(), link));
        }
    }
    assert_eq!(seen["usr/bin/giga"].0, 0o755);
    assert_eq!(seen["lib"].2.as_deref(), Some("usr/lib"));
    assert!(seen.keys().any(|path| path.starts_with("usr/lib") && path.ends_with("/libc.so.6")), "{seen:?}");
    assert!(seen.keys().any(|path| path.contains("/ld-linux")), "the program cannot be started: {seen:?}");
    assert!(seen["etc/ssl/certs/ca-certificates.crt"].1 > 10_000);
    assert!(!seen.keys().any(|path| path.ends_with("/sh")), "a coordinator needs no shell");
}

#[test]
fn the_same_again_is_the_same_image() {
    let folder = tempfile::tempdir().unwrap();
    assert!(image(folder.path(), "a.tar") == image(folder.path(), "b.tar"));
}

#[test]
fn what_cannot_be_an_image_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("giga");
    std::fs::write(&script, "#!/bin/sh\n").unwrap();
    let (script, out) = (script.to_str().unwrap(), folder.path().join("a.tar"));
    let refused = |words: &[&str]| {
        let output = xtask(words);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let of_script = refused(&["--binary", script, "--out", out.to_str().unwrap()]);
    assert!(of_script.contains("no program for an image") && of_script.contains("ELF"), "{of_script}");
    assert!(!out.exists());
    assert!(
        refused(&["--binary", SMALL, "--ca-certs", "/nowhere.pem"]).contains("/nowhere.pem cannot be read")
    );
    assert!(refused(&["--flavour", "x"]).contains("there is no --flavour"));
    assert!(refused(&["--package", "nodejs", "--binary", SMALL]).contains("cargo xtask image factory"));
    assert!(refused(&["--out"]).contains("--out needs a value"));
}

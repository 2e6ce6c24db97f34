//! An image as the OCI's image layout has it, in one tar file: `oci-layout`, `index.json`, and blobs by their digest. Beside them
//! `manifest.json`, by which older versions of Docker find the same blobs.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::tree::Tree;
use super::{DATA, USER};

#[derive(Debug)]
pub(super) struct Image {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    pub(super) architecture: &'static str,
    pub(super) made: String,
    pub(super) command: &'static [&'static str],
    pub(super) environment: &'static [&'static str],
    pub(super) port: Option<&'static str>,
    pub(super) layers: Vec<Tree>,
}

/// What a manifest says of a blob.
struct Blob {
    digest: String,
    bytes: Vec<u8>,
}

impl Blob {
    fn new(bytes: Vec<u8>) -> Self {
        Self { digest: digest(&bytes), bytes }
    }

    fn json(value: &Value) -> Self {
        Self::new(value.to_string().into_bytes())
    }

    fn described(&self, media: &str) -> Value {
        json!({"mediaType": media, "digest": self.digest, "size": self.bytes.len()})
    }
}

impl Image {
    pub(super) fn write(&self, out: &Path) -> Result<()> {
        let (mut blobs, mut layers, mut unpacked) = (Vec::new(), Vec::new(), Vec::new());
        for tree in &self.layers {
            let mut plain = Vec::new();
            tree.write(&mut plain)?;
            unpacked.push(digest(&plain));
            // Neither a name nor a time in its head, so that equal files make equal layers.
            let mut packed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
            packed.write_all(&plain)?;
            let blob = Blob::new(packed.finish()?);
            layers.push(blob.described("application/vnd.oci.image.layer.v1.tar+gzip"));
            blobs.push(blob);
        }
        let config = Blob::json(&self.config(&unpacked));
        let manifest = Blob::json(&json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config.described("application/vnd.oci.image.config.v1+json"),
            "layers": layers,
        }));
        let mut described = manifest.described("application/vnd.oci.image.manifest.v1+json");
        described["platform"] = json!({"architecture": self.architecture, "os": "linux"});
        let reference = format!("localhost/{}:{}", self.name, self.version);
        // The first is read by podman and skopeo, the second by containerd.
        described["annotations"] =
            json!({"org.opencontainers.image.ref.name": reference, "io.containerd.image.name": reference});
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [described],
        });
        let place = |blob: &Value| {
            let digest = blob["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:"));
            Some(format!("blobs/sha256/{}", digest?))
        };
        let old = json!([{
            "Config": place(&config.described("")),
            "RepoTags": [reference],
            "Layers": layers.iter().map(place).collect::<Vec<_>>(),
        }]);
        blobs.extend([config, manifest]);
        let mut files = Tree::default();
        files.file("manifest.json", old.to_string());
        files.file("oci-layout", json!({"imageLayoutVersion": "1.0.0"}).to_string());
        files.file("index.json", index.to_string());
        for blob in blobs {
            let name = blob.digest.strip_prefix("sha256:").context("digests are of SHA-256")?;
            files.file(&format!("blobs/sha256/{name}"), blob.bytes);
        }
        files.write(std::io::BufWriter::new(std::fs::File::create(out)?))
    }

    fn config(&self, unpacked: &[String]) -> Value {
        let mut environment = vec![
            "PATH=/usr/local/bin:/usr/bin:/bin".to_owned(),
            format!("HOME=/{DATA}"),
            format!("GIGA_DATA=/{DATA}"),
        ];
        environment.extend(self.environment.iter().map(|line| (*line).to_owned()));
        let mut config = json!({
            "User": format!("{USER}:{USER}"),
            "Env": environment,
            "Entrypoint": ["/usr/bin/giga"],
            "Cmd": self.command,
            "WorkingDir": format!("/{DATA}"),
            "Volumes": {format!("/{DATA}"): {}},
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": self.name,
                "org.opencontainers.image.version": self.version,
                "org.opencontainers.image.licenses": env!("CARGO_PKG_LICENSE"),
                "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
            },
        });
        if let Some(port) = self.port {
            config["ExposedPorts"] = json!({port: {}});
        }
        let history = ["what giga needs of the system", "giga"]
            .map(|by| json!({"created": self.made, "created_by": by}));
        json!({
            "created": self.made,
            "architecture": self.architecture,
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": unpacked},
            "history": history,
        })
    }
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", const_hex::encode(Sha256::digest(bytes)))
}

/// By the head of the program itself: it need not be for the machine that makes the image.
pub(super) fn architecture(program: &[u8]) -> Result<&'static str> {
    let head = program.get(..20).filter(|head| head.starts_with(b"\x7fELF"));
    let head = head.context("it is not in the format of Linux (ELF)")?;
    match u16::from_le_bytes([head[18], head[19]]) {
        62 => Ok("amd64"),
        183 => Ok("arm64"),
        other => {
            bail!("its machine has the number {other}; images are made for x86-64 (62) and AArch64 (183)")
        }
    }
}

/// RFC 3339 of seconds since 1970.
pub(super) fn date(seconds: i64) -> Result<String> {
    Ok(jiff::Timestamp::from_second(seconds).context("no calendar has this time")?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_architecture_is_the_programs() {
        let mut head = [0_u8; 20];
        head[..4].copy_from_slice(b"\x7fELF");
        head[18] = 62;
        assert_eq!(architecture(&head).unwrap(), "amd64");
        head[18] = 183;
        assert_eq!(architecture(&head).unwrap(), "arm64");
        head[18] = 8;
        assert!(architecture(&head).unwrap_err().to_string().contains("number 8"));
        assert!(architecture(b"#!/bin/sh\n").unwrap_err().to_string().contains("ELF"));
    }
}

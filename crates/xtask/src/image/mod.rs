//! `cargo xtask image`: an OCI image of `giga` as one file, made from what is on this machine. No registry, no container
//! engine, no root. What goes in is copied file by file, so nothing is setuid, nothing is a device, and nothing depends
//! on who builds it or when.

mod coordinator;
mod factory;
mod layout;
mod prove;
mod tree;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::{cargo, root, run, target};
use layout::Image;
use tree::Tree;

const USAGE: &str = "\
cargo xtask image [coordinator|factory] [options]

  --out FILE       where to write the image (target/image/gigafactory-NAME.tar)
  --binary PATH    a giga that is built already; without it, `cargo build --release` builds one
  --package NAME   factory: a Debian package that it has as well, such as nodejs; may be repeated
  --ca-certs FILE  coordinator: the certificates that it trusts (the system's)
  --try            make both images and run them with podman: read-only, without root, a job to its end
";

/// Neither a user of the host nor one of Debian's.
const USER: u32 = 10001;
/// Where the volume belongs: the only folder that is written to, besides /tmp.
const DATA: &str = "var/lib/giga";

#[derive(Debug, Default)]
struct Wanted {
    factory: bool,
    out: Option<PathBuf>,
    binary: Option<PathBuf>,
    packages: Vec<String>,
    ca_certs: Option<PathBuf>,
    prove: bool,
}

pub(crate) fn run_image(words: &[String]) -> Result<()> {
    let wanted = parse(words)?;
    let binary = match &wanted.binary {
        Some(binary) => binary.clone(),
        None => build()?,
    };
    if wanted.prove {
        return prove::run(&binary, &wanted.packages);
    }
    let name = if wanted.factory { "gigafactory-factory" } else { "gigafactory-coordinator" };
    let out = wanted.out.clone().unwrap_or_else(|| home().join(format!("{name}.tar")));
    let size = make(&wanted, &binary, &out)?;
    let out = out.canonicalize()?;
    let (out, version) = (out.display(), env!("CARGO_PKG_VERSION"));
    eprintln!(
        "{out}: {} MiB, runs as user {USER}, keeps everything in /{DATA}\n\
         load it:  podman load -i {out}        (it is localhost/{name}:{version} then)\n\
         push it:  skopeo copy oci-archive:{out} docker://REGISTRY/{name}:{version}",
        size.div_ceil(1 << 20)
    );
    Ok(())
}

fn parse(words: &[String]) -> Result<Wanted> {
    let mut wanted = Wanted::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value\n\n{USAGE}"));
        match word.as_str() {
            "coordinator" => wanted.factory = false,
            "factory" => wanted.factory = true,
            "--out" => wanted.out = Some(value()?.into()),
            "--binary" => wanted.binary = Some(value()?.into()),
            "--package" => wanted.packages.push(value()?.clone()),
            "--ca-certs" => wanted.ca_certs = Some(value()?.into()),
            "--try" => wanted.prove = true,
            other => bail!("there is no {other}\n\n{USAGE}"),
        }
    }
    if !wanted.packages.is_empty() && !wanted.factory && !wanted.prove {
        bail!("--package is for the factory's image: say `cargo xtask image factory --package …`");
    }
    if wanted.ca_certs.is_some() && wanted.factory {
        bail!("--ca-certs is for the coordinator's image; the factory's has those of Debian");
    }
    Ok(wanted)
}

fn home() -> PathBuf {
    target().join("image")
}

fn build() -> Result<PathBuf> {
    run(cargo().args(["build", "--release", "--locked", "--package", "giga"]))?;
    Ok(target().join("release/giga"))
}

fn make(wanted: &Wanted, binary: &Path, out: &Path) -> Result<u64> {
    let program = std::fs::read(binary).with_context(|| format!("{} cannot be read", binary.display()))?;
    let architecture = layout::architecture(&program)
        .with_context(|| format!("{} is no program for an image", binary.display()))?;
    let system = if wanted.factory {
        factory::system(binary, &wanted.packages)?
    } else {
        coordinator::system(binary, wanted.ca_certs.as_deref())?
    };
    let mut ours = Tree::default();
    ours.program("usr/bin/giga", program);
    let image = Image {
        name: if wanted.factory { "gigafactory-factory" } else { "gigafactory-coordinator" },
        version: env!("CARGO_PKG_VERSION"),
        architecture,
        made: layout::date(made()?)?,
        command: if wanted.factory { &["factory", "run"] } else { &["serve"] },
        // On loopback nothing outside of the container could reach it.
        environment: if wanted.factory { &[] } else { &["GIGA_LISTEN=0.0.0.0:7717"] },
        port: (!wanted.factory).then_some("7717/tcp"),
        layers: vec![system, ours],
    };
    if let Some(folder) = out.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    image.write(out).with_context(|| format!("{} cannot be written", out.display()))?;
    Ok(std::fs::metadata(out)?.len())
}

/// The time that the image bears: as reproducible builds have it, else that of the commit.
fn made() -> Result<i64> {
    if let Ok(epoch) = std::env::var("SOURCE_DATE_EPOCH") {
        return epoch.parse().context("SOURCE_DATE_EPOCH is a number of seconds");
    }
    let mut git = std::process::Command::new("git");
    let said = git.args(["log", "-1", "--format=%ct"]).current_dir(root()).output();
    let said = said.ok().map(|said| String::from_utf8_lossy(&said.stdout).trim().parse());
    Ok(said.and_then(Result::ok).unwrap_or(0))
}

/// Users, names, and the folders that something is mounted on.
fn common(tree: &mut Tree, shell: &str) {
    tree.file(
        "etc/passwd",
        format!(
            "root:x:0:0:root:/root:{shell}\nnobody:x:65534:65534:nobody:/nonexistent:{shell}\n\
             giga:x:{USER}:{USER}:giga:/{DATA}:{shell}\n"
        ),
    );
    tree.file("etc/group", format!("root:x:0:\nnogroup:x:65534:\ngiga:x:{USER}:\n"));
    tree.file("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n");
    tree.folder("tmp", 0o1777, 0);
    tree.folder(DATA, 0o700, USER);
    for folder in ["dev", "proc", "run", "sys"] {
        tree.folder(folder, 0o755, 0);
    }
}

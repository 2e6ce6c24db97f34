//! What a coordinator needs of a system: the libraries that its program is linked with, and certificates to trust. No
//! shell, no package manager, nothing to run besides `giga`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::{common, tree::Tree};

/// Where Debian and its relatives, Red Hat and its relatives, and others keep all certificates in a file.
const CERTIFICATES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

pub(super) fn system(binary: &Path, ca_certs: Option<&Path>) -> Result<Tree> {
    let mut tree = Tree::default();
    tree.has_merged_links();
    for library in libraries(binary)? {
        let bytes =
            std::fs::read(&library).with_context(|| format!("{} cannot be read", library.display()))?;
        let path = library.to_str().context("libraries have plain names")?;
        tree.program(path, bytes);
    }
    let certificates = match ca_certs {
        Some(file) => file.to_path_buf(),
        None => CERTIFICATES.iter().map(PathBuf::from).find(|file| file.exists()).context(
            "this machine has no certificates of CAs to put into the image: install ca-certificates, or name a \
             PEM file with --ca-certs",
        )?,
    };
    let bytes = std::fs::read(&certificates);
    let bytes = bytes.with_context(|| format!("{} cannot be read", certificates.display()))?;
    tree.file("etc/ssl/certs/ca-certificates.crt", bytes);
    common(&mut tree, "/sbin/nologin");
    Ok(tree)
}

/// Those that the dynamic linker would load, itself among them, by their absolute paths. None for a static program.
pub(super) fn libraries(binary: &Path) -> Result<Vec<PathBuf>> {
    let binary = std::path::absolute(binary)?;
    let output = Command::new("ldd").arg(&binary).env("LC_ALL", "C").output();
    let output = output.context("`ldd` could not be started: it comes with the C library")?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        if complaint.contains("not a dynamic executable") || said.contains("statically linked") {
            return Ok(Vec::new());
        }
        bail!("ldd {}: {}", binary.display(), complaint.trim());
    }
    read(&said).with_context(|| format!("of the libraries of {}", binary.display()))
}

/// Lines such as `libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x…)` and `/lib64/ld-linux-x86-64.so.2 (0x…)`.
fn read(said: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for line in said.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.contains("not found") {
            bail!("this machine does not have {line}");
        }
        let path = line.split(" => ").last().and_then(|path| path.split(" (").next()).unwrap_or_default();
        if path.starts_with('/') {
            found.push(path.into());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_what_the_linker_says() {
        let said = "\tlinux-vdso.so.1 (0x00007ff8)\n\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007ff8)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007ff8)\n";
        let found = read(said).unwrap();
        assert_eq!(
            found,
            [Path::new("/lib/x86_64-linux-gnu/libm.so.6"), Path::new("/lib64/ld-linux-x86-64.so.2")]
        );
        let missing = read("\tlibfoo.so.1 => not found\n").unwrap_err().to_string();
        assert_eq!(missing, "this machine does not have libfoo.so.1 => not found");
    }
}

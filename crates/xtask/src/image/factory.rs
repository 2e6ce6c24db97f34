//! What a factory needs of a system: git, bubblewrap, a shell and its tools. They are Debian's packages of the release that
//! this machine has, unpacked without running anything of theirs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use super::{common, coordinator::libraries, home, tree::Tree};
use crate::run;

const PACKAGES: [&str; 17] = [
    "bash",
    "bubblewrap",
    "ca-certificates",
    "coreutils",
    "dash",
    "debianutils",
    "diffutils",
    "findutils",
    "git",
    "git-lfs",
    "grep",
    "gzip",
    "mawk",
    "openssh-client",
    "procps",
    "sed",
    "tar",
];

/// Needed by scripts of packages, which are not run, or by commands of git that no factory uses.
const NOT_NEEDED: [&str; 18] = [
    "adduser",
    "cdebconf",
    "debconf",
    "dpkg",
    "git-man",
    "init-system-helpers",
    "liberror-perl",
    "libpam",
    "libperl5",
    "libsemanage",
    "libsepol",
    "login",
    "openssl",
    "passwd",
    "perl",
    "sysvinit",
    "ucf",
    "usrmerge",
];

pub(super) fn system(binary: &Path, more: &[String]) -> Result<Tree> {
    let apt = Apt::new()?;
    let mut tree = Tree::default();
    tree.has_merged_links();
    for package in apt.packages(more)? {
        let mut unpacked = Command::new("dpkg-deb")
            .arg("--fsys-tarfile")
            .arg(&package)
            .stdout(Stdio::piped())
            .spawn()
            .context("`dpkg-deb` could not be started: the factory's image is made of Debian's packages")?;
        let stream = unpacked.stdout.take().context("its output is a pipe")?;
        tree.unpack(stream, is_wanted).with_context(|| format!("{}", package.display()))?;
        if !unpacked.wait()?.success() {
            bail!("{} cannot be unpacked", package.display());
        }
    }
    // What scripts of the packages do.
    let certificates =
        tree.contents("usr/share/ca-certificates/mozilla", "crt").fold(Vec::new(), |mut all, certificate| {
            all.extend_from_slice(certificate);
            all
        });
    if certificates.is_empty() {
        bail!("the package ca-certificates has no certificates");
    }
    tree.file("etc/ssl/certs/ca-certificates.crt", certificates);
    for (name, program) in [("sh", "dash"), ("awk", "mawk"), ("which", "which.debianutils")] {
        if !tree.has(&Path::new("usr/bin").join(program)) {
            bail!("no package of the image has {program}, which is to be `{name}`");
        }
        tree.link(&format!("usr/bin/{name}"), program);
    }
    common(&mut tree, "/bin/bash");
    for library in libraries(binary)? {
        if !tree.has(&library) {
            bail!("giga is linked with {}, which is in no package of the image", library.display());
        }
    }
    Ok(tree)
}

/// Documents stay away, but for what is to be passed on with the programs.
fn is_wanted(path: &Path) -> bool {
    const NOT_WANTED: [&str; 9] = [
        "etc/init.d",
        "usr/share/bash-completion",
        "usr/share/doc-base",
        "usr/share/info",
        "usr/share/lintian",
        "usr/share/locale",
        "usr/share/man",
        "var/cache",
        "var/lib/dpkg",
    ];
    let is_document = path.starts_with("usr/share/doc") && !path.ends_with("copyright");
    !is_document && !NOT_WANTED.iter().any(|folder| path.starts_with(folder))
}

/// With lists, archives and a record of what is installed (nothing) of its own: the machine's are not touched, and nobody
/// has to be root.
struct Apt {
    home: PathBuf,
}

impl Apt {
    fn new() -> Result<Self> {
        let home = std::path::absolute(home().join("apt"))?;
        for folder in ["lists/partial", "archives/partial"] {
            std::fs::create_dir_all(home.join(folder))?;
        }
        std::fs::write(home.join("status"), "")?;
        Ok(Self { home })
    }

    fn command(&self) -> Command {
        let mut apt = Command::new("apt-get");
        apt.arg("-q").arg("-o").arg(format!("Dir::State={}", self.home.display()));
        for (name, place) in [
            ("Dir::State::status", "status"),
            ("Dir::State::lists", "lists"),
            ("Dir::Cache::archives", "archives"),
            ("Dir::Cache::pkgcache", "pkgcache.bin"),
            ("Dir::Cache::srcpkgcache", "srcpkgcache.bin"),
        ] {
            apt.arg("-o").arg(format!("{name}={}", self.home.join(place).display()));
        }
        apt.args(["-o", "APT::Sandbox::User=", "-o", "APT::Keep-Downloaded-Packages=true"]);
        apt.args(["-o", "APT::Install-Recommends=false", "-o", "APT::Install-Suggests=false"]);
        apt.args(["-o", "Acquire::Languages=none"]);
        apt
    }

    /// Those that are wanted with all that they depend on, downloaded, in the order of their names.
    fn packages(&self, more: &[String]) -> Result<Vec<PathBuf>> {
        let update = run(self.command().arg("update").stdout(Stdio::null()));
        update.context("the factory's image is made of Debian's packages, which takes apt-get")?;
        let wanted = || PACKAGES.into_iter().chain(more.iter().map(String::as_str));
        let output = self.command().args(["--simulate", "install"]).args(wanted()).output()?;
        if !output.status.success() {
            bail!("apt-get: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let said = String::from_utf8_lossy(&output.stdout);
        let mut needed: Vec<(&str, String)> = said.lines().filter_map(archive).collect();
        needed.retain(|(name, _)| is_needed(name, more));
        needed.sort_unstable();
        let archives = self.home.join("archives");
        let missing = needed.iter().filter(|(_, file)| !archives.join(file).exists());
        let missing: Vec<&str> = missing.map(|(name, _)| *name).collect();
        if !missing.is_empty() {
            eprintln!("downloading {} packages", missing.len());
            let mut download = self.command();
            run(download.arg("download").args(&missing).current_dir(&archives).stdout(Stdio::null()))?;
        }
        Ok(needed.into_iter().map(|(_, file)| archives.join(file)).collect())
    }
}

fn is_needed(name: &str, more: &[String]) -> bool {
    more.iter().any(|wanted| wanted == name)
        || PACKAGES.contains(&name)
        || !NOT_NEEDED.iter().any(|left_out| name.starts_with(left_out))
}

/// Name and file of a package, of a line such as `Inst git (1:2.39.5-0+deb12u2 Debian:12.11/stable [amd64])`.
fn archive(line: &str) -> Option<(&str, String)> {
    let (name, rest) = line.strip_prefix("Inst ")?.split_once(" (")?;
    let version = rest.split(' ').next()?.replace(':', "%3a");
    let architecture = rest.split_once('[')?.1.split(']').next()?;
    Some((name, format!("{name}_{version}_{architecture}.deb")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_stay_away_and_licences_do_not() {
        assert!(is_wanted(Path::new("usr/share/doc/git/copyright")));
        assert!(!is_wanted(Path::new("usr/share/doc/git/README")));
        assert!(!is_wanted(Path::new("usr/share/man/man1/git.1.gz")));
        assert!(is_wanted(Path::new("usr/bin/git")));
    }

    #[test]
    fn what_is_asked_for_is_not_left_out() {
        assert!(!is_needed("perl-base", &[]));
        assert!(is_needed("perl", &["perl".to_owned()]));
        assert!(is_needed("libc6", &[]));
    }

    #[test]
    fn packages_are_read_from_what_apt_says() {
        let line =
            "Inst git (1:2.39.5-0+deb12u2 Debian:12.11/stable, Debian-Security:12/stable-security [amd64])";
        assert_eq!(archive(line), Some(("git", "git_1%3a2.39.5-0+deb12u2_amd64.deb".to_owned())));
        assert_eq!(archive("Conf git (1:2.39.5-0+deb12u2 Debian:12.11/stable [amd64])"), None);
    }
}

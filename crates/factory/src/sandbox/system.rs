//! What of the machine every job sees, read-only: programs, libraries, and those files of /etc that say nothing of its
//! owner.

use std::ffi::OsString;
use std::path::Path;

/// Where programs and libraries are. Some are links into /usr on most systems, and are made so inside.
const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// Names, addresses, certificates, how programs are linked and which one is meant. Nothing here is a secret on a machine
/// that is set up in the usual way; what is not on the list is not there.
const ETC: [&str; 38] = [
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "default/locale",
    "fonts",
    "gai.conf",
    "group",
    "host.conf",
    "hosts",
    "inputrc",
    "java",
    "java-17-openjdk",
    "java-21-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "lsb-release",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "perl",
    "pki/ca-trust",
    "pki/tls/certs",
    "protocols",
    "python3",
    "resolv.conf",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
];

/// Bubblewrap's arguments for them.
pub(super) fn mounts() -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    for path in SYSTEM {
        match std::fs::read_link(path) {
            Ok(target) => args.extend(["--symlink".into(), target.into(), path.into()]),
            Err(_) if Path::new(path).is_dir() => args.extend(["--ro-bind".into(), path.into(), path.into()]),
            Err(_) => {}
        }
    }
    for name in ETC {
        let path = Path::new("/etc").join(name);
        if path.exists() {
            args.extend(["--ro-bind".into(), path.clone().into(), path.into()]);
        }
    }
    args
}

/// Whether it is there inside without anybody granting it. Links are followed.
pub(super) fn shows(path: &Path) -> bool {
    let is_system = |path: &Path| SYSTEM.iter().any(|root| path.starts_with(root));
    is_system(path)
        && path.canonicalize().is_ok_and(|real| is_system(&real) || real.starts_with("/etc/alternatives"))
}

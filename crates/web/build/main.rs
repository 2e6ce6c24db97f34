//! Builds the page in `web/` and writes the table of what the library carries.
//!
//! `GIGA_WEB=skip` leaves the page out; `require` fails where it cannot be made; without it a page that cannot be made
//! is a warning, because everything but the page works without. Nothing in the source tree is written to but
//! `web/node_modules`.
#![expect(clippy::print_stdout, reason = "this is how a build script talks to cargo")]
#![expect(clippy::print_stderr, reason = "and this is how it talks to whoever reads why it failed")]

mod inputs;
mod node;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Skip,
    Try,
    Require,
}

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-env-changed=GIGA_WEB");
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).ok_or(format!("cargo sets {name}"));
    let (here, out) = (folder("CARGO_MANIFEST_DIR")?, folder("OUT_DIR")?);
    let web = here.join("../../web");
    let wanted = match std::env::var("GIGA_WEB").as_deref() {
        Err(_) | Ok("" | "try") => Wanted::Try,
        Ok("skip") => Wanted::Skip,
        Ok("require") => Wanted::Require,
        Ok(other) => {
            return Err(format!(
                "GIGA_WEB is `{other}`: `skip` leaves the page out, `require` fails without it, `try` (as when it is not set) warns"
            ));
        }
    };
    if wanted == Wanted::Skip {
        return table::without_page(&out);
    }
    let page = page(&web, &out);
    for input in inputs::watched(&web) {
        println!("cargo::rerun-if-changed={}", input.display());
    }
    match page {
        Ok(dist) => table::with_page(&out, &dist),
        Err(why) if wanted == Wanted::Require => {
            Err(format!("the page could not be built, and GIGA_WEB=require asks for it\n{why}"))
        }
        Err(why) => {
            let first = why.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason was given");
            println!(
                "cargo::warning=giga is built without its web page: {first}. Everything else works; \
                 GIGA_WEB=require tries again and says all about it, GIGA_WEB=skip says nothing"
            );
            table::without_page(&out)
        }
    }
}

/// The folder with the page, built anew only where something that goes into it is new.
fn page(web: &Path, out: &Path) -> Result<PathBuf, String> {
    let dist = out.join("dist");
    node::check()?;
    // Cargo's own lock is per target folder, and somebody may well use two.
    let _lock = node::lock(web)?;
    node::install(web)?;
    // Switching GIGA_WEB runs this script again, though the page is the same.
    let (stamp, inputs) = (out.join("dist.inputs"), inputs::fingerprint(web)?);
    if std::fs::read_to_string(&stamp).is_ok_and(|built_from| built_from == inputs) {
        return Ok(dist);
    }
    let _ = std::fs::remove_file(&stamp);
    node::build(web, &dist)?;
    std::fs::write(&stamp, inputs)
        .map_err(|error| format!("{} cannot be written: {error}", stamp.display()))?;
    Ok(dist)
}

//! The help texts are read more often than any other document, so that a change to them is seen.

use std::fmt::Write as _;
use std::path::Path;

use crate::world::Home;

fn subcommands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = list.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("    "));
    names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// `docs/cli.md` is the help of every command, so the reference cannot drift from the program.
/// `GIGA_UPDATE_DOCS=1 cargo test -p giga --test cli help` writes it anew.
#[test]
fn of_every_command() {
    let home = Home::new();
    let mut page = String::from("# Command line\n\nThe help of every command, as `giga help` prints it.\n");
    let mut open: Vec<Vec<String>> = vec![Vec::new()];
    let mut seen = 0;
    while let Some(path) = open.pop() {
        let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
        args.push("--help");
        let help = home.giga(&args).ok();
        let name = [vec!["giga".to_owned()], path.clone()].concat().join(" ");
        write!(page, "\n## {name}\n\n```text\n{}\n```\n", help.trim_end()).unwrap();
        seen += 1;
        open.extend(subcommands(&help).into_iter().rev().map(|name| [path.clone(), vec![name]].concat()));
    }
    assert!(seen > 35, "only {seen} commands were found");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    if std::env::var_os("GIGA_UPDATE_DOCS").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == page,
        "docs/cli.md is out of date: GIGA_UPDATE_DOCS=1 cargo test -p giga --test cli help"
    );
}

#[test]
fn version_and_completions() {
    let home = Home::new();
    assert_eq!(home.giga(&["--version"]).ok(), home.giga(&["version"]).ok());
    for shell in ["bash", "zsh", "fish"] {
        assert!(home.giga(&["completions", shell]).ok().contains("deregister"), "{shell}");
    }
    let alone = home.giga(&[]).fails(2);
    assert!(alone.contains("First steps"), "{alone}");
}

//! Every flag and variable that `deploy/` and the page about it give to `giga` is in the reference of the command line.

use std::collections::BTreeSet;
use std::path::Path;

use crate::root;

/// `command -> what its help says`, of the reference.
fn reference() -> Vec<(String, String)> {
    let page = std::fs::read_to_string(root().join("docs/cli.md")).unwrap();
    let sections = page.split("\n## ").skip(1).filter_map(|section| section.split_once('\n'));
    sections.map(|(name, help)| (name.trim().to_owned(), help.to_owned())).collect()
}

fn deployed() -> Vec<(String, String)> {
    let mut files = vec![root().join("docs/deploy.md")];
    let mut folders = vec![root().join("deploy")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    let read = |path: &Path| (path.display().to_string(), std::fs::read_to_string(path).unwrap());
    files.iter().map(|path| read(path)).collect()
}

/// The command that the words begin with, and its help.
fn command<'a>(reference: &'a [(String, String)], words: &[&str]) -> Option<(&'a str, &'a str)> {
    let known = |name: &str| name.split(' ').eq(words.iter().take(name.split(' ').count()).copied());
    let found = reference.iter().filter(|(name, _)| known(name)).max_by_key(|(name, _)| name.len());
    found.map(|(name, help)| (name.as_str(), help.as_str()))
}

/// The long flags of a line, up to where another program begins.
fn flags<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let ours = words.iter().take_while(|word| !["|", "&&", ">", "<", ";", "--"].contains(word));
    let flags = ours.filter(|word| word.starts_with("--")).map(|word| word.split('=').next().unwrap_or(word));
    flags.map(|flag| flag.trim_end_matches(['`', ',', '.', ')', ':'])).collect()
}

fn has_flag(help: &str, flag: &str) -> bool {
    let follows = |rest: &str| rest.starts_with([' ', ',', '\n', '[', '=']);
    help.match_indices(flag).any(|(at, _)| follows(&help[at + flag.len()..]))
}

#[test]
fn flags_of_commands_are_in_the_reference() {
    let reference = reference();
    let mut seen = 0;
    for (file, text) in deployed() {
        for line in text.replace("\\\n", " ").lines() {
            let starts = line.match_indices("giga ").filter(|(at, _)| {
                *at == 0 || line[..*at].ends_with([' ', '`', '/', '$', '(']) && !line[..*at].ends_with("-- ")
            });
            for (at, _) in starts {
                let words: Vec<&str> =
                    line[at..].split('`').next().unwrap_or_default().split_whitespace().collect();
                let is_code = at == 0 || line[..at].ends_with('`');
                let Some((name, help)) = command(&reference, &words).filter(|(name, _)| *name != "giga")
                else {
                    assert!(!is_code, "{file}: there is no such command in docs/cli.md: {line}");
                    continue;
                };
                for flag in flags(&words) {
                    seen += 1;
                    assert!(has_flag(help, flag), "{file}: `{name}` has no {flag} in docs/cli.md: {line}");
                }
            }
        }
    }
    assert!(seen > 20, "the commands were found: {seen}");
}

/// The chart hands its flags over one by one.
#[test]
fn flags_of_the_chart_are_in_the_reference() {
    let reference = reference();
    let mut seen = BTreeSet::new();
    for (template, name) in [("coordinator.yaml", "giga serve"), ("_factory.tpl", "giga factory run")] {
        let text =
            std::fs::read_to_string(root().join("deploy/helm/gigafactory/templates").join(template)).unwrap();
        let (_, help) = reference.iter().find(|(command, _)| command == name).unwrap();
        for line in text
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with("- --") || line.contains("printf \"--"))
        {
            let flag = &line[line.find("--").unwrap()..];
            let flag = flag.split(['=', '"', ' ', '{']).next().unwrap();
            if flag == "--" {
                continue;
            }
            assert!(has_flag(help, flag), "{template}: `{name}` has no {flag} in docs/cli.md");
            seen.insert(flag.to_owned());
        }
    }
    assert!(seen.len() > 12, "{seen:?}");
}

#[test]
fn variables_are_in_the_reference() {
    let page = std::fs::read_to_string(root().join("docs/cli.md")).unwrap();
    // That one is KEDA's to read, and reaches the coordinator in a call.
    let not_ours = ["GIGA_SCALER_TOKEN"];
    let mut seen = BTreeSet::new();
    for (file, text) in deployed() {
        for (at, _) in text.match_indices("GIGA_") {
            let rest = &text[at..];
            let end = rest.find(|c: char| !(c.is_ascii_uppercase() || c == '_')).unwrap_or(rest.len());
            let name = &rest[..end];
            assert!(page.contains(name) || not_ours.contains(&name), "{file}: no command reads {name}");
            seen.insert(name.to_owned());
        }
    }
    assert!(seen.len() > 10, "{seen:?}");
}

//! A manifest to start from: short enough to read, and every key with its meaning.

use std::io::Write;
use std::path::Path;

use crate::args::InitArgs;
use crate::commands::Done;
use crate::commands::context::Context;
use crate::exit::CliError;
use crate::output::say;

const STARTER: &str = include_str!("starter.md");

/// The starter, for a job that leaves something behind in the repository.
fn with_repo(repo: &str) -> String {
    // Quoted, whatever the name is: JSON's text is YAML's.
    let name = serde_json::Value::from(repo);
    let starter = STARTER
        .replace("# repo: hello                      ", &format!("repo: {name}                      "));
    starter.replace("script: echo Hello from a factory. ", "script: date > HELLO.md            ")
}

pub(super) fn init(args: &InitArgs, context: &Context) -> Done {
    let starter = args.repo.as_deref().map_or_else(|| STARTER.to_owned(), with_repo);
    if args.file == Path::new("-") {
        return context.output.text(&starter);
    }
    let shown = args.file.display();
    let mut options = std::fs::OpenOptions::new();
    options.write(true);
    // Creating only what is not there is the check: nothing can appear between looking and writing.
    if args.force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let written = options.open(&args.file).and_then(|mut file| file.write_all(starter.as_bytes()));
    written.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => CliError::failed_but(
            format!("{shown} already exists"),
            "choose another name, or overwrite it with --force",
        ),
        _ => CliError::failed(format!("cannot write {shown}: {error}")),
    })?;
    context.output.text(&shown.to_string())?;
    say(&format!("edit it, then: giga job plan {shown}, and giga job submit {shown}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use giga_domain::manifest::parse_markdown;

    use super::*;

    #[test]
    fn the_starter_is_a_manifest() {
        let (manifest, body) = parse_markdown(STARTER.as_bytes()).unwrap();
        assert_eq!(manifest.name, "hello");
        assert!(!body.trim().is_empty());
    }

    #[test]
    fn a_starter_with_a_repository_works_on_it() {
        for name in ["app", "my app", "team/app"] {
            let (manifest, _) = parse_markdown(with_repo(name).as_bytes()).unwrap();
            assert_eq!(manifest.repo.as_deref(), Some(name));
            assert!(manifest.script.unwrap().contains("HELLO.md"));
        }
    }

    /// What is commented out must be right too: it will be switched on without much thought.
    #[test]
    fn every_key_that_is_commented_out_is_right() {
        let on: String = STARTER
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(key) if key.split_once(':').is_some_and(|(key, _)| !key.contains(' ')) => {
                    format!("{key}\n")
                }
                _ => format!("{line}\n"),
            })
            .collect();
        let (manifest, _) = parse_markdown(on.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{on}"));
        assert_eq!(manifest.retry.max, 3);
        assert!(
            manifest.idempotency_key.is_some() && manifest.run_at.is_some() && manifest.concurrency.is_some()
        );
    }
}

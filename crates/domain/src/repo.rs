//! The names that repositories go by, from a manifest to a folder on a machine.
//!
//! Never lets through what another program could take for an option, a path outside its folder or a command.

use std::collections::{BTreeMap, HashSet};

use crate::job::repo_name;

const NAME_CHARS: usize = 200;

/// `hello`, `team/app`, `my app`: parts of letters, digits, `.`, `_`, `-` and blanks inside.
pub fn is_repo_name(text: &str) -> bool {
    text.len() <= NAME_CHARS && text.split('/').all(is_part)
}

fn is_part(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ' '))
        && !text.ends_with(' ')
        && !text.contains("..")
}

/// The folder that a repository is in where a job has several: the last part of its name.
pub fn folder_name(repo: &str) -> &str {
    let name = repo_name(repo);
    name.rsplit('/').next().unwrap_or(name)
}

/// Which of the known names may be meant: the name itself, else every longer one that ends with it, so that `app` is
/// enough where only one `team/app` is known.
pub fn meant_by<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut longer = Vec::new();
    for known in known {
        if known == name {
            return vec![known];
        }
        let rest = known.strip_suffix(name).and_then(|rest| rest.strip_suffix('/'));
        if rest.is_some() && !longer.contains(&known) {
            longer.push(known);
        }
    }
    longer
}

/// Whether the name stands for exactly one of the known ones.
pub fn is_known<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> bool {
    meant_by(name, known).len() == 1
}

/// Every short name that stands for exactly one of the known ones, as [`meant_by`] would find it.
pub fn short_names<'a>(
    known: impl Iterator<Item = &'a str> + Clone,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let mut meant: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    // Most factories have no nested repositories, and then there is nothing to compare.
    if known.clone().any(|name| name.contains('/')) {
        let whole: HashSet<&str> = known.clone().collect();
        for name in known {
            for (at, _) in name.match_indices('/') {
                let short = &name[at + 1..];
                if whole.contains(short) {
                    continue;
                }
                let only = meant.entry(short).or_insert(Some(name));
                if *only != Some(name) {
                    *only = None;
                }
            }
        }
    }
    meant.into_iter().filter_map(|(short, name)| Some((short, name?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["hello", "org/app", "_x", "a.b-c", "my app", "my team/my app", "a  b"] {
            assert!(is_repo_name(good), "{good}");
        }
        for bad in [
            "",
            "-x",
            "..",
            "a/..",
            "../a",
            "a//b",
            ".git",
            " a",
            "a ",
            "a /b",
            "a/ b",
            "a\tb",
            "a\n",
            "a\0",
            "é",
            "--upload-pack=x",
            "ext::x",
        ] {
            assert!(!is_repo_name(bad), "{bad:?}");
        }
        assert!(is_repo_name(&"x".repeat(NAME_CHARS)) && !is_repo_name(&"x".repeat(NAME_CHARS + 1)));
    }

    #[test]
    fn a_short_name_stands_for_the_only_one_that_ends_with_it() {
        let known = ["a/app", "b/app", "a/deep/lib", "tool", "x/tool", "xlib"];
        let meant = |name| meant_by(name, known.into_iter());
        assert_eq!(meant("lib"), ["a/deep/lib"]);
        assert_eq!(meant("deep/lib"), ["a/deep/lib"]);
        assert_eq!(meant("app"), ["a/app", "b/app"]);
        assert_eq!(meant("tool"), ["tool"], "the name itself counts first");
        assert_eq!(meant("ib"), [""; 0]);
        assert_eq!(meant("a"), [""; 0]);
        let short: Vec<_> = short_names(known.into_iter()).collect();
        assert_eq!(short, [("deep/lib", "a/deep/lib"), ("lib", "a/deep/lib")]);
        for (short, name) in short {
            assert_eq!(meant(short), [name]);
        }
        assert_eq!(short_names(["a", "b"].into_iter()).count(), 0);
        assert_eq!(short_names(["t/a", "t/a"].into_iter()).collect::<Vec<_>>(), [("a", "t/a")]);
    }
}

//! Which text may name a repository, an engine or a persona.
//!
//! Never lets through what another program could take for an option, a path outside its folder or a command:
//! these names become refs, folders, and arguments of git.

use super::{Persona, ProfileRef};
use crate::repo::is_repo_name;

const WORD_CHARS: usize = 64;
const REPO_CHARS: usize = 400;
const BRANCH_CHARS: usize = 200;

pub(super) const WORD_RULE: &str =
    "a word of 1 to 64 letters, digits, `.`, `_` and `-` that starts with a letter or digit";
pub(super) const PERSONA_RULE: &str = "a profile and its version, such as coder@3";
pub(super) const REPO_RULE: &str = "a repository name such as hello, org/app or my app, or a git URL that starts with https://, ssh://, git@host: or file:///, without `%`, `?`, `#` and empty or dotted parts";

/// Letters, digits, `.`, `_` and `-`, starting with a letter or digit, without `..`.
pub(super) fn is_word(text: &str) -> bool {
    text.len() <= WORD_CHARS
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
        && !text.contains("..")
}

pub(super) const MODEL_RULE: &str = "the name of a model, such as opus or openai/gpt-5: 1 to 100 letters, digits, `.`, `_`, `-`, `:`, `/`, `@`, `[` and `]`, starting with a letter or digit";

/// Never what a program could take for an option.
pub(super) fn is_model(text: &str) -> bool {
    let legal =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':' | '/' | '@' | '[' | ']');
    text.len() <= 100
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(legal)
        && !text.contains("..")
}

pub(super) const BRANCH_RULE: &str = "a branch name of letters, digits, `.`, `_`, `-`, `+`, `#` and `/`, such as main or release/2.1, and none of ours (giga/…, aq/…)";
pub(super) const AUTHOR_RULE: &str = "a name and an address, such as Ana <ana@example.org>";

/// A branch of the owner's: what git takes everywhere, without what could be read as anything else.
pub fn is_branch(text: &str) -> bool {
    let part_ok = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '#'))
            && !part.contains("..")
            && !part.ends_with('.')
            && !std::path::Path::new(part).extension().is_some_and(|e| e.eq_ignore_ascii_case("lock"))
    };
    let ours = matches!(text.split('/').next(), Some("aq" | "giga" | "refs"));
    text.len() <= BRANCH_CHARS && text.split('/').all(part_ok) && text != "HEAD" && !ours
}

/// `Name <address>`, as git writes it.
pub fn is_author(text: &str) -> bool {
    let Some((name, address)) = text.strip_suffix('>').and_then(|text| text.split_once(" <")) else {
        return false;
    };
    !name.trim().is_empty()
        && address.contains('@')
        && ![name, address].iter().any(|part| part.contains(['<', '>']))
}

pub(super) fn is_repo(text: &str) -> bool {
    text.len() <= REPO_CHARS && (is_repo_name(text) || is_url(text))
}

fn is_url(text: &str) -> bool {
    // Printable ASCII without a blank is all that a URL is made of.
    if !text.chars().all(|c| c.is_ascii_graphic()) || text.contains('\\') {
        return false;
    }
    if let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("ssh://")) {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        return is_host(host) && !authority.starts_with('-') && is_path(path);
    }
    if let Some(path) = text.strip_prefix("file:///") {
        return is_path(path);
    }
    text.strip_prefix("git@")
        .and_then(|rest| rest.split_once(':'))
        .is_some_and(|(host, path)| is_host(host) && is_path(path.strip_prefix('/').unwrap_or(path)))
}

/// A name or address, perhaps with a port.
fn is_host(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']'))
}

/// One repository has one spelling, give or take a slash or `.git` at its end: its owner is found by it.
fn is_path(text: &str) -> bool {
    let is_segment = |segment: &str| !matches!(segment, "" | "." | "..");
    !text.starts_with('-')
        && !text.contains(['%', '?', '#'])
        && text.strip_suffix('/').unwrap_or(text).split('/').all(is_segment)
}

pub(super) fn parse_persona(text: &str) -> Option<Persona> {
    let (name, version) = text.split_once('@')?;
    let plain = version.starts_with(|c: char| matches!(c, '1'..='9'));
    let version = version.parse().ok().filter(|_| plain)?;
    is_word(name).then(|| Persona { name: name.to_owned(), version })
}

/// A profile alone, or one version of it.
pub(super) fn parse_profile_ref(text: &str) -> Option<ProfileRef> {
    if is_word(text) {
        return Some(ProfileRef { name: text.to_owned(), version: None });
    }
    parse_persona(text).map(|persona| ProfileRef { name: persona.name, version: Some(persona.version) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories() {
        for good in [
            "hello",
            "org/app",
            "my_app-2.0",
            "a/b/c",
            "my app",
            "my team/my app",
            "https://github.com/org/app.git",
            "https://user@host:8443/org/app",
            "ssh://git@host:22/org/app.git",
            "git@github.com:org/app.git",
            "file:///srv/git/app.git",
            "git@host:/srv/git/app.git",
            "https://github.com/org/app/",
            "ssh://git@host/~team/app",
        ] {
            assert!(is_repo(good), "{good}");
        }
        for bad in [
            "",
            "-rf",
            ".hidden",
            "org/.git",
            "org/-x",
            "a..b",
            "../x",
            "a/../b",
            "/abs",
            "a/",
            "a//b",
            " a",
            "a ",
            "a\nb",
            "é",
            "a\\b",
            "ext::sh -c id",
            "ext::sh",
            "http://host/x",
            "git://host/x",
            "ftp://host/x",
            "https://",
            "https:///x",
            "https://host",
            "https://host/",
            "https://-oProxyCommand=x/y",
            "ssh://-oProxyCommand=x/y",
            "ssh://u@-oProxyCommand=x/y",
            "https://host/a b",
            "https://host/a\u{7f}",
            "https://host/../x",
            "git@host",
            "git@host:",
            "git@-x:y",
            "git@host:-x",
            "file://host/x",
            "file:///",
            "file:///a/../../etc",
            "HTTPS://host/x",
            "https://host/org/%61pp",
            "https://host/org/app?x",
            "https://host/org/app#x",
            "https://host/org/app/.",
            "https://host/./app",
            "https://host/org//app",
            "https://host/org/app//",
            "https://host//",
            "git@host:org/%61pp",
            "git@host://org/app",
            "git@host:/-x",
            "file:////srv/app",
        ] {
            assert!(!is_repo(bad), "{bad:?}");
        }
        assert!(!is_repo(&"x".repeat(REPO_CHARS + 1)));
    }

    #[test]
    fn words_and_personas() {
        assert!(is_word("claude-4.5") && !is_word("-x") && !is_word("") && !is_word("a b"));
        assert!(is_word(&"x".repeat(64)) && !is_word(&"x".repeat(65)));
        assert_eq!(parse_persona("coder@3"), Some(Persona { name: "coder".to_owned(), version: 3 }));
        for bad in [
            "coder",
            "coder@",
            "@3",
            "coder@0",
            "coder@03",
            "coder@+3",
            "coder@-1",
            "coder@x",
            "a@b@3",
            "a b@3",
            "coder@99999999999",
        ] {
            assert_eq!(parse_persona(bad), None, "{bad}");
        }
    }
}

//! Files that runs leave behind. Only what points to them: the bytes are somewhere else.
//!
//! A name is for people and for the file that a browser saves. It is never a path on anybody's disk, and still it may
//! not look like one that leads elsewhere.

use std::fmt;
use std::str::FromStr;

use crate::id::IdError;
use crate::{ArtifactId, Epoch, JobId, ProductId, Timestamp, limits};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    pub id: ArtifactId,
    pub job: JobId,
    pub product: ProductId,
    /// The run that made it. Within a run a name stands for one file.
    pub epoch: Epoch,
    pub name: ArtifactName,
    pub media_type: String,
    pub size: u64,
    pub created_at: Timestamp,
}

impl Artifact {
    /// What there is one of.
    pub fn key(&self) -> ArtifactKey {
        (self.job, self.epoch, self.name.clone())
    }
}

pub type ArtifactKey = (JobId, Epoch, ArtifactName);

/// Such as `report.html` or `coverage/index.html`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArtifactName(String);

impl ArtifactName {
    /// What a run changed, as its factory saw it. Reviewers go by it, so nothing that runs inside a job may write it.
    pub const CHANGES: &str = "changes.diff";

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the factory itself writes it.
    pub fn is_the_factorys(&self) -> bool {
        self.0 == Self::CHANGES
    }

    /// The last segment: what a saved file is called.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }
}

impl ArtifactName {
    /// The header that makes a browser save the file instead of showing it. The name stands there twice: once in letters
    /// that every client understands, once whole.
    pub fn content_disposition(&self) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let file = self.file_name();
        let simple: String = file.chars().map(|c| if plain(c) { c } else { '_' }).collect();
        let whole: String = file
            .bytes()
            .map(|b| if plain(char::from(b)) { char::from(b).to_string() } else { format!("%{b:02X}") })
            .collect();
        format!("attachment; filename=\"{simple}\"; filename*=UTF-8''{whole}")
    }
}

impl FromStr for ArtifactName {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let short = text.chars().count() <= limits::ARTIFACT_NAME_CHARS;
        let printable = !text.chars().any(|c| c.is_control() || reorders(c));
        let segments = text.split(['/', '\\']).all(|part| !matches!(part.trim(), "" | "." | ".."));
        if short && printable && segments {
            Ok(Self(text.to_owned()))
        } else {
            let rule = "1 to 200 printable characters, in segments between `/` that are neither empty nor `.` nor `..`";
            Err(IdError::new("artifact name", text, rule))
        }
    }
}

/// Characters that make a name look like another one: `exe.txt` for `txt.exe`.
fn reorders(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl fmt::Display for ArtifactName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_breaks_out_of_its_header() {
        for (name, expected) in [
            ("logs/report.txt", "attachment; filename=\"report.txt\"; filename*=UTF-8''report.txt"),
            ("a\"; x=\"b", "attachment; filename=\"a___x__b\"; filename*=UTF-8''a%22%3B%20x%3D%22b"),
            ("größe", "attachment; filename=\"gr__e\"; filename*=UTF-8''gr%C3%B6%C3%9Fe"),
        ] {
            assert_eq!(name.parse::<ArtifactName>().unwrap().content_disposition(), expected);
        }
    }

    #[test]
    fn a_name_never_looks_like_a_way_out() {
        for good in ["report.txt", "coverage/index.html", "Bericht für März.pdf", "a..b", ".env"] {
            assert_eq!(good.parse::<ArtifactName>().unwrap().as_str(), good);
        }
        let long = "x".repeat(limits::ARTIFACT_NAME_CHARS + 1);
        for hostile in [
            "",
            " ",
            "/etc/passwd",
            "..",
            "a/../b",
            "a/",
            "a//b",
            "./a",
            "..\\a",
            "a\nb",
            "a\0",
            "\u{202e}cod.exe",
            &long,
        ] {
            assert!(hostile.parse::<ArtifactName>().is_err(), "{hostile:?}");
        }
        assert_eq!("coverage/index.html".parse::<ArtifactName>().unwrap().file_name(), "index.html");
    }
}

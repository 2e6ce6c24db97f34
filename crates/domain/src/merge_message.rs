//! The message of the commit that brings a result into its branch.
//!
//! A template with a few placeholders; what they stand for comes from the job alone, so that it can be shown before.

use crate::{Epoch, Job, Verdict};

const DEFAULT: &str = "Merge {name} ({job})";
const PLACEHOLDERS: [&str; 4] = ["name", "job", "branch", "reviewers"];

/// Whether every placeholder is one.
pub fn check(template: &str) -> Result<(), String> {
    fill(template, |_| String::new()).map(drop)
}

/// For a job with a result. A template that was never checked is taken as it is.
pub fn render(template: Option<&str>, job: &Job) -> String {
    let template = template.unwrap_or(DEFAULT);
    let value = |placeholder: &str| match placeholder {
        "name" => job.spec.name.clone(),
        "job" => job.id.to_string(),
        "branch" => job.result.as_ref().map_or_else(String::new, |result| result.branch.clone()),
        _ => reviewers(job).join(", "),
    };
    fill(template, value).unwrap_or_else(|_| template.to_owned())
}

/// Who approved what is going to be merged, each once.
pub fn reviewers(job: &Job) -> Vec<String> {
    let epoch = job.result.as_ref().map_or(Epoch(0), |result| result.epoch);
    let approving = job.reviews.iter().filter(|note| note.verdict == Verdict::Approve && note.epoch == epoch);
    let mut names: Vec<String> = Vec::new();
    for note in approving {
        if !names.contains(&note.reviewer) {
            names.push(note.reviewer.clone());
        }
    }
    names
}

/// `{{` and `}}` stand for the braces themselves.
fn fill(template: &str, value: impl Fn(&str) -> String) -> Result<String, String> {
    let known = || PLACEHOLDERS.map(|name| format!("{{{name}}}")).join(", ");
    let mut filled = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        filled.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            filled.push_str(brace);
            rest = after;
            continue;
        }
        let Some((name, after)) = rest.split_once('}').filter(|_| brace == "{") else {
            return Err(format!(
                "has a `{brace}` alone; the placeholders are {}, and `{brace}{brace}` is the brace itself",
                known()
            ));
        };
        if !PLACEHOLDERS.contains(&name) {
            return Err(format!(
                "has the placeholder `{{{name}}}`, which there is not; there are {}",
                known()
            ));
        }
        filled.push_str(&value(name));
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_and_braces_can_be_written() {
        let upper = |name: &str| name.to_uppercase();
        assert_eq!(fill("{name}: {{x}} {job}", upper).unwrap(), "NAME: {x} JOB");
        for wrong in ["{", "}", "{nam}", "a {name", "{}"] {
            let why = check(wrong).unwrap_err();
            assert!(why.contains("{reviewers}"), "{wrong}: {why}");
        }
    }
}

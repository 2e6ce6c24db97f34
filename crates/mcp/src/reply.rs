//! What a call answers: never more than a model can take in at once, and a refusal always with what to do about it.

use giga_api::wire::Problem;
use rmcp::model::ContentBlock;
use serde_json::Value;

use crate::api::CallError;

/// The most that one answer holds, in characters: about ten thousand tokens.
pub(crate) const MOST: usize = 40_000;
/// The most that one string inside of an answer holds, where it is not asked for by itself.
const MOST_OF_ONE: usize = 8_000;
/// The most entries of one list inside of an answer.
const MOST_ENTRIES: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct Reply {
    facts: Option<Value>,
    /// Text of others, as it is.
    text: Option<String>,
}

impl Reply {
    pub(crate) fn facts(facts: Value) -> Self {
        Self { facts: Some(facts), text: None }
    }

    /// With a text that is easier to read unquoted: a log, a diff.
    pub(crate) fn with_text(facts: Value, text: String) -> Self {
        Self { facts: Some(facts), text: Some(text) }
    }

    pub(crate) fn into_blocks(self) -> Vec<ContentBlock> {
        let facts = self.facts.map(bounded);
        facts.into_iter().chain(self.text).map(ContentBlock::text).collect()
    }
}

/// As JSON, with long texts and lists cut until it fits, and the cuts marked.
fn bounded(mut facts: Value) -> String {
    let mut most = (MOST_OF_ONE, MOST_ENTRIES);
    loop {
        cut(&mut facts, most.0, most.1);
        let text = facts.to_string();
        if text.chars().count() <= MOST || most == (100, 5) {
            return text;
        }
        most = ((most.0 / 2).max(100), (most.1 / 2).max(5));
    }
}

fn cut(value: &mut Value, chars: usize, entries: usize) {
    match value {
        Value::String(text) => {
            if let Some((at, _)) = text.char_indices().nth(chars) {
                let left = text.chars().count() - chars;
                text.truncate(at);
                *text += format!("… [{left} more characters]").as_str();
            }
        }
        Value::Array(items) => {
            if items.len() > entries {
                let left = items.len() - entries;
                items.truncate(entries);
                items.push(Value::String(format!("… [{left} more]")));
            }
            for item in items {
                cut(item, chars, entries);
            }
        }
        Value::Object(fields) => fields.values_mut().for_each(|field| cut(field, chars, entries)),
        _ => {}
    }
}

/// Why a call did nothing.
#[derive(Debug)]
pub(crate) struct Refusal(String);

impl Refusal {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// About one argument.
    pub(crate) fn field(field: &str, message: impl std::fmt::Display) -> Self {
        Self(format!("{field}: {message}"))
    }

    /// The same about a part of what was sent.
    pub(crate) fn within(self, part: &str) -> Self {
        Self(format!("{part}.{}", self.0))
    }

    /// Some of it may be quoted from what was sent.
    pub(crate) fn into_text(self) -> String {
        let mut text = Value::String(self.0);
        cut(&mut text, MOST_OF_ONE, MOST_ENTRIES);
        text.as_str().unwrap_or_default().to_owned()
    }
}

impl From<CallError> for Refusal {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(problem) => Self(words(&problem)),
            CallError::Unanswered(reason) => Self(format!(
                "{reason}. Whether the call took effect is not known: look before you repeat it"
            )),
        }
    }
}

/// A problem as somebody would say it: what it is, each field that is wrong, what would help.
fn words(problem: &Problem) -> String {
    let mut text = format!("{} ({}): {}", problem.title, problem.code.as_str(), problem.detail);
    let told = |message: &str| problem.detail.contains(message);
    for error in problem.errors.iter().filter(|error| !told(&error.message)) {
        let line = error.line.map(|line| format!(" (line {line})")).unwrap_or_default();
        text += format!("\n- {}{line}: {}", error.field, error.message).as_str();
    }
    if let Some(stage) = problem.stage {
        text += format!("\nThe job is at stage `{}`.", stage.as_str()).as_str();
    }
    if let Some(job) = &problem.job_id {
        text += format!("\nThe key belongs to job {job}.").as_str();
    }
    if let Some(wait) = problem.retry_after_ms {
        text += format!("\nTry again in {} s.", wait.div_ceil(1_000)).as_str();
    }
    text
}

#[cfg(test)]
mod tests {
    use giga_api::wire::{FieldError, ProblemCode, Stage};
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_cut_until_it_fits_and_says_so() {
        let small = json!({"name": "a", "list": [1, 2]});
        assert_eq!(bounded(small.clone()), small.to_string());
        let large = json!({"jobs": vec![json!({"name": "é".repeat(9_000)}); 300]});
        let text = bounded(large);
        assert!(text.chars().count() <= MOST, "{}", text.chars().count());
        assert!(text.contains("more characters]") && text.contains("more]"), "{}", &text[..200]);
        let deep = (0..200).fold(json!("x".repeat(50_000)), |inner, _| json!([inner]));
        assert!(bounded(deep).chars().count() <= MOST);
    }

    #[test]
    fn a_problem_is_told_with_its_fields_and_its_remedy() {
        let problem = Problem {
            title: "Invalid manifest".to_owned(),
            code: ProblemCode::InvalidManifest,
            detail: "2 problems".to_owned(),
            errors: vec![
                FieldError {
                    field: "priorty".to_owned(),
                    line: Some(3),
                    message: "did you mean `priority`?".to_owned(),
                },
                FieldError { field: "kind".to_owned(), line: None, message: "agent or composite".to_owned() },
            ],
            retry_after_ms: Some(1_500),
            stage: Some(Stage::Queued),
            ..Problem::default()
        };
        let expected = "Invalid manifest (invalid_manifest): 2 problems\n- priorty (line 3): did you mean `priority`?\n- \
                        kind: agent or composite\nThe job is at stage `queued`.\nTry again in 2 s.";
        assert_eq!(words(&problem), expected);
    }
}

//! What a profile may say, judged by reading a manifest with it.
//!
//! A profile says how a kind of work is done, never which work: what names a job, places it among others or is the work
//! itself stays in the manifest. A script is the work itself.

use serde_json::Map;

use super::draft::json;
use super::error::{ManifestError, Problems, quoted, shortened};
use super::tree::{Node, Value};
use super::{document, fields, grammar, suggest};
use crate::{ProfileContent, limits};

/// The keys of a manifest that a profile may fill in.
const KEYS: &[&str] = &[
    "engine",
    "capabilities",
    "priority",
    "onConflict",
    "merge",
    "budget",
    "retry",
    "verify",
    "review",
    "ship",
    "permissions",
    "ask",
    "concurrency",
];

/// What a profile may be called.
pub fn is_profile_name(name: &str) -> bool {
    grammar::is_word(name)
}

/// In words, for refusals.
pub const PROFILE_NAME_RULE: &str = grammar::WORD_RULE;

impl ProfileContent {
    /// Markdown: the front matter has the defaults, the body is the persona.
    pub fn from_markdown(text: &[u8]) -> Result<Self, ManifestError> {
        if !text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text).starts_with(b"---") {
            let message = "the first line must be `---`: the defaults stand between it and a second such line, or nothing does, and what follows is the persona";
            return Err(ManifestError::whole(Some(1), message));
        }
        let document = document::split(text)?;
        let (root, before) = Node::from_yaml(document.front)?;
        if let Some(problem) = before {
            return Err(ManifestError { problems: vec![problem] });
        }
        check(&root, document.body)?;
        Ok(Self { persona: document.body.to_owned(), defaults: defaults(&root) })
    }

    pub fn from_json(
        persona: String,
        defaults: Map<String, serde_json::Value>,
    ) -> Result<Self, ManifestError> {
        let root = Node::from_json(&serde_json::Value::Object(defaults.clone()))?;
        check(&root, &persona)?;
        Ok(Self { persona, defaults: self::defaults(&root) })
    }
}

/// A key with nothing after it says nothing.
fn defaults(root: &Node) -> Map<String, serde_json::Value> {
    match json(root) {
        serde_json::Value::Object(entries) => {
            entries.into_iter().filter(|(_, value)| !value.is_null()).collect()
        }
        _ => Map::new(),
    }
}

fn check(root: &Node, persona: &str) -> Result<(), ManifestError> {
    let mut problems = Problems::default();
    let entries: &[(Node, Node)] = match &root.value {
        Value::Map(entries) => entries,
        Value::Null => &[],
        _ => {
            let message = format!(
                "the defaults must be a map with the keys {}; it is {}",
                KEYS.join(", "),
                root.described()
            );
            return Err(ManifestError::whole(root.line, message));
        }
    };
    check_persona(persona, entries.is_empty(), &mut problems);
    for (key, _) in entries {
        check_key(key, &mut problems);
    }
    // The rest is judged as if a manifest said it; a name is all that a manifest needs beside.
    let known = entries
        .iter()
        .filter(|(key, _)| matches!(&key.value, Value::Text(word) if KEYS.contains(&word.as_str())));
    let text = |text: &str| Node { value: Value::Text(text.to_owned()), line: None };
    let entries = [(text("name"), text("a job"))].into_iter().chain(known.cloned()).collect();
    let manifest = Node { value: Value::Map(entries), line: root.line };
    let wrong = fields::read(&manifest, None).err().into_iter().flat_map(|error| error.problems);
    for problem in wrong {
        problems.add(&problem.field, problem.line, problem.message);
    }
    problems.into_error().map_or(Ok(()), Err)
}

fn check_persona(persona: &str, alone: bool, problems: &mut Problems) {
    if persona.len() > limits::PERSONA_BYTES {
        let message = format!(
            "the persona has {} bytes; it may have at most {} (64 KiB)",
            persona.len(),
            limits::PERSONA_BYTES
        );
        problems.add("personaMd", None, message);
    }
    if persona.contains('\0') {
        problems.add("personaMd", None, "the persona must not contain the character NUL (U+0000)");
    }
    if alone && persona.trim().is_empty() {
        problems.add("personaMd", None, "a profile needs a persona, or defaults, or both; it has neither");
    }
}

fn check_key(key: &Node, problems: &mut Problems) {
    let Value::Text(word) = &key.value else {
        let message =
            format!("{} is not a key of a profile; the keys are {}", key.described(), KEYS.join(", "));
        return problems.add("", key.line, message);
    };
    if KEYS.contains(&word.as_str()) {
        return;
    }
    let message = if fields::KEYS.contains(&word.as_str()) {
        format!(
            "{word} belongs to each job: say it in the manifest; a profile may fill in {}",
            KEYS.join(", ")
        )
    } else {
        let hint = match suggest(word, KEYS.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the keys are {}", KEYS.join(", ")),
        };
        format!("{} is not a key of a profile; {hint}", quoted(word))
    };
    problems.add(&shortened(word), key.line, message);
}

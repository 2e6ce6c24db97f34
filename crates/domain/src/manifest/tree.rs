//! YAML and JSON as one small tree, so that a single reader judges both by the same rules.
//!
//! Never knows a field of the manifest. It must stay bounded whatever it is given: aliases, depth and number
//! of nodes are capped, so that a small hostile file cannot become a large tree.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error as YamlError, Spanned};

use super::error::{ManifestError, Problem, quoted, shortened};

/// A manifest needs three levels; the rest is room for a helpful message instead of a cut.
const DEPTH: usize = 16;
/// Far more than the longest legal lists add up to, so that a list that is too long is reported by its name.
const NODES: usize = 20_000;
const ALIASES: usize = 100;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) value: Value,
    /// The line in the whole document; JSON has none.
    pub(super) line: Option<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    /// In the order of the document. Keys are nodes because YAML allows any key, and the refusal needs its line.
    Map(Vec<(Node, Node)>),
}

impl Node {
    /// `text` from its opening `---` line up to the closing one: with the opening line kept, the parser's line
    /// numbers are those of the document.
    pub(super) fn from_yaml(text: &str) -> Result<(Self, Option<Problem>), ManifestError> {
        match parse(text, DuplicateKeyPolicy::Error) {
            Ok(root) => Ok((root, None)),
            Err(error) => {
                let problem = in_our_words(&error);
                // A repeated key does not hide what else is wrong.
                if matches!(innermost(&error), YamlError::DuplicateMappingKey { .. })
                    && let Ok(root) = parse(text, DuplicateKeyPolicy::FirstWins)
                {
                    return Ok((root, Some(problem)));
                }
                Err(ManifestError { problems: vec![problem] })
            }
        }
    }

    pub(super) fn from_json(json: &serde_json::Value) -> Result<Self, ManifestError> {
        convert(json, DEPTH)
    }

    /// What the value is, for the end of a sentence: `it is …`.
    pub(super) fn described(&self) -> String {
        match &self.value {
            Value::Null => "empty".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Integer(value) => value.to_string(),
            // As `1e30`, not as thirty zeros.
            Value::Float(value) => format!("{value:?}"),
            Value::Text(text) => quoted(text),
            Value::List(items) => format!("a list of {}", items.len()),
            Value::Map(_) => "a map".to_owned(),
        }
    }
}

fn parse(text: &str, duplicate_keys: DuplicateKeyPolicy) -> Result<Node, YamlError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH,
            // Past the other limit, whose refusal says more.
            flow_nesting_limit: 2 * DEPTH,
            max_nodes: NODES,
            max_events: 3 * NODES,
            max_aliases: ALIASES,
            max_anchors: ALIASES,
            max_recorded_anchor_events: NODES,
            max_recorded_anchor_bytes: 1024 * 1024,
            // Two, so that the second is refused for what it is.
            max_documents: 2,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: NODES,
            max_replay_stack_depth: DEPTH,
        },
        duplicate_keys: duplicate_keys,
        // `<<` is then a key like any other, and refused as unknown.
        merge_keys: MergeKeyPolicy::AsOrdinary,
        // `no` is a word and a country, not false.
        strict_booleans: true,
        reject_unsupported_tags: true,
        // Shown to the author as written, instead of failing the whole document.
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        emit_comments: false,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options)
}

/// What went wrong inside an alias is wrapped with the places of its definition and use.
fn innermost(error: &YamlError) -> &YamlError {
    match error {
        YamlError::AliasError { error, .. } | YamlError::WithSnippet { error, .. } => innermost(error),
        _ => error,
    }
}

fn in_our_words(error: &YamlError) -> Problem {
    let line = error.location().map(|at| at.line() as usize).filter(|line| *line > 0);
    let mut field = String::new();
    let message = match innermost(error) {
        YamlError::DuplicateMappingKey { key: Some(key), .. } => {
            field = shortened(key);
            format!("the key {} is given twice; keep one of them", quoted(key))
        }
        YamlError::DuplicateMappingKey { key: None, .. } => {
            "a key is given twice; keep one of them".to_owned()
        }
        YamlError::Budget { .. }
        | YamlError::AliasReplayLimitExceeded { .. }
        | YamlError::AliasReplayStackDepthExceeded { .. }
        | YamlError::AliasExpansionLimitExceeded { .. }
        | YamlError::AliasReplayCounterOverflow { .. } => format!(
            "the front matter is too large: it may have at most {NODES} values, {DEPTH} levels and {ALIASES} aliases once they are written out"
        ),
        YamlError::UnknownAnchor { .. } => {
            "the front matter uses an alias (`*name`) that is not defined above; put quotes around text that starts with `*`".to_owned()
        }
        YamlError::RecursiveReferencesRequireWeakTypes { .. } => {
            "the front matter has an alias that contains itself; write the value out instead".to_owned()
        }
        YamlError::UnsupportedTag { tag, .. } => {
            format!("the front matter uses the YAML tag {}; put quotes around text that starts with `!`", quoted(tag))
        }
        YamlError::MultipleDocuments { .. } => {
            "the front matter must be one YAML document; a second one starts here".to_owned()
        }
        YamlError::ExternalMessage { msg, .. } => format!(
            "the front matter is not valid YAML: {}; write `key: value`, and put quotes around text with special characters",
            msg.chars().filter(|c| !c.is_control()).take(200).collect::<String>()
        ),
        _ => "the front matter is not valid YAML; write one `key: value` per line, and put quotes around text with special characters".to_owned(),
    };
    Problem { field, line, message }
}

fn convert(json: &serde_json::Value, depth_left: usize) -> Result<Node, ManifestError> {
    let Some(depth_left) = depth_left.checked_sub(1) else {
        let message = format!("the manifest is nested too deeply: it may have at most {DEPTH} levels");
        return Err(ManifestError::whole(None, message));
    };
    let value = match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => match number.as_i128() {
            Some(integer) => Value::Integer(integer),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::Text(text.clone()),
        serde_json::Value::Array(items) => {
            Value::List(items.iter().map(|item| convert(item, depth_left)).collect::<Result<_, _>>()?)
        }
        serde_json::Value::Object(entries) => Value::Map(
            entries
                .iter()
                .map(|(key, value)| {
                    let key = Node { value: Value::Text(key.clone()), line: None };
                    Ok((key, convert(value, depth_left)?))
                })
                .collect::<Result<_, ManifestError>>()?,
        ),
    };
    Ok(Node { value, line: None })
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self { value, line: Some(referenced.line() as usize).filter(|line| *line > 0) })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Value::Map(entries))
    }
}

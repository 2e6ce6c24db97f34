//! A manifest between being read and being judged: a profile may still fill in what it leaves out.
//!
//! Never looks a profile up, and never lets one overrule its manifest: what the author wrote stands. What the manifest
//! says itself is remembered, so that the same text is the same submit whatever its profile has become.

use std::collections::BTreeMap;

use serde_json::Map;

use super::error::{ManifestError, Problem, Problems};
use super::tree::{Node, Value};
use super::{Manifest, TRACKER_KEY, document, fields, grammar};
use crate::{ProductId, Profile, limits};

/// Parts of these are filled in one by one: each part says something on its own. Of a review or a concurrency key the
/// parts belong together, so the manifest's replaces the profile's whole.
const FILLED_BY_PARTS: [&str; 4] = ["budget", "retry", "merge", "ask"];

#[derive(Debug, Clone)]
pub struct Draft {
    root: Node,
    /// What was already found wrong with the document.
    before: Option<Problem>,
    body: String,
}

/// A profile as a manifest names it: `coder@3`, or `coder` for the newest version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileRef {
    pub name: String,
    pub version: Option<u32>,
}

impl Draft {
    pub fn from_markdown(text: &[u8]) -> Result<Self, ManifestError> {
        let document = document::split(text)?;
        let (root, before) = Node::from_yaml(document.front)?;
        Ok(Self { root, before, body: document.body.to_owned() })
    }

    pub fn from_json(manifest: &serde_json::Value, body: String) -> Result<Self, ManifestError> {
        let root = Node::from_json(manifest)?;
        if !manifest.is_object() {
            let message = format!(
                "the manifest must be a JSON object such as {{\"name\": \"fix-greeting\"}}; it is {}",
                root.described()
            );
            return Err(ManifestError::whole(None, message));
        }
        // Measured as it would be sent; with its body it may be as large as a document that holds both.
        let most = limits::MANIFEST_BYTES;
        let bytes = manifest.to_string().len();
        if bytes > most {
            let message = format!("the manifest has {bytes} bytes; it may have at most {most} (1 MiB)");
            return Err(ManifestError::whole(None, message));
        }
        let both = bytes + body.len();
        if both > most {
            let message = format!(
                "bodyMd and the manifest have {both} bytes; together they may have at most {most} (1 MiB)"
            );
            return Err(ManifestError {
                problems: vec![Problem { field: "bodyMd".to_owned(), line: None, message }],
            });
        }
        Ok(Self { root, before: None, body })
    }

    /// The profile that it names. A malformed one is reported by [`Self::finish`].
    pub fn persona(&self) -> Option<ProfileRef> {
        self.text("persona").and_then(grammar::parse_profile_ref)
    }

    /// The product that it names, which says where its profile is to be looked for.
    pub fn product(&self) -> Result<Option<ProductId>, ManifestError> {
        match self.text("product").map(str::parse) {
            None => Ok(None),
            Some(Ok(product)) => Ok(Some(product)),
            // With everything else that is wrong.
            Some(Err(_)) => self.read(&self.root).map(|manifest| manifest.product),
        }
    }

    /// As it would be sent as JSON, not judged yet, and the body.
    pub fn into_json(self) -> (serde_json::Value, String) {
        (json(&self.root), self.body)
    }

    pub fn idempotency_key(&self) -> Option<&str> {
        self.text("idempotencyKey")
    }

    pub fn has_idempotency_key(&self) -> bool {
        self.idempotency_key().is_some()
    }

    /// The manifest, with what the profile fills in, and the body byte for byte.
    pub fn finish(mut self, profile: Option<&Profile>) -> Result<(Manifest, String), ManifestError> {
        let Some(profile) = profile else {
            return Ok((self.read(&self.root)?, self.body));
        };
        let written = written(&self.root);
        self.fill(profile)?;
        let mut manifest = self.read(&self.root)?;
        manifest.written = Some(written);
        Ok((manifest, self.body))
    }

    /// Its profile cannot be had: the problem that says so, with whatever else is wrong.
    pub fn refuse_persona(&self, message: &str) -> ManifestError {
        let mut root = self.root.clone();
        let persona = entry(&root, "persona").map(|(_, node)| node.line);
        if let Value::Map(entries) = &mut root.value {
            entries.retain(|(key, _)| !is_key(key, "persona"));
        }
        let mut problems = Problems::default();
        problems.add("persona", persona.flatten(), format!("persona {message}"));
        // Without its engine nobody can say whether a script is in its place.
        let others = self.read(&root).err().into_iter().flat_map(|error| error.problems);
        for problem in others.filter(|problem| problem.field != "script") {
            problems.add(&problem.field, problem.line, problem.message);
        }
        problems.into_error().unwrap_or_else(|| ManifestError::whole(None, message))
    }

    fn read(&self, root: &Node) -> Result<Manifest, ManifestError> {
        fields::read(root, self.before.iter().cloned().chain(foreign_key(root)).chain(missing_script(root)))
    }

    /// What the coordinator wrote itself, and nobody outside: a key may be that of a tracker's item.
    pub(super) fn into_snapshot(self) -> Result<Manifest, ManifestError> {
        fields::read(&self.root, self.before)
    }

    fn text(&self, key: &str) -> Option<&str> {
        match entry(&self.root, key) {
            Some((_, Node { value: Value::Text(text), .. })) => Some(text),
            _ => None,
        }
    }

    /// Every default of the profile goes where the manifest has nothing, and the version that was found into `persona`.
    fn fill(&mut self, profile: &Profile) -> Result<(), ManifestError> {
        let defaults = Node::from_json(&serde_json::Value::Object(profile.content.defaults.clone()))?;
        let (Value::Map(entries), Value::Map(defaults)) = (&mut self.root.value, defaults.value) else {
            return Ok(());
        };
        for (key, default) in defaults {
            let Value::Text(word) = &key.value else { continue };
            match entries.iter_mut().find(|(name, _)| is_key(name, word)) {
                None => entries.push((key, default)),
                Some((_, own)) if own.value == Value::Null => own.value = default.value,
                Some((_, own)) if word == "capabilities" => unite(own, default),
                Some((_, own)) if FILLED_BY_PARTS.contains(&word.as_str()) => fill_parts(own, default),
                Some(_) => {}
            }
        }
        let exactly = format!("{}@{}", profile.name, profile.version);
        if let Some((_, persona)) = entries.iter_mut().find(|(name, _)| is_key(name, "persona")) {
            persona.value = Value::Text(exactly);
        }
        Ok(())
    }
}

/// Whoever sends a manifest may not claim the item of a tracker for it.
fn foreign_key(root: &Node) -> Option<Problem> {
    let (_, Node { value: Value::Text(key), line }) = entry(root, "idempotencyKey")? else { return None };
    key.starts_with(TRACKER_KEY).then(|| Problem {
        field: "idempotencyKey".to_owned(),
        line: *line,
        message: format!(
            "idempotencyKey may not begin with `{TRACKER_KEY}`, which is reserved for items of trackers"
        ),
    })
}

/// Jobs from before this was asked for are kept as they are, so it is asked of what comes in and not of what is read back.
fn missing_script(root: &Node) -> Option<Problem> {
    let (_, Node { value: Value::Text(engine), line }) = entry(root, "engine")? else { return None };
    let has_script = entry(root, "script").is_some_and(|(_, node)| node.value != Value::Null);
    (engine == "shell" && !has_script).then(|| Problem {
        field: "script".to_owned(),
        line: *line,
        message:
            "script is missing, which `engine: shell` runs, such as script: ./fix.sh; for a prompt, choose \
                  another engine or leave engine out"
                .to_owned(),
    })
}

fn is_key(node: &Node, word: &str) -> bool {
    matches!(&node.value, Value::Text(text) if text == word)
}

fn entry<'t>(root: &'t Node, key: &str) -> Option<&'t (Node, Node)> {
    match &root.value {
        Value::Map(entries) => entries.iter().find(|(name, _)| is_key(name, key)),
        _ => None,
    }
}

/// A value that stands alone is a list of one; whatever else it is will be refused as it stands.
fn unite(own: &mut Node, default: Node) {
    let more = match default.value {
        Value::List(items) => items,
        _ => vec![default],
    };
    if matches!(own.value, Value::Text(_)) {
        let line = own.line;
        let alone = std::mem::replace(own, Node { value: Value::List(Vec::new()), line });
        own.value = Value::List(vec![alone]);
    }
    if let Value::List(items) = &mut own.value {
        let new = more.into_iter().filter(|more| !items.iter().any(|item| item.value == more.value));
        let new: Vec<Node> = new.collect();
        items.extend(new);
    }
}

fn fill_parts(own: &mut Node, default: Node) {
    let (Value::Map(parts), Value::Map(defaults)) = (&mut own.value, default.value) else { return };
    for (key, default) in defaults {
        let Value::Text(word) = &key.value else { continue };
        match parts.iter_mut().find(|(name, _)| is_key(name, word)) {
            None => parts.push((key, default)),
            Some((_, part)) if part.value == Value::Null => part.value = default.value,
            Some(_) => {}
        }
    }
}

/// What the author wrote, whatever its order and whichever way the product and the key came.
fn written(root: &Node) -> String {
    let mut fields = BTreeMap::new();
    if let Value::Map(entries) = &root.value {
        for (key, value) in entries {
            let kept = !is_key(key, "product") && !is_key(key, "idempotencyKey");
            if kept && value.value != Value::Null {
                fields.insert(key_text(key), json(value));
            }
        }
    }
    serde_json::to_string(&fields).expect("a map with text as its keys can be written")
}

fn key_text(key: &Node) -> String {
    match &key.value {
        Value::Text(text) => text.clone(),
        _ => key.described(),
    }
}

/// The tree as JSON, keys in order.
pub(super) fn json(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Integer(value) => match (i64::try_from(*value), u64::try_from(*value)) {
            (Ok(value), _) => value.into(),
            (_, Ok(value)) => value.into(),
            _ => (*value as f64).into(),
        },
        Value::Float(value) => (*value).into(),
        Value::Text(text) => text.as_str().into(),
        Value::List(items) => items.iter().map(json).collect(),
        Value::Map(entries) => {
            let sorted: BTreeMap<String, serde_json::Value> =
                entries.iter().map(|(key, value)| (key_text(key), json(value))).collect();
            serde_json::Value::Object(Map::from_iter(sorted))
        }
    }
}

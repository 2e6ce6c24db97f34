//! Which engine a manifest asks for: one, any, or several in order of preference, each with a model of its own.
//!
//! Never asks which engines there are: their names are whatever factories call them.

use super::error::{Problems, quoted};
use super::grammar;
use super::reader::{Field, Section};
use super::tree::Value;
use crate::engine::SHELL;
use crate::{Capability, EngineChoice, EnginePick, limits};

/// The keys `engine` and `model`.
pub(super) fn read(top: &Section<'_>, p: &mut Problems) -> EngineChoice {
    let mut picks = top.get("engine").map(|field| picks(&field, p)).unwrap_or_default();
    let Some(field) = top.get("model") else { return EngineChoice::new(picks) };
    let Some(model) = model(&field, p) else { return EngineChoice::new(picks) };
    match picks.as_mut_slice() {
        [] => field
            .refuse("goes with an engine, whose names of models differ; name it, such as engine: claude", p),
        [only] if only.name == SHELL => {
            field.refuse("goes with an engine that reads prompts, not with shell", p);
        }
        [EnginePick { model: Some(_), .. }] => {
            field.refuse("stands beside the model of the engine itself; say it once", p);
        }
        [only] => only.model = Some(model),
        [first, ..] => field.refuse(
            format!(
                "goes with one engine, and engine names several; say whose it is, such as engine: \
                 [{{name: {}, model: {model}}}, …]",
                first.name
            ),
            p,
        ),
    }
    EngineChoice::new(picks)
}

fn picks(field: &Field<'_>, p: &mut Problems) -> Vec<EnginePick> {
    if !matches!(field.node.value, Value::List(_)) {
        let only = pick(field, p).filter(|pick| pick.name != Capability::ANY_ENGINE || pick.model.is_some());
        return only.into_iter().collect();
    }
    let mut picks: Vec<EnginePick> = Vec::new();
    let items = field.items("engines, such as [claude, codex]", limits::JOB_ENGINES, p);
    let alone = items.len() == 1;
    for item in items {
        let Some(one) = pick(&item, p) else { continue };
        if one.name == Capability::ANY_ENGINE {
            item.refuse("is no engine of a list; for any engine write engine: any", p);
        } else if one.name == SHELL && !alone {
            item.refuse(
                "runs a script and reads no prompt, so it cannot stand in for another; it goes alone",
                p,
            );
        } else if picks.iter().any(|other| other.name == one.name) {
            item.refuse(format!("repeats {}; name each engine once", quoted(&one.name)), p);
        }
        picks.push(one);
    }
    if picks.is_empty() {
        field.expected("an engine such as claude, any, or a list such as [claude, codex]", p);
    }
    picks
}

fn pick(field: &Field<'_>, p: &mut Problems) -> Option<EnginePick> {
    if !matches!(field.node.value, Value::Map(_)) {
        return Some(EnginePick::named(name(field, p)?));
    }
    let section = Section::open(&field.path, field.node, &["name", "model"], p)?;
    let name = section.require("name", "name: claude", p).and_then(|f| name(&f, p));
    let model = section.get("model").and_then(|f| {
        let model = model(&f, p)?;
        if let Some(engine) = name.as_deref().filter(|name| [SHELL, Capability::ANY_ENGINE].contains(name)) {
            f.refuse(format!("goes with an engine that has models, not with {engine}"), p);
        }
        Some(model)
    });
    Some(EnginePick { name: name?, model })
}

fn name(field: &Field<'_>, p: &mut Problems) -> Option<String> {
    let text = field.text(grammar::WORD_RULE, p)?;
    if !grammar::is_word(text) {
        field.expected(grammar::WORD_RULE, p);
    }
    Some(text.to_owned())
}

fn model(field: &Field<'_>, p: &mut Problems) -> Option<String> {
    let text = field.text(grammar::MODEL_RULE, p)?;
    if !grammar::is_model(text) {
        field.expected(grammar::MODEL_RULE, p);
        return None;
    }
    Some(text.to_owned())
}

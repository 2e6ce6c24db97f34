//! `:` and where it leads.

use super::{open_factory, open_job, switch};
use crate::model::{Model, Tab, Tone};
use crate::msg::{Effect, Fetch};
use crate::text::clean;

const WORDS: [&str; 9] =
    ["board", "factories", "alerts", "jobs", "budgets", "topics", "job ", "factory ", "quit"];

pub(super) fn jump(model: &mut Model, text: &str) -> Vec<Effect> {
    let (word, rest) = text.split_once(' ').map_or((text, ""), |(word, rest)| (word, rest.trim()));
    if let Some(tab) = Tab::ALL.into_iter().find(|tab| tab.name() == word) {
        return switch(model, tab);
    }
    match (word, rest) {
        ("", _) => Vec::new(),
        ("q" | "quit", _) => vec![Effect::Quit],
        ("job", "") => refuse(model, ":job needs a name or the beginning of an id"),
        ("factory", "") => refuse(model, ":factory needs an id"),
        ("job", meant) => match known_job(model, meant) {
            Some(id) => open_job(model, &id),
            None => vec![Effect::Fetch(Fetch::Find(meant.to_owned()))],
        },
        ("factory", meant) => {
            let factories = model.factories.iter().flatten().map(|factory| &factory.id);
            let (exact, begins): (Vec<_>, Vec<_>) =
                factories.filter(|id| id.starts_with(meant)).cloned().partition(|id| *id == meant);
            match (exact.first(), begins.as_slice()) {
                (Some(id), _) | (None, [id]) => open_factory(model, id),
                (None, []) => refuse(model, &format!("there is no factory `{meant}`; :factories lists them")),
                (None, several) => refuse(model, &format!("`{meant}` matches {}", several.join(", "))),
            }
        }
        _ => {
            // What begins only one word is that word.
            let fitting: Vec<&str> = WORDS.into_iter().filter(|known| known.starts_with(word)).collect();
            match fitting.as_slice() {
                [one] if rest.is_empty() && !one.ends_with(' ') => jump(model, one),
                _ => refuse(
                    model,
                    &format!(
                        "there is no `:{}`; use {}, job NAME, factory ID or q",
                        clean(word),
                        Tab::ALL.map(Tab::name).join(", ")
                    ),
                ),
            }
        }
    }
}

fn refuse(model: &mut Model, text: &str) -> Vec<Effect> {
    model.say(Tone::Bad, text);
    Vec::new()
}

/// By name, or by the beginning of its id, among what is here; only where that is one job.
fn known_job(model: &Model, meant: &str) -> Option<String> {
    let upper = meant.to_ascii_uppercase();
    let rows = model.jobs.rows.iter().chain(model.board.columns.values().flatten());
    let mut found: Vec<&str> = rows
        .filter(|job| job.name == meant || (meant.len() >= 6 && job.id.starts_with(&upper)))
        .map(|job| job.id.as_str())
        .collect();
    found.sort_unstable();
    found.dedup();
    match found.as_slice() {
        [one] => Some((*one).to_owned()),
        _ => None,
    }
}

/// The whole of the first thing that begins so.
pub(crate) fn completion(model: &Model, text: &str) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    if let Some(part) = text.strip_prefix("factory ") {
        let mut ids: Vec<&str> =
            model.factories.iter().flatten().map(|factory| factory.id.as_str()).collect();
        ids.sort_unstable();
        let id = ids.into_iter().find(|id| id.starts_with(part) && *id != part)?;
        return Some(format!("factory {id}"));
    }
    if let Some(part) = text.strip_prefix("job ") {
        let rows = model.jobs.rows.iter().chain(model.board.columns.values().flatten());
        let mut names: Vec<&str> = rows.map(|job| job.name.as_str()).collect();
        names.sort_unstable();
        let name = names.into_iter().find(|name| name.starts_with(part) && *name != part)?;
        return Some(format!("job {name}"));
    }
    WORDS.into_iter().find(|word| word.starts_with(text) && *word != text).map(str::to_owned)
}

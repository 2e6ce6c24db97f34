//! What is typed at the bottom: a filter, a search, a jump, a comment.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{completion, head, jump};
use crate::model::{Model, Prompt, Tab, Tone, Typing};
use crate::msg::{Action, Effect};
use crate::text::clean;

/// Longer than any name; a paste cannot fill the memory.
const LONGEST: usize = 500;

pub(super) fn open(model: &mut Model, what: Typing) {
    let text = match &what {
        Typing::Filter => model.filter().unwrap_or_default().to_owned(),
        _ => String::new(),
    };
    model.prompt = Some(Prompt { what, text });
}

pub(super) fn key(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let Some(mut prompt) = model.prompt.take() else { return Vec::new() };
    let held = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    match key.code {
        KeyCode::Esc => return leave(model, &prompt.what),
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            return leave(model, &prompt.what);
        }
        KeyCode::Char('z') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            model.prompt = Some(prompt);
            return vec![Effect::Suspend];
        }
        KeyCode::Enter => return enter(model, prompt),
        KeyCode::Backspace if prompt.text.is_empty() => return leave(model, &prompt.what),
        KeyCode::Backspace => {
            prompt.text.pop();
        }
        KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => prompt.text.clear(),
        KeyCode::Char('w') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            let kept = prompt.text.trim_end().rfind(' ').map_or(0, |at| at + 1);
            prompt.text.truncate(kept);
        }
        KeyCode::Tab if prompt.what == Typing::Jump => {
            if let Some(whole) = completion(model, &prompt.text) {
                prompt.text = whole;
            }
        }
        KeyCode::Char(c) if !held && !c.is_control() && prompt.text.len() < LONGEST => prompt.text.push(c),
        _ => {}
    }
    let effects = changed(model, &prompt);
    model.prompt = Some(prompt);
    effects
}

/// Into what is being typed; elsewhere it does nothing, whatever it says.
pub(super) fn paste(model: &mut Model, text: &str) -> Vec<Effect> {
    let Some(mut prompt) = model.prompt.take() else { return Vec::new() };
    for c in clean(text).chars() {
        if prompt.text.len() < LONGEST {
            prompt.text.push(c);
        }
    }
    let effects = changed(model, &prompt);
    model.prompt = Some(prompt);
    effects
}

/// Filters and searches work while they are typed.
fn changed(model: &mut Model, prompt: &Prompt) -> Vec<Effect> {
    match prompt.what {
        Typing::Filter => set_filter(model, &prompt.text),
        Typing::Search => {
            let height = crate::view::job::log_height(model);
            if let Some(page) = model.job_page_mut()
                && page.log.search != prompt.text
            {
                page.log.search.clone_from(&prompt.text);
                page.log.found = None;
                page.log.find(false, height);
            }
            Vec::new()
        }
        Typing::Jump | Typing::Comment { .. } | Typing::Say { .. } => Vec::new(),
    }
}

pub(super) fn set_filter(model: &mut Model, text: &str) -> Vec<Effect> {
    match model.filter_mut() {
        Some(filter) if filter != text => text.clone_into(filter),
        _ => return Vec::new(),
    }
    if model.tab == Tab::Jobs {
        model.jobs.ask_anew();
        return vec![Effect::Fetch(head(model))];
    }
    Vec::new()
}

fn leave(model: &mut Model, what: &Typing) -> Vec<Effect> {
    match what {
        Typing::Filter => set_filter(model, ""),
        Typing::Search => {
            if let Some(page) = model.job_page_mut() {
                page.log.search.clear();
                page.log.found = None;
            }
            Vec::new()
        }
        Typing::Comment { .. } | Typing::Say { .. } => {
            model.say(Tone::Plain, "nothing changed");
            Vec::new()
        }
        Typing::Jump => Vec::new(),
    }
}

fn enter(model: &mut Model, prompt: Prompt) -> Vec<Effect> {
    match prompt.what {
        Typing::Filter => Vec::new(),
        Typing::Search => {
            let misses = model.job_page().is_some_and(|page| page.log.found.is_none());
            if misses && !prompt.text.is_empty() {
                model.say(Tone::Bad, format!("`{}` is not in the part of the log shown here", prompt.text));
            }
            Vec::new()
        }
        Typing::Jump => jump::jump(model, prompt.text.trim()),
        Typing::Say { id, name, question } => {
            let text = prompt.text.trim().to_owned();
            if text.is_empty() {
                model.say(Tone::Bad, "write something, or press Esc to cancel");
                model.prompt = Some(Prompt { what: Typing::Say { id, name, question }, text });
                return Vec::new();
            }
            let meant = super::act::meant(model, &id, &name);
            let action = match question {
                Some(question) => Action::Answer { id, name, meant, question, text },
                None => Action::Say { id, name, meant, text },
            };
            super::act::go(model, action)
        }
        Typing::Comment { id, name, epoch } => {
            let comment = prompt.text.trim().to_owned();
            if comment.is_empty() {
                model.say(Tone::Bad, "say what should change, or press Esc to cancel");
                model.prompt =
                    Some(Prompt { what: Typing::Comment { id, name, epoch }, text: String::new() });
                return Vec::new();
            }
            let meant = super::act::meant(model, &id, &name);
            let action = Action::RequestChanges { id, name, meant, epoch, comment };
            super::act::go(model, action)
        }
    }
}

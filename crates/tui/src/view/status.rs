//! The two lines at the bottom: the last message or question, and the keys that work here.

use giga_api::wire::Job;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::table::line;
use super::theme;
use crate::keys::{self, Place};
use crate::model::{Model, Tab, Tone, Typing};
use crate::msg::Action;
use crate::text::{clean, cut, quoted, span, tail, width};
use crate::update::{completion, fits_stage};

type Pieces = Vec<(String, Style)>;

pub(super) fn draw(model: &Model, first: Rect, second: Rect, buf: &mut Buffer) {
    line(first, buf, &message(model, usize::from(first.width)));
    line(second, buf, &below(model, usize::from(second.width)));
}

/// What is fixed stays: names and what was typed give way to it.
fn message(model: &Model, room: usize) -> Pieces {
    if let Some(prompt) = &model.prompt {
        let before = match &prompt.what {
            Typing::Filter => "/".to_owned(),
            Typing::Search => "search: ".to_owned(),
            Typing::Jump => ":".to_owned(),
            // Most of the line is for the answer.
            Typing::Comment { name, .. } if room >= 60 => {
                format!("request changes to {}: ", cut(&clean(name), room / 4))
            }
            Typing::Comment { .. } => "request changes: ".to_owned(),
            Typing::Say { question: Some(_), .. } => "answer: ".to_owned(),
            Typing::Say { question: None, .. } => "message: ".to_owned(),
        };
        let left = room.saturating_sub(width(&before) + 2);
        let mut pieces = vec![
            (format!(" {before}"), theme::command()),
            (tail(&clean(&prompt.text), left), theme::title()),
            ("▏".to_owned(), theme::command()),
        ];
        if prompt.what == Typing::Jump
            && let Some(whole) = completion(model, &prompt.text)
            && let Some(rest) = whole.strip_prefix(&prompt.text)
        {
            pieces.push((clean(rest), theme::faint()));
        }
        return pieces;
    }
    if let Some(action) = &model.ask {
        return asked(action, room);
    }
    let note =
        model.note.as_ref().map(|note| vec![(format!(" {}", clean(&note.text)), theme::tone(note.tone))]);
    // The header says that the connection is lost; what became of an action is shown here only.
    if model.note.as_ref().is_some_and(|note| note.tone == Tone::Bad) {
        return note.unwrap_or_default();
    }
    if let Some((since, reason)) = model.link.lost() {
        let after = span(model.now.since(*since));
        return vec![
            (format!(" connection lost, reconnecting ({after})"), theme::loud()),
            (format!("  {}", clean(reason)), theme::faint()),
        ];
    }
    if let Some(note) = note {
        return note;
    }
    match model.filter() {
        Some(filter) if !filter.is_empty() => {
            vec![
                (format!(" /{}", clean(filter)), theme::title()),
                ("  Esc clears the filter".to_owned(), theme::faint()),
            ]
        }
        _ => Vec::new(),
    }
}

/// The question, with how to answer it.
fn asked(action: &Action, room: usize) -> Pieces {
    let (long, brief) = match action {
        Action::PauseBudget { .. } => {
            (" y to confirm, s to stop its jobs too, any other key: no", " y yes, s stops jobs, other: no")
        }
        _ => (" y to confirm, any other key: no", " y yes, any other key: no"),
    };
    let more = if width(long) + 20 < room { long } else { brief };
    let left = room.saturating_sub(width(more) + 1);
    let mut question = action.question().unwrap_or_default();
    if width(&question) > left {
        question = format!("{}?", cut(question.trim_end_matches('?'), left.saturating_sub(1)));
    }
    vec![(format!(" {question}"), theme::loud()), (more.to_owned(), Style::new())]
}

fn below(model: &Model, room: usize) -> Pieces {
    if let Some(action) = &model.ask {
        return vec![(" same as: ".to_owned(), theme::faint()), (action.line(), theme::command())];
    }
    match model.prompt.as_ref().map(|prompt| (&prompt.what, &prompt.text)) {
        Some((Typing::Comment { id, name, .. }, text)) => {
            let meant = crate::update::meant(model, id, name);
            let command = format!("giga review {} --request-changes -m {}", quoted(&meant), quoted(text));
            return vec![
                (" Enter sends, Esc cancels; same as: ".to_owned(), theme::faint()),
                (command, theme::command()),
            ];
        }
        Some((Typing::Say { id, name, question }, text)) => {
            let meant = quoted(&crate::update::meant(model, id, name));
            let command = match question {
                Some(number) => format!("giga job answer {meant} --question {number} {}", quoted(text)),
                None => format!("giga job say {meant} {}", quoted(text)),
            };
            return vec![
                (" Enter sends, Esc cancels; same as: ".to_owned(), theme::faint()),
                (command, theme::command()),
            ];
        }
        Some((Typing::Jump, _)) => {
            return keys_of(&[("Tab", "complete"), ("Enter", "go"), ("Esc", "cancel")]);
        }
        Some((Typing::Filter, _)) => return keys_of(&[("Enter", "keep"), ("Esc", "clear")]),
        Some((Typing::Search, _)) => {
            return keys_of(&[("Enter", "keep"), ("n N", "next, previous"), ("Esc", "clear")]);
        }
        None => {}
    }
    let job = subject(model);
    let places = model.places();
    let shown = keys::of(&places, model.who.may_act())
        .filter(|key| !key.hint.is_empty())
        // Of what can be done with a job only what its stage allows.
        .filter(|key| {
            !(key.acts && matches!(key.place, Place::Job | Place::Jobs))
                || job.is_some_and(|job| fits_stage(job, key.keys))
        })
        .map(|key| (key.keys.split(' ').next().unwrap_or_default(), key.hint));
    let mut all: Vec<(&str, &str)> = shown.collect();
    // Help and quit are always there; others go where there is no room.
    let long =
        |all: &[(&str, &str)]| all.iter().map(|(key, hint)| width(key) + width(hint) + 3).sum::<usize>();
    while long(&all) > room && all.len() > 3 {
        all.remove(all.len() - 3);
    }
    keys_of(&all)
}

/// The job that keys are about.
fn subject(model: &Model) -> Option<&Job> {
    if let Some(page) = model.job_page() {
        return page.job.as_ref();
    }
    let selected = model.selected().filter(|_| model.tab == Tab::Jobs && model.pages.is_empty())?;
    model.jobs.rows.iter().find(|job| job.id == selected)
}

fn keys_of(keys: &[(&str, &str)]) -> Pieces {
    keys.iter()
        .flat_map(|(key, hint)| [(format!(" {key}"), theme::title()), (format!(" {hint} "), theme::faint())])
        .collect()
}

//! What a key means, by what is in front.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use giga_api::wire::AlertCode;

use super::{act, everything, in_front, open_factory, open_job, prompt, switch};
use crate::model::{Model, Page, Part, Tab, Tone, Typing, alert_key};
use crate::msg::Effect;
use crate::view;

pub(super) fn key(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    if model.prompt.is_some() {
        return prompt::key(model, key);
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let held = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    if control && key.code == KeyCode::Char('c') {
        return vec![Effect::Quit];
    }
    if control && key.code == KeyCode::Char('z') {
        return vec![Effect::Suspend];
    }
    model.note = None;
    if model.ask.is_some() {
        // Nobody means yes with a chord.
        return act::answer(model, if held { KeyCode::Null } else { key.code });
    }
    if std::mem::take(&mut model.help) {
        return Vec::new();
    }
    match key.code {
        KeyCode::Char('r') if control => {
            model.say(Tone::Plain, "asked for everything anew");
            everything(model)
        }
        KeyCode::Char(_) if held => Vec::new(),
        KeyCode::Char('q') => vec![Effect::Quit],
        KeyCode::Char('?') => {
            model.help = true;
            Vec::new()
        }
        KeyCode::Char(':') => {
            prompt::open(model, Typing::Jump);
            Vec::new()
        }
        KeyCode::Char('/') => {
            slash(model);
            Vec::new()
        }
        KeyCode::Char('p') => next_product(model),
        KeyCode::Char(digit @ '1'..='6') => switch(model, Tab::ALL[digit as usize - '1' as usize]),
        KeyCode::Tab | KeyCode::BackTab => {
            let back = key.code == KeyCode::BackTab || key.modifiers.contains(KeyModifiers::SHIFT);
            if let Some(part) = model.job_page().map(|page| page.part) {
                return show_part(model, part.next(back));
            }
            let tab = model.tab.next(back);
            switch(model, tab)
        }
        KeyCode::Esc | KeyCode::Backspace => back(model),
        _ if model.job_page().is_some() => job_key(model, key.code),
        _ => list_key(model, key.code),
    }
}

fn slash(model: &mut Model) {
    match model.page() {
        Some(Page::Job(page)) if page.part == Part::Log => prompt::open(model, Typing::Search),
        Some(_) => model.say(Tone::Plain, "nothing to filter here"),
        None => prompt::open(model, Typing::Filter),
    }
}

/// One step back: the filter first, then the page.
fn back(model: &mut Model) -> Vec<Effect> {
    if model.filter().is_some_and(|filter| !filter.is_empty()) {
        return prompt::set_filter(model, "");
    }
    if let Some(page) = model.job_page_mut()
        && page.part == Part::Log
        && !page.log.search.is_empty()
    {
        page.log.search.clear();
        page.log.found = None;
        return Vec::new();
    }
    if model.pages.pop().is_some() { in_front(model) } else { Vec::new() }
}

fn next_product(model: &mut Model) -> Vec<Effect> {
    let known: Vec<&String> = model.products.iter().collect();
    if known.len() < 2 && model.product.is_none() {
        model.say(Tone::Plain, "there is no other product to show");
        return Vec::new();
    }
    let next = match &model.product {
        None => known.first().copied(),
        Some(now) => known.into_iter().find(|product| *product > now),
    };
    let next = next.cloned();
    show_product(model, next)
}

fn show_product(model: &mut Model, product: Option<String>) -> Vec<Effect> {
    if model.product == product {
        return Vec::new();
    }
    model.product = product;
    // What is of another product must not stand there under this one's name.
    (model.metrics, model.alerts, model.budgets, model.topics) = (None, None, None, None);
    model.board.columns.clear();
    model.jobs.rows.clear();
    model.jobs.ask_anew();
    everything(model)
}

/// By how many rows, for the keys that every list knows.
fn step(code: KeyCode, height: usize) -> Option<isize> {
    let page = isize::try_from(height.saturating_sub(1).max(1)).unwrap_or(1);
    Some(match code {
        KeyCode::Char('j') | KeyCode::Down => 1,
        KeyCode::Char('k') | KeyCode::Up => -1,
        KeyCode::PageDown | KeyCode::Char(' ') => page,
        KeyCode::PageUp => -page,
        _ => return None,
    })
}

fn list_key(model: &mut Model, code: KeyCode) -> Vec<Effect> {
    let (keys, height) = (model.keys(), model.list_height());
    if let Some(by) = step(code, height) {
        if let Some(cursor) = model.cursor_mut() {
            cursor.step(&keys, by, height);
        }
        return Vec::new();
    }
    match code {
        KeyCode::Char('g') | KeyCode::Home => {
            if let Some(cursor) = model.cursor_mut() {
                cursor.home();
            }
            Vec::new()
        }
        KeyCode::Char('G') | KeyCode::End => {
            if let Some(cursor) = model.cursor_mut() {
                cursor.end(&keys, height);
            }
            Vec::new()
        }
        KeyCode::Enter => enter(model),
        KeyCode::Char('h') | KeyCode::Left if on_board(model) => sideways(model, true),
        KeyCode::Char('l') | KeyCode::Right if on_board(model) => sideways(model, false),
        KeyCode::Char('s') if model.tab == Tab::Jobs && model.pages.is_empty() => {
            model.jobs.group = model.jobs.group.next();
            model.jobs.ask_anew();
            in_front(model)
        }
        KeyCode::Char(c) => act::act(model, c).unwrap_or_default(),
        _ => Vec::new(),
    }
}

fn on_board(model: &Model) -> bool {
    model.tab == Tab::Board && model.pages.is_empty()
}

fn sideways(model: &mut Model, left: bool) -> Vec<Effect> {
    let columns: Vec<_> = model.board_columns().iter().map(|shown| shown.column).collect();
    let at = columns.iter().position(|column| *column == model.board.column).unwrap_or(0);
    let to = if left { at.saturating_sub(1) } else { (at + 1).min(columns.len().saturating_sub(1)) };
    if let Some(column) = columns.get(to) {
        model.board.column = *column;
    }
    Vec::new()
}

const fn is_about_a_budget(code: AlertCode) -> bool {
    matches!(code, AlertCode::BudgetExhausted | AlertCode::BudgetPaused | AlertCode::BudgetNear)
}

fn enter(model: &mut Model) -> Vec<Effect> {
    let Some(key) = model.selected() else { return Vec::new() };
    match (model.page(), model.tab) {
        (Some(_), _) | (None, Tab::Board | Tab::Jobs) => open_job(model, &key),
        (None, Tab::Factories) => open_factory(model, &key),
        (None, Tab::Alerts) => {
            let alerts = model.shown_alerts();
            let Some(alert) = alerts.into_iter().find(|alert| alert_key(alert) == key).cloned() else {
                return Vec::new();
            };
            match (alert.job_id, alert.factory_id, alert.product_id) {
                (Some(job), _, _) => open_job(model, &job),
                (None, Some(factory), _) => open_factory(model, &factory),
                (None, None, Some(product)) if is_about_a_budget(alert.code) => {
                    let effects = switch(model, Tab::Budgets);
                    model.budget_list.filter.clear();
                    model.budget_list.cursor.select(&product);
                    effects
                }
                (None, None, Some(_)) if alert.code == AlertCode::DeadLetters => {
                    model.jobs.group = crate::model::Group::Failed;
                    model.jobs.list.filter.clear();
                    model.jobs.ask_anew();
                    switch(model, Tab::Jobs)
                }
                _ => {
                    model.say(Tone::Plain, "this one is about the fleet as a whole");
                    Vec::new()
                }
            }
        }
        (None, Tab::Budgets) => {
            let mut effects = show_product(model, Some(key));
            effects.extend(switch(model, Tab::Jobs));
            effects
        }
        (None, Tab::Topics) => Vec::new(),
    }
}

fn show_part(model: &mut Model, part: Part) -> Vec<Effect> {
    if let Some(page) = model.job_page_mut() {
        page.part = part;
        page.top = 0;
    }
    in_front(model)
}

fn job_key(model: &mut Model, code: KeyCode) -> Vec<Effect> {
    let part = match code {
        KeyCode::Char('e') => Some(Part::Events),
        KeyCode::Char('l') => Some(Part::Log),
        KeyCode::Char('w') => Some(Part::Explain),
        KeyCode::Char('u') => Some(Part::Runs),
        _ => None,
    };
    if let Some(part) = part {
        return show_part(model, part);
    }
    let height = view::job::log_height(model);
    let most = model.job_page().map_or(0, |page| view::job::scrolls(model, page));
    let Some(page) = model.job_page_mut() else { return Vec::new() };
    let by = step(code, height).or(match code {
        KeyCode::Char('g') | KeyCode::Home => Some(isize::MIN / 2),
        KeyCode::Char('G') | KeyCode::End => Some(isize::MAX / 2),
        _ => None,
    });
    if let Some(by) = by {
        if page.part == Part::Log {
            page.log.scroll(by, height);
        } else {
            page.top = page.top.saturating_add_signed(by).min(most);
        }
        return Vec::new();
    }
    if page.part == Part::Log {
        match code {
            KeyCode::Char('f') => {
                page.log.top = page.log.first_shown(height);
                page.log.follow = !page.log.follow;
                return Vec::new();
            }
            KeyCode::Char('n' | 'N') => {
                if !page.log.find(code == KeyCode::Char('N'), height) {
                    model.say(Tone::Plain, "nothing to find; / says what to look for");
                }
                return Vec::new();
            }
            KeyCode::Left => page.log.left = page.log.left.saturating_sub(20),
            KeyCode::Right => page.log.left = (page.log.left + 20).min(2_000),
            _ => {}
        }
    }
    match code {
        KeyCode::Char(c) => act::act(model, c).unwrap_or_default(),
        _ => Vec::new(),
    }
}

//! Topics: how deep, and who serves them.

use giga_api::wire::{Stage, TopicJobState};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::table::{self, cell, column, line, plain};
use super::{nothing, theme};
use crate::model::Model;
use crate::text::{age, clean};

pub(super) fn draw(model: &Model, area: Rect, buf: &mut Buffer) {
    let shown = model.shown_topics();
    let Some(all) = &model.topics else {
        return nothing(area, buf, &["asking the coordinator …"]);
    };
    if all.topics.is_empty() {
        return nothing(
            area,
            buf,
            &[
                "No topics. They are for plain jobs whose handler is a function in your own process; one comes to be with its first job:",
                "",
                "giga topic enqueue mail '{\"to\": \"ana\"}'",
            ],
        );
    }
    if shown.is_empty() {
        return nothing(area, buf, &["No topic matches; Esc clears the filter."]);
    }
    let columns = [
        column("TOPIC", 14, 0).grows(),
        column("PRODUCT", 10, 3),
        column("READY", 7, 0).right(),
        column("RUNNING", 7, 0).right(),
        column("SCHEDULED", 9, 2).right(),
        column("DEAD", 6, 0).right(),
        column("DONE", 8, 4).right(),
        column("WORKERS", 7, 1).right(),
        column("", 7, 0),
    ];
    let cursor = &model.topic_list.cursor;
    let rows = shown.iter().skip(cursor.top()).map(|topic| {
        let in_state = |state| topic.by_state.get(&state).copied().unwrap_or(0);
        let number = |state, style: Style| {
            let count = in_state(state);
            cell(count.to_string(), if count == 0 { theme::faint() } else { style })
        };
        let idle = topic.workers == 0 && in_state(TopicJobState::Ready) > 0;
        vec![
            cell(&topic.name, theme::title()),
            plain(&topic.product_id),
            number(TopicJobState::Ready, Style::new()),
            number(TopicJobState::Running, theme::stage(Stage::Building)),
            number(TopicJobState::Scheduled, Style::new()),
            number(TopicJobState::Dead, theme::bad()),
            number(TopicJobState::Done, theme::good()),
            cell(topic.workers.to_string(), if idle { theme::warn() } else { Style::new() }),
            cell(if topic.paused.is_some() { "paused" } else { "" }, theme::loud()),
        ]
    });
    let list = Rect { height: area.height.saturating_sub(2), ..area };
    table::draw(list, buf, &columns, rows, cursor.index().checked_sub(cursor.top()));
    let gate = all.paused.as_ref().map(|pause| {
        format!(
            " everything is paused since {} by {}: giga topic resume --all",
            age(&pause.since, model.now),
            clean(&pause.by)
        )
    });
    let own = shown.get(cursor.index()).and_then(|topic| {
        let pause = topic.paused.as_ref()?;
        Some(format!(
            " {} is paused since {} by {}",
            clean(&topic.name),
            age(&pause.since, model.now),
            clean(&pause.by)
        ))
    });
    if let Some(text) = gate.or(own) {
        line(Rect { y: area.bottom().saturating_sub(1), height: 1, ..area }, buf, &[(text, theme::warn())]);
    }
}

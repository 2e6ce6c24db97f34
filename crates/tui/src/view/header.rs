//! The two lines at the top: how busy the fleet is, and where the reader is. They are there in every view.

use giga_api::wire::Stage;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::table::line;
use super::theme::{self, bar_text};
use crate::model::{Column, Model, Tab};
use crate::text::{clean, cut, span, width};

type Piece = (String, Style);

/// The rank of what is never dropped.
const KEPT: u8 = 4;

pub(super) fn draw(model: &Model, first: Rect, second: Rect, buf: &mut Buffer) {
    fleet(model, first, buf);
    tabs(model, second, buf);
}

/// Where there is too little room, whole pieces go, the least important first; the counts of jobs stay.
fn fleet(model: &Model, area: Rect, buf: &mut Buffer) {
    let alerts = alerts(model);
    // One cell between the two, however little room there is, and one at the end.
    let right = (width(&alerts.0) as u16 + 2).min(area.width);
    let left = Rect { width: area.width - right, ..area };
    let mut pieces: Vec<(u8, Piece)> = Vec::new();
    match &model.metrics {
        None => pieces.push((KEPT, (" loading …".to_owned(), theme::faint()))),
        Some(metrics) => {
            let factories = &metrics.factories;
            let (used, seats) = (factories.seats_used, factories.seats);
            let cells = if area.width >= 100 { 20 } else { 10 };
            let busy = if seats > 0 && used >= seats { theme::warn() } else { theme::good() };
            let bar = bar_text((f64::from(used), 0.0), f64::from(seats), cells);
            pieces.push((0, (format!(" {bar}"), busy)));
            pieces.push((KEPT, (format!(" {used}/{seats} seats"), theme::title())));
            let live = format!("  {} online", factories.live);
            pieces.push((3, (live, if factories.live == 0 { theme::warn() } else { Style::new() })));
            for (rank, count, word) in [(2, factories.stale, "offline"), (1, factories.draining, "draining")]
            {
                if count > 0 {
                    pieces.push((rank, (format!(" {count} {word}"), theme::warn())));
                }
            }
            for (stages, word, style) in [
                (vec![Stage::Queued], "queued", Style::new()),
                (Column::Running.stages(), "running", theme::stage(Stage::Building)),
                (vec![Stage::Review], "review", theme::stage(Stage::Review)),
            ] {
                pieces.push((KEPT, (format!("  {} {word}", model.in_stages(&stages)), style)));
            }
        }
    }
    for rank in 0..KEPT {
        if pieces.iter().map(|(_, (text, _))| width(text)).sum::<usize>() > usize::from(left.width) {
            pieces.retain(|(of, _)| *of != rank);
        }
    }
    line(left, buf, &pieces.into_iter().map(|(_, piece)| piece).collect::<Vec<_>>());
    let at = Rect { x: left.right() + 1, width: right.saturating_sub(1), ..area };
    line(at, buf, &[alerts]);
}

fn alerts(model: &Model) -> Piece {
    match model.alerts.as_ref().map(Vec::len) {
        None => (String::new(), Style::new()),
        Some(0) => ("No alerts".to_owned(), theme::faint()),
        Some(1) => ("1 alert".to_owned(), theme::loud()),
        Some(many) => (format!("{many} alerts"), theme::loud()),
    }
}

fn tabs(model: &Model, area: Rect, buf: &mut Buffer) {
    let mut pieces: Vec<Piece> = Vec::new();
    for (number, tab) in Tab::ALL.into_iter().enumerate() {
        let here = tab == model.tab;
        let style = match (here, model.pages.is_empty()) {
            (true, true) => theme::selected().add_modifier(Modifier::BOLD),
            (true, false) => theme::title(),
            (false, _) => theme::faint(),
        };
        let name =
            if area.width < 70 && !here { tab.name().get(..3).unwrap_or_default() } else { tab.name() };
        pieces.push((format!(" {} {name}", number + 1), style));
    }
    pieces.push((" ".to_owned(), Style::new()));
    let used: usize = pieces.iter().map(|(text, _)| width(text)).sum();
    line(area, buf, &pieces);
    let room = usize::from(area.width).saturating_sub(used + 1);
    let mut right = about(model);
    // The connection says most; what is left of it is cut from the left.
    while right.iter().map(|(text, _)| width(text) + 1).sum::<usize>() > room + 1 && right.len() > 1 {
        right.remove(0);
    }
    let needed = right.iter().map(|(text, _)| width(text) + 1).sum::<usize>().min(room + 1);
    let mut at = Rect { x: area.right().saturating_sub(needed as u16), ..area };
    for (text, style) in right {
        at.width = area.right().saturating_sub(at.x);
        let text = cut(&text, usize::from(at.width));
        let cells = width(&text) as u16;
        line(at, buf, &[(text, style)]);
        at.x += cells + 1;
    }
}

fn about(model: &Model) -> Vec<Piece> {
    let product = match (&model.product, model.who.products.as_slice()) {
        (Some(product), _) => (cut(&clean(product), 16), theme::title()),
        (None, []) => ("all products".to_owned(), theme::faint()),
        // All that the token is for.
        (None, [only]) => (cut(&clean(only), 16), theme::faint()),
        (None, several) => (format!("{} products", several.len()), theme::faint()),
    };
    let mut pieces = vec![product];
    if !model.who.may_act() {
        pieces.push(("read-only".to_owned(), theme::warn()));
    }
    pieces.push(match model.link.lost() {
        Some((since, _)) => (format!("○ lost {}", span(model.now.since(*since))), theme::loud()),
        None if model.link.open => ("● live".to_owned(), theme::good()),
        None => ("○ …".to_owned(), theme::faint()),
    });
    pieces
}

//! The list of jobs.

use giga_api::wire::Priority;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::table::{self, cell, column, line, plain};
use super::{nothing, theme};
use crate::model::{Group, Model};
use crate::text::{age, clean, count};

pub(super) fn draw(model: &Model, area: Rect, buf: &mut Buffer) {
    let jobs = &model.jobs;
    let shown = model.shown_jobs();
    let cursor = &jobs.list.cursor;
    let mut pieces =
        vec![(" stages: ".to_owned(), theme::faint()), (jobs.group.name().to_owned(), theme::title())];
    if !jobs.list.filter.is_empty() {
        pieces.push(("   name: ".to_owned(), theme::faint()));
        pieces.push((clean(&jobs.list.filter), theme::title()));
    }
    if !shown.is_empty() {
        let more = match (jobs.loading, &jobs.next) {
            (true, _) => ", loading more …",
            (false, Some(_)) => ", more below",
            (false, None) => "",
        };
        pieces.push((format!("   {}{more}", count(shown.len(), "job")), theme::faint()));
    }
    if cursor.top() > 0 {
        pieces.push((format!("   ▲ {} newer", cursor.top()), theme::warn()));
    }
    line(Rect { height: 1, ..area }, buf, &pieces);
    let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    if shown.is_empty() {
        return match (jobs.loaded, jobs.list.filter.is_empty(), jobs.group) {
            (false, _, _) => nothing(below, buf, &["loading …"]),
            (true, false, _) => {
                nothing(below, buf, &["No job name matches; Esc clears the filter, s changes the stages."]);
            }
            (true, true, Group::All) => {
                nothing(
                    below,
                    buf,
                    &["No jobs yet. Submit one:", "", "giga job init hello.md", "giga job submit hello.md"],
                );
            }
            (true, true, _) => nothing(below, buf, &["No job is in these stages; s changes the stages."]),
        };
    }
    let product = if model.product.is_some() { 9 } else { 2 };
    let columns = [
        column("STAGE", 13, 0),
        column("PRIO", 4, 4),
        column("NAME", 18, 0).grows(),
        column("PRODUCT", 10, product),
        column("REPO", 10, 5),
        column("FACTORY", 10, 1),
        column("AGE", 5, 0).right(),
        column("TRY", 3, 3).right(),
    ];
    let hidden = model.product.is_some();
    let columns: Vec<_> =
        columns.into_iter().enumerate().filter(|(at, _)| !(hidden && *at == 3)).map(|(_, c)| c).collect();
    let rows = shown.iter().skip(cursor.top()).map(|job| {
        let factory = job.lease.as_ref().map(|lease| &lease.factory_id).or(job.target_factory_id.as_ref());
        let urgent = match job.priority {
            Priority::Critical => theme::loud(),
            Priority::High => theme::warn(),
            Priority::Normal | Priority::Low => theme::faint(),
        };
        let mut cells = vec![
            if job.needs_input {
                cell("needs input", theme::warn())
            } else {
                cell(job.stage.label(), theme::stage(job.stage))
            },
            cell(job.priority.as_str().chars().take(4).collect::<String>(), urgent),
            cell(&job.name, theme::title()),
            plain(&job.product_id),
            plain(job.repo.as_deref().map_or("-", short_repo)),
            cell(factory.map_or("-", String::as_str), Style::new()),
            plain(age(&job.created_at, model.now)),
            plain(job.attempts.to_string()),
        ];
        if hidden {
            cells.remove(3);
        }
        cells
    });
    table::draw(below, buf, &columns, rows, cursor.index().checked_sub(cursor.top()));
}

/// The last part of an address.
pub(super) fn short_repo(repo: &str) -> &str {
    let repo = repo.trim_end_matches('/');
    repo.rsplit(['/', ':']).next().unwrap_or(repo).trim_end_matches(".git")
}

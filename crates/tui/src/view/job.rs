//! One job: the line that says where it stands, and below it one of its four pages.

use giga_api::wire::{Event, Job, MergeState, Run, RunOutcome, Stage};
use giga_domain::{Timestamp, Usd};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::jobs::short_repo;
use super::table::line;
use super::{explain, nothing, theme};
use crate::model::{JobPage, Log, Model, Part};
use crate::text::{age, clean, clock, count, fit, span, when, width, wrap};

/// Lines above a page.
const HEAD: usize = 4;

pub(super) type Pieces = Vec<(String, Style)>;

pub(crate) fn log_height(model: &Model) -> usize {
    model.body_height().saturating_sub(HEAD)
}

/// How far the page in front can be scrolled; the log minds itself.
pub(crate) fn scrolls(model: &Model, page: &JobPage) -> usize {
    lines(model, page, usize::from(model.size.0)).len().saturating_sub(log_height(model))
}

pub(super) fn draw(model: &Model, page: &JobPage, area: Rect, buf: &mut Buffer) {
    if let Some(error) = &page.error {
        let text = format!("{}: {}", clean(&page.id), clean(error));
        return nothing(area, buf, &[&text, "", "Esc goes back."]);
    }
    let Some(job) = &page.job else {
        return nothing(area, buf, &["loading …"]);
    };
    let mut head = now(model, page, job);
    head.push(parts(page));
    for (row, pieces) in area.rows().zip(&head) {
        line(row, buf, pieces);
    }
    let body = Rect { y: area.y + HEAD as u16, height: area.height.saturating_sub(HEAD as u16), ..area };
    if page.part == Part::Log {
        return log(&page.log, job, body, buf);
    }
    for (row, pieces) in body.rows().zip(lines(model, page, usize::from(area.width)).iter().skip(page.top)) {
        line(row, buf, pieces);
    }
}

/// Where it stands, in three lines.
fn now(model: &Model, page: &JobPage, job: &Job) -> Vec<Pieces> {
    let at = model.now;
    let mut first = vec![
        (format!(" {}  ", clean(&job.name)), theme::title()),
        (job.stage.label().to_owned(), theme::stage(job.stage).add_modifier(Modifier::BOLD)),
    ];
    if job.needs_input {
        first.push((", needs input".to_owned(), theme::warn().add_modifier(Modifier::BOLD)));
    }
    let where_ = match (&job.lease, &job.target_factory_id) {
        (Some(lease), _) => {
            let lapses = when(&lease.expires_at, at);
            format!(
                " on {} for {}, lease ends {lapses}",
                clean(&lease.factory_id),
                age(&lease.granted_at, at)
            )
        }
        (None, Some(target)) => format!(" offered to {}", clean(target)),
        (None, None) => format!(" for {}", age(&job.updated_at, at)),
    };
    first.push((where_, Style::new()));
    if let Some(ready) =
        job.ready_at.as_deref().filter(|ready| ready.parse::<Timestamp>().is_ok_and(|ready| ready > at))
    {
        first.push((format!(", not before {}", when(ready, at)), theme::warn()));
    }
    let ended = page.runs.iter().flatten().filter(|run| run.outcome != RunOutcome::Running);
    let ended: Usd = ended.filter_map(|run| run.report.cost_usd).sum();
    let spent = ended + job.lease.as_ref().map_or(Usd::ZERO, |lease| lease.spent_usd);
    let repo = job.repo.as_deref().map_or("no repository".to_owned(), |repo| clean(short_repo(repo)));
    let repo = match job.repos.len() {
        0 => repo,
        all => format!("{repo} and {} more", all - 1),
    };
    let second = format!(
        " {}  {repo}  {}  epoch {}  {}  {spent}",
        clean(&job.product_id),
        job.priority,
        job.lease_epoch,
        count(job.attempts as usize, "failed attempt"),
    );
    let third = why(job).unwrap_or_else(|| vec![(format!(" {}", job.id), theme::faint())]);
    vec![first, vec![(second, Style::new())], third]
}

/// What there is to say about how it went.
fn why(job: &Job) -> Option<Pieces> {
    if let Some(question) = job.open_questions.first() {
        let options = question.options.join(" | ");
        let options = if options.is_empty() { options } else { format!(" ({})", clean(&options)) };
        let text = clean(question.text.trim().lines().next().unwrap_or_default());
        return Some(vec![(format!(" asks: {text}{options}  i answers"), theme::warn())]);
    }
    if let Some(failure) = &job.failure {
        return Some(vec![(format!(" {}", clean(&failure.words())), theme::bad())]);
    }
    if let Some(merge) = &job.merge {
        let style = match merge.state {
            MergeState::SentBack => theme::bad(),
            MergeState::Waiting if merge.failures > 0 => theme::warn(),
            MergeState::Waiting | MergeState::Merging | MergeState::Pushing | MergeState::Proposed => {
                theme::faint()
            }
            MergeState::Merged => theme::good(),
        };
        if let Some(note) = &merge.note {
            return Some(vec![(format!(" {}", clean(note)), style)]);
        }
        let commit = merge.commit.as_deref().map(|commit| format!(" {}", short(commit))).unwrap_or_default();
        let detail = merge.detail.as_deref().map(|detail| format!(": {}", clean(detail))).unwrap_or_default();
        return Some(vec![(format!(" merge {}{commit}{detail}", merge.state), style)]);
    }
    if job.stage == Stage::Review {
        let needed = job.gate.as_ref().map_or(1, |gate| gate.quorum);
        let by = if job.approvals.is_empty() {
            String::new()
        } else {
            format!(" ({})", clean(&job.approvals.join(", ")))
        };
        return Some(vec![(
            format!(" {} of {needed} approvals{by}", job.approvals.len()),
            theme::stage(Stage::Review),
        )]);
    }
    None
}

fn short(commit: &str) -> String {
    clean(commit).chars().take(10).collect()
}

fn parts(page: &JobPage) -> Pieces {
    let mut pieces: Pieces = Vec::new();
    for part in Part::ALL {
        let here = part == page.part;
        let key = match part {
            Part::Events => "e",
            Part::Log => "l",
            Part::Explain => "w",
            Part::Runs => "u",
        };
        let style = if here { theme::selected().add_modifier(Modifier::BOLD) } else { theme::faint() };
        pieces.push((" ".to_owned(), Style::new()));
        pieces.push((format!("{key} {}", part.name()), style));
        pieces.push((" ".to_owned(), Style::new()));
    }
    if page.part == Part::Log && page.log.epoch.is_some_and(|epoch| epoch > 0) {
        let log = &page.log;
        let state = match (log.complete, log.follow) {
            (true, _) => "finished",
            (false, true) => "following",
            (false, false) => "not following (f)",
        };
        let epoch = log.epoch.map(|epoch| format!("  epoch {epoch}")).unwrap_or_default();
        let skipped = if log.skipped { ", the end of it" } else { "" };
        pieces.push((format!(" {epoch}  {}{skipped}, {state}", count(log.len(), "line")), theme::faint()));
        if !log.search.is_empty() {
            pieces.push((format!("  /{}", clean(&log.search)), theme::warn()));
        }
    }
    pieces
}

fn lines(model: &Model, page: &JobPage, cells: usize) -> Vec<Pieces> {
    match page.part {
        Part::Log => Vec::new(),
        Part::Events if page.events.is_empty() => {
            vec![vec![(" loading …".to_owned(), theme::faint())]]
        }
        // The newest first: that is what somebody opens a job for.
        Part::Events => page.events.iter().rev().map(|event| happened(event, model.now)).collect(),
        Part::Explain => match &page.explain {
            None => vec![vec![(" loading …".to_owned(), theme::faint())]],
            Some(explanation) => explain::lines(explanation, cells),
        },
        Part::Runs => match page.runs.as_deref() {
            None => vec![vec![(" loading …".to_owned(), theme::faint())]],
            Some([]) => vec![vec![(" It has not run yet; press w to see why.".to_owned(), theme::faint())]],
            Some(runs) => runs.iter().rev().flat_map(|one| run(one, model.now, cells)).collect(),
        },
    }
}

fn happened(event: &Event, now: Timestamp) -> Pieces {
    let style = event.to.map_or(Style::new(), theme::stage);
    let kind = event.kind.as_str().trim_start_matches("job.").replace('_', " ");
    let step = match (event.from, event.to) {
        (Some(from), Some(to)) => format!("{} → {}  ", from.label(), to.label()),
        (None, Some(to)) => format!("→ {}  ", to.label()),
        _ => String::new(),
    };
    vec![
        (format!(" {} ", clock(&event.at, now)), theme::faint()),
        (fit(&clean(&kind), 18), style.add_modifier(Modifier::BOLD)),
        (step, style),
        (clean(&event.cause), Style::new()),
        (format!("  {}", clean(&event.actor)), theme::faint()),
    ]
}

fn run(run: &Run, now: Timestamp, cells: usize) -> Vec<Pieces> {
    let (mark, style) = match run.outcome {
        RunOutcome::Succeeded => ("✓", theme::good()),
        RunOutcome::Running => ("●", theme::stage(Stage::Building)),
        RunOutcome::Failed | RunOutcome::Expired => ("✗", theme::bad()),
        RunOutcome::Released | RunOutcome::Preempted | RunOutcome::Cancelled => ("○", theme::warn()),
    };
    let begun = run.started_at.as_deref().unwrap_or(&run.assigned_at);
    let took = match (begun.parse::<Timestamp>(), run.ended_at.as_deref().map(str::parse::<Timestamp>)) {
        (Ok(from), Some(Ok(to))) => format!("took {}", span(to.since(from))),
        (Ok(from), None) => format!("for {}", span(now.since(from))),
        _ => String::new(),
    };
    let mut facts = vec![took];
    facts.extend(run.engine.as_deref().map(clean));
    facts.extend(run.model.as_deref().map(clean));
    let assumed = if run.report.cost_assumed { " assumed" } else { "" };
    facts.extend(run.report.cost_usd.map(|cost| format!("{cost}{assumed}")));
    facts.extend(run.report.tokens.map(|tokens| format!("{tokens} tokens")));
    if let (Some(added), Some(removed)) = (run.report.lines_added, run.report.lines_removed) {
        facts.push(format!("+{added} -{removed}"));
    }
    let facts: Vec<String> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
    let mut lines: Vec<Pieces> = vec![vec![
        (format!(" {mark} epoch {}  ", run.lease_epoch), style),
        (format!("{}  ", clean(&run.factory_id)), theme::title()),
        (run.outcome.to_string(), style),
        (format!("  {}  {}", clock(begun, now), facts.join("  ")), Style::new()),
    ]];
    let room = cells.saturating_sub(5);
    let mut below = |text: String, style: Style| {
        for text in wrap(&clean(&text), room).into_iter().take(4) {
            lines.push(vec![(format!("    {text}"), style)]);
        }
    };
    if let Some(failure) = &run.failure {
        below(failure.words(), theme::bad());
    }
    if let Some(summary) = &run.report.summary {
        below(summary.clone(), Style::new());
    }
    if let (Some(branch), Some(commit)) = (&run.report.branch, &run.report.commit) {
        below(format!("{branch} at {}", short(commit)), theme::faint());
    }
    for check in &run.report.checks {
        let (mark, style) = if check.passed { ("✓", theme::good()) } else { ("✗", theme::bad()) };
        below(format!("{mark} {}", check.command), style);
    }
    lines
}

fn log(log: &Log, job: &Job, area: Rect, buf: &mut Buffer) {
    if log.is_empty() {
        let text = match (log.loaded, job.lease_epoch) {
            (false, _) => "loading …",
            (true, 0) => "It has not run yet; press w to see why.",
            (true, _) if log.complete => "The run has no output.",
            (true, _) => "No output yet.",
        };
        return nothing(area, buf, &[text]);
    }
    let first = log.first_shown(usize::from(area.height));
    let wanted = log.search.to_lowercase();
    for (at, (row, text)) in area.rows().zip(log.all().skip(first)).enumerate() {
        let shown: String = text.chars().skip(log.left).collect();
        let style = if log.found == Some(first + at) { theme::selected() } else { Style::new() };
        line(row, buf, &[(format!(" {shown}"), style)]);
        if !wanted.is_empty() {
            underline(&shown, &wanted, row, buf);
        }
    }
}

/// Every place that matches, where lower case has as many bytes as the text itself.
fn underline(shown: &str, wanted: &str, row: Rect, buf: &mut Buffer) {
    let lower = shown.to_lowercase();
    if lower.len() != shown.len() {
        return;
    }
    for (at, hit) in lower.match_indices(wanted) {
        let (Some(before), Some(hit)) = (shown.get(..at), shown.get(at..at + hit.len())) else { continue };
        let x = row.x.saturating_add(1 + width(before) as u16);
        let cells = (width(hit) as u16).min(row.right().saturating_sub(x));
        if x < row.right() {
            buf.set_style(
                Rect { x, width: cells, ..row },
                theme::warn().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            );
        }
    }
}

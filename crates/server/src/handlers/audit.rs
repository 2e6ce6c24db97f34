//! Who did what, when: the history backwards, cut to what somebody asks for and may see.
//!
//! One request looks through a bounded part of it; whoever wants more goes on from there.

use axum::Json;
use axum::extract::State;
use giga_api::wire;
use giga_domain::{Actor, Event, EventKind, FactoryId, FeedPos, JobId, Timestamp};
use giga_ports::store::HistoryOf;

use super::Answer;
use crate::app::App;
use crate::caller::Caller;
use crate::live::is_visible;
use crate::names::Names;
use crate::problem::Problem;
use crate::request::{Query, check};

/// How much of the history one request looks through.
const LOOKED_THROUGH: usize = 10_000;
const PAGE: usize = 1_000;
/// Whoever means everybody, and not only people.
pub(crate) const ANYBODY: &str = "*";

struct Filter {
    actor: Option<String>,
    kinds: Vec<EventKind>,
    job: Option<JobId>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl Filter {
    fn read(query: &Query) -> Answer<Self> {
        let kind = |text: &str| check::word::<EventKind>("kind", text);
        let actor = query.text("actor").map(str::trim).map(str::to_lowercase);
        if actor.as_deref() == Some("") {
            return Err(Problem::field("actor", "name somebody, or leave it out"));
        }
        let (job, since, until) = (query.id("job")?, query.id("since")?, query.id("until")?);
        Ok(Self { actor, kinds: query.list("kind", kind)?, job, since, until })
    }

    /// The shortest part of the history that holds all that is wanted.
    async fn part(&self, app: &App, names: &Names) -> Answer<HistoryOf> {
        if let Some(job) = self.job {
            return Ok(HistoryOf::Job(job));
        }
        let of_no_job =
            !self.kinds.is_empty() && self.kinds.iter().all(|kind| !kind.as_str().starts_with("job."));
        if of_no_job {
            return Ok(HistoryOf::NoJob);
        }
        let Some(actor) = &self.actor else {
            return Ok(if self.kinds.is_empty() { HistoryOf::People } else { HistoryOf::Everything });
        };
        let is_factory = match actor.parse::<FactoryId>() {
            Ok(id) => app.coordinator.reads().factory(&id).await?.is_some(),
            Err(_) => false,
        };
        let is_person = !is_factory && actor != ANYBODY && names.any(actor);
        Ok(if is_person { HistoryOf::People } else { HistoryOf::Everything })
    }

    fn wants(&self, event: &Event, names: &Names) -> bool {
        let by = match self.actor.as_deref() {
            Some(ANYBODY) => true,
            Some(wanted) => names.is_meant(&event.actor, wanted),
            None => !self.kinds.is_empty() || self.job.is_some() || matches!(event.actor, Actor::Token(_)),
        };
        by && (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && self.until.is_none_or(|until| event.at < until)
    }

    fn is_over(&self, event: &Event) -> bool {
        self.since.is_some_and(|since| event.at < since)
    }
}

pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    query: Query,
) -> Answer<Json<wire::AuditPage>> {
    let filter = Filter::read(&query)?;
    let limit = query.limit()?;
    let mut before = query.number("before")?.map(FeedPos);
    if let Some(job) = filter.job {
        app.visible_job(&caller, job).await?;
    }
    let names = Names::read(&app).await?;
    let part = filter.part(&app, &names).await?;
    let sight = caller.sight();
    let mut entries: Vec<wire::AuditEntry> = Vec::new();
    for _ in 0..LOOKED_THROUGH / PAGE {
        let events = app.coordinator.reads().history(&part, before, PAGE).await?;
        let ended = events.len() < PAGE;
        for event in events {
            if filter.is_over(&event) {
                return Ok(Json(wire::AuditPage { entries, next_before: None }));
            }
            if is_visible(&event, &caller.products) && filter.wants(&event, &names) {
                if entries.len() == limit {
                    // One more than fits: it is the first of the next page.
                    return Ok(Json(wire::AuditPage { entries, next_before: before.map(|pos| pos.0) }));
                }
                entries.push(wire::AuditEntry::new(&sight.of_event(&event), names.of(&event.actor)));
            }
            before = Some(event.pos);
        }
        if ended {
            return Ok(Json(wire::AuditPage { entries, next_before: None }));
        }
    }
    // There may be more to see; the caller goes on from here.
    Ok(Json(wire::AuditPage { entries, next_before: before.map(|pos| pos.0) }))
}

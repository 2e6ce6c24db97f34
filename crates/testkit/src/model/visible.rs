//! Everything that one can see of a store, to be compared with what one can see of another.

use std::time::Duration;

use giga_domain::token::TokenRecord;
use giga_domain::{
    Artifact, Budget, Charge, Event, EventSeq, Factory, FeedPos, Job, Leadership, ProductId, Run, Timestamp,
};
use giga_ports::Store;
use giga_ports::store::{JobFilter, JobText, QueueState, SpendBucket, Waiting};
use serde_json::Value;

use super::outside::Outbox;

const EVERYTHING: usize = 100_000;

/// Positions are left out of the events: they may be skipped, and only their order is a promise.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Visible {
    pub(super) jobs: Vec<Job>,
    pub(super) details: Vec<Details>,
    pub(super) live: Vec<Job>,
    pub(super) feed: Vec<Event>,
    pub(super) queue: Vec<(ProductId, QueueState)>,
    pub(super) factories: Vec<Factory>,
    pub(super) tokens: Vec<TokenRecord>,
    pub(super) flags: Vec<(String, Value)>,
    pub(super) leader: Option<Leadership>,
    pub(super) offers: Vec<Waiting>,
    pub(super) budgets: Vec<Budget>,
    /// What was charged to each of these, ever.
    pub(super) charged: Vec<Vec<SpendBucket>>,
    pub(super) effects: Outbox,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Details {
    pub(super) text: Option<JobText>,
    pub(super) runs: Vec<Run>,
    pub(super) artifacts: Vec<Artifact>,
    pub(super) events: Vec<Event>,
    pub(super) charges: Vec<Charge>,
}

impl Visible {
    pub(super) async fn of(store: &dyn Store) -> Self {
        let read = store.read();
        let jobs = read.list_jobs(&JobFilter::default(), None, EVERYTHING).await.unwrap();
        let mut details = Vec::with_capacity(jobs.len());
        for job in &jobs {
            details.push(Details {
                text: read.job_text(job.id).await.unwrap(),
                runs: read.runs(job.id).await.unwrap(),
                artifacts: read.artifacts(job.id).await.unwrap(),
                charges: read.charges(job.id).await.unwrap(),
                events: unplaced(read.job_events(job.id, EventSeq::ZERO, EVERYTHING).await.unwrap()),
            });
            if let Some(lease) = job.lease() {
                let granted = read.grant(&lease.factory, &lease.request).await.unwrap();
                assert_eq!(granted.as_ref(), Some(job), "a held job is found by the request that won it");
            }
        }
        let feed = read.feed(FeedPos::ZERO, EVERYTHING).await.unwrap();
        assert!(feed.is_sorted_by(|a, b| a.pos < b.pos), "positions rise");
        let mut queue = read.queue_states().await.unwrap();
        queue.sort_by(|a, b| a.0.cmp(&b.0));
        let mut flags = read.flags().await.unwrap();
        flags.sort_by(|a, b| a.0.cmp(&b.0));
        let mut tokens = read.tokens().await.unwrap();
        assert!(tokens.is_sorted_by_key(|token| token.created_at), "tokens come by creation");
        tokens.sort_by(|a, b| a.id.cmp(&b.id));
        let budgets = read.budgets().await.unwrap();
        let mut charged = Vec::new();
        for Budget { product, .. } in &budgets {
            let (from, to) = (Timestamp::ZERO, Timestamp::from_millis(i64::MAX));
            charged.push(read.burndown(product, from, to, Duration::from_hours(1)).await.unwrap());
        }
        Self {
            budgets,
            charged,
            effects: Outbox::of(store).await,
            details,
            live: read.live_jobs(None, EVERYTHING).await.unwrap(),
            feed: unplaced(feed),
            queue,
            factories: read.factories().await.unwrap(),
            tokens,
            flags,
            leader: read.leader().await.unwrap(),
            offers: read.unsent_offers(EVERYTHING).await.unwrap(),
            jobs,
        }
    }
}

fn unplaced(mut events: Vec<Event>) -> Vec<Event> {
    for event in &mut events {
        event.pos = FeedPos::ZERO;
    }
    events
}

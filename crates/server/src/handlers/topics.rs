//! Topics: what operators see and steer, and jobs for them over plain HTTP. Workers speak gRPC.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use giga_api::wire;
use giga_coordinator::{NewTopicWork, TopicOverview};
use giga_domain::job::RetryPolicy;
use giga_domain::topic::{DEFAULT_RETRY, TopicJob, TopicKey, TopicStage, TopicState};
use giga_domain::{JobId, Priority, TopicName, limits};
use giga_ports::topics::{Enqueued, TopicCounts, TopicPause};
use serde_json::value::RawValue;

use super::Answer;
use crate::app::App;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::request::{LargeJson, OptionalJson, PathText, Query, check};

/// A page of large payloads has fewer jobs than were asked for, and a cursor to the rest.
const PAGE_BYTES: usize = 4 << 20;

pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Answer<Json<wire::TopicList>> {
    let all = app.coordinator.topics().overview(|product| caller.products.allows(product)).await?;
    let topics = all.topics.into_iter().map(topic).collect();
    Ok(Json(wire::TopicList { paused: all.everything.map(shown), topics }))
}

pub(crate) async fn close(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
) -> Answer<Json<wire::Topic>> {
    let key = key(&caller, &path)?;
    app.coordinator.topics().pause(Some(key.clone()), caller.actor()).await?;
    app.shown_topic(key).await
}

pub(crate) async fn open(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
) -> Answer<Json<wire::Topic>> {
    let key = key(&caller, &path)?;
    app.coordinator.topics().resume(Some(key.clone()), caller.actor()).await?;
    app.shown_topic(key).await
}

pub(crate) async fn close_all(State(app): State<App>, caller: Caller) -> Answer<Json<wire::TopicGate>> {
    app.coordinator.topics().pause(None, caller.actor()).await?;
    app.shown_pause().await
}

pub(crate) async fn open_all(State(app): State<App>, caller: Caller) -> Answer<Json<wire::TopicGate>> {
    app.coordinator.topics().resume(None, caller.actor()).await?;
    app.shown_pause().await
}

impl App {
    async fn shown_topic(&self, key: TopicKey) -> Answer<Json<wire::Topic>> {
        let all = self.coordinator.topics().overview(|product| *product == key.product).await?;
        let found = all.topics.into_iter().find(|topic| topic.counts.key == key);
        let unheard_of = TopicOverview {
            counts: TopicCounts { key, by_stage: [0; 5] },
            paused: None,
            workers: 0,
            in_flight: 0,
        };
        Ok(Json(topic(found.unwrap_or(unheard_of))))
    }

    async fn shown_pause(&self) -> Answer<Json<wire::TopicGate>> {
        let all = self.coordinator.topics().overview(|_| false).await?;
        Ok(Json(wire::TopicGate { paused: all.everything.map(shown) }))
    }
}

pub(crate) async fn enqueue(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    LargeJson(request): LargeJson<wire::EnqueueRequest>,
) -> Answer<Response> {
    let key = key(&caller, &path)?;
    let jobs = work(&key.topic, request)?;
    let enqueued = app.coordinator.topics().enqueue(&key.product, jobs).await?;
    let is_new = |job: &Enqueued| matches!(job, Enqueued::Created { .. });
    let status = if enqueued.iter().any(is_new) { StatusCode::CREATED } else { StatusCode::OK };
    let jobs = enqueued
        .iter()
        .map(|job| wire::EnqueuedTopicJob { id: job.id().to_string(), existing: !is_new(job) })
        .collect();
    Ok((status, Json(wire::EnqueueAnswer { jobs })).into_response())
}

/// One job as the whole body, or several in `jobs`.
fn work(topic: &TopicName, request: wire::EnqueueRequest) -> Answer<Vec<NewTopicWork>> {
    let wire::EnqueueRequest { payload, priority, run_at, idempotency_key, retry, jobs } = request;
    let Some(jobs) = jobs else {
        let missing = || Problem::field("payload", "it is missing: send any JSON, or several jobs in `jobs`");
        let payload = payload.ok_or_else(missing)?;
        let job = wire::NewTopicJob { payload, priority, run_at, idempotency_key, retry };
        let work = one_work(topic, "", job)?;
        work.check("").map_err(giga_coordinator::Error::from)?;
        return Ok(vec![work]);
    };
    let beside = [
        ("payload", payload.is_some()),
        ("priority", priority.is_some()),
        ("runAt", run_at.is_some()),
        ("idempotencyKey", idempotency_key.is_some()),
        ("retry", retry.is_some()),
    ];
    if let Some((field, _)) = beside.into_iter().find(|(_, given)| *given) {
        return Err(Problem::field(field, "with `jobs` it belongs to each of them; leave it out here"));
    }
    let place = |index| format!("jobs[{index}].");
    jobs.into_iter().enumerate().map(|(index, job)| one_work(topic, &place(index), job)).collect()
}

fn one_work(topic: &TopicName, place: &str, job: wire::NewTopicJob) -> Answer<NewTopicWork> {
    let field = |name: &str| format!("{place}{name}");
    let retry = match job.retry {
        None => DEFAULT_RETRY,
        Some(retry) => {
            let backoff = retry.backoff.map(|text| check::duration(&field("retry.backoff"), &text));
            RetryPolicy {
                max: retry.max.unwrap_or(DEFAULT_RETRY.max),
                backoff_ms: backoff.transpose()?.map_or(DEFAULT_RETRY.backoff_ms, |wait| {
                    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
                }),
            }
        }
    };
    Ok(NewTopicWork {
        topic: topic.clone(),
        priority: job.priority.map_or(Priority::Normal, Into::into),
        payload: job.payload.get().as_bytes().to_vec(),
        idempotency_key: job.idempotency_key,
        run_at: job.run_at.map(|text| check::id(&field("runAt"), &text)).transpose()?,
        retry,
    })
}

pub(crate) async fn jobs(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    query: Query,
) -> Answer<Json<wire::TopicJobPage>> {
    let key = key(&caller, &path)?;
    let stage = query.word("state")?;
    let limit = query.limit()?;
    let before = query.text("cursor").map(from_cursor).transpose()?;
    // One more than asked for tells whether there is another page.
    let stage = stage.unwrap_or(TopicStage::Dead);
    let mut jobs = app.coordinator.topics().jobs(&key, stage, before, limit + 1).await?;
    let fit = fitting(jobs.iter().map(|job| job.payload.len()), limit);
    let more = jobs.len() > fit;
    jobs.truncate(fit);
    let next_cursor = jobs.last().filter(|_| more).map(|last| format!("t1-{}", last.id));
    Ok(Json(wire::TopicJobPage { jobs: jobs.into_iter().map(job).collect(), next_cursor }))
}

/// How many of a page's jobs go into it: one at least, and together not much more than [`PAGE_BYTES`].
fn fitting(sizes: impl Iterator<Item = usize>, limit: usize) -> usize {
    let mut bytes = 0;
    let before_it_was_full = sizes.take(limit).take_while(|size| {
        let full = bytes >= PAGE_BYTES;
        bytes += size;
        !full
    });
    before_it_was_full.count()
}

fn from_cursor(text: &str) -> Answer<JobId> {
    text.strip_prefix("t1-").and_then(|id| id.parse().ok()).ok_or_else(|| {
        Problem::field("cursor", "it is malformed: send `nextCursor` of the page before as it came")
    })
}

pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
) -> Answer<Json<wire::TopicJob>> {
    let (name, id): (TopicName, JobId) = (name(&path)?, path.id()?);
    let found = app.coordinator.topics().job(id).await?;
    let visible = found.filter(|job| job.key.topic == name && caller.products.allows(&job.key.product));
    visible.map(|found| Json(job(found))).ok_or_else(|| Problem::no_job(id))
}

pub(crate) async fn retry(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    OptionalJson(request): OptionalJson<wire::RetryDeadRequest>,
) -> Answer<Json<wire::RetryDeadAnswer>> {
    let key = key(&caller, &path)?;
    // An empty list is what a filter that found nothing sends; it must not bring back everything.
    if request.jobs.as_ref().is_some_and(Vec::is_empty) {
        return Err(Problem::field("jobs", "it is empty: name jobs, or leave it out for all that are dead"));
    }
    let jobs = request.jobs.unwrap_or_default();
    check::at_most("jobs", jobs.len(), limits::TOPIC_BATCH)?;
    let ids = jobs.iter().enumerate();
    let ids = ids.map(|(index, text)| check::id(&format!("jobs[{index}]"), text)).collect::<Answer<_>>()?;
    let retried = app.coordinator.topics().retry_dead(key, ids, caller.actor()).await?;
    Ok(Json(wire::RetryDeadAnswer { retried: retried.iter().map(ToString::to_string).collect() }))
}

fn name(path: &PathText) -> Answer<TopicName> {
    check::id("name", path.text("name")?)
}

fn key(caller: &Caller, path: &PathText) -> Answer<TopicKey> {
    Ok(TopicKey { topic: name(path)?, product: caller.product()? })
}

fn shown(pause: TopicPause) -> wire::TopicPause {
    wire::TopicPause { since: pause.since.to_string(), by: pause.by.to_string() }
}

fn topic(topic: TopicOverview) -> wire::Topic {
    let count = |stage| topic.counts.count(stage);
    wire::Topic {
        product_id: topic.counts.key.product.to_string(),
        name: topic.counts.key.topic.to_string(),
        by_state: TopicStage::ALL.map(|stage| (stage.into(), count(stage))).into(),
        paused: topic.paused.map(shown),
        workers: topic.workers as u64,
        in_flight: topic.in_flight as u64,
    }
}

fn job(job: TopicJob) -> wire::TopicJob {
    let TopicJob { id, key, priority, payload, idempotency_key, created_at, head } = job;
    let (mut due_at, mut worker_id, mut expires_at, mut ended_at) = (None, None, None, None);
    let state = head.state.stage();
    match head.state {
        TopicState::Scheduled { due } => due_at = Some(due.to_string()),
        TopicState::Ready => {}
        TopicState::Running { worker, until } => {
            // Without the token that it is bound to.
            let name = worker.as_str().rsplit_once(":tok-").map_or(worker.as_str(), |(name, _)| name);
            worker_id = Some(name.to_owned());
            expires_at = Some(until.to_string());
        }
        TopicState::Done { at } | TopicState::Dead { at } => ended_at = Some(at.to_string()),
    }
    let (payload, payload_base64) = shown_payload(payload);
    wire::TopicJob {
        id: id.to_string(),
        product_id: key.product.to_string(),
        topic: key.topic.to_string(),
        state: state.into(),
        priority: priority.into(),
        attempts: head.attempts,
        retry_max: head.retry.max,
        retry_backoff_ms: head.retry.backoff_ms,
        lease_epoch: head.epoch.0,
        created_at: created_at.to_string(),
        due_at,
        worker_id,
        expires_at,
        ended_at,
        last_error: head.last_error,
        idempotency_key,
        payload,
        payload_base64,
    }
}

/// As it is where it is JSON, else as base 64.
fn shown_payload(payload: Vec<u8>) -> (Option<Box<RawValue>>, Option<String>) {
    let text = match String::from_utf8(payload) {
        Ok(text) => text,
        Err(error) => return (None, Some(base64(error.as_bytes()))),
    };
    match serde_json::from_str::<Box<RawValue>>(&text) {
        Ok(json) => (Some(json), None),
        Err(_) => (None, Some(base64(text.as_bytes()))),
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits =
            three.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= three.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_where_it_has_enough_bytes() {
        let fits = |sizes: &[usize], limit| fitting(sizes.iter().copied(), limit);
        assert_eq!(fits(&[1, 1, 1], 2), 2);
        assert_eq!(fits(&[PAGE_BYTES + 1, 1], 2), 1, "a large one goes alone");
        assert_eq!(fits(&[PAGE_BYTES - 1, 2, 1], 9), 2);
        assert_eq!(fits(&[], 9), 0);
    }

    #[test]
    fn a_payload_is_shown_as_it_came_where_it_is_json() {
        let shown = |bytes: &[u8]| {
            let (json, base64) = shown_payload(bytes.to_vec());
            (json.map(|json| json.get().to_owned()), base64)
        };
        let exact = r#"{"id":12345678901234567890123, "x" : 1.0}"#;
        assert_eq!(shown(exact.as_bytes()), (Some(exact.to_owned()), None));
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"\xff\xfe\xfd\xfc", "//79/A=="),
        ] {
            assert_eq!(shown(bytes), (None, Some(text.to_owned())));
        }
    }
}

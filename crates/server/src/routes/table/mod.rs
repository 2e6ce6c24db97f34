//! The table. Whatever the server answers to stands here, with who may ask.

mod budgets;
mod control;
mod conversation;
mod dag;
mod effects;
mod factories;
pub(crate) mod mcp;
mod people;
mod pools;
mod products;
mod profiles;
mod secrets;
mod topics;

use std::sync::LazyLock;

use axum::http::Method;
use axum::routing::on;
use giga_api::wire;
use giga_domain::token::Role::{Admin, Operator, Submitter, Viewer};
use utoipa::ToSchema;

use crate::handlers::{artifacts, events, flags, fleet, health, holders, jobs, links, submit, tokens, work};
use crate::routes::Access::{Factory, Public, Role, RoleOrFactory};
use crate::routes::{Code, Content, Param, Place, Route, Scope, Takes, schema_of};

/// Every route, in the order of the document.
pub fn table() -> &'static [Route] {
    static TABLE: LazyLock<Vec<Route>> = LazyLock::new(|| {
        [
            jobs_routes(),
            dag::dag_routes(),
            claim_routes(),
            conversation::conversation_routes(),
            work_routes(),
            artifact_routes(),
            event_routes(),
            factories::factory_routes(),
            topics::topic_routes(),
            budgets::budget_routes(),
            pools::pool_routes(),
            products::product_routes(),
            profiles::profile_routes(),
            secrets::secret_routes(),
            effects::effect_routes(),
            admin_routes(),
            people::people_routes(),
            control::control_routes(),
            mcp::mcp_routes(),
            state_routes(),
        ]
        .into_iter()
        .flatten()
        .collect()
    });
    &TABLE
}

pub(crate) const fn query(name: &'static str, about: &'static str) -> Param {
    Param { name, place: Place::Query, about, takes: Takes::Text }
}

/// A parameter that takes one of the words of `T`.
fn word<T: ToSchema>(name: &'static str, about: &'static str) -> Param {
    Param { takes: Takes::Word(schema_of::<T>()), ..query(name, about) }
}

/// The same with several of them, separated by commas.
pub(crate) fn words<T: ToSchema>(name: &'static str, about: &'static str) -> Param {
    Param { takes: Takes::Words(schema_of::<T>()), ..query(name, about) }
}

const fn header(name: &'static str, about: &'static str) -> Param {
    Param { name, place: Place::Header, about, takes: Takes::Text }
}

const LIMIT: Param = query("limit", "How many at most: 1 to 500, 50 if left out");
const AFTER: Param = query("after", "Go on after this one; 0 or nothing starts at the beginning");
const STREAM_AFTER: Param = query("after", "Go on after this one; `Last-Event-ID` stands above it");
const LAST_EVENT_ID: Param = header("last-event-id", "Go on after the event with this SSE id");
const IF_MATCH: Param =
    header("if-match", "Only if the job is still at this ETag, such as \"rev-7\"; * is any");
const IF_NONE_MATCH: Param = header("if-none-match", "Answer 304 if this is still the ETag");

fn jobs_routes() -> Vec<Route> {
    vec![
        Route::new(Method::POST, "/api/fleet/jobs", "submitJob", Role(Submitter), Scope::Product, |m| {
            on(m, submit::submit)
        })
        .about("Submit a job")
        .takes_manifest()
        .params(&[header("idempotency-key", "The same as `idempotencyKey` in the manifest")])
        .gives::<wire::SubmitAnswer>(201, "The job is stored; Location says where")
        .gives::<wire::SubmitAnswer>(200, "The key was seen before; this is the job that it made")
        .tagged()
        .refuses(&[Code::IdempotencyConflict, Code::RepoOwned, Code::Unroutable]),
        Route::new(Method::GET, "/api/fleet/jobs", "listJobs", Role(Viewer), Scope::Products, |m| {
            on(m, jobs::list)
        })
        .about("List jobs, newest first")
        .params(&jobs::filters())
        .params(&[LIMIT, query("cursor", "From `nextCursor` of the page before")])
        .gives::<wire::JobPage>(200, "A page of jobs"),
        Route::new(
            Method::GET,
            "/api/fleet/stages",
            "listStages",
            RoleOrFactory(Viewer),
            Scope::Products,
            |m| on(m, jobs::stages),
        )
        .about("Where jobs are, and nothing else of them, whoever ran them: for cleaning up after them")
        .params(&[query("id", "One or several ids, at most 100, separated by commas")])
        .gives::<wire::StageList>(200, "Those that are known, with how long unmerged branches are kept"),
        Route::new(Method::GET, "/api/fleet/jobs/{id}", "getJob", RoleOrFactory(Viewer), Scope::Job, |m| {
            on(m, jobs::get)
        })
        .about("One job with its manifest and body; a factory sees the jobs that it holds or held last")
        .also_from_inside()
        .params(&[IF_NONE_MATCH])
        .gives::<wire::Job>(200, "The job")
        .answer(304, "It is still at the given ETag", Content::Nothing)
        .tagged(),
        Route::new(
            Method::POST,
            "/api/fleet/jobs/{id}/actions/{action}",
            "actOnJob",
            Role(Operator),
            Scope::Job,
            |m| on(m, jobs::act),
        )
        .about("Steer a job: `ship`, `requeue`, `reject` or `cancel`")
        .may_take::<wire::ActionRequest>()
        .params(&[Param { place: Place::Path, ..word::<wire::OperatorAction>("action", "") }, IF_MATCH])
        .gives::<wire::Job>(200, "The job after it")
        .tagged()
        .refuses(&[Code::IllegalTransition]),
        Route::new(
            Method::POST,
            "/api/fleet/jobs/{id}/review",
            "reviewJob",
            Role(Operator),
            Scope::Job,
            |m| on(m, jobs::review),
        )
        .about("A reviewer's verdict")
        .takes::<wire::ReviewRequest>()
        .params(&[IF_MATCH])
        .gives::<wire::Job>(200, "The job after it")
        .tagged()
        .refuses(&[Code::IllegalTransition, Code::ResultMismatch, Code::UnseenChanges]),
        Route::new(
            Method::POST,
            "/api/fleet/jobs/{id}/review/request",
            "requestReview",
            Role(Operator),
            Scope::Job,
            |m| on(m, jobs::request_review),
        )
        .about("Ask for a review before the job goes on; stands above what the manifest says. Only an admin may ask for less than the gate that holds")
        .may_take::<wire::RequestReviewRequest>()
        .params(&[IF_MATCH])
        .gives::<wire::Job>(200, "The job after it")
        .tagged()
        .refuses(&[Code::IllegalTransition]),
        Route::new(Method::POST, "/api/fleet/plan", "planJob", Role(Viewer), Scope::Product, |m| {
            on(m, submit::plan)
        })
        .about("What a submit would do, without doing it")
        .takes_manifest()
        .gives::<wire::PlanAnswer>(200, "Where it would run, or why it would wait"),
        Route::new(Method::GET, "/api/fleet/jobs/{id}/runs", "listRuns", Role(Viewer), Scope::Job, |m| {
            on(m, jobs::runs)
        })
        .about("Every attempt at the job")
        .also_from_inside()
        .gives::<wire::RunList>(200, "In order of their epochs"),
        Route::new(
            Method::GET,
            "/api/fleet/jobs/{id}/explain",
            "explainJob",
            Role(Viewer),
            Scope::Job,
            |m| on(m, jobs::explain),
        )
        .about("Why the job is where it is, and what would move it")
        .gives::<wire::Explanation>(200, "The explanation"),
    ]
}

fn claim_routes() -> Vec<Route> {
    let holder = |method, path, operation, handler| {
        Route::new(method, path, operation, Factory, Scope::Own, handler)
            .refuses(&[Code::Fenced, Code::NotFound])
    };
    vec![
        Route::new(Method::POST, "/api/fleet/claim", "claimJob", Factory, Scope::Own, |m| {
            on(m, holders::claim)
        })
        .about("The best job for this factory, held by it from here on")
        .takes::<wire::ClaimRequest>()
        .gives::<wire::ClaimOutcome>(200, "A job; with `max` in the request, all that were granted")
        .answer(204, "Nothing for now", Content::Nothing)
        .refuses(&[Code::NoHeartbeat]),
        Route::new(Method::GET, "/api/fleet/candidates", "listCandidates", Factory, Scope::Own, |m| {
            on(m, holders::candidates)
        })
        .about("Ready jobs that this factory could run, by priority and age, for one that chooses for itself")
        .params(&[query("factoryId", "The factory whose token this is"), LIMIT])
        .gives::<wire::CandidateList>(200, "To be claimed with `jobIds`")
        .refuses(&[Code::NoHeartbeat]),
        Route::new(Method::POST, "/api/fleet/accept", "acceptJob", Factory, Scope::Own, |m| {
            on(m, holders::accept)
        })
        .about("Take the job that was offered")
        .takes::<wire::AcceptRequest>()
        .gives::<wire::ClaimAnswer>(200, "The job")
        .refuses(&[Code::NotYours]),
        holder(Method::POST, "/api/fleet/fail", "failJob", |m| on(m, holders::fail))
            .about("The holder reports that its run failed")
            .takes::<wire::FailRequest>()
            .gives::<wire::Job>(200, "The job: `queued`, `failed` or `dead_letter`")
            .tagged(),
        holder(Method::PATCH, "/api/fleet/jobs/{id}", "patchJob", |m| on(m, holders::patch))
            .about("The holder starts, saves a checkpoint or reports success")
            .takes::<wire::PatchRequest>()
            .gives::<wire::Job>(200, "The job after it")
            .tagged()
            .refuses(&[Code::IllegalTransition]),
        holder(Method::POST, "/api/fleet/jobs/{id}/report", "reportJob", |m| on(m, holders::report))
            .about("The holder reports success, with what the run used and made")
            .takes::<wire::ReportRequest>()
            .gives::<wire::Job>(200, "The job after it")
            .tagged()
            .refuses(&[Code::IllegalTransition]),
        holder(Method::POST, "/api/fleet/jobs/{id}/lease/renew", "renewLease", |m| on(m, holders::renew))
            .about("The holder is still at it")
            .takes::<wire::RenewRequest>()
            .gives::<wire::RenewAnswer>(200, "Until when, and directives"),
        holder(Method::POST, "/api/fleet/jobs/{id}/lease/release", "releaseLease", |m| {
            on(m, holders::release)
        })
        .about("The holder releases the job; this uses no attempt")
        .takes::<wire::ReleaseRequest>()
        .gives::<wire::Job>(200, "The job, queued again")
        .tagged(),
    ]
}

fn work_routes() -> Vec<Route> {
    vec![
        Route::new(Method::POST, "/api/fleet/jobs/{id}/logs", "appendLog", Factory, Scope::Own, |m| {
            on(m, work::append_log)
        })
        .about("The holder adds to the log of its run; bytes that are there already are passed over")
        .takes_bytes()
        .params(&[
            query("leaseEpoch", "The epoch that the writer holds"),
            query("offset", "Where these bytes begin: the length in the last answer"),
        ])
        .gives::<wire::AppendLogAnswer>(200, "How long the log is now")
        .refuses(&[Code::Fenced, Code::NotFound, Code::LogGap]),
        Route::new(Method::GET, "/api/fleet/jobs/{id}/logs", "readLog", Role(Viewer), Scope::Job, |m| {
            on(m, work::read_log)
        })
        .about("A piece of the log of a run, the newest one if none is named")
        .also_from_inside()
        .params(&[
            query("epoch", "The run, by its lease epoch"),
            query("offset", "Where to begin"),
            query("wait", "With nothing new, wait so long for more, such as 20s, while the run goes on"),
        ])
        .gives::<wire::LogPiece>(200, "The piece"),
        Route::new(Method::POST, "/api/fleet/merges/claim", "claimMerges", Factory, Scope::Own, |m| {
            on(m, work::claim_merges)
        })
        .about("Jobs to be merged together: the coordinator's word for each job, epoch and commit")
        .takes::<wire::ClaimMergesRequest>()
        .gives::<wire::MergeOrders>(200, "The orders")
        .answer(204, "Nothing for now", Content::Nothing),
        Route::new(Method::POST, "/api/fleet/merges/renew", "renewMerges", Factory, Scope::Own, |m| {
            on(m, work::renew_merges)
        })
        .about("Their holder is still at them")
        .takes::<wire::RenewMergesRequest>()
        .gives::<wire::RenewMergesAnswer>(200, "Those that are still its"),
        Route::new(Method::POST, "/api/fleet/merges/push", "pushMerges", Factory, Scope::Own, |m| {
            on(m, work::push_merges)
        })
        .about("Their holder announces what it is going to push; only then it may push it")
        .takes::<wire::PushMergesRequest>()
        .answer(204, "All of them are announced", Content::Nothing)
        .refuses(&[Code::NotYours, Code::NotFound]),
        Route::new(Method::POST, "/api/fleet/merges/{id}/settle", "settleMerge", Factory, Scope::Own, |m| {
            on(m, work::settle_merge)
        })
        .about("What became of a merge")
        .takes::<wire::SettleMergeRequest>()
        .gives::<wire::Job>(200, "The job")
        .tagged()
        .refuses(&[Code::NotYours, Code::NotFound]),
    ]
}

fn artifact_routes() -> Vec<Route> {
    vec![
        Route::new(Method::POST, "/api/fleet/jobs/{id}/artifacts", "putArtifact", Factory, Scope::Own, |m| {
            on(m, artifacts::put)
        })
        .about("The holder leaves a file of its run; the content type is kept")
        .also_from_inside()
        .takes_bytes()
        .params(&[
            query("name", "What the file is called; a name that the run has used before gets the new file"),
            query("leaseEpoch", "The epoch that the writer holds"),
        ])
        .gives::<wire::Artifact>(201, "The file is stored")
        .refuses(&[Code::Fenced, Code::NotFound]),
        Route::new(
            Method::GET,
            "/api/fleet/jobs/{id}/artifacts",
            "listArtifacts",
            Role(Viewer),
            Scope::Job,
            |m| on(m, artifacts::list),
        )
        .about("The files of all runs of the job. What a run changed is the one that is called `changes.diff`; the result that is reviewed and shipped is that of the run with `leaseEpoch` as in the job's `result`")
        .also_from_inside()
        .gives::<wire::ArtifactList>(200, "By epoch and name"),
        Route::new(Method::GET, "/api/fleet/artifacts/{id}", "getArtifact", Role(Viewer), Scope::Job, |m| {
            on(m, artifacts::get)
        })
        .about("The bytes of a file, as an attachment with its own content type")
        .also_from_inside()
        .params(&[header("range", "Only these bytes, such as bytes=0-1023")])
        .answer(200, "The bytes", Content::Bytes)
        .answer(206, "Those that were asked for", Content::Bytes)
        .refuses(&[Code::RangeNotSatisfiable]),
        Route::new(
            Method::GET,
            "/api/fleet/artifacts/{id}/link",
            "linkArtifact",
            Role(Viewer),
            Scope::Job,
            |m| on(m, links::link),
        )
        .about("A link to the bytes that works without a token, for a while")
        .params(&[query("ttl", "How long it works, such as 10m, which it is if left out; at most 24h")])
        .gives::<wire::ArtifactLink>(200, "The link"),
        Route::new(
            Method::GET,
            "/api/fleet/artifacts/{id}/content",
            "followArtifactLink",
            Public,
            Scope::Nothing,
            |m| on(m, links::follow),
        )
        .about("What such a link leads to, where the coordinator has the bytes in a folder; the signature is the permission")
        .params(&[
            query("expires", "Until when the link works, in milliseconds since 1970"),
            query("sig", "The coordinator's signature"),
            header("range", "Only these bytes, such as bytes=0-1023"),
        ])
        .answer(200, "The bytes, as an attachment", Content::Bytes)
        .answer(206, "Those that were asked for", Content::Bytes)
        .refuses(&[Code::Forbidden, Code::NotFound, Code::RangeNotSatisfiable]),
        Route::new(
            Method::DELETE,
            "/api/fleet/artifacts/{id}",
            "deleteArtifact",
            Role(Operator),
            Scope::Job,
            |m| on(m, artifacts::delete),
        )
        .about("Remove a file")
        .answer(204, "Done", Content::Nothing),
    ]
}

fn event_routes() -> Vec<Route> {
    vec![
        Route::new(
            Method::GET,
            "/api/fleet/jobs/{id}/events",
            "listJobEvents",
            Role(Viewer),
            Scope::Job,
            |m| on(m, events::of_job),
        )
        .about("The job's history; `seq` runs from 1 without gaps")
        .also_from_inside()
        .params(&[AFTER, LIMIT])
        .gives::<wire::EventPage>(200, "A page of events"),
        Route::new(
            Method::GET,
            "/api/fleet/jobs/{id}/events/stream",
            "streamJobEvents",
            Role(Viewer),
            Scope::Job,
            |m| on(m, events::stream_job),
        )
        .about("The job's history as it grows; SSE ids are `seq`")
        .params(&[STREAM_AFTER, LAST_EVENT_ID])
        .answer(200, "Server-sent events", Content::Events(schema_of::<wire::Event>())),
        Route::new(Method::GET, "/api/fleet/events", "listEvents", Role(Viewer), Scope::Products, |m| {
            on(m, events::of_fleet)
        })
        .about("The fleet-wide feed in commit order; events of no product are for tokens for every product")
        .params(&[AFTER, LIMIT])
        .gives::<wire::EventPage>(200, "A page of events; go on from `nextAfter`"),
        Route::new(
            Method::GET,
            "/api/fleet/events/stream",
            "streamEvents",
            Role(Viewer),
            Scope::Products,
            |m| on(m, events::stream_fleet),
        )
        .about("The fleet-wide feed as it grows, from now on or from a position; SSE ids are `pos`")
        .params(&[STREAM_AFTER, LAST_EVENT_ID])
        .answer(200, "Server-sent events", Content::Events(schema_of::<wire::Event>())),
    ]
}

fn admin_routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, "/api/fleet/flags", "listFlags", Role(Viewer), Scope::Fleet, |m| {
            on(m, flags::list)
        })
        .about("Feature flags")
        .gives::<wire::FlagList>(200, "All of them"),
        Route::new(Method::PUT, "/api/fleet/flags/{name}", "setFlag", Role(Admin), Scope::Fleet, |m| {
            on(m, flags::set)
        })
        .about("Set a feature flag")
        .takes::<wire::SetFlagRequest>()
        .gives::<wire::Flag>(200, "The flag after it")
        .refuses(&[Code::NotFound]),
        Route::new(Method::GET, "/api/fleet/tokens", "listTokens", Role(Admin), Scope::Within, |m| {
            on(m, tokens::list)
        })
        .about("Tokens that are no wider than the caller's own, never with their secrets")
        .gives::<wire::TokenList>(200, "By creation"),
        Route::new(Method::POST, "/api/fleet/tokens", "issueToken", Role(Admin), Scope::Within, |m| {
            on(m, tokens::issue)
        })
        .about("Issue a token that is no wider than the caller's own")
        .takes::<wire::IssueTokenRequest>()
        .gives::<wire::IssueTokenAnswer>(201, "The token, which is shown once"),
        Route::new(
            Method::POST,
            "/api/fleet/tokens/{id}/renew",
            "renewToken",
            Role(Admin),
            Scope::Within,
            |m| on(m, tokens::renew),
        )
        .about("Give a token another end, also where its end has come")
        .takes::<wire::RenewTokenRequest>()
        .gives::<wire::Token>(200, "The token after it, without its secret")
        .refuses(&[Code::NotFound]),
        Route::new(Method::POST, "/api/fleet/keys/rotate", "rotateKeys", Role(Admin), Scope::Fleet, |m| {
            on(m, tokens::rotate_keys)
        })
        .about("Replace the keys that links and job tokens are signed with; what they signed stays good until the next time")
        .gives::<wire::RotatedKeys>(200, "Which keys"),
        Route::new(
            Method::DELETE,
            "/api/fleet/tokens/{id}",
            "revokeToken",
            Role(Admin),
            Scope::Within,
            |m| on(m, tokens::revoke),
        )
        .about("End a token at once")
        .answer(204, "Done", Content::Nothing)
        .refuses(&[Code::NotFound]),
    ]
}

fn state_routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, "/api/fleet/metrics", "fleetMetrics", Role(Viewer), Scope::Products, |m| {
            on(m, fleet::metrics)
        })
        .about("Depths and utilisation, cut to the caller's products")
        .gives::<wire::FleetMetrics>(200, "The figures"),
        Route::new(
            Method::GET,
            "/api/fleet/queue-state",
            "queueState",
            RoleOrFactory(Viewer),
            Scope::Products,
            |m| on(m, fleet::queue_state),
        )
        .about("Whether anything changed, as cheaply as can be; the sum over the caller's products")
        .params(&[
            query("wait", "With If-None-Match: wait so long for a change, such as 30s; at most 60s"),
            IF_NONE_MATCH,
        ])
        .gives::<wire::QueueState>(200, "Version and depth")
        .answer(304, "Nothing changed", Content::Nothing)
        .tagged(),
        Route::new(Method::GET, "/api/fleet/alerts", "listAlerts", Role(Viewer), Scope::Products, |m| {
            on(m, fleet::alerts)
        })
        .about("What somebody should look at")
        .gives::<wire::AlertList>(200, "Worst first"),
        Route::new(Method::GET, "/api/fleet/shadow", "shadow", Role(Viewer), Scope::Products, |m| {
            on(m, fleet::shadow)
        })
        .about("What the dispatcher would have done otherwise, for factories in the delivery mode `shadow`")
        .gives::<wire::Shadow>(200, "Counts, and the last divergences"),
        Route::new(Method::GET, "/api/openapi.json", "openapi", Public, Scope::Nothing, |m| {
            on(m, health::document)
        })
        .about("This document")
        .answer(200, "OpenAPI 3.1", Content::Json(schema_of::<serde_json::Value>())),
        Route::new(Method::GET, "/livez", "livez", Public, Scope::Nothing, |m| on(m, health::live))
            .about("The process answers")
            .answer(200, "It does", Content::Text),
        Route::new(Method::GET, "/readyz", "readyz", Public, Scope::Nothing, |m| on(m, health::ready))
            .about("The store can be read and written")
            .gives::<wire::Readiness>(200, "Ready")
            .gives::<wire::Readiness>(503, "Not ready, and why"),
        Route::new(Method::GET, "/metrics", "prometheus", Role(Viewer), Scope::Products, |m| {
            on(m, health::prometheus)
        })
        .about("Metrics as Prometheus text")
        .answer(200, "OpenMetrics text", Content::Text),
    ]
}

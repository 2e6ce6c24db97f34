//! Plain jobs for handlers in other processes.

use axum::http::Method;
use axum::routing::on;
use giga_api::wire;
use giga_domain::token::Role::{Operator, Submitter, Viewer};

use super::{LIMIT, query, word};
use crate::handlers::topics;
use crate::routes::Access::Role;
use crate::routes::{Code, Route, Scope};

pub(super) fn topic_routes() -> Vec<Route> {
    let about_one = |method, path, operation, access, handler| {
        Route::new(method, path, operation, access, Scope::Product, handler)
    };
    vec![
        Route::new(Method::GET, "/api/fleet/topics", "listTopics", Role(Viewer), Scope::Products, |m| {
            on(m, topics::list)
        })
        .about("Topics with their depths, their gates and who is connected")
        .gives::<wire::TopicList>(200, "By product and name"),
        about_one(Method::POST, "/api/fleet/topics/{name}/pause", "pauseTopic", Role(Operator), |m| {
            on(m, topics::close)
        })
        .about("Hand out nothing of this topic until it is resumed; what runs goes on")
        .gives::<wire::Topic>(200, "The topic after it"),
        about_one(Method::POST, "/api/fleet/topics/{name}/resume", "resumeTopic", Role(Operator), |m| {
            on(m, topics::open)
        })
        .about("Hand out jobs of this topic again")
        .gives::<wire::Topic>(200, "The topic after it"),
        Route::new(
            Method::POST,
            "/api/fleet/topic-gate/close",
            "pauseAllTopics",
            Role(Operator),
            Scope::Fleet,
            |m| on(m, topics::close_all),
        )
        .about("Hand out nothing of any topic until the gate is opened again")
        .gives::<wire::TopicGate>(200, "The gate after it"),
        Route::new(
            Method::POST,
            "/api/fleet/topic-gate/open",
            "resumeAllTopics",
            Role(Operator),
            Scope::Fleet,
            |m| on(m, topics::open_all),
        )
        .about("Open the gate in front of all topics; those with a gate of their own stay as they are")
        .gives::<wire::TopicGate>(200, "The gate after it"),
        about_one(Method::POST, "/api/fleet/topics/{name}/jobs", "enqueueTopicJobs", Role(Submitter), |m| {
            on(m, topics::enqueue)
        })
        .about("Enqueue one job or several, all or none")
        .takes::<wire::EnqueueRequest>()
        .gives::<wire::EnqueueAnswer>(201, "The jobs are stored")
        .gives::<wire::EnqueueAnswer>(200, "Every key was seen before; these are the jobs that they made")
        .refuses(&[Code::IdempotencyConflict]),
        about_one(Method::GET, "/api/fleet/topics/{name}/jobs", "listTopicJobs", Role(Viewer), |m| {
            on(m, topics::jobs)
        })
        .about("Jobs of the topic in one state, newest first")
        .params(&[
            word::<wire::TopicJobState>("state", "`dead` if left out"),
            LIMIT,
            query("cursor", "From `nextCursor` of the page before"),
        ])
        .gives::<wire::TopicJobPage>(200, "A page of jobs"),
        Route::new(
            Method::GET,
            "/api/fleet/topics/{name}/jobs/{id}",
            "getTopicJob",
            Role(Viewer),
            Scope::Job,
            |m| on(m, topics::get),
        )
        .about("One job of the topic with its payload")
        .gives::<wire::TopicJob>(200, "The job"),
        about_one(
            Method::POST,
            "/api/fleet/topics/{name}/retry",
            "retryDeadTopicJobs",
            Role(Operator),
            |m| on(m, topics::retry),
        )
        .about("Retry dead jobs of the topic; their attempts start over")
        .may_take::<wire::RetryDeadRequest>()
        .gives::<wire::RetryDeadAnswer>(200, "Which ones are ready again"),
    ]
}

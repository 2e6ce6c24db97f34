//! Graphs of jobs: many in one submit, children of a job, and how a whole tree stands.

use axum::http::Method;
use axum::routing::on;
use giga_api::wire;
use giga_domain::token::Role::{Submitter, Viewer};

use crate::handlers::dag;
use crate::routes::Access::Role;
use crate::routes::{Code, Route, Scope};

pub(super) fn dag_routes() -> Vec<Route> {
    vec![
        Route::new(
            Method::POST,
            "/api/fleet/jobs/batch",
            "submitJobs",
            Role(Submitter),
            Scope::Product,
            |m| on(m, dag::submit_many),
        )
        .about("Submit many jobs, all or none; their `deps` may name each other")
        .takes::<wire::BatchRequest>()
        .gives::<wire::BatchAnswer>(201, "The jobs are stored, in the order of the request")
        .gives::<wire::BatchAnswer>(200, "Every key was seen before; these are the jobs that they made")
        .refuses(&[Code::InvalidManifest, Code::IdempotencyConflict, Code::RepoOwned, Code::Unroutable]),
        Route::new(
            Method::POST,
            "/api/fleet/jobs/{id}/children",
            "submitChildren",
            Role(Submitter),
            Scope::Job,
            |m| on(m, dag::submit_children),
        )
        .about("Give a job children, all or none; a composite takes them while it waits, any other until it is over")
        .also_from_inside()
        .takes::<wire::ChildrenRequest>()
        .gives::<wire::BatchAnswer>(201, "The jobs are stored, in the order of the request")
        .gives::<wire::BatchAnswer>(200, "Every key was seen before; these are the jobs that they made")
        .refuses(&[
            Code::InvalidManifest,
            Code::IdempotencyConflict,
            Code::IllegalTransition,
            Code::Fenced,
            Code::RepoOwned,
            Code::Unroutable,
        ]),
        Route::new(Method::GET, "/api/fleet/jobs/{id}/dag", "getDag", Role(Viewer), Scope::Job, |m| {
            on(m, dag::get)
        })
        .about("The job and all below it: who waits for whom, and how far they are")
        .also_from_inside()
        .gives::<wire::Dag>(200, "Parents before their children"),
    ]
}

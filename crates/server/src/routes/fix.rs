//! The call behind a remedy, put together from the table: its method, its path and who may make it are those of the
//! route, so that they cannot differ from it.

use giga_api::wire::RemedyCall;
use giga_scheduler::Fix;
use serde_json::{Value, json};

use super::{Access, Scope, table};

/// Nothing, where the table has no such call for people.
pub(crate) fn call_of(fix: &Fix) -> Option<RemedyCall> {
    let Step { operation, names, body } = step(fix);
    let route = table().iter().find(|route| route.operation == operation)?;
    let (Access::Role(role) | Access::RoleOrFactory(role)) = route.access else { return None };
    // Ids have no characters that a path would not carry as they are.
    let path = names.iter().fold(route.path.to_owned(), |path, (name, value)| path.replace(name, value));
    let method = route.method.as_str().parse().ok()?;
    Some(RemedyCall { method, path, body, role: role.into(), every_product: route.scope == Scope::Fleet })
}

struct Step {
    operation: &'static str,
    /// What stands for which part of the path.
    names: Vec<(&'static str, String)>,
    body: Option<Value>,
}

fn step(fix: &Fix) -> Step {
    let act = |job: &giga_domain::JobId, action: &str| Step {
        operation: "actOnJob",
        names: vec![("{id}", job.to_string()), ("{action}", action.to_owned())],
        body: None,
    };
    match fix {
        Fix::ResumeBudget(product) => {
            Step { operation: "resumeBudget", names: vec![("{product}", product.to_string())], body: None }
        }
        Fix::EndDrain(factory) => Step {
            operation: "drainFactory",
            names: vec![("{id}", factory.to_string())],
            body: Some(json!({ "undo": true })),
        },
        Fix::Requeue(job) => act(job, "requeue"),
        Fix::Ship(job) => act(job, "ship"),
        Fix::Cancel(job) => act(job, "cancel"),
        Fix::SwitchOn(flag) => Step {
            operation: "setFlag",
            names: vec![("{name}", (*flag).to_owned())],
            body: Some(json!({ "value": true })),
        },
    }
}

//! Budgets, by product.

use axum::http::Method;
use axum::routing::on;
use giga_api::wire;
use giga_domain::token::Role::{Admin, Operator, Viewer};

use super::{IF_MATCH, header, query};
use crate::handlers::budgets;
use crate::routes::Access::Role;
use crate::routes::{Route, Scope};

pub(super) fn budget_routes() -> Vec<Route> {
    let about_one = |method, path, operation, access, handler| {
        Route::new(method, path, operation, access, Scope::Product, handler)
    };
    vec![
        Route::new(Method::GET, "/api/fleet/budgets", "listBudgets", Role(Viewer), Scope::Products, |m| {
            on(m, budgets::list)
        })
        .about("Budgets of the caller's products, those that were ever set or spent from")
        .gives::<wire::BudgetList>(200, "By product"),
        about_one(Method::GET, "/api/fleet/budgets/{product}", "getBudget", Role(Viewer), |m| {
            on(m, budgets::get)
        })
        .about("What a product may spend, has spent, and has reserved for what runs; no limit is normal")
        .gives::<wire::Budget>(200, "The budget as of now")
        .tagged(),
        about_one(Method::PUT, "/api/fleet/budgets/{product}", "setBudget", Role(Admin), |m| {
            on(m, budgets::set)
        })
        .about("Set the limits and the cap of jobs that name none; what is left out is none from then on")
        .takes::<wire::SetBudgetRequest>()
        .params(&[IF_MATCH])
        .gives::<wire::Budget>(200, "The budget after it")
        .tagged(),
        about_one(Method::GET, "/api/fleet/budgets/{product}/burndown", "getBurndown", Role(Viewer), |m| {
            on(m, budgets::burndown)
        })
        .about("What was spent, stretch by stretch, from the ledger")
        .params(&[
            query("from", "A time, such as 2026-12-01T00:00:00Z; the beginning of the month if left out"),
            query("to", "A time; now if left out"),
            query("bucket", "How long a stretch is, such as 1h or 1d; one that fits if left out"),
        ])
        .gives::<wire::Burndown>(200, "The series"),
        about_one(Method::POST, "/api/fleet/budgets/{product}/pause", "pauseBudget", Role(Operator), |m| {
            on(m, budgets::pause)
        })
        .about("Start nothing more of this product until it is resumed; what runs goes on, or is stopped too")
        .may_take::<wire::PauseBudgetRequest>()
        .gives::<wire::PauseBudgetAnswer>(
            200,
            "The budget after it, and how many running jobs were asked to stop",
        )
        .tagged(),
        about_one(Method::POST, "/api/fleet/budgets/{product}/resume", "resumeBudget", Role(Operator), |m| {
            on(m, budgets::resume)
        })
        .about(
            "Start jobs of this product again; where a limit is reached it stays paused until that is raised",
        )
        .gives::<wire::Budget>(200, "The budget after it")
        .tagged(),
        about_one(Method::POST, "/api/fleet/budgets/{product}/correct", "correctBudget", Role(Admin), |m| {
            on(m, budgets::correct)
        })
        .about("Correct the ledger by hand: so much more, or less, was spent than it says")
        .takes::<wire::CorrectBudgetRequest>()
        .params(&[
            IF_MATCH,
            header("idempotency-key", "Of this correction: the same one again is answered and books nothing"),
        ])
        .gives::<wire::Budget>(200, "The budget after it")
        .tagged(),
    ]
}

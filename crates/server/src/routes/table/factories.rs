//! Worker hosts: joining, signs of life, leaving.

use axum::http::Method;
use axum::routing::on;
use giga_api::wire;
use giga_domain::token::Role::{Admin, Operator, Viewer};

use crate::handlers::{accounts, capabilities, factories};
use crate::routes::Access::{Factory, Role};
use crate::routes::{Code, Content, Route, Scope};

pub(super) fn factory_routes() -> Vec<Route> {
    vec![
        Route::new(
            Method::GET,
            "/api/fleet/factories",
            "listFactories",
            Role(Viewer),
            Scope::Products,
            |m| on(m, factories::list),
        )
        .about("The factories that may serve one of the caller's products")
        .gives::<wire::FactoryList>(200, "By id"),
        Route::new(
            Method::GET,
            "/api/fleet/factories/{id}",
            "getFactory",
            Role(Viewer),
            Scope::Factory,
            |m| on(m, factories::get),
        )
        .about("One factory")
        .gives::<wire::Factory>(200, "The factory"),
        Route::new(
            Method::GET,
            "/api/fleet/accounts",
            "listAccounts",
            Role(Viewer),
            Scope::Products,
            |m| on(m, accounts::list),
        )
        .about("The accounts that engines are signed in with: which are open, until when the others are closed, and what waits for them")
        .gives::<wire::AccountList>(200, "By id"),
        Route::new(
            Method::GET,
            "/api/fleet/capabilities",
            "listCapabilities",
            Role(Viewer),
            Scope::Products,
            |m| on(m, capabilities::list),
        )
        .about("Supply and demand of capabilities: which factories have each, who uses it and who waits for it")
        .gives::<wire::CapabilityList>(200, "What is asked for and missing first"),
        Route::new(
            Method::POST,
            "/api/fleet/factories/enroll",
            "enrollFactory",
            Role(Admin),
            Scope::Within,
            |m| on(m, factories::enroll),
        )
        .about("Make a factory known and give it a token")
        .takes::<wire::EnrollRequest>()
        .gives::<wire::EnrollAnswer>(201, "The factory and its token, which is shown once")
        .refuses(&[Code::FactoryExists]),
        Route::new(Method::POST, "/api/fleet/factories/heartbeat", "heartbeat", Factory, Scope::Own, |m| {
            on(m, factories::heartbeat)
        })
        .about("What the factory has, and that it is there")
        .takes::<wire::HeartbeatRequest>()
        .gives::<wire::HeartbeatAnswer>(200, "When to send the next one, and directives")
        .refuses(&[Code::FactoryInUse]),
        Route::new(Method::POST, "/api/fleet/factories/leave", "leaveFleet", Factory, Scope::Own, |m| {
            on(m, factories::leave)
        })
        .about("Forget the factory that asks and end its tokens, unless it holds something: then it drains")
        .takes::<wire::LeaveRequest>()
        .gives::<wire::LeaveAnswer>(200, "Whether it has left"),
        Route::new(
            Method::POST,
            "/api/fleet/factories/prune",
            "pruneFactories",
            Role(Operator),
            Scope::Fleet,
            |m| on(m, factories::prune),
        )
        .about("Remove factories that have been offline for so long and hold nothing")
        .takes::<wire::PruneRequest>()
        .gives::<wire::PruneAnswer>(200, "Which ones"),
        Route::new(
            Method::POST,
            "/api/fleet/factories/{id}/drain",
            "drainFactory",
            Role(Operator),
            Scope::Factory,
            |m| on(m, factories::drain),
        )
        .about("Give the factory nothing new, or let it take jobs again")
        .may_take::<wire::DrainRequest>()
        .gives::<wire::Factory>(200, "The factory after it"),
        Route::new(
            Method::POST,
            "/api/fleet/factories/{id}/token/rotate",
            "rotateFactoryToken",
            Role(Admin),
            Scope::Factory,
            |m| on(m, factories::rotate),
        )
        .about("A new token for the factory; the old one works for a while longer")
        .gives::<wire::RotateAnswer>(200, "The new token, which is shown once"),
        Route::new(
            Method::POST,
            "/api/fleet/factories/{id}/token/revoke",
            "revokeFactoryTokens",
            Role(Admin),
            Scope::Factory,
            |m| on(m, factories::revoke),
        )
        .about("End every token of the factory at once")
        .answer(204, "Done", Content::Nothing),
        Route::new(
            Method::DELETE,
            "/api/fleet/factories/{id}",
            "deregisterFactory",
            Role(Operator),
            Scope::Factory,
            |m| on(m, factories::deregister),
        )
        .about("Forget the factory and end its tokens; what it holds comes back when its leases end")
        .answer(204, "Done", Content::Nothing),
    ]
}

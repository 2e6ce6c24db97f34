//! Webhooks, the outbox, and the bridge to trackers.

use axum::http::Method;
use axum::routing::on;
use giga_api::wire;
use giga_domain::token::Role::{Admin, Operator, Submitter};

use super::{LIMIT, header, query, word};
use crate::handlers::{effects, hooks};
use crate::routes::Access::{Public, Role};
use crate::routes::{Code, Content, Route, Scope};

pub(super) fn effect_routes() -> Vec<Route> {
    vec![
        Route::new(Method::POST, "/api/hooks/{forge}", "receiveHook", Public, Scope::Nothing, |m| {
            on(m, hooks::receive)
        })
        .about("What a forge (`github`, `gitlab`) sends when something happens to a pull request; its signature is the permission")
        .takes_bytes()
        .params(&[
            header("x-hub-signature-256", "GitHub's signature, made with the secret that is set on the coordinator"),
            header("x-github-event", "What GitHub's message is about"),
            header("x-gitlab-token", "GitLab's copy of the secret that is set on the coordinator"),
            header("x-gitlab-event", "What GitLab's message is about"),
        ])
        .answer(204, "It was heard; the pull request that it is about is looked at", Content::Nothing)
        .refuses(&[Code::Unauthenticated, Code::NotFound]),
        // The address of a webhook may be a secret of its own.
        Route::new(Method::GET, "/api/fleet/webhooks", "listWebhooks", Role(Admin), Scope::Products, |m| {
            on(m, effects::webhooks)
        })
        .about("Webhooks; those for every product are shown to tokens for every product")
        .gives::<wire::WebhookList>(200, "By id"),
        Route::new(Method::POST, "/api/fleet/webhooks", "addWebhook", Role(Admin), Scope::Products, |m| {
            on(m, effects::add_webhook)
        })
        .about("Send events to this URL from now on: signed, retried, with an id that stays the same")
        .takes::<wire::AddWebhookRequest>()
        .params(&[header("idempotency-key", "The same call with the same key makes one webhook")])
        .gives::<wire::AddWebhookAnswer>(
            201,
            "The webhook, and its secret this once; the same call with the same key shows it again",
        ),
        Route::new(
            Method::DELETE,
            "/api/fleet/webhooks/{id}",
            "removeWebhook",
            Role(Admin),
            Scope::Products,
            |m| on(m, effects::remove_webhook),
        )
        .about("Tell it nothing more; what is still on its way is given up")
        .answer(204, "It is gone", Content::Nothing)
        .refuses(&[Code::NotFound]),
        Route::new(
            Method::POST,
            "/api/fleet/webhooks/{id}/test",
            "testWebhook",
            Role(Admin),
            Scope::Products,
            |m| on(m, effects::test_webhook),
        )
        .about("Send it a message of the type `webhook.test`")
        .gives::<wire::Effect>(202, "The message is in the outbox; ask for it again to see what came of it")
        .refuses(&[Code::NotFound]),
        Route::new(Method::GET, "/api/fleet/effects", "listEffects", Role(Operator), Scope::Products, |m| {
            on(m, effects::list)
        })
        .about("Messages to webhooks, trackers and forges and their delivery, newest first")
        .params(&[
            word::<wire::EffectState>("state", "Only those in this state"),
            query("webhook", "Sent to this webhook"),
            query("job", "About this job"),
            LIMIT,
            query("cursor", "From `nextCursor` of the page before"),
        ])
        .gives::<wire::EffectPage>(200, "A page of effects"),
        Route::new(
            Method::GET,
            "/api/fleet/effects/{id}",
            "getEffect",
            Role(Operator),
            Scope::Products,
            |m| on(m, effects::get),
        )
        .about("One of them")
        .gives::<wire::Effect>(200, "The effect")
        .refuses(&[Code::NotFound]),
        Route::new(
            Method::POST,
            "/api/fleet/effects/{id}/retry",
            "retryEffect",
            Role(Operator),
            Scope::Products,
            |m| on(m, effects::retry),
        )
        .about("Retry one that failed for good; any other stays as it is")
        .gives::<wire::Effect>(200, "The effect after it")
        .refuses(&[Code::NotFound]),
        Route::new(
            Method::POST,
            "/api/fleet/tracker/ingest",
            "ingestItem",
            Role(Submitter),
            Scope::Product,
            |m| on(m, effects::ingest),
        )
        .about("Make a job of an item in a tracker. The same item is the same job while the job is kept")
        .takes::<wire::IngestRequest>()
        .gives::<wire::SubmitAnswer>(201, "The job is stored; Location says where")
        .gives::<wire::SubmitAnswer>(200, "The item had its job already; this is it")
        .tagged()
        .refuses(&[Code::InvalidManifest, Code::NotFound, Code::Unroutable, Code::RepoOwned]),
        Route::new(Method::POST, "/api/fleet/tracker/echo", "echoJob", Role(Operator), Scope::Job, |m| {
            on(m, effects::echo)
        })
        .about("Tell the item of a job where the job stands, now")
        .takes::<wire::EchoRequest>()
        .gives::<wire::Effect>(202, "It is in the outbox"),
    ]
}

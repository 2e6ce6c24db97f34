//! Questions of jobs, and what people say to them.

use axum::http::Method;
use axum::routing::on;
use giga_api::wire;
use giga_domain::token::Role::{Submitter, Viewer};

use super::query;
use crate::handlers::conversation;
use crate::routes::Access::{Factory, Role, RoleOrFactory};
use crate::routes::{Code, Content, Route, Scope};

pub(super) fn conversation_routes() -> Vec<Route> {
    vec![
        Route::new(
            Method::GET,
            "/api/fleet/jobs/{id}/conversation",
            "getConversation",
            RoleOrFactory(Viewer),
            Scope::Job,
            |m| on(m, conversation::get),
        )
        .about("What the job asked, and what people answered and said; its holder reads here what its engine is to be given")
        .also_from_inside()
        .params(&[
            query("after", "`lastSeq` of the answer before: with nothing newer, the call waits"),
            query("wait", "With nothing newer than `after`, wait so long for it, such as 30s; at most 60s"),
        ])
        .gives::<wire::Conversation>(200, "All that is open, and the newest of the rest"),
        Route::new(
            Method::POST,
            "/api/fleet/jobs/{id}/questions",
            "askPeople",
            Factory,
            Scope::Own,
            |m| on(m, conversation::ask),
        )
        .about("The holder, or what runs inside the job, asks people something; at most 5 questions are open at once")
        .also_from_inside()
        .takes::<wire::AskRequest>()
        .gives::<wire::Question>(201, "The question is open")
        .gives::<wire::Question>(200, "It was asked before and has its answer")
        .refuses(&[Code::Fenced, Code::NotFound, Code::TooManyRequests]),
        Route::new(
            Method::POST,
            "/api/fleet/jobs/{id}/conversation/delivered",
            "markDelivered",
            Factory,
            Scope::Own,
            |m| on(m, conversation::delivered),
        )
        .about("The engine was given these answers and messages: they are not given to it again")
        .also_from_inside()
        .takes::<wire::DeliveredRequest>()
        .answer(204, "Done", Content::Nothing)
        .refuses(&[Code::Fenced, Code::NotFound]),
        Route::new(
            Method::POST,
            "/api/fleet/jobs/{id}/answer",
            "answerQuestion",
            Role(Submitter),
            Scope::Job,
            |m| on(m, conversation::answer),
        )
        .about("Answer a question of the job; the answer reaches a running engine at once, and brings a parked job back")
        .takes::<wire::AnswerRequest>()
        .gives::<wire::Job>(200, "The job after it")
        .tagged()
        .refuses(&[Code::QuestionClosed]),
        Route::new(
            Method::POST,
            "/api/fleet/jobs/{id}/messages",
            "sayToJob",
            Role(Submitter),
            Scope::Job,
            |m| on(m, conversation::say),
        )
        .about("Say something to the job's engine, which gets it at its next turn, at the latest when it runs next")
        .takes::<wire::SayRequest>()
        .gives::<wire::Job>(200, "The job after it")
        .tagged()
        .refuses(&[Code::IllegalTransition, Code::TooManyRequests]),
    ]
}

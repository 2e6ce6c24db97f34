//! REST, SSE, gRPC and auth: the only crate that knows HTTP serving.
//!
//! No route decides anything about a job: it checks who asks and what they sent, calls a use case of the coordinator
//! and maps the answer. Routes, their auth rules and the OpenAPI document all come from one table (`routes::table`);
//! nothing is served that is not in it, but for the page (`site`): files that are part of the program, the same for
//! everyone, which know nothing until their reader hands them a token. Statuses are chosen in one place (`problem`).

mod app;
mod auth;
mod caller;
mod connections;
mod grpc;
mod handlers;
mod live;
mod markdown;
mod names;
mod observe;
mod openapi;
mod problem;
mod request;
pub mod routes;
mod serve;
mod shapes;
mod sign_in;
mod site;
mod tls;

pub use app::ServerOptions;
pub use grpc::grant_message;
pub use openapi::openapi;
pub use serve::{router, serve};
pub use sign_in::SignIn;
pub use tls::{AcmeOptions, LETS_ENCRYPT, Listener, Tls, TlsError};

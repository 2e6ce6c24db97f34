//! The API over a real socket: a coordinator on the memory store with a clock that the test moves.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod artifacts;
mod budgets;
mod client;
mod control;
mod dag;
mod delivery;
mod document;
mod effects;
mod errors;
mod fence;
mod fleet_grpc;
mod grpc;
mod health;
mod inside;
mod jobs;
mod limits;
mod links;
mod logs;
mod malformed;
mod merges;
mod poll;
mod probe;
mod products;
mod profiles;
mod remedies;
mod reviews;
mod site;
mod strangers;
mod streams;
mod submit;
mod tokenless;
mod tokens;
mod topics;
mod walk;
mod world;

//! The commands of the port, carried out: what each looks at, and what it does to what it finds. A file per noun.

mod artifacts;
mod budgets;
mod dispatch;
mod events;
mod factories;
mod graph;
mod jobs;
mod merges;
mod outbox;
mod pools;
mod registry;
mod secrets;
mod submit;
mod tokens;

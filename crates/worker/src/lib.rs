//! Makes a handler of topic jobs a function.
//!
//! A job is bytes under a topic. Anyone with a token may enqueue it; a worker says which topics it serves and is sent
//! jobs as they become ready, over one gRPC stream, without polling.
//!
//! ```no_run
//! use giga_worker::{Client, Config, Job, Permanent, Task, Worker};
//!
//! # async fn send_mail(_to: &str) -> std::io::Result<()> { Ok(()) }
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let token = std::env::var("GIGA_TOKEN")?;
//! let client = Client::connect(Config::new("http://127.0.0.1:7717", token).product("demo")).await?;
//!
//! client.enqueue(Job::new("mail", "ana@example.org").key("welcome-ana")).await?;
//!
//! let summary = Worker::new(client)
//!     .handle("mail", |task: Task| async move {
//!         // What can never succeed goes straight to the dead letters ...
//!         let to = std::str::from_utf8(&task.payload).map_err(Permanent)?;
//!         // ... any other error is tried again, as the job's retry policy says.
//!         send_mail(to).await?;
//!         Ok(())
//!     })
//!     .concurrency(100)
//!     .run(tokio::signal::ctrl_c())
//!     .await?;
//! println!("{} done, {} failed", summary.succeeded, summary.failed);
//! # Ok(())
//! # }
//! ```
//!
//! # What a handler may rely on
//!
//! - It has the job for as long as its lease lives, and the library keeps that alive. When the lease is lost all the same
//!   (the coordinator was away for too long, an operator took the job) [`Task::lost`] is cancelled: stop, nobody wants the
//!   result any more.
//! - A job may come twice: a worker that dies after the work and before the report cannot be told from one that dies
//!   before. [`Task::job_id`] with [`Task::attempt`] is the key to tell a repetition by.
//! - A panic is a failure of that job and of nothing else.
//! - Handlers are ordinary futures on the caller's runtime. What keeps a thread busy for long belongs into
//!   [`tokio::task::spawn_blocking`].
//!
//! # What the library never does
//!
//! It never starts more handlers than it was allowed to, never reports a job that it no longer holds as done, and never
//! puts the token into an error, a log line or a `Debug` text. The little randomness that it uses (for its own name, and
//! so that many workers do not reconnect at the same instant) is not cryptographic.

mod backoff;
mod client;
mod config;
mod error;
mod in_flight;
mod intake;
mod job;
mod keeper;
mod prefetch;
mod reports;
mod task;
mod worker;

pub use client::{Client, Enqueued};
pub use config::Config;
pub use error::Error;
pub use job::{Job, Priority, Retry};
pub use task::{JobError, Permanent, Task};
pub use worker::{Summary, Worker};

/// The token type of [`Task::lost`], also handy for [`Worker::run`].
pub use tokio_util::sync::CancellationToken;

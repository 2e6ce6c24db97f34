//! A model on loopback that plays a script to real coding engines.
//!
//! It speaks Anthropic's Messages, OpenAI's Responses and Chat Completions, and Gemini's API, as far as the engines use them.
//! A [`Script`] says what the model does turn by turn: words, and tools by what they are for (`read`, `write`, `run`), which
//! each dialect turns into the tools that the engine offers. Which turn it is follows from the conversation that a request
//! brings, so the server keeps nothing and a session that is resumed goes on where it was. Usage is exact: what a test adds
//! up from [`ScriptedModel::asked`] is what an engine has to report.

mod dialect;
mod script;
mod server;

pub use script::{Act, Script, Trouble, TroubleKind, Turn, Usage};
pub use server::{Asked, Protocol, ScriptedModel};

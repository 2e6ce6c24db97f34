//! `giga top`: the fleet in a terminal.
//!
//! Three parts that know nothing of each other's business: [`model`] is what is on the screen, [`update`] is what
//! becomes of it when something happens, [`view`] draws it. None of them waits, reads a clock or knows a
//! terminal, so every frame and every key can be tested as values. Around them: `data` asks the coordinator, `feed`
//! follows it, `terminal` gives the screen back on every way out. It never depends on a coordinator's insides.

mod act;
mod app;
mod data;
mod feed;
pub mod keys;
pub mod model;
pub mod msg;
mod terminal;
pub mod text;
mod update;
pub mod view;

pub use app::{Options, TopError, run};
pub use update::{everything, update};

//! The agent against a real coordinator over HTTP, real git origins and real processes. Nothing here reaches a network.

mod child;
mod forge;
mod proxy;
mod service;
pub(crate) mod world;

mod asking;
mod cleanup;
mod crash;
mod delivery;
mod elsewhere;
mod endings;
mod handoff;
mod hostile;
mod life;
mod logs;
mod many;
mod own;
mod pools;
mod quota;
mod repositories;
mod requests;
mod reviewed;
mod secrets;
mod several;
pub(crate) mod shipping;
pub(crate) mod spend;
mod streams;
mod unmetered;
mod unwell;

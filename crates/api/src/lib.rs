//! The wire: what travels between the coordinator and everyone else, and a typed client for it.
//!
//! Wire types are not domain types: they are what outsiders rely on, so they change only on purpose. The OpenAPI
//! document is made from them and golden-tested.

pub mod client;
pub mod inside;
pub mod wire;

/// Says on every answer that would be the page whether it is: `built`, or `absent` where the coordinator was built
/// without.
pub const PAGE_HEADER: &str = "x-giga-page";

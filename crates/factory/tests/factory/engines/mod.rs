//! Engines from outside: real processes that behave badly, recorded event streams, and a small Devin.

mod acp;
mod argv;
mod caps;
mod devin;
mod dialects;
mod isolation;
mod kit;
mod left_behind;
mod lifecycle;
mod output;
mod preflight;
mod templates;

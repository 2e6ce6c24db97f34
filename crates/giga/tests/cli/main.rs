//! The real binary against a real coordinator, as people and scripts use it.
#![expect(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

mod acme;
mod artifacts;
mod bench;
mod budget;
mod checkouts;
mod cluster;
mod config;
mod crash;
mod credentials;
mod dag;
mod demo;
mod effects;
mod exit_codes;
mod explain;
mod factories;
mod first_job;
mod formats;
mod help;
mod inbox;
mod life;
mod manifests;
mod mask;
mod profile;
mod python;
mod sandbox;
mod shipping;
mod start_stop;
mod streams;
mod tls;
mod tokens_travel;
mod top;
mod topics;
mod web;
mod words;
mod world;

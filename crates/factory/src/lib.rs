//! The factory agent: what runs on a worker machine.
//!
//! It holds jobs by leases and never decides who holds what: the coordinator's word, job and epoch, stands above
//! everything that happens here. Job fields never reach a shell, and engines never see a secret but their own.

pub mod agent;
pub mod engines;
pub mod folder;
mod process;
pub mod sandbox;
pub mod workspace;

//! Jobs that mean harm, run by a real agent in a process of its own, as this user and, where this is root, as a plain one.
//! Each attack fails from inside the sandbox, and the same attacks succeed without one, so that this suite can fail.
//!
//! `docs/security.md` names these tests beside the boundaries that they hold.

mod agent;

mod accounts;
mod bombs;
mod checks;
mod memory;
mod network;
mod outlive;
mod reach;
mod refused;

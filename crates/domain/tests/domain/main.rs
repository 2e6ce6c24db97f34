//! The rules from outside: manifests, transitions, money, purity.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod manifest;
mod manifest_errors;
mod manifest_roundtrip;
mod profiles;
mod purity;
mod stored_money;
mod transition;

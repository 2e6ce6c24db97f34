//! Pull requests against a fake GitHub that loses replies and fails, and against a fake `gh`.

mod fake;

mod gh;
mod rest;

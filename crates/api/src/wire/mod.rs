//! Requests and answers: camelCase JSON, RFC 3339 times, ids as text.

mod factories;
mod fleet;
mod jobs;
mod problem;
mod tokens;
mod topics;
mod work;

pub use factories::*;
pub use fleet::*;
pub use jobs::*;
pub use problem::*;
pub use tokens::*;
pub use topics::*;
pub use work::*;

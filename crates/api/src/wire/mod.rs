//! Requests and answers: camelCase JSON, RFC 3339 times, ids as text.

mod budgets;
mod control;
mod dag;
mod effects;
mod factories;
mod fleet;
mod jobs;
mod problem;
mod products;
mod profiles;
mod reviews;
mod tokens;
mod topics;
mod work;

pub use budgets::*;
pub use control::*;
pub use dag::*;
pub use effects::*;
pub use factories::*;
pub use fleet::*;
pub use jobs::*;
pub use problem::*;
pub use products::*;
pub use profiles::*;
pub use reviews::*;
pub use tokens::*;
pub use topics::*;
pub use work::*;

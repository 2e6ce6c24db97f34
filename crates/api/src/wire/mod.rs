//! Requests and answers: camelCase JSON, RFC 3339 times, ids as text.

mod budgets;
mod control;
mod dag;
mod effects;
mod events;
mod explain;
mod factories;
mod fleet;
mod holders;
mod jobs;
mod problem;
mod products;
mod profiles;
mod reviews;
mod tokens;
mod topics;
mod vocabulary;
mod work;

pub use budgets::*;
pub use control::*;
pub use dag::*;
pub use effects::*;
pub use events::*;
pub use explain::*;
pub use factories::*;
pub use fleet::*;
pub use holders::*;
pub use jobs::*;
pub use problem::*;
pub use products::*;
pub use profiles::*;
pub use reviews::*;
pub use tokens::*;
pub use topics::*;
pub use vocabulary::*;
pub use work::*;

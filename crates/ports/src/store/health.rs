//! Whether the store can be used, and what time it is there.

use giga_domain::Timestamp;

use super::InterceptReads;
use super::noun::Result;

macro_rules! health {
    ($make:ident) => {
        $make! {
            reads HealthReads {
                /// The clock that deadlines are set and judged by.
                now() -> Timestamp;

                /// Answers when the store can be read and written; the error says what is wrong.
                ping() -> ();
            }
        }
    };
}
health!(traits);
pub(super) use health;

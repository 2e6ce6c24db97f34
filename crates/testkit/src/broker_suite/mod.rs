//! The conformance suite of the broker port. Every implementation passes it, the embedded one included.
//!
//! A case is an async function over a [`BrokerWorld`]: a broker that holds nothing, and handles on it as several
//! coordinators would have. The macro [`broker_conformance!`](crate::broker_conformance) makes a test of each. That
//! something does not come is shown by what comes instead, never by waiting for a while.

pub mod dead_letters;
pub mod hints;
pub mod losses;
pub mod offers;
mod world;

use std::sync::Arc;

use async_trait::async_trait;
use giga_ports::Broker;

pub use world::{BrokerWorld, in_time, offer, persistently};

/// Where a case gets its broker from. One value is one broker; a test makes its own.
#[async_trait]
pub trait BrokerFixture: Send + Sync {
    /// A handle, as one process of many would have.
    async fn open(&self) -> Arc<dyn Broker>;

    /// The broker loses every offer, and whatever else it holds. It may be gone for a moment.
    async fn wipe(&self);
}

/// One test per case for the fixture that the expression makes: `broker_conformance!(MyFixture::new());`
#[macro_export]
macro_rules! broker_conformance {
    ($fixture:expr) => {
        $crate::broker_conformance! { @cases $fixture;
            offers: [
                one_reaches_its_factory_and_nobody_else,
                one_arrives_as_it_was_sent,
                the_same_message_is_delivered_once,
                the_next_dispatch_of_a_job_is_delivered,
                what_was_not_acknowledged_comes_again,
                a_wait_that_was_given_up_loses_nothing,
                a_newer_consumer_takes_over,
                one_from_before_the_consumer_is_found,
                a_thousand_reach_fifty_factories,
                many_publishers_at_once,
                none_is_nothing,
            ],
            hints: [
                they_reach_everybody,
                a_long_one_arrives_whole,
                readers_begin_where_they_are,
            ],
            dead_letters: [
                they_reach_whoever_watches,
            ],
            losses: [
                a_wipe_loses_what_it_held_and_nothing_more,
                hints_and_dead_letters_go_on_after_a_wipe,
            ],
        }
    };
    (@cases $fixture:expr; $($module:ident: [$($case:ident),* $(,)?],)*) => {$(
        mod $module {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $case() {
                    let world = $crate::broker_suite::BrokerWorld::new($fixture);
                    $crate::broker_suite::$module::$case(&world).await;
                }
            )*
        }
    )*};
}

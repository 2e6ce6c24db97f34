//! The conformance suite of the topic store port. Every implementation passes it, the memory store included.
//!
//! A case is an async function over a [`TopicWorld`]: a fresh, empty store with a clock that the case moves. The macro
//! [`topic_conformance!`](crate::topic_conformance) makes a test of each, so that a failure has the case's name.

pub mod batches;
pub mod claim;
pub mod enqueue;
pub mod races;
pub mod reads;
pub mod settle;
pub mod sweeps;
pub mod walk;
mod world;

use std::sync::Arc;

use async_trait::async_trait;
use giga_ports::TopicStore;

use crate::ManualClock;
pub use world::TopicWorld;

/// Where a case gets its store from. One value is one set of data; a test makes its own.
#[async_trait]
pub trait TopicFixture: Send + Sync {
    /// The first handle, on empty data.
    async fn open(&self, clock: Arc<ManualClock>) -> Arc<dyn TopicStore>;

    /// A further handle on the same data, as another process would have. `None` where the store lives in one
    /// process only.
    async fn reopen(&self, clock: Arc<ManualClock>) -> Option<Arc<dyn TopicStore>>;
}

/// One test per case for the fixture that the expression makes: `topic_conformance!(MyFixture::new());`
#[macro_export]
macro_rules! topic_conformance {
    ($fixture:expr) => {
        $crate::topic_conformance! { @cases_on "multi_thread" $fixture;
            enqueue: [
                created_and_readable,
                nothing_enqueued_is_nothing_made,
                a_payload_comes_back_byte_for_byte,
                a_repeated_call_makes_each_job_once,
                a_key_makes_one_job,
                a_key_with_another_payload_is_refused,
                a_key_belongs_to_its_topic,
                one_key_twice_in_one_call,
                a_later_run_at_schedules,
            ],
            claim: [
                priority_then_age,
                what_becomes_ready_later_has_its_turn,
                a_claim_is_a_lease,
                slots_are_dealt_in_turn,
                topics_are_apart,
                a_closed_topic_gives_nothing,
                closed_for_everything_gives_nothing,
                gates_say_since_when_and_by_whom,
            ],
            settle: [
                a_success_is_done,
                a_repeated_word_is_answered_as_before,
                another_word_than_before_is_fenced,
                a_failure_is_known_again_once_the_job_is_ready_again,
                a_word_said_twice_in_one_call,
                a_stale_epoch_changes_nothing,
                an_expired_holder_changes_nothing,
                a_released_and_claimed_again_job_is_anothers,
                a_late_word_in_time_counts,
                failures_back_off_and_die,
                a_failure_for_good_is_dead_at_once,
                a_release_uses_no_attempt,
                one_bad_word_spares_the_others,
                a_renewal_prolongs_and_never_shortens,
            ],
            sweeps: [
                leases_end_in_order,
                expiry_goes_by_the_limit,
                expiry_raises_the_epoch_and_counts,
                a_renewed_lease_is_left_alone,
                due_jobs_become_ready,
                the_dead_rise_by_name,
                all_the_dead_rise_up_to_the_limit,
                the_old_go,
                the_living_are_passed_over,
                a_retired_key_is_free_again,
            ],
            reads: [
                pages_cover_every_stage_newest_first,
                topics_come_by_product_and_name,
                an_empty_topic_is_still_known,
                counts_are_exact,
                products_are_found_for_many_jobs_at_once,
                another_process_sees_everything,
            ],
            races: [
                claimers_get_each_job_once,
                what_goes_in_comes_out_once,
                one_key_makes_one_job,
                settling_against_expiry,
                a_pause_holds_once_it_is_answered,
            ],
        }
        // On one thread, because there everything that a case asks for at once waits together for the writer: it
        // is one transaction for certain, where with several threads it may be any number.
        $crate::topic_conformance! { @cases_on "current_thread" $fixture;
            batches: [
                a_refused_enqueue_spares_its_neighbours,
                a_poison_command_spares_its_neighbours,
                one_key_in_many_calls_makes_one_job,
                one_call_repeated_at_once_makes_one_job,
                claims_share_a_transaction,
                everything_at_once,
                two_sweeps_do_everything_once,
            ],
        }

        #[test]
        fn random_histories_agree_with_the_model() {
            $crate::topic_suite::walk::agrees_with_the_model(|| $fixture, 24, 80);
        }
    };
    (@cases_on $flavor:literal $fixture:expr; $($module:ident: [$($case:ident),* $(,)?],)*) => {$(
        mod $module {
            use super::*;
            $(
                #[tokio::test(flavor = $flavor)]
                async fn $case() {
                    let world = $crate::topic_suite::TopicWorld::open($fixture).await;
                    $crate::topic_suite::$module::$case(&world).await;
                }
            )*
        }
    )*};
}

#[cfg(test)]
mod tests {
    /// A case that nobody runs looks like a case that passes.
    #[test]
    fn every_case_is_in_the_list() {
        let list = include_str!("mod.rs");
        let modules = [
            ("batches", include_str!("batches.rs")),
            ("claim", include_str!("claim.rs")),
            ("enqueue", include_str!("enqueue.rs")),
            ("races", include_str!("races.rs")),
            ("reads", include_str!("reads.rs")),
            ("settle", include_str!("settle.rs")),
            ("sweeps", include_str!("sweeps.rs")),
        ];
        crate::case_list::assert_complete(list, &modules);
    }
}

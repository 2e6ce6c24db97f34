//! The conformance suite of the store port. Every implementation passes it, the memory store included.
//!
//! A case is an async function over a [`World`]: a fresh, empty store with a clock that the case moves. The macro
//! [`store_conformance!`](crate::store_conformance) makes a test of each, so that a failure has the case's name.

pub mod artifacts;
pub mod batches;
pub mod budgets;
pub mod charges;
pub mod claim;
pub mod dispatch;
pub mod effect_batches;
pub mod effects;
pub mod events;
pub mod evictions;
pub mod factories;
pub mod fence;
pub mod graphs;
pub mod hold;
pub mod leading;
pub mod merges;
pub mod products;
pub mod profiles;
pub mod races;
pub mod reads;
pub mod steer;
pub mod submit;
pub mod sweeps;
pub mod tokens;
pub mod webhooks;
mod world;

use std::sync::Arc;

use async_trait::async_trait;
use giga_ports::Store;

use crate::ManualClock;
pub use world::{Snapshot, World};

/// A name for one call of an operator or a reviewer.
pub fn steer_request() -> giga_domain::RequestId {
    static CALLS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let call = CALLS.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    format!("steer-{call}").parse().unwrap()
}

/// Where a case gets its store from. One value is one set of data; a test makes its own.
#[async_trait]
pub trait StoreFixture: Send + Sync {
    /// The first handle, on empty data.
    async fn open(&self, clock: Arc<ManualClock>) -> Arc<dyn Store>;

    /// A further handle on the same data, as another process would have. `None` where the store lives in one
    /// process only.
    async fn reopen(&self, clock: Arc<ManualClock>) -> Option<Arc<dyn Store>>;
}

/// One test per case for the fixture that the expression makes: `store_conformance!(MyFixture::new());`
#[macro_export]
macro_rules! store_conformance {
    ($fixture:expr) => {
        $crate::store_conformance! { @cases_on "multi_thread" $fixture;
            submit: [
                created_and_readable,
                a_key_makes_one_job,
                a_key_with_another_body_is_refused,
                a_key_belongs_to_its_product,
                a_repeated_command_makes_one_job,
                a_repeated_command_of_many_makes_each_once,
                an_unknown_dep_is_refused,
                a_dep_of_another_product_is_refused,
                unmet_deps_block,
                shipped_deps_do_not_block,
                any_needs_one_dep,
                deps_inside_one_submit,
                a_dep_inside_the_submit_that_existed_before_is_followed,
                a_later_run_at_delays,
                an_earlier_run_at_does_not,
                one_bad_job_makes_none,
                one_key_twice_in_one_submit_makes_one_job,
                nothing_submitted_is_nothing_made,
            ],
            claim: [
                grants_lease_epoch_and_run,
                a_repeated_request_gets_the_same_grant,
                a_request_names_one_job_at_a_time,
                a_stale_revision_loses,
                a_current_revision_wins,
                a_held_job_is_gone,
                an_unknown_job_is_gone,
                a_terminal_or_blocked_job_is_gone,
                a_job_whose_time_has_not_come_is_gone,
                an_offer_that_is_not_current_is_gone,
                seats_limit,
                a_concurrency_key_limits_across_factories,
                a_concurrency_key_is_of_its_product,
                a_draining_factory_gets_nothing_new,
                a_product_out_of_scope_is_not_granted,
                a_capability_that_lacks_is_not_granted,
                an_unknown_factory_is_not_granted,
                losing_changes_nothing,
            ],
            fence: [
                a_stale_epoch_changes_nothing,
                an_epoch_of_the_future_changes_nothing,
                another_factory_changes_nothing,
                an_expired_holder_changes_nothing,
                an_expired_holder_changes_nothing_after_a_reclaim,
                a_job_never_claimed_has_no_holder,
                an_unknown_job_is_not_found,
                a_last_word_ends_the_right_to_write,
                a_last_word_can_be_repeated,
                a_last_word_with_company_can_be_repeated,
                a_repeated_last_word_is_fenced_after_a_reclaim,
                a_cancelled_holder_is_told_and_fenced,
                actions_are_all_or_nothing,
                an_empty_write_is_fenced_too,
            ],
            hold: [
                start_builds_once,
                a_renewal_touches_the_lease_alone,
                a_renewal_never_shortens,
                a_renewal_is_judged_by_the_stores_clock,
                a_checkpoint_is_kept_and_repeated_silently,
                a_checkpoint_survives_expiry,
                a_report_waits_for_review,
                a_report_waits_to_be_shipped,
                a_report_ships_by_itself,
                a_report_needs_a_start,
                several_actions_in_one_write,
                a_retryable_failure_backs_off,
                exhausted_retries_end_in_dead_letter,
                a_logical_failure_waits_for_an_operator,
                a_release_keeps_the_attempt,
            ],
            steer: [
                every_operator_action_in_every_stage,
                a_matching_revision_is_taken,
                another_revision_is_refused,
                an_unknown_job_is_not_found,
                a_quorum_of_distinct_reviewers,
                a_review_with_automatic_shipping,
                changes_asked_for_queue_again,
                a_rejection_fails,
                notes_and_gates_come_back_whole,
                a_stranger_may_not_review,
                only_review_takes_a_verdict,
                a_requeue_gives_the_attempts_back,
                terminal_absorbs_everything,
                a_repeated_call_finds_what_it_did,
            ],
            merges: [
                an_order_is_for_one_factory_at_a_time,
                a_repeated_settlement_changes_nothing,
                an_order_that_nobody_settled_goes_to_the_next_and_the_first_is_not_heard_again,
                whoever_ran_the_job_goes_first,
                a_conflict_waits_for_people_and_a_failure_is_tried_again,
                nothing_to_merge_is_no_order,
            ],
            artifacts: [
                a_file_is_kept_and_told,
                files_come_by_run_and_name,
                a_repeated_put_is_one_file,
                a_name_that_is_used_again_gets_the_new_file,
                a_stale_epoch_changes_nothing,
                another_factory_changes_nothing,
                a_deleted_file_is_gone_and_told_once,
                files_are_retired_with_their_job,
                files_of_ended_jobs_are_found_until_they_are_deleted,
            ],
            leading: [
                the_first_to_ask_leads,
                one_of_many_racing_nodes_leads,
                a_renewal_keeps_the_term_and_appends_nothing,
                whoever_waits_is_told_who_leads_and_writes_nothing,
                another_takes_over_exactly_when_the_term_ends,
                a_leader_that_was_away_gets_a_new_term,
                stepping_down_frees_the_lead,
                an_old_leader_that_wakes_up_is_refused,
                a_term_that_ended_is_refused_without_a_successor,
                a_term_that_nobody_was_given_is_refused,
                offers_and_a_handover_take_turns,
            ],
            dispatch: [
                an_offer_sets_the_target_and_fills_the_outbox,
                each_offer_of_a_call_stands_for_itself,
                a_repeated_call_gets_the_same_offers,
                a_newer_offer_replaces_the_older_one,
                what_was_sent_leaves_the_outbox_silently,
                the_outbox_is_oldest_first,
                only_the_target_may_claim_until_the_pickup_deadline,
                an_accept_of_an_older_offer_is_refused,
                offers_accepts_and_sends_at_once,
                too_many_capabilities_stay_out_of_the_offer,
                offers_are_retired_with_their_job,
                a_divergence_is_in_the_history_of_jobs_that_are_not_over,
                a_note_is_an_event_of_the_fleet,
            ],
            sweeps: [
                leases_expire_in_order,
                a_lease_ends_exactly_at_its_time,
                a_renewed_lease_is_left_alone,
                expiring_nothing_says_when_to_look_again,
                expiry_uses_attempts_up,
                unblock_for_all,
                unblock_for_any,
                unblock_goes_by_the_limit,
                an_unblocked_job_keeps_its_run_at,
                a_thousand_children_in_one_sweep,
                retire_removes_everything,
                retire_spares_the_young_and_the_living,
                retire_spares_what_blocked_jobs_need,
                retire_goes_by_the_limit,
            ],
            budgets: [
                a_product_without_a_budget_spends_freely,
                what_fits_is_admitted_and_no_more,
                the_tightest_period_decides,
                the_cap_of_those_that_name_none,
                a_reached_limit_pauses_once,
                a_new_period_opens_it_again,
                a_run_is_charged_to_the_day_on_which_it_ends,
                a_higher_limit_opens_it_again,
                an_operators_pause_stays,
                a_resumed_budget_without_money_stays_closed,
                a_correction_counts_like_a_charge,
                a_correction_is_booked_once_whatever_comes_between,
                a_repeated_change_is_answered,
                another_revision_of_a_budget_is_refused,
                products_have_budgets_of_their_own,
                a_budget_comes_back_whole,
                racing_claims_never_start_an_eleventh,
                racing_runs_keep_the_books,
            ],
            charges: [
                every_end_settles_what_was_reserved,
                a_cancelled_run_costs_all_that_was_allowed_until_its_holder_tells,
                what_is_given_back_counts_where_it_was_charged,
                silence_at_work_costs_all_that_was_allowed,
                an_eviction_is_charged_like_any_end,
                what_is_told_twice_or_smaller_counts_once,
                an_overrun_is_reserved_at_once,
                a_repeated_claim_sets_aside_once,
                each_run_has_a_line_of_its_own,
                the_ledger_outlives_the_jobs,
                a_burndown_sums_stretches,
                a_lease_comes_back_whole,
            ],
            evictions: [
                a_release_after_it_is_a_preemption,
                only_what_was_seen_is_evicted,
                a_repeated_eviction_is_answered,
                a_dispatcher_whose_term_is_over_asks_nobody,
                the_reaper_goes_by_the_deadline,
                leases_and_deadlines_are_reaped_in_one_order,
                an_evicted_holder_may_finish,
                work_of_a_paused_budget_stops_without_a_mark,
                evictions_against_last_words,
            ],
            graphs: [
                a_thousand_waiting_jobs_are_two_transactions,
                a_plain_job_leaves_nothing_to_look_at,
                deps_that_never_ship_fail_who_waits,
                a_job_for_a_dep_that_is_lost_already_fails,
                a_composite_ships_when_its_children_have,
                a_composite_is_never_claimed,
                failing_fast_cancels_the_others,
                going_on_waits_for_all,
                composites_in_composites,
                cancelling_takes_everything_below_along,
                an_agents_children_are_its_own_business,
                a_requeued_composite_looks_again,
                a_requeued_child_of_a_failed_composite_goes_on,
                a_composite_ships_without_a_dep_that_its_children_did_without,
                children_from_inside_are_fenced,
                children_come_while_a_parent_takes_them,
                children_go_so_deep,
                children_wait_for_what_their_composite_waits_for,
                a_circle_inside_a_submit_is_refused,
                a_circle_through_a_parent_is_refused,
                of_two_racing_halves_of_a_circle_one_is_refused,
                nobody_is_forgotten_in_a_race,
                a_tree_is_retired_when_all_of_it_is_over,
                deps_of_a_failed_composite_stay,
                a_subtree_is_read_from_the_top,
                a_persona_is_kept_with_the_text,
                what_a_tree_has_cost_is_one_look,
            ],
            factories: [
                enrolls_with_its_token,
                a_known_factory_is_refused,
                a_repeated_enrolment_is_answered,
                advertising_is_kept,
                a_lost_stream_changes_how_it_is_reached_and_is_no_sign_of_life,
                the_same_again_appends_no_event,
                an_unknown_factory_is_not_found,
                a_touch_only_moves_forward,
                a_touch_passes_over_unknown_ones,
                draining_and_resuming,
                deregistering_revokes_tokens_and_spares_leases,
                a_name_can_be_enrolled_again,
                prune_takes_the_unseen,
                prune_spares_holders,
            ],
            tokens: [
                found_by_its_hash,
                rotation_leaves_a_grace,
                a_second_rotation_does_not_prolong,
                revoking_a_factorys_tokens_is_immediate,
                a_repeated_issue_is_one_token,
                a_repeated_revocation_changes_nothing,
                an_unknown_token_is_not_found,
                listed_by_creation,
                flags_are_set_and_audited,
                the_same_flag_value_appends_no_event,
                null_unsets_a_flag,
            ],
            reads: [
                each_filter_alone,
                filters_together,
                pages_cover_all_exactly_once,
                live_jobs_page_by_id,
                texts_come_back_byte_for_byte,
                jobs_by_id_skip_the_missing,
                a_grant_is_found_while_it_is_held,
                what_does_not_exist,
                queue_states_count_stages,
                a_spec_comes_back_whole,
                it_answers_a_ping,
                another_process_sees_everything,
            ],
            events: [
                seq_runs_without_gaps,
                the_feed_is_in_order_and_complete,
                a_reader_resumes_anywhere,
                the_head_is_the_last_position,
                the_head_hint_rises_with_writes,
                stages_follow_each_other,
                actors_and_causes_are_recorded,
                positions_are_not_reused_after_a_retirement,
            ],
            races: [
                claimers_win_each_job_once,
                one_claim_of_many_wins,
                one_key_makes_one_job,
                concurrency_keys_hold,
                seats_hold,
                a_feed_reader_misses_nothing,
                cancel_against_renew_and_report,
                expiry_against_renewal,
            ],
            products: [
                a_product_is_set_and_told,
                the_same_settings_again_change_nothing,
                another_revision_is_refused,
                a_repository_has_one_owner,
                one_of_many_racing_owners_wins,
                a_secret_is_one_for_all,
            ],
            profiles: [
                versions_follow_each_other,
                the_newest_content_again_is_the_newest,
                profiles_are_of_their_product,
                racing_authors_leave_no_gap,
            ],
            webhooks: [
                a_webhook_is_kept_and_told_without_its_secret,
                the_first_webhook_starts_at_the_head,
                a_repeated_add_is_answered_with_what_is_there,
                a_product_has_so_many_webhooks_and_no_more,
                a_removed_webhook_gets_nothing_more,
                a_stretch_of_the_feed_goes_into_the_outbox_once,
                two_leaders_put_nothing_in_twice,
                a_webhook_that_goes_while_the_feed_is_read_is_left_nothing,
            ],
            effects: [
                what_is_due_is_taken_longest_due_first,
                whoever_takes_and_dies_holds_it_up_for_the_lease_alone,
                a_failure_is_tried_again_later,
                what_was_not_sent_after_all_has_lost_no_attempt,
                what_cannot_be_told_is_given_up_and_told,
                somebody_may_give_it_another_chance,
                an_unknown_effect_is_not_found,
                what_somebody_asks_for_is_sent_again,
                racing_senders_take_disjoint_batches,
                one_settlement_of_many_counts,
                what_is_over_is_retired_oldest_first,
                each_filter_alone_and_pages_cover_all,
                a_backlog_is_in_nobody_elses_way,
                the_outbox_is_counted,
            ],
        }
        // On one thread, because there everything that a case asks for at once waits together for the writer: it
        // is one batch for certain, where with several threads it may be any number.
        $crate::store_conformance! { @cases_on "current_thread" $fixture;
            effect_batches: [
                two_hundred_settlements_are_one_transaction,
                two_takers_get_different_ones,
                what_waits_for_a_webhook_goes_with_it,
                what_was_brought_back_is_not_retired,
                two_retirements_count_each_once,
                products_and_profiles_see_each_other,
            ],
            batches: [
                neighbours_see_each_other,
                refusals_spare_their_neighbours,
                a_poison_command_spares_its_neighbours,
                seats_hold,
                a_budget_holds,
                a_concurrency_key_holds,
                a_key_makes_one_job,
                one_claim_wins,
                a_job_lives_through_many_changes,
                a_retired_key_is_free_again,
                two_retirements_count_once,
                two_sweeps_do_everything_once,
                a_new_child_is_counted_by_a_sweep_behind_it,
                prune_spares_who_claims,
                two_prunes_forget_once,
                the_reaper_hears_of_an_eviction,
                the_reaper_hears_of_a_new_lease,
                an_offer_that_is_sent_at_once_leaves_nothing,
                offers_end_with_the_term,
                the_last_word_on_a_flag_counts,
            ],
        }
    };
    (@cases_on $flavor:literal $fixture:expr; $($module:ident: [$($case:ident),* $(,)?],)*) => {$(
        mod $module {
            use super::*;
            $(
                #[tokio::test(flavor = $flavor)]
                async fn $case() {
                    let world = $crate::store_suite::World::open($fixture).await;
                    $crate::store_suite::$module::$case(&world).await;
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
            ("artifacts", include_str!("artifacts.rs")),
            ("batches", include_str!("batches.rs")),
            ("budgets", include_str!("budgets.rs")),
            ("charges", include_str!("charges.rs")),
            ("claim", include_str!("claim.rs")),
            ("dispatch", include_str!("dispatch.rs")),
            ("effect_batches", include_str!("effect_batches.rs")),
            ("effects", include_str!("effects.rs")),
            ("events", include_str!("events.rs")),
            ("evictions", include_str!("evictions.rs")),
            ("factories", include_str!("factories.rs")),
            ("fence", include_str!("fence.rs")),
            ("graphs", include_str!("graphs.rs")),
            ("hold", include_str!("hold.rs")),
            ("leading", include_str!("leading.rs")),
            ("merges", include_str!("merges.rs")),
            ("products", include_str!("products.rs")),
            ("profiles", include_str!("profiles.rs")),
            ("races", include_str!("races.rs")),
            ("reads", include_str!("reads.rs")),
            ("steer", include_str!("steer.rs")),
            ("submit", include_str!("submit.rs")),
            ("sweeps", include_str!("sweeps.rs")),
            ("tokens", include_str!("tokens.rs")),
            ("webhooks", include_str!("webhooks.rs")),
        ];
        crate::case_list::assert_complete(list, &modules);
    }
}

//! Each planted bug is found, and by the checker whose promise it breaks.

use giga_sim::{Bug, Outcome, Promise, run_many};

const SEEDS: u64 = 2_000;

fn is_found(bug: Bug, promise: Promise) {
    let (_, failed) = run_many(0, SEEDS, Some(bug), 1);
    let found: Vec<String> = failed.iter().flat_map(|o| &o.violations).map(ToString::to_string).collect();
    let named = failed.iter().flat_map(|outcome| &outcome.violations).any(|v| v.promise == promise);
    assert!(named, "{bug} should break {promise:?}, but what was found in {SEEDS} seeds is {found:?}");
}

/// Breaks other promises more often, and this one too.
fn is_found_among_others(bug: Bug, promise: Promise) {
    let step = 50;
    let mut chunks = (0..SEEDS).step_by(step).map(|first| run_many(first, step as u64, Some(bug), step).1);
    let breaks = |failed: Vec<Outcome>| {
        failed.iter().flat_map(|outcome| &outcome.violations).any(|found| found.promise == promise)
    };
    assert!(chunks.any(breaks), "{bug} should break {promise:?} in one of {SEEDS} seeds");
}

#[test]
fn a_zombie_that_may_write_is_noticed() {
    is_found(Bug::FenceOff, Promise::OneHolder);
}

#[test]
fn a_grant_that_is_given_twice_is_noticed() {
    is_found(Bug::DoubleGrant, Promise::OneHolder);
}

#[test]
fn a_request_that_wins_twice_is_noticed() {
    is_found(Bug::RequestForgotten, Promise::SameGrant);
}

#[test]
fn an_acknowledgement_before_the_write_is_noticed() {
    is_found(Bug::AckBeforeDurable, Promise::Durable);
}

#[test]
fn a_forgotten_idempotency_key_is_noticed() {
    is_found(Bug::KeyForgotten, Promise::KeyOnce);
}

#[test]
fn an_older_leader_that_may_offer_is_noticed() {
    is_found(Bug::OldTermAccepted, Promise::TermFenced);
}

#[test]
fn an_attempt_that_is_not_counted_is_noticed() {
    is_found(Bug::AttemptsForgotten, Promise::AttemptsCounted);
}

#[test]
fn a_gap_in_the_feed_is_noticed() {
    is_found(Bug::FeedGap, Promise::FeedComplete);
}

#[test]
fn a_broker_that_swallows_a_second_offer_is_noticed() {
    is_found(Bug::DedupByJob, Promise::NotStranded);
}

#[test]
fn a_reaper_that_does_nothing_is_noticed() {
    is_found(Bug::NoReaper, Promise::NotStranded);
}

#[test]
fn a_stale_worker_that_may_report_is_noticed() {
    is_found(Bug::TopicFenceOff, Promise::TopicOnce);
}

#[test]
fn a_worker_that_gets_more_than_it_asked_for_is_noticed() {
    is_found(Bug::TooManyInFlight, Promise::InFlight);
}

#[test]
fn a_pause_that_does_not_hold_is_noticed() {
    is_found(Bug::PauseIgnored, Promise::PauseKept);
}

#[test]
fn a_factory_with_more_jobs_than_seats_is_noticed() {
    is_found(Bug::TooManySeats, Promise::LimitsKept);
}

#[test]
fn a_budget_that_sets_nothing_aside_is_noticed() {
    is_found_among_others(Bug::ReserveForgotten, Promise::BudgetKept);
}

#[test]
fn a_run_that_is_charged_twice_is_noticed() {
    is_found(Bug::ChargedTwice, Promise::ChargedOnce);
}

#[test]
fn an_eviction_that_costs_an_attempt_is_noticed() {
    is_found(Bug::EvictionCostsAttempt, Promise::EvictionsFree);
}

#[test]
fn a_job_that_nobody_looks_at_again_is_noticed() {
    is_found(Bug::ReconsiderLost, Promise::GraphKept);
}

#[test]
fn an_effect_that_changes_its_name_is_noticed() {
    is_found(Bug::EffectRenamed, Promise::DeliveredOnce);
}

#[test]
fn an_event_that_nobody_is_told_of_is_noticed() {
    is_found(Bug::EffectLost, Promise::DeliveredOnce);
}

#[test]
fn a_merge_that_fails_its_checks_is_noticed() {
    is_found(Bug::UncheckedMerge, Promise::ShippedIsMerged);
}

#[test]
fn a_push_that_nobody_was_told_of_is_noticed() {
    is_found(Bug::UnannouncedPush, Promise::ShippedIsMerged);
}

#[test]
fn an_answer_that_nobody_keeps_is_noticed() {
    is_found_among_others(Bug::AnswerForgotten, Promise::Answered);
}

#[test]
fn an_account_that_nobody_knows_to_be_closed_is_noticed() {
    is_found_among_others(Bug::ClosedAccountForgotten, Promise::AccountsKept);
}

#[test]
fn a_closed_account_that_costs_an_attempt_is_noticed() {
    is_found(Bug::QuotaCostsAttempt, Promise::AttemptsCounted);
}

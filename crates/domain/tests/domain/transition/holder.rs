//! The fence: who holds may write, who does not may not, and a repeated final report is heard as such.

use std::time::Duration;

use giga_domain::job::RetryPolicy;
use giga_domain::transition::was_cancelled;
use giga_domain::{
    Command, Epoch, FailReason, Failure, HolderAction, Job, OperatorAction, Refusal, Stage, State, transition,
};

use crate::transition::fixture::*;

fn after(job: &Job, command: &Command) -> Job {
    transition(job, command, NOW).unwrap_or_else(|refusal| panic!("{command:?}: {refusal}")).job
}

fn is_fenced(job: &Job, command: &Command) -> bool {
    matches!(transition(job, command, NOW), Err(Refusal::Fenced { .. }))
}

#[test]
fn a_stale_epoch_or_another_factory_is_fenced_whatever_it_does() {
    for stage in [Stage::Assigned, Stage::Building] {
        let job = job_in(stage);
        for action in holder_actions() {
            for (who, epoch) in [("a", 6), ("a", 8), ("a", 0), ("b", 7), ("b", 6)] {
                let command = holder(who, epoch, vec![action.clone()]);
                assert!(is_fenced(&job, &command), "{who} at {epoch}: {action:?} when {stage}");
            }
        }
        assert!(is_fenced(&job, &holder("a", 6, Vec::new())), "a zombie is fenced though it writes nothing");
    }
}

#[test]
fn a_command_is_applied_whole_or_not_at_all() {
    let job = job_in(Stage::Building);
    let late = vec![HolderAction::Release { checkpoint: None }, HolderAction::Checkpoint(checkpoint())];
    assert!(is_fenced(&job, &holder("a", 7, late)), "nothing may follow the end of the lease");
    let early = vec![HolderAction::Checkpoint(checkpoint()), report()];
    let refusal = transition(&job_in(Stage::Assigned), &holder("a", 7, early), NOW).unwrap_err();
    assert!(matches!(refusal, Refusal::Illegal { from: Stage::Assigned, .. }));
    let together = vec![HolderAction::Start, HolderAction::Checkpoint(checkpoint()), report()];
    let done = transition(&job_in(Stage::Assigned), &holder("a", 7, together), NOW).unwrap();
    assert_eq!((done.job.stage(), done.events.len(), done.job.rev.0), (Stage::Review, 3, 12));
    assert_eq!(done.job.checkpoint, Some(checkpoint()));
}

#[test]
fn a_repeated_last_word_is_answered_until_the_next_claim() {
    let save = HolderAction::Checkpoint(checkpoint());
    for final_report in [report(), fail(true), fail(false), HolderAction::Release { checkpoint: None }] {
        for actions in
            [vec![final_report.clone()], vec![HolderAction::Start, save.clone(), final_report.clone()]]
        {
            let command = holder("a", 7, actions);
            let ended = after(&job_in(Stage::Building), &command);
            let again = transition(&ended, &command, NOW).unwrap();
            assert!(again.is_silent() && again.run.is_empty() && again.job == ended, "{command:?}");
            let other_words = holder_actions()
                .into_iter()
                .filter(|action| std::mem::discriminant(action) != std::mem::discriminant(&final_report));
            for other in other_words {
                assert!(
                    is_fenced(&ended, &holder("a", 7, vec![other.clone()])),
                    "{final_report:?}, then {other:?}"
                );
            }
            let actions = vec![final_report.clone()];
            assert!(is_fenced(&ended, &holder("b", 7, actions.clone())), "another factory");
            assert!(is_fenced(&ended, &holder("a", 6, actions.clone())), "an older lease");
            assert!(
                is_fenced(&ended, &holder("a", 7, vec![final_report.clone(), save.clone()])),
                "a write after it"
            );

            let mut open = ended;
            if open.stage() != Stage::Queued {
                open.state = State::Queued { since: NOW, ready_at: NOW, target: None };
            }
            let claimed = transition(&open, &claim("a", "second"), NOW.plus(LEASE)).unwrap().job;
            assert!(is_fenced(&claimed, &command), "the next holder's work is not to be touched");
        }
    }
}

#[test]
fn a_repeated_claim_is_the_same_grant() {
    let granted = after(&job_in(Stage::Queued), &claim("b", "r1"));
    for job in [granted.clone(), after(&granted, &holder("b", 8, vec![HolderAction::Start]))] {
        let again = transition(&job, &claim("b", "r1"), NOW.plus(LEASE)).unwrap();
        assert!(again.is_silent() && again.run.is_empty() && again.job == job);
        for (who, asked) in [("b", "r2"), ("c", "r1")] {
            assert!(matches!(transition(&job, &claim(who, asked), NOW), Err(Refusal::NotClaimable(_))));
        }
    }
}

#[test]
fn whoever_lost_the_lease_is_fenced() {
    let report = holder("a", 7, vec![report()]);
    let expired = transition(&job_in(Stage::Building), &Command::Expire, NOW.plus(LEASE)).unwrap().job;
    let preempted = preempted(&job_in(Stage::Building));
    let cancelled = after(&job_in(Stage::Building), &operator(OperatorAction::Cancel));
    for job in [&expired, &preempted, &cancelled] {
        assert!(is_fenced(job, &report), "{}", job.stage());
    }
    for job in [expired, preempted] {
        assert_eq!(job.epoch, Epoch(8));
        assert!(is_fenced(&job, &holder("a", 7, vec![HolderAction::Renew { lease: LEASE }])));
    }
}

#[test]
fn the_holder_of_a_cancelled_job_learns_of_it_by_renewing() {
    let cancelled = after(&job_in(Stage::Building), &operator(OperatorAction::Cancel));
    let renew = HolderAction::Renew { lease: LEASE };
    let answer = transition(&cancelled, &holder("a", 7, vec![renew.clone()]), NOW).unwrap();
    assert!(answer.is_silent() && answer.job == cancelled);
    let with_spend = vec![spend(9), renew.clone()];
    let answer = transition(&cancelled, &holder("a", 7, with_spend), NOW).unwrap();
    assert!(answer.is_silent() && answer.job == cancelled, "what it spent comes with every renewal");
    assert!(was_cancelled(&cancelled, Epoch(7)) && !was_cancelled(&cancelled, Epoch(6)));
    let with_a_write = vec![HolderAction::Checkpoint(checkpoint()), renew.clone()];
    assert!(is_fenced(&cancelled, &holder("a", 7, with_a_write)), "but it cannot write");
    assert!(is_fenced(&cancelled, &holder("b", 7, vec![renew])));
}

#[test]
fn a_renewal_only_ever_adds_time() {
    let job = job_in(Stage::Building);
    let ends = |job: &Job| job.lease().unwrap().expires_at;
    let renew = |lease| holder("a", 7, vec![HolderAction::Renew { lease }]);
    let renewed = transition(&job, &renew(LEASE), NOW.plus(LEASE / 2)).unwrap();
    assert_eq!(ends(&renewed.job), NOW.plus(LEASE + LEASE / 2));
    assert!(renewed.is_silent() && renewed.job.rev == job.rev, "claims elsewhere must not notice it");
    assert_eq!(ends(&after(&renewed.job, &renew(LEASE / 10))), ends(&renewed.job));
}

#[test]
fn releases_and_preemptions_are_free_and_expiry_and_retries_are_not() {
    let job = job_in(Stage::Building);
    let release = holder("a", 7, vec![HolderAction::Release { checkpoint: Some(checkpoint()) }]);
    let expired = transition(&job, &Command::Expire, NOW.plus(LEASE)).unwrap().job;
    for (after, attempts) in [
        (after(&job, &release), 0),
        (preempted(&job), 0),
        (expired, 1),
        (after(&job, &holder("a", 7, vec![fail(true)])), 1),
        (after(&job, &holder("a", 7, vec![fail(false)])), 1),
    ] {
        assert_eq!(after.attempts, attempts, "{:?}", after.state);
    }
    assert_eq!(after(&job, &release).checkpoint, Some(checkpoint()));
}

#[test]
fn interrupted_work_keeps_its_checkpoint_and_its_turn() {
    let mut job = job_in(Stage::Building);
    job.checkpoint = Some(checkpoint());
    job.enqueued_at = NOW.minus(LEASE);
    for after in [
        preempted(&job),
        after(&job, &holder("a", 7, vec![fail(true)])),
        after(&job, &holder("a", 7, vec![HolderAction::Release { checkpoint: None }])),
    ] {
        assert_eq!((after.checkpoint, after.enqueued_at), (Some(checkpoint()), job.enqueued_at));
    }
}

#[test]
fn a_retry_waits_longer_each_time() {
    let mut job = job_in(Stage::Building);
    job.spec.retry = RetryPolicy { max: 10, backoff_ms: 1_000 };
    for (attempts, wait_ms) in [(0, 1_000), (1, 2_000), (2, 4_000), (9, 512_000)] {
        job.attempts = attempts;
        let State::Queued { ready_at, since, .. } = after(&job, &holder("a", 7, vec![fail(true)])).state
        else {
            panic!("not queued after {attempts}");
        };
        assert_eq!((since, ready_at.as_millis() - NOW.as_millis()), (NOW, wait_ms), "after {attempts}");
    }
}

#[test]
fn exhausted_retries_go_through_failed_to_dead_letter() {
    for (attempts, max) in [(0, 0), (3, 3), (4, 3)] {
        let mut job = job_in(Stage::Building);
        job.attempts = attempts;
        job.spec.retry.max = max;
        let failed = transition(&job, &holder("a", 7, vec![fail(true)]), NOW).unwrap();
        let expired = transition(&job, &Command::Expire, NOW.plus(LEASE)).unwrap();
        for (end, reason) in [(failed, FailReason::Infrastructure), (expired, FailReason::LeaseExpired)] {
            let steps: Vec<_> = end.events.iter().map(|event| (event.from, event.to)).collect();
            let expected = [
                (Some(Stage::Building), Some(Stage::Failed)),
                (Some(Stage::Failed), Some(Stage::DeadLetter)),
            ];
            assert_eq!(steps, expected);
            assert_eq!(end.job.failure().unwrap().reason, reason);
            assert_eq!((end.job.attempts, end.job.rev.0), (attempts + 1, 12));
        }
    }
    let mut last = job_in(Stage::Building);
    last.attempts = 2;
    assert_eq!(
        after(&last, &holder("a", 7, vec![fail(true)])).stage(),
        Stage::Queued,
        "three retries are three"
    );
}

fn failing(reason: FailReason, retryable: bool) -> Command {
    holder("a", 7, vec![HolderAction::Fail { failure: failure(reason), retryable }])
}

#[test]
fn the_manifest_may_ask_for_more_retries() {
    let mut job = job_in(Stage::Building);
    for reason in FailReason::RETRIED_ON_REQUEST {
        job.spec.retry_on.clear();
        assert_eq!(after(&job, &failing(reason, false)).stage(), Stage::Failed, "{reason}, unasked");
        job.spec.retry_on = vec![reason];
        let again = after(&job, &failing(reason, false));
        assert_eq!((again.stage(), again.attempts), (Stage::Queued, 1), "{reason}, as asked for");
        job.attempts = job.spec.retry.max;
        assert_eq!(
            after(&job, &failing(reason, false)).stage(),
            Stage::DeadLetter,
            "{reason}, the last time"
        );
        job.attempts = 0;
    }
    assert_eq!(after(&job, &failing(FailReason::BudgetExceeded, false)).stage(), Stage::Failed);
}

#[test]
fn the_last_failure_is_known_while_the_job_is_tried_again() {
    let job = job_in(Stage::Building);
    let waiting = after(&job, &failing(FailReason::Infrastructure, true));
    let setback = waiting.setback.clone().expect("it is tried again");
    assert_eq!((setback.failure, setback.unfit), (failure(FailReason::Infrastructure), Vec::new()));
    let late = NOW.plus(Duration::from_hours(1));
    let held = transition(&waiting, &claim("b", "again"), late).unwrap().job;
    assert!(held.setback.is_some(), "still, while the next attempt runs");
    let done = holder("b", held.epoch.0, vec![HolderAction::Start, report()]);
    assert_eq!(transition(&held, &done, late).unwrap().job.setback, None, "it worked");
    let gone = transition(&waiting, &operator(OperatorAction::Cancel), late).unwrap().job;
    assert_eq!(gone.setback, None, "nobody tries any more");
}

#[test]
fn a_machine_that_cannot_run_it_does_not_get_it_again() {
    for reason in [FailReason::NoEngine, FailReason::CapabilityMismatch] {
        let job = job_in(Stage::Building);
        let mut held = job.clone();
        held.last_factory = Some(factory("a"));
        let waiting = after(&held, &failing(reason, true));
        assert!(matches!(waiting.state, State::Queued { ready_at, .. } if ready_at == NOW), "no back-off");
        assert_eq!(waiting.unfit(), [factory("a")]);
        let refused = transition(&waiting, &claim("a", "again"), NOW);
        assert!(matches!(refused, Err(Refusal::NotClaimable(_))), "{refused:?}");
        let other = transition(&waiting, &claim("b", "again"), NOW).unwrap().job;
        let both = holder(
            "b",
            other.epoch.0,
            vec![HolderAction::Fail { failure: failure(reason), retryable: true }],
        );
        let both = transition(&other, &both, NOW).unwrap().job;
        assert_eq!(both.unfit(), [factory("a"), factory("b")]);
        // Whoever has seen to it says so.
        let requeued = transition(&both, &operator(OperatorAction::Requeue), NOW).unwrap();
        assert_eq!((requeued.job.unfit(), requeued.job.attempts, requeued.events.len()), (&[][..], 0, 1));
        assert!(transition(&requeued.job, &claim("a", "again"), NOW).is_ok());
        assert!(transition(&requeued.job, &operator(OperatorAction::Requeue), NOW).unwrap().is_silent());
    }
}

#[test]
fn events_count_the_attempts_and_say_how_a_process_ended() {
    let job = job_in(Stage::Building);
    let fail = |retryable| {
        let failure =
            Failure { reason: FailReason::Crash, detail: Some("exited with code 3: boom".to_owned()) };
        let command = holder("a", 7, vec![HolderAction::Fail { failure, retryable }]);
        transition(&job, &command, NOW).unwrap().events.remove(0).cause
    };
    assert_eq!(fail(false), "exited with code 3 (attempt 1); will not be retried");
    assert!(fail(true).starts_with("exited with code 3 (attempt 1 of 4); retrying at "), "{}", fail(true));
}

//! What holds for every queue and every fleet.

use std::collections::BTreeSet;
use std::time::Duration;

use giga_domain::{FactoryId, JobId, ScoreTerm, Timestamp};
use giga_scheduler::{JobView, Plan, ReadyQueue, explain, plan};
use proptest::prelude::*;

use crate::model::Model;
use crate::world::{NOW, World, job_id, minutes, queue, wide_worlds, worlds};

const ALL: usize = usize::MAX;

fn plan_of(world: &World, limit: usize) -> Plan {
    plan(&queue(world.jobs.clone()), &world.snapshot, NOW, &world.policy, limit)
}

fn pairs(plan: &Plan) -> Vec<(JobId, FactoryId)> {
    plan.placements.iter().map(|p| (p.job, p.factory.clone())).collect()
}

fn named(world: &World, id: JobId) -> &JobView {
    world.jobs.iter().find(|j| j.id == id).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn places_what_the_naive_planner_places(world in worlds(), limit in prop_oneof![Just(ALL), 0..8_usize]) {
        let expected = Model::new(&world.snapshot, &world.policy, NOW).plan(&world.jobs, limit);
        prop_assert_eq!(pairs(&plan_of(&world, limit)), expected);
    }

    /// Replays the plan against the naive filters: seats, keys and budgets are checked as they are used up.
    #[test]
    fn never_places_infeasibly_nor_any_job_twice(world in worlds()) {
        let plan = plan_of(&world, ALL);
        let mut model = Model::new(&world.snapshot, &world.policy, NOW);
        let mut seen = BTreeSet::new();
        for placement in &plan.placements {
            let job = named(&world, placement.job);
            let factory = world.snapshot.factories.iter().find(|f| f.id == placement.factory).unwrap();
            prop_assert!(seen.insert(job.id), "{} is placed twice", job.id);
            prop_assert!(model.feasible(job, factory), "{} cannot run on {}", job.id, factory.id);
            prop_assert_eq!(placement.rev, job.rev);
            model.take(job, &factory.id);
        }
    }

    #[test]
    fn a_score_is_the_sum_of_its_terms(world in worlds()) {
        let mut model = Model::new(&world.snapshot, &world.policy, NOW);
        for placement in plan_of(&world, ALL).placements {
            let job = named(&world, placement.job);
            let factory = world.snapshot.factories.iter().find(|f| f.id == placement.factory).unwrap();
            let terms = placement.score.terms;
            let (sum, starvation) =
                (terms.iter().map(|(_, value)| value).sum::<f64>(), terms[ScoreTerm::Starvation]);
            prop_assert!((placement.score.total - sum).abs() < 1e-9);
            prop_assert!((sum - starvation - model.score(job, factory)).abs() < 1e-9);
            prop_assert!(starvation <= 0.0);
            model.take(job, &factory.id);
        }
    }

    #[test]
    fn the_order_of_the_input_does_not_matter(
        (world, shuffled) in worlds().prop_flat_map(|world| {
            let shuffled = (
                Just(world.jobs.clone()).prop_shuffle(),
                Just(world.snapshot.factories.clone()).prop_shuffle(),
            );
            (Just(world), shuffled)
        })
    ) {
        let mut other = world.clone();
        (other.jobs, other.snapshot.factories) = shuffled;
        prop_assert_eq!(plan_of(&world, ALL), plan_of(&other, ALL));
    }

    /// A queue that lived through changes plans like one that was filled at once, whatever it was told of the time.
    #[test]
    fn a_queue_has_no_memory(
        world in worlds(),
        earlier in worlds(),
        settled in prop::collection::vec(0..90_u64, 0..3),
        gone in prop::collection::vec(1..60_u64, 0..20),
    ) {
        let start = NOW.minus(minutes(60));
        let mut lived = queue(earlier.jobs);
        for id in gone {
            lived.remove(job_id(id));
        }
        for minute in settled {
            lived.settle(start.plus(minutes(minute)));
        }
        for job in &world.jobs {
            lived.upsert(job.clone());
        }
        let wanted: BTreeSet<JobId> = world.jobs.iter().map(|j| j.id).collect();
        let leftover: Vec<JobId> = lived.iter().map(|j| j.id).filter(|id| !wanted.contains(id)).collect();
        for id in leftover {
            prop_assert!(lived.remove(id).is_some());
        }
        prop_assert_eq!(lived.len(), world.jobs.len());
        let lived = plan(&lived, &world.snapshot, NOW, &world.policy, ALL);
        prop_assert_eq!(pairs(&lived), pairs(&plan_of(&world, ALL)));
    }

    #[test]
    fn a_smaller_limit_gives_the_beginning_of_the_same_plan(world in worlds(), limit in 0..10_usize) {
        let (all, some) = (plan_of(&world, ALL), plan_of(&world, limit));
        let expected: Vec<_> = all.placements.iter().take(limit).cloned().collect();
        prop_assert_eq!(some.placements, expected);
    }

    #[test]
    fn a_freed_seat_never_costs_the_first_in_line_its_place(world in worlds(), pick in any::<prop::sample::Index>()) {
        let first = Model::new(&world.snapshot, &world.policy, NOW).first_in_line(&world.jobs);
        let is_placed = |world: &World| plan_of(world, ALL).placements.iter().any(|p| Some(p.job) == first);
        let mut freer = world.clone();
        if !freer.snapshot.factories.is_empty() {
            let at = pick.index(freer.snapshot.factories.len());
            let factory = &mut freer.snapshot.factories[at];
            factory.seats_used = factory.seats_used.saturating_sub(1);
        }
        prop_assert!(!is_placed(&world) || is_placed(&freer));
    }

    /// Every job that is not placed is accounted for, unless it waits for its time or for another's offer.
    #[test]
    fn what_is_not_placed_is_listed(world in worlds()) {
        let plan = plan_of(&world, ALL);
        let held_back = |j: &&JobView| {
            let until = j.offered_to.as_ref().map_or(j.ready_at, |(_, deadline)| j.ready_at.max(*deadline));
            until > NOW
        };
        let candidates = world.jobs.iter().filter(|j| !held_back(j)).count();
        let listed: usize = plan.unplaced.iter().map(|u| u.count).sum();
        prop_assert!(plan.placements.len() + listed >= candidates);
        prop_assert!(plan.placements.len() + listed <= world.jobs.len());
        for unplaced in &plan.unplaced {
            prop_assert!(!plan.placements.iter().any(|p| p.job == unplaced.job));
        }
    }

    /// The promise of an explanation is the plan itself.
    #[test]
    fn explain_promises_a_place_exactly_where_the_plan_gives_one(world in worlds()) {
        let queue = queue(world.jobs.clone());
        let plan = plan_of(&world, ALL);
        for job in &world.jobs {
            let explained = explain(job, &queue, &world.snapshot, NOW, &world.policy);
            let on_offer = job.offered_to.as_ref().is_some_and(|(_, deadline)| *deadline > NOW);
            match plan.placements.iter().find(|p| p.job == job.id) {
                Some(p) if !on_offer => {
                    let again = job.earlier.as_ref().map_or_else(String::new, |earlier| {
                        format!(" (attempt 2 of 4; the last one failed: {})", earlier.failure)
                    });
                    let placed = format!("would be placed on {} now", p.factory);
                    let said = &explained.summary;
                    prop_assert!(said.starts_with(&placed) && said.ends_with(&again), "{said}");
                    prop_assert!(explained.blockers.is_empty());
                }
                Some(_) => prop_assert!(explained.summary.starts_with("on offer to ")),
                None => {
                    prop_assert!(!explained.summary.starts_with("would be"), "{}", explained.summary);
                    prop_assert!(!explained.blockers.is_empty(), "{}", explained.summary);
                    prop_assert!(!explained.remedies.is_empty(), "{}", explained.summary);
                }
            }
        }
    }

    #[test]
    fn explain_rejects_where_the_filters_reject(world in worlds()) {
        let queue = ReadyQueue::new();
        let model = Model::new(&world.snapshot, &world.policy, NOW);
        for job in world.jobs.iter().take(5) {
            let explained = explain(job, &queue, &world.snapshot, NOW, &world.policy);
            prop_assert_eq!(explained.factories.len(), world.snapshot.factories.len());
            for verdict in explained.factories {
                let factory = world.snapshot.factories.iter().find(|f| f.id == verdict.factory_id).unwrap();
                prop_assert_eq!(verdict.feasible, model.feasible(job, factory));
                prop_assert_eq!(verdict.feasible, verdict.rejected_by.is_none());
                prop_assert_eq!(verdict.feasible, verdict.score.is_some());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_wide_fleet_is_planned_like_a_small_one(world in wide_worlds()) {
        let expected = Model::new(&world.snapshot, &world.policy, NOW).plan(&world.jobs, ALL);
        prop_assert_eq!(pairs(&plan_of(&world, ALL)), expected);
    }
}

/// Parked jobs are found by the time that is asked about, with and without settling, and also when a clock is set back.
#[test]
fn time_moves_jobs_and_settling_does_not() {
    let due = |minute: u64| NOW.plus(minutes(minute));
    let job = JobView { ready_at: due(10), ..crate::world::job(1) };
    let snapshot = crate::world::fleet([crate::world::factory("mac-1")]);
    let policy = giga_scheduler::Policy::default();
    let placed =
        |queue: &ReadyQueue, now: Timestamp| plan(queue, &snapshot, now, &policy, ALL).placements.len();
    let mut queue = queue([job]);
    for settle in [None, Some(due(5)), Some(due(10)), Some(due(60))] {
        if let Some(at) = settle {
            queue.settle(at);
        }
        assert_eq!(placed(&queue, due(10).minus(Duration::from_millis(1))), 0, "settled to {settle:?}");
        assert_eq!(placed(&queue, due(10)), 1, "settled to {settle:?}");
    }
}

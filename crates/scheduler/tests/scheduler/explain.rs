//! The texts that an operator reads at night, kept word for word.

use std::fmt::Write as _;

use giga_domain::budget::PerPeriod;
use giga_domain::job::Concurrency;
use giga_domain::{
    Access, Actor, Budget, BudgetChange, BudgetSettings, EngineChoice, EnginePick, FactoryState, Health,
    Priority, Usd,
};
use giga_scheduler::{
    Earlier, Explanation, FactoryView, JobView, Policy, ProductPolicy, ReadyQueue, Snapshot,
};

use crate::world::{
    NOW, after, before, capabilities, closed_engine, factory, factory_id, fleet, full, job, minutes,
    policy_of, product, queue, repo,
};

struct Situation {
    job: JobView,
    queue: ReadyQueue,
    snapshot: Snapshot,
    policy: Policy,
}

fn situation(job: JobView, factories: impl IntoIterator<Item = FactoryView>) -> Situation {
    Situation { queue: queue([job.clone()]), job, snapshot: fleet(factories), policy: Policy::default() }
}

impl Situation {
    fn explained(&self) -> Explanation {
        giga_scheduler::explain(&self.job, &self.queue, &self.snapshot, NOW, &self.policy)
    }

    fn rendered(&self) -> String {
        let explanation = self.explained();
        let mut text = format!("{}\n", explanation.summary);
        for blocker in explanation.blockers {
            let _ = write!(text, "\nblocked by {}: {}", blocker.code, blocker.message);
        }
        for remedy in explanation.remedies {
            let _ = write!(text, "\nto do: {}", remedy.message);
            if let Some(command) = remedy.command {
                let _ = write!(text, "\n       $ {command}");
            }
        }
        for verdict in explanation.factories {
            let _ = match (verdict.rejected_by, verdict.score) {
                (Some(rejected), _) => {
                    write!(text, "\n{}: {}: {}", verdict.factory_id, rejected.filter, rejected.detail)
                }
                (None, score) => write!(text, "\n{}: {:.3}", verdict.factory_id, score.unwrap_or(f64::NAN)),
            };
        }
        text
    }
}

macro_rules! golden {
    ($name:ident, $situation:expr) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!($situation.rendered());
        }
    };
}

fn wanting(tokens: &[&str]) -> JobView {
    JobView { capabilities: capabilities(tokens), ..job(1) }
}

fn with(tokens: &[&str], factory: FactoryView) -> FactoryView {
    FactoryView { capabilities: capabilities(tokens), ..factory }
}

golden!(nobody_has_the_capability, situation(wanting(&["build"]), [factory("linux-1"), factory("linux-2")]));

fn using(name: &str, has: &[&str], held: &[&str]) -> FactoryView {
    let mut factory = FactoryView { seat_limit: 9, seats_used: 1, ..with(has, factory(name)) };
    factory.units_used.take(&capabilities(held));
    factory
}

golden!(every_unit_is_in_use, {
    let gpus = |name| using(name, &["gpu:a100=2", "os:linux"], &["gpu:a100=2"]);
    situation(wanting(&["gpu:a100"]), [gpus("linux-1"), gpus("linux-2"), factory("linux-3")])
});

golden!(too_few_units_are_left, {
    situation(wanting(&["gpu:a100=2"]), [using("linux-1", &["gpu:a100=4"], &["gpu:a100=3"])])
});

golden!(more_units_than_there_are, {
    situation(wanting(&["gpu:a100=4"]), [using("linux-1", &["gpu:a100=2"], &["gpu:a100"])])
});

fn preferring(names: &[&str]) -> JobView {
    let engine = EngineChoice::new(names.iter().map(|name| EnginePick::named(*name)).collect());
    let needed = engine.single().map(|only| format!("engine:{}", only.name));
    JobView {
        engine,
        capabilities: capabilities(&needed.iter().map(String::as_str).collect::<Vec<_>>()),
        ..job(1)
    }
}

fn with_engines(name: &str, engines: &[&str], out_of_quota: &[&str]) -> FactoryView {
    let until = after(minutes(65));
    let closed = out_of_quota.iter().map(|engine| closed_engine(engine, Access::OutOfQuota { until }));
    let mut tokens: Vec<String> = engines.iter().map(|engine| format!("engine:{engine}")).collect();
    tokens.push("engine:any".to_owned());
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    FactoryView { closed: closed.collect(), ..with(&tokens, factory(name)) }
}

golden!(the_only_account_is_out_of_quota, {
    situation(
        preferring(&["claude"]),
        [with_engines("mac-1", &["claude", "codex"], &["claude"]), factory("linux-1")],
    )
});

golden!(every_account_is_out_of_quota, {
    let engines = &["claude", "codex"];
    situation(
        preferring(engines),
        [with_engines("mac-1", engines, engines), with_engines("mac-2", &["claude"], &["claude"])],
    )
});

golden!(any_engine_and_none_is_open, {
    let any = JobView { capabilities: capabilities(&["engine:any"]), ..job(1) };
    situation(any, [with_engines("mac-1", &["claude"], &["claude"])])
});

golden!(the_next_engine_of_the_list_takes_it, {
    situation(preferring(&["claude", "codex"]), [with_engines("mac-1", &["claude", "codex"], &["claude"])])
});

golden!(a_factory_with_the_preferred_engine_open_is_better, {
    let engines = &["claude", "codex"];
    situation(
        preferring(engines),
        [with_engines("mac-1", engines, &["claude"]), with_engines("mac-2", engines, &[])],
    )
});

golden!(none_of_the_engines_is_anywhere, {
    situation(preferring(&["claude", "codex"]), [factory("linux-1")])
});

golden!(the_engine_is_signed_out, {
    let signed_out = vec![closed_engine("claude", Access::SignedOut)];
    let mac = FactoryView { closed: signed_out, ..with(&["engine:codex", "engine:any"], factory("mac-1")) };
    situation(
        preferring(&["claude"]),
        [mac, with(&["engine:claude"], FactoryView { live: false, ..factory("mac-2") })],
    )
});

golden!(nobody_has_it_but_a_similar_one_exists, {
    let builders = with(&["os:linux", "has:build"], factory("linux-1"));
    situation(wanting(&["build"]), [builders, factory("linux-2")])
});

golden!(no_single_factory_has_all, {
    let mac = with(&["os:macos", "xcode", "engine:claude"], factory("mac-1"));
    let linux = with(&["os:linux", "gpu", "engine:claude"], factory("linux-1"));
    situation(wanting(&["engine:claude", "gpu", "xcode"]), [mac, linux])
});

golden!(no_factory_at_all, situation(job(1), []));

golden!(would_be_placed_now, situation(wanting(&["os:linux"]), [factory("linux-1"), full("linux-2")]));

golden!(
    next_in_line,
    situation(job(1), [full("mac-1"), FactoryView { state: FactoryState::Draining, ..factory("mac-2") }])
);

golden!(in_line_behind_others_for_a_seat, {
    let mut situation =
        situation(wanting(&["os:linux"]), [full("linux-1"), with(&["os:macos"], full("mac-1"))]);
    for number in 2..5 {
        situation.queue.upsert(JobView { priority: Priority::High, ..job(number) });
    }
    // Waits for another factory, so it is in nobody's way here.
    situation
        .queue
        .upsert(JobView { priority: Priority::High, ..JobView { id: job(9).id, ..wanting(&["os:macos"]) } });
    situation
});

golden!(jobs_ahead_take_the_free_seats, {
    let mut situation = situation(job(9), [factory("mac-1")]);
    for number in 1..4 {
        situation.queue.upsert(job(number));
    }
    situation
});

golden!(too_many_ahead_to_count, {
    let mut situation = situation(JobView { priority: Priority::Low, ..job(1) }, [full("mac-1")]);
    for number in 2..3_000 {
        situation.queue.upsert(job(number));
    }
    situation
});

golden!(not_ready_yet, situation(JobView { ready_at: after(minutes(95)), ..job(1) }, [factory("mac-1")]));

golden!(paused, {
    let policy = policy_of("demo", ProductPolicy { paused: true, ..ProductPolicy::default() });
    Situation { policy, ..situation(job(1), [factory("mac-1")]) }
});

/// With these limits (in dollars, of a day and in total), of which so much is spent and reserved.
fn budget(day: Option<i64>, total: Option<i64>, spent: i64, reserved: i64) -> Budget {
    let usd = Usd::from_dollars;
    let limits = PerPeriod { day: day.map(usd), total: total.map(usd), ..PerPeriod::default() };
    let mut budget = Budget::new(product("demo"));
    budget.settings = BudgetSettings { limits, job_cap: None };
    budget.reserved = usd(reserved);
    budget.charge(usd(spent), 0, NOW);
    budget
}

fn with_budget(cap: Option<i64>, budget: &Budget) -> Situation {
    let job = JobView { cost_cap: cap.map(Usd::from_dollars), ..job(1) };
    let policy = policy_of("demo", ProductPolicy::new(None, Some(budget), NOW));
    Situation { policy, ..situation(job, [factory("mac-1")]) }
}

golden!(three_dollars_short, with_budget(Some(5), &budget(Some(20), None, 15, 3)));

golden!(three_dollars_short_and_no_period_ends, with_budget(Some(5), &budget(None, Some(20), 18, 0)));

golden!(two_limits_are_too_low, with_budget(Some(5), &budget(Some(20), Some(21), 18, 0)));

golden!(the_day_is_over_budget, with_budget(None, &budget(Some(20), None, 21, 0)));

golden!(all_is_reserved, with_budget(None, &budget(Some(20), None, 5, 15)));

golden!(no_limit_is_high_enough_for_the_job, with_budget(Some(50), &budget(Some(20), None, 0, 0)));

golden!(paused_by_somebody_with_a_reason, {
    let mut budget = budget(Some(20), None, 0, 0);
    let pause = BudgetChange::Pause { reason: Some("the engine loops".to_owned()) };
    budget.change(&pause, &Actor::system("test"), NOW);
    with_budget(None, &budget)
});

#[test]
fn the_advised_limits_place_the_job() {
    for (day, total, spent, reserved, cap) in [
        (Some(20), None, 15, 3, Some(5)),
        (Some(20), Some(21), 18, 0, Some(5)),
        (Some(20), None, 21, 0, None),
        (Some(20), None, 5, 15, None),
        (Some(20), Some(10), 0, 0, Some(50)),
    ] {
        let mut budget = budget(day, total, spent, reserved);
        let remedies = with_budget(cap, &budget).explained().remedies;
        let command = remedies[0].command.clone().unwrap();
        let mut words = command.strip_prefix("giga budget set demo ").unwrap().split(' ');
        let mut settings = budget.settings;
        while let (Some(period), Some(usd)) = (words.next(), words.next()) {
            let limit = match period {
                "--day" => &mut settings.limits.day,
                "--total" => &mut settings.limits.total,
                other => panic!("{other}"),
            };
            *limit = Some(usd.parse().unwrap());
        }
        budget.change(&BudgetChange::Set(settings), &Actor::system("test"), NOW);
        assert_eq!(with_budget(cap, &budget).explained().blockers, [], "{command}");
    }
}

golden!(budget_used_up, {
    let policy =
        policy_of("demo", ProductPolicy { budget_left: Some(Usd::ZERO), ..ProductPolicy::default() });
    Situation { policy, ..situation(job(1), [factory("mac-1")]) }
});

golden!(concurrency_key_is_held, {
    let concurrency = Some(Concurrency { key: "repo:hello".to_owned(), limit: 1 });
    let mut situation = situation(JobView { concurrency, ..job(1) }, [factory("mac-1")]);
    situation.snapshot.running_by_key.insert((product("demo"), "repo:hello".to_owned()), 1);
    situation
});

golden!(a_job_ahead_takes_the_key, {
    let concurrency = Some(Concurrency { key: "repo:hello".to_owned(), limit: 1 });
    let older = JobView { enqueued_at: before(minutes(9)), concurrency: concurrency.clone(), ..job(2) };
    let mut situation = situation(JobView { concurrency, ..job(1) }, [factory("mac-1")]);
    situation.queue.upsert(older);
    situation
});

golden!(on_offer, {
    let job = JobView { offered_to: Some((factory_id("mac-1"), after(minutes(1)))), ..job(1) };
    situation(job, [factory("mac-1"), factory("mac-2")])
});

golden!(left_out_after_a_missed_pickup, {
    let job = JobView { excluded: vec![(factory_id("mac-1"), after(minutes(2)))], ..job(1) };
    situation(job, [factory("mac-1")])
});

golden!(
    the_only_one_is_draining,
    situation(job(1), [FactoryView { state: FactoryState::Draining, ..factory("mac-1") }])
);

golden!(silent_and_down, {
    let silent = FactoryView { live: false, ..factory("mac-1") };
    let down = FactoryView { health: Health::Down, ..factory("mac-2") };
    situation(job(1), [silent, down])
});

golden!(repo_is_nowhere, {
    let job = JobView { repo: Some("https://example.org/team/helo.git".to_owned()), ..job(1) };
    situation(job, [FactoryView { repos: vec![repo("hello")], ..factory("mac-1") }, factory("mac-2")])
});

golden!(a_url_that_nobody_may_clone, {
    let job = JobView { repo: Some("https://example.org/team/app.git".to_owned()), ..job(1) };
    let clones = vec!["https://example.org/other".to_owned()];
    situation(job, [FactoryView { can_clone: true, clones, ..factory("mac-1") }])
});

golden!(a_name_that_nobody_has, {
    let clones = vec!["https://example.org/".to_owned()];
    let clones = FactoryView { can_clone: true, clones, ..factory("mac-1") };
    situation(JobView { repo: Some("app".to_owned()), ..job(1) }, [clones])
});

golden!(a_prompt_where_only_the_shell_is, situation(wanting(&["engine:any"]), [factory("mac-1")]));

fn tried(unfit: &[&str]) -> JobView {
    let earlier = Earlier {
        next: 2,
        of: 4,
        failure: "exited with code 3: boom".to_owned(),
        unfit: unfit.iter().copied().map(factory_id).collect(),
    };
    JobView { earlier: Some(Box::new(earlier)), ..job(1) }
}

golden!(backing_off_after_a_failure, {
    situation(JobView { ready_at: after(minutes(1)), ..tried(&[]) }, [factory("mac-1")])
});

golden!(a_second_attempt, situation(tried(&[]), [factory("mac-1")]));

golden!(the_only_one_could_not_run_it, situation(tried(&["mac-1"]), [factory("mac-1")]));

golden!(another_one_gets_it, situation(tried(&["mac-1"]), [factory("mac-1"), factory("mac-2")]));

golden!(product_is_not_admitted, {
    let other = FactoryView { products: vec![product("other")], ..factory("mac-1") };
    situation(job(1), [other])
});

golden!(the_closest_needs_two_changes, {
    let draining = FactoryView { state: FactoryState::Draining, ..full("linux-1") };
    let far = FactoryView { live: false, ..with(&["os:macos"], factory("mac-1")) };
    situation(wanting(&["os:linux"]), [far, draining])
});

golden!(the_budget_goes_to_a_job_ahead, {
    let capped = |number| JobView { cost_cap: Some(Usd::from_dollars(2)), ..job(number) };
    let policy = policy_of(
        "demo",
        ProductPolicy { budget_left: Some(Usd::from_dollars(3)), ..ProductPolicy::default() },
    );
    let mut situation = Situation { policy, ..situation(capped(2), [factory("mac-1")]) };
    situation.queue.upsert(capped(1));
    situation
});

golden!(a_dry_run_of_a_job_that_is_not_queued, {
    let queue = queue([JobView { priority: Priority::High, ..job(2) }]);
    Situation { queue, ..situation(job(1), [factory("mac-1"), with(&["os:macos"], factory("mac-2"))]) }
});

golden!(several_things_at_once, {
    let job =
        JobView { repo: Some("notes".to_owned()), ready_at: after(minutes(3)), ..wanting(&["os:linux"]) };
    let draining = FactoryView { state: FactoryState::Draining, can_clone: true, ..full("linux-1") };
    situation(job, [draining, factory("linux-2"), with(&["os:macos"], factory("mac-1"))])
});

/// The wire shape: names and nesting that outside clients rely on.
#[test]
fn as_json() {
    let used = giga_domain::factory::FactoryRepo { last_used_at: Some(before(minutes(0))), ..repo("hello") };
    let warm = FactoryView { repos: vec![used], cost_per_hour: Some(Usd::ZERO), ..factory("linux-1") };
    let dear = FactoryView {
        can_clone: true,
        health: Health::Degraded,
        cost_per_hour: Some(Usd::from_micros(5)),
        ..factory("linux-2")
    };
    let gone = FactoryView { live: false, ..factory("linux-3") };
    let job = JobView { repo: Some("hello".to_owned()), last_factory: Some(factory_id("linux-2")), ..job(1) };
    insta::assert_json_snapshot!(situation(job, [gone, dear, warm]).explained());
}

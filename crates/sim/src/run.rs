//! One seed from its beginning to its verdict: set up, storm, calm, evidence.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use giga_coordinator::{AddWebhook, Coordinator, Error};
use giga_domain::budget::PerPeriod;
use giga_domain::factory::FactoryScope;
use giga_domain::topic::TopicStage;
use giga_domain::{
    Actor, BudgetChange, BudgetSettings, EffectTarget, Event, EventKind, FeedPos, JobId, ProductSettings,
    Stage,
};
use giga_ports::store::{EffectFilter, JobFilter};
use giga_ports::{Clock, TopicStore};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::actors::{Cluster, Host, Operator, Producer, Provider, Reader, Submitter, Worker};
use crate::bug::Bug;
use crate::check::{Evidence, Standing, Violation, check, wants};
use crate::history::Record;
use crate::prng::Prng;
use crate::scenario::{Rules, Scenario};
use crate::turnstile::{Released, Verdict};
use crate::world::{Address, World};

/// How long everything may take to come to rest after the last fault: a merge is its holder's for most of a minute, and others
/// wait for it.
const CALM: Duration = Duration::from_mins(3);
/// How much longer what waits in the outbox may take: a receiver that failed is left alone for minutes, and what a sender
/// had taken when it died is nobody's for one.
const TELLING: Duration = Duration::from_mins(7);
const STEP: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub struct Outcome {
    pub seed: u64,
    pub violations: Vec<Violation>,
    /// Empty unless it was asked for.
    pub trace: Vec<String>,
    pub tally: Tally,
}

/// How much happened: a simulation in which nothing happens finds nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub steps: u64,
    pub faults: u64,
    pub grants: u64,
    pub expiries: u64,
    pub offers: u64,
    pub terms: u64,
    pub ended: u64,
    pub topic_grants: u64,
    /// Holders that were none any more and tried to write.
    pub fenced: u64,
    /// Leaders that were none any more and tried to offer.
    pub stale_terms: u64,
    pub charges: u64,
    pub evictions: u64,
    /// Jobs that are children of others.
    pub children: u64,
    /// What receivers were sent.
    pub effects: u64,
    pub questions: u64,
    /// Of those, given up because nobody answered in time.
    pub unanswered: u64,
    /// Seats that were given up for a question.
    pub parked: u64,
    /// Runs that a closed account ended.
    pub quota: u64,
}

impl Tally {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            steps: self.steps + other.steps,
            faults: self.faults + other.faults,
            grants: self.grants + other.grants,
            expiries: self.expiries + other.expiries,
            offers: self.offers + other.offers,
            terms: self.terms + other.terms,
            ended: self.ended + other.ended,
            topic_grants: self.topic_grants + other.topic_grants,
            fenced: self.fenced + other.fenced,
            stale_terms: self.stale_terms + other.stale_terms,
            charges: self.charges + other.charges,
            evictions: self.evictions + other.evictions,
            children: self.children + other.children,
            effects: self.effects + other.effects,
            questions: self.questions + other.questions,
            unanswered: self.unanswered + other.unanswered,
            parked: self.parked + other.parked,
            quota: self.quota + other.quota,
        }
    }
}

/// How much of a trace is shown with a violation.
const LAST_LINES: usize = 60;
/// One fault often breaks several promises; the first few tell enough.
const FIRST_VIOLATIONS: usize = 5;

/// What a person needs who has to find out why: the end of the trace, the violation, and how to see all of it.
pub fn report(seed: u64, bug: Option<Bug>) -> String {
    let outcome = run(seed, bug, true);
    let from = outcome.trace.len().saturating_sub(LAST_LINES);
    let mut lines: Vec<String> = outcome.trace[from..].to_vec();
    let violations = outcome.violations.iter().take(FIRST_VIOLATIONS);
    lines.extend(violations.map(|violation| format!("seed {seed}: {violation}")));
    let bug = bug.map(|bug| format!(" --bug {bug}")).unwrap_or_default();
    lines.push(format!("replay it with: cargo run -p giga-sim --release -- --seed {seed}{bug} --trace"));
    lines.join("\n")
}

/// Plays one seed. The same seed gives the same outcome, line by line.
pub fn run(seed: u64, bug: Option<Bug>, keep_trace: bool) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O needs nothing from the operating system");
    runtime.block_on(play(seed, bug, keep_trace))
}

/// Plays the seeds from `first` on, on up to two threads, and stops early at `enough` seeds with a violation.
pub fn run_many(first: u64, count: u64, bug: Option<Bug>, enough: usize) -> (Tally, Vec<Outcome>) {
    let next = AtomicU64::new(first);
    let failed = Mutex::new((Tally::default(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    let outcome = run(seed, bug, false);
                    let mut failed = failed.lock();
                    failed.0 = failed.0.plus(outcome.tally);
                    if !outcome.violations.is_empty() {
                        failed.1.push(outcome);
                    }
                    if failed.1.len() >= enough {
                        return;
                    }
                }
            });
        }
    });
    let (tally, mut outcomes) = failed.into_inner();
    outcomes.sort_by_key(|outcome| outcome.seed);
    (tally, outcomes)
}

async fn play(seed: u64, bug: Option<Bug>, keep_trace: bool) -> Outcome {
    let mut prng = Prng::new(seed);
    let scenario = Scenario::of(&mut prng);
    let world = Arc::new(World::new(scenario, bug, keep_trace));
    world.trace.note(|| format!("seed {seed}: {:?}", world.scenario));
    let steps = Arc::new(Steps::default());
    let conductor = tokio::spawn(conduct(world.clone(), prng.fork(), steps.clone()));
    for slot in 0..world.scenario.coordinators {
        tokio::spawn(Cluster { world: world.clone(), slot, prng: prng.fork() }.run());
    }
    set_up(&world).await;
    for plan in world.scenario.factories.clone() {
        tokio::spawn(Host { world: world.clone(), plan, prng: prng.fork() }.run());
    }
    let submitting = tokio::spawn(Submitter::new(world.clone(), prng.fork()).run());
    let producing = tokio::spawn(Producer { world: world.clone(), prng: prng.fork() }.run());
    for number in 1..=world.scenario.topic_workers {
        tokio::spawn(Worker { world: world.clone(), number, prng: prng.fork() }.run());
    }
    tokio::spawn(Operator { world: world.clone(), prng: prng.fork() }.run());
    tokio::spawn(Provider { world: world.clone(), prng: prng.fork() }.run());
    tokio::spawn(Reader { world: world.clone(), prng: prng.fork() }.run());

    world.set_stormy(true);
    tokio::time::sleep(world.scenario.storm).await;
    world.set_stormy(false);
    world.turnstile.resume_all();
    world.trace.note(|| "the storm is over".to_owned());
    // Promises about time count from when there is somebody to keep them.
    for slot in 0..world.scenario.coordinators {
        address(&world, slot).await;
    }
    let calm_since = world.clock.now();
    let deadline = Instant::now() + CALM;
    let evidence = loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let waits = world.reads().effect_counts().await.is_ok_and(|counts| counts.pending > 0);
        let given_up = Instant::now() >= if waits { deadline + TELLING } else { deadline };
        let all_is_sent = submitting.is_finished() && producing.is_finished();
        if !given_up && (!all_is_sent || !is_at_rest(&world).await) {
            continue;
        }
        let explained = explain_all(&world).await;
        // An operator's late word may have moved something while explanations were asked for.
        if given_up || is_at_rest(&world).await {
            // Nothing else runs until everything is gathered: a look at the memory store waits for nobody.
            break gather(&world, calm_since, explained).await;
        }
    };
    conductor.abort();
    // The world knows the coordinators and they know the world: somebody has to let go.
    for slot in 0..world.scenario.coordinators {
        world.set_address(slot, None);
    }
    let violations = check(&evidence);
    for violation in &violations {
        world.trace.note(|| violation.to_string());
    }
    let tally = tally(&evidence, &steps, world.history.turned_away());
    Outcome { seed, violations, trace: world.trace.take(), tally }
}

#[derive(Debug, Default)]
struct Steps {
    all: AtomicU64,
    faults: AtomicU64,
}

/// Lets one call through at a time. Time passes only when nobody can do anything else, so each choice is made among all
/// the calls that there could be.
async fn conduct(world: Arc<World>, mut prng: Prng, steps: Arc<Steps>) {
    loop {
        tokio::time::sleep(STEP).await;
        match world.turnstile.release(&mut prng, &world.rates()) {
            Released::One { node, what, verdict } => {
                steps.all.fetch_add(1, Ordering::Relaxed);
                if matches!(verdict, Verdict::FailBefore | Verdict::FailAfter) {
                    steps.faults.fetch_add(1, Ordering::Relaxed);
                    world.trace.note(|| format!("n{} {what}: {verdict:?}", node.0));
                }
            }
            Released::Stuck { node, what, time } => {
                world.trace.note(|| format!("n{} {what} is stuck for {time:?}", node.0));
            }
            Released::Nobody { until: Some(end) } => {
                tokio::select! {
                    biased;
                    () = world.turnstile.arrival() => {}
                    () = tokio::time::sleep_until(end) => {}
                }
            }
            Released::Nobody { until: None } => world.turnstile.arrival().await,
        }
    }
}

/// Waits for the coordinator in this place, where it is down.
async fn address(world: &World, slot: usize) -> Address {
    loop {
        match world.address(slot) {
            Some(address) => return address,
            None => tokio::time::sleep(STEP).await,
        }
    }
}

/// Before the storm everything works, so an error here is a bug of the simulation.
async fn set_up(world: &World) {
    let one = address(world, 0).await.coordinator;
    let scenario = &world.scenario;
    let flags = [
        ("lease_ms", scenario.lease),
        ("topic_lease_ms", scenario.topic_lease),
        ("pickup_ms", scenario.pickup),
        ("heartbeat_interval_ms", scenario.heartbeat),
        ("eviction_grace_ms", scenario.rules.eviction_grace),
    ];
    let people = Actor::system("people");
    for (name, value) in flags {
        let millis = value.as_millis() as u64;
        one.set_flag(name, millis.into(), people.clone())
            .await
            .expect("the flag exists and nothing fails yet");
    }
    for plan in &scenario.factories {
        let enrolled = one.enroll(plan.id.clone(), FactoryScope::default(), people.clone()).await;
        enrolled.expect("the factory is new and nothing fails yet");
        let flag = format!("delivery.{}", plan.id);
        let set = one.set_flag(&flag, plan.delivery.as_str().into(), people.clone()).await;
        set.expect("the factory is known and nothing fails yet");
    }
    set_rules(&one, &scenario.rules, &people).await.expect("all of this is allowed and nothing fails yet");
}

async fn set_rules(one: &Coordinator, rules: &Rules, people: &Actor) -> Result<(), Error> {
    one.set_flag("preemption", rules.preemption.into(), people.clone()).await?;
    one.set_flag("max_evictions", rules.max_evictions.into(), people.clone()).await?;
    for (product, share) in rules.products.iter().zip([1.0, 3.0]) {
        if rules.products.len() > 1 {
            let settings = ProductSettings { share, ..ProductSettings::default() };
            one.set_product(product.clone(), settings, None, people.clone()).await?;
        }
        if let Some(money) = rules.money {
            let limits = PerPeriod { day: money.day, total: money.total, ..PerPeriod::default() };
            let settings = BudgetSettings { limits, job_cap: money.job };
            one.change_budget(product.clone(), BudgetChange::Set(settings), None, people.clone()).await?;
        }
    }
    for number in 0..rules.webhooks {
        // The first wants everything of everybody, the second what becomes of one product's jobs.
        let kinds = match number {
            0 => Vec::new(),
            _ => vec![EventKind::Submitted, EventKind::Shipped, EventKind::Failed, EventKind::Cancelled],
        };
        let add = AddWebhook {
            product: (number > 0).then(|| rules.products[0].clone()),
            url: format!("https://example.org/{number}"),
            kinds,
            actor: people.clone(),
        };
        one.effects().add_webhook(add).await?;
    }
    Ok(())
}

async fn is_at_rest(world: &World) -> bool {
    let jobs = world.reads().list_jobs(&JobFilter::default(), None, usize::MAX).await.unwrap_or_default();
    let budgets = world.reads().budgets().await.unwrap_or_default();
    let standing = Standing::of(&jobs, &budgets, &world.scenario, world.clock.now());
    let moving = jobs
        .iter()
        .any(|job| matches!(job.stage(), Stage::Testing | Stage::Review) || standing.is_moving(job));
    let head = world.reads().feed_head().await.unwrap_or_default();
    let topics = world.topics.topics().await.unwrap_or_default();
    let open = |stage: TopicStage| topics.iter().any(|topic| topic.count(stage) > 0);
    let topics_move = open(TopicStage::Scheduled) || open(TopicStage::Ready) || open(TopicStage::Running);
    !moving && !topics_move && world.history.read_until() == head && is_all_delivered(world).await
}

/// Everything that somebody subscribed to is in the outbox, and nothing is left to be sent.
async fn is_all_delivered(world: &World) -> bool {
    if world.scenario.rules.webhooks == 0 {
        return true;
    }
    let counts = world.reads().effect_counts().await.unwrap_or_default();
    if counts.pending > 0 {
        return false;
    }
    let events = world.reads().feed(FeedPos::ZERO, usize::MAX).await.unwrap_or_default();
    let webhooks = world.reads().webhooks().await.unwrap_or_default();
    let outbox = world.reads().effects(&EffectFilter::default(), None, usize::MAX).await.unwrap_or_default();
    webhooks.iter().all(|webhook| {
        let target = EffectTarget::Webhook(webhook.id);
        let effects = outbox.iter().filter(|effect| effect.target == target).count();
        events.iter().filter(|event| wants(webhook, event)).count() <= effects
    })
}

async fn explain_all(world: &World) -> BTreeMap<JobId, String> {
    let mut explained = BTreeMap::new();
    let jobs = world.reads().list_jobs(&JobFilter::default(), None, usize::MAX).await.unwrap_or_default();
    for job in jobs.iter().filter(|job| !job.stage().is_terminal()) {
        let one = address(world, 0).await.coordinator;
        if let Ok((_, explanation)) = one.explain(job.id).await {
            explained.insert(job.id, explanation.summary);
        }
    }
    explained
}

async fn gather(
    world: &World,
    calm_since: giga_domain::Timestamp,
    explained: BTreeMap<JobId, String>,
) -> Evidence {
    // What was committed since the reader's last look it finds when it resumes.
    let rest = world.reads().feed(world.history.read_until(), usize::MAX).await.unwrap_or_default();
    world.history.add_read(rest);
    let (records, read) = world.history.take();
    let topic_counts = world.topics.topics().await.unwrap_or_default();
    let mut topic_jobs = Vec::new();
    for topic in &topic_counts {
        for stage in TopicStage::ALL {
            let page = world.topics.list(&topic.key, stage, None, usize::MAX).await;
            topic_jobs.extend(page.unwrap_or_default());
        }
    }
    let events: Vec<Event> = world.reads().feed(FeedPos::ZERO, usize::MAX).await.unwrap_or_default();
    let jobs = world.reads().list_jobs(&JobFilter::default(), None, usize::MAX).await.unwrap_or_default();
    let (mut runs, mut charges) = (Vec::new(), Vec::new());
    for job in &jobs {
        runs.extend(world.reads().runs(job.id).await.unwrap_or_default());
        charges.extend(world.reads().charges(job.id).await.unwrap_or_default());
    }
    let effects = world.reads().effects(&EffectFilter::default(), None, usize::MAX).await;
    Evidence {
        scenario: world.scenario.clone(),
        records,
        read,
        events,
        jobs,
        explained,
        topic_jobs,
        runs,
        queues: world.reads().queue_states().await.unwrap_or_default(),
        topic_counts,
        budgets: world.reads().budgets().await.unwrap_or_default(),
        charges,
        webhooks: world.reads().webhooks().await.unwrap_or_default(),
        effects: effects.unwrap_or_default(),
        branches: world.repositories.all(),
        calm_since,
        ended_at: world.clock.now(),
    }
}

fn tally(evidence: &Evidence, steps: &Steps, (fenced, stale_terms): (u64, u64)) -> Tally {
    let kinds = |kind: EventKind| evidence.events.iter().filter(|event| event.kind == kind).count() as u64;
    let topic_grants = evidence.records.iter().filter(|r| matches!(r, Record::TopicAssigned { .. })).count();
    Tally {
        steps: steps.all.load(Ordering::Relaxed),
        faults: steps.faults.load(Ordering::Relaxed),
        grants: kinds(EventKind::Assigned),
        expiries: kinds(EventKind::LeaseExpired),
        offers: kinds(EventKind::Targeted),
        terms: kinds(EventKind::LeaderChanged),
        ended: evidence.jobs.iter().filter(|job| job.stage().is_terminal()).count() as u64,
        topic_grants: topic_grants as u64,
        fenced,
        stale_terms,
        charges: evidence.charges.len() as u64,
        evictions: kinds(EventKind::Preempted),
        children: evidence.jobs.iter().filter(|job| job.spec.parent.is_some()).count() as u64,
        effects: evidence.effects.len() as u64,
        questions: kinds(EventKind::QuestionAsked),
        unanswered: kinds(EventKind::QuestionExpired),
        parked: kinds(EventKind::Parked),
        quota: kinds(EventKind::AccountClosed),
    }
}

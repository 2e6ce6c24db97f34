//! How fast a plan is, how that grows, and what a single claim costs. Run with
//! `cargo bench -p giga-scheduler --bench plan`.
//!
//! The workload never leaves a random choice to the machine: the same seed makes the same fleet and queue everywhere.
//! `Workload` and `Measured` know nothing of how they are printed, so that a command can show the same figures.

#![expect(clippy::print_stdout, reason = "a bench prints its table")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use giga_domain::factory::FactoryRepo;
use giga_domain::job::Concurrency;
use giga_domain::{
    CapabilitySet, EngineChoice, EnginePick, FactoryId, FactoryState, Health, JobId, Priority, Rev,
    Timestamp, Usd,
};
use giga_scheduler::{FactoryView, JobView, Policy, ReadyQueue, Snapshot, explain, plan};

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const RUNS: usize = 5;
const PRODUCTS: usize = 40;
const SHAPES: usize = 400;
const FACTORIES: usize = 2_000;

fn main() {
    let header = ["case", "jobs", "factories", "shapes", "placed", "plan ms (range)", "placed/s", "us/job"];
    println!(
        "{:<8} {:>8} {:>9} {:>6} {:>8} {:>24} {:>10} {:>7}",
        header[0], header[1], header[2], header[3], header[4], header[5], header[6], header[7]
    );
    let roomy = |jobs| Workload { jobs, factories: FACTORIES, seats: 52..=64, own_keys: false };
    let small = report("roomy", &roomy(10_000));
    let large = report("roomy", &roomy(100_000));
    report("starved", &Workload { seats: 1..=4, ..roomy(100_000) });
    let keyed = Workload { own_keys: true, ..roomy(100_000) };
    report("keyed", &keyed);
    println!();
    println!("growth of the time per placed job, 10k to 100k jobs: {:.2}x", large / small);
    report_claims("few shapes", &roomy(100_000));
    report_claims("a shape per job", &keyed);
    report_explain(&roomy(100_000));
    println!(
        "peak resident memory: {}",
        peak_memory().unwrap_or_else(|| "not known on this system".to_owned())
    );
}

/// Prints one line and returns the microseconds per placed job.
fn report(case: &str, workload: &Workload) -> f64 {
    let (queue, snapshot) = (workload.queue(), workload.snapshot());
    let policy = Policy::default();
    let mut placed = 0;
    let times = Measured::of(RUNS, || {
        let plan = plan(&queue, &snapshot, NOW, &policy, usize::MAX);
        placed = black_box(plan).placements.len();
    });
    let per_job = times.median.as_secs_f64() * 1e6 / placed.max(1) as f64;
    println!(
        "{case:<8} {:>8} {:>9} {:>6} {placed:>8} {:>24} {:>10.0} {per_job:>7.2}",
        queue.len(),
        snapshot.factories.len(),
        queue.shapes(),
        times.in_millis(),
        placed as f64 / times.median.as_secs_f64(),
    );
    per_job
}

/// What a polling factory costs: one placement out of the whole queue, with only itself in the snapshot.
fn report_claims(case: &str, workload: &Workload) {
    let queue = workload.queue();
    let policy = Policy::default();
    let claims: Vec<Snapshot> =
        workload.snapshot().factories.into_iter().take(200).map(|f| snapshot_of(vec![f])).collect();
    let times = Measured::of(RUNS, || {
        for snapshot in &claims {
            black_box(plan(&queue, snapshot, NOW, &policy, 1));
        }
    });
    let micros = |total: Duration| total.as_secs_f64() * 1e6 / claims.len() as f64;
    println!(
        "claim, {case} (limit 1, one factory, {} queued): {:.1} us ({:.1} to {:.1})",
        queue.len(),
        micros(times.median),
        micros(times.fastest),
        micros(times.slowest)
    );
    // The worst claim: a factory that can run nothing makes the plan look at every shape.
    let mut useless = claims[0].clone();
    useless.factories[0].capabilities = CapabilitySet::new();
    let times = Measured::of(RUNS, || {
        for _ in 0..100 {
            black_box(plan(&queue, &useless, NOW, &policy, 1));
        }
    });
    println!(
        "claim, {case}, by a factory that fits nothing: {:.1} us",
        times.median.as_secs_f64() * 1e6 / 100.0
    );
}

/// The worst job to explain: the last in line.
fn report_explain(workload: &Workload) {
    let (queue, snapshot) = (workload.queue(), workload.snapshot());
    let youngest = queue.iter().max_by_key(|job| (job.priority, job.enqueued_at));
    let job = youngest.expect("the workload has jobs");
    let times = Measured::of(RUNS, || {
        black_box(explain(job, &queue, &snapshot, NOW, &Policy::default()));
    });
    println!("explain the last of {}: {} ms", queue.len(), times.in_millis());
}

struct Measured {
    median: Duration,
    fastest: Duration,
    slowest: Duration,
}

impl Measured {
    fn of(runs: usize, mut work: impl FnMut()) -> Self {
        let mut times: Vec<Duration> = (0..runs)
            .map(|_| {
                let start = Instant::now();
                work();
                start.elapsed()
            })
            .collect();
        times.sort_unstable();
        Self { median: times[runs / 2], fastest: times[0], slowest: times[runs - 1] }
    }

    fn in_millis(&self) -> String {
        let ms = |d: Duration| d.as_secs_f64() * 1e3;
        format!("{:.1} ({:.1} to {:.1})", ms(self.median), ms(self.fastest), ms(self.slowest))
    }
}

struct Workload {
    jobs: usize,
    factories: usize,
    seats: std::ops::RangeInclusive<usize>,
    /// Every job has a concurrency key to itself and thereby a shape.
    own_keys: bool,
}

impl Workload {
    fn queue(&self) -> ReadyQueue {
        let mut random = Random(7);
        let shapes: Vec<JobView> = (0..SHAPES).map(|at| shape(at, &mut random)).collect();
        let mut queue = ReadyQueue::new();
        for at in 0..self.jobs {
            // Squared, so that some shapes are common and some are rare.
            let pick = random.below(SHAPES) * random.below(SHAPES) / SHAPES;
            let enqueued_at = NOW.minus(Duration::from_millis(random.below(7_200_000) as u64));
            let last_factory = (random.below(10) == 0).then(|| factory_id(random.below(self.factories)));
            let excluded = match random.below(100) {
                0 => vec![(factory_id(random.below(self.factories)), NOW.plus(Duration::from_mins(1)))],
                _ => Vec::new(),
            };
            let own_key = self.own_keys.then(|| Concurrency { key: format!("job-{at}"), limit: 1 });
            queue.upsert(JobView {
                id: JobId::from_parts(enqueued_at, at as u128),
                enqueued_at,
                ready_at: enqueued_at,
                last_factory,
                excluded,
                concurrency: own_key.or_else(|| shapes[pick].concurrency.clone()),
                ..shapes[pick].clone()
            });
        }
        queue
    }

    fn snapshot(&self) -> Snapshot {
        let mut random = Random(11);
        snapshot_of((0..self.factories).map(|at| self.factory(at, &mut random)).collect())
    }

    fn factory(&self, at: usize, random: &mut Random) -> FactoryView {
        let mut tokens = vec!["os:linux", "arch:x86_64", "engine:shell", "has:git"];
        let extras =
            [("engine:claude", 60), ("engine:codex", 40), ("node:20", 50), ("has:docker", 30), ("gpu", 5)];
        tokens.extend(
            extras.iter().filter(|(_, percent)| random.below(100) < *percent).map(|(token, _)| *token),
        );
        let repo = |random: &mut Random| FactoryRepo {
            last_used_at: Some(NOW.minus(Duration::from_secs(random.below(172_800) as u64))),
            ..FactoryRepo::named(format!("repo-{}", random.below(60)))
        };
        let repos = (0..random.below(20)).map(|_| repo(random)).collect();
        let spread = self.seats.end() - self.seats.start() + 1;
        FactoryView {
            id: factory_id(at),
            state: FactoryState::Active,
            health: if random.below(20) == 0 { Health::Degraded } else { Health::Ok },
            health_reason: None,
            live: true,
            asks: false,
            capabilities: CapabilitySet::parse(tokens).expect("the tokens above are well formed"),
            closed: Vec::new(),
            products: Vec::new(),
            repos,
            can_clone: !at.is_multiple_of(10),
            clones: Vec::new(),
            seat_limit: (self.seats.start() + at % spread) as u32,
            seats_used: 0,
            units_used: giga_domain::UnitsInUse::default(),
            load: random.below(100) as f64 / 200.0,
            cost_per_hour: at.is_multiple_of(3).then(|| Usd::from_micros(100_000 * random.below(20) as i64)),
        }
    }
}

fn snapshot_of(factories: Vec<FactoryView>) -> Snapshot {
    Snapshot { factories, ..Snapshot::default() }
}

fn shape(at: usize, random: &mut Random) -> JobView {
    let needs: [&[&str]; 6] = [
        &["engine:shell"],
        &["os:linux", "engine:claude"],
        &["engine:codex", "has:git"],
        &["engine:claude", "node:20"],
        &["engine:shell", "has:docker"],
        &["gpu"],
    ];
    // One shape in three may use either engine.
    let either = EngineChoice::new(vec![EnginePick::named("claude"), EnginePick::named("codex")]);
    // One shape in forty wants the rare one.
    let need = if at % 40 == 39 { 5 } else { random.below(5) };
    JobView {
        id: JobId::MIN,
        rev: Rev(1),
        product: format!("product-{}", at % PRODUCTS).parse().expect("a well formed product id"),
        priority: Priority::ALL[at / PRODUCTS % Priority::ALL.len()],
        enqueued_at: NOW,
        ready_at: NOW,
        engine: if at.is_multiple_of(3) { either } else { EngineChoice::ANY },
        capabilities: CapabilitySet::parse(needs[need]).expect("the tokens above are well formed"),
        more_repos: Vec::new(),
        repo: (random.below(3) > 0).then(|| format!("repo-{}", random.below(60))),
        concurrency: (random.below(10) == 0)
            .then(|| Concurrency { key: format!("key-{at}"), limit: 1_000_000 }),
        cost_cap: (random.below(2) == 0).then(|| Usd::from_micros(500_000 * (1 + random.below(4) as i64))),
        last_factory: None,
        offered_to: None,
        excluded: Vec::new(),
        earlier: None,
    }
}

fn factory_id(at: usize) -> FactoryId {
    format!("factory-{at:04}").parse().expect("a well formed factory id")
}

/// A xorshift generator: enough to mix a workload, the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(format!("{} MiB", kib / 1024))
}

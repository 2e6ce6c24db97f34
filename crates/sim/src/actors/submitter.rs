//! Somebody with jobs to be done, some of them as children of others. It repeats a call that was not answered only where the job has an idempotency key, and
//! at times repeats one that was.

use std::sync::Arc;
use std::time::Duration;

use giga_coordinator::{Coordinator, Error, NewItem, SubmitRequest};
use giga_domain::manifest::parse_markdown;
use giga_domain::{Actor, JobId, ProductId};
use giga_ports::Clock;

use super::nap;
use crate::history::Record;
use crate::prng::Prng;
use crate::scenario::{CAPABILITIES, NOBODY_HAS};
use crate::world::{Trouble, World};

#[derive(Debug)]
pub(crate) struct Submitter {
    world: Arc<World>,
    prng: Prng,
    /// What there is to wait for.
    known: Vec<(ProductId, JobId)>,
    /// Children that are still to be made.
    late: Vec<Place>,
}

/// What a job belongs to, and what it may hang on.
#[derive(Debug)]
struct Place {
    product: ProductId,
    /// The job's parent, where it is to be a child.
    parent: Option<JobId>,
    /// A child may not wait for any of several where its parent has deps.
    may_wait_for_any: bool,
}

/// At most so many, so that the seeds with graphs are not much longer than the others.
const COMPOSITES: u64 = 2;

impl Submitter {
    pub(crate) fn new(world: Arc<World>, prng: Prng) -> Self {
        Self { world, prng, known: Vec::new(), late: Vec::new() }
    }

    pub(crate) async fn run(mut self) {
        let jobs = self.world.scenario.jobs;
        let pace = self.world.scenario.storm.as_millis() as u64 * 2 / 3 / jobs.max(1) as u64;
        let mut composites = if self.world.scenario.rules.graphs { COMPOSITES } else { 0 };
        for number in 0..jobs {
            nap(&mut self.prng, 0, pace).await;
            let product = self.prng.pick(&self.world.scenario.rules.products).clone();
            if composites > 0 && self.prng.chance(350) {
                composites -= 1;
                self.composite(number, product).await;
            } else {
                let place = Place { product, parent: None, may_wait_for_any: true };
                self.one_job(&format!("{number}"), &place).await;
            }
        }
        for (number, place) in std::mem::take(&mut self.late).into_iter().enumerate() {
            nap(&mut self.prng, 0, pace).await;
            self.one_job(&format!("late-{number}"), &place).await;
        }
    }

    async fn one_job(&mut self, name: &str, place: &Place) {
        let key = self.prng.chance(700).then(|| format!("key-{name}"));
        let text = self.manifest(name, key.as_deref(), place);
        let again = 1 + u64::from(key.is_some()) * self.prng.below(2);
        for _ in 0..again {
            let Some(job) = self.submit(&text, place, key.is_some()).await else { break };
            self.world.history.add(Record::Kept { key: key.clone(), job });
            self.known.push((place.product.clone(), job));
        }
    }

    /// A composite with its first children; some come late, and may find it over.
    async fn composite(&mut self, number: usize, product: ProductId) {
        let key = format!("key-{number}");
        let mut lines = vec![
            format!("name: job-{number}"),
            format!("idempotencyKey: {key}"),
            "kind: composite".to_owned(),
            format!("onFailure: {}", self.prng.pick(&["fail_fast", "continue"])),
            format!("ship: {}", if self.prng.chance(800) { "auto" } else { "manual" }),
        ];
        if self.prng.chance(120) {
            lines.push("review: {quorum: 1}".to_owned());
        }
        let deps = if self.prng.chance(300) { self.some_known(&product, 1) } else { Vec::new() };
        lines.extend(deps_line(&deps));
        let place = Place { product: product.clone(), parent: None, may_wait_for_any: false };
        let Some(parent) = self.submit(&front_matter(&lines), &place, true).await else { return };
        self.world.history.add(Record::Kept { key: Some(key), job: parent });
        self.known.push((product.clone(), parent));
        for child in 0..self.prng.between(0, 3) {
            let may_wait_for_any = deps.is_empty();
            let place = Place { product: product.clone(), parent: Some(parent), may_wait_for_any };
            if self.prng.chance(200) {
                self.late.push(place);
            } else {
                self.one_job(&format!("{number}-{child}"), &place).await;
            }
        }
    }

    fn some_known(&mut self, product: &ProductId, most: u64) -> Vec<JobId> {
        let known: Vec<JobId> =
            self.known.iter().filter(|(of, _)| of == product).map(|(_, job)| *job).collect();
        if known.is_empty() {
            return known;
        }
        let mut some: Vec<JobId> = (0..self.prng.between(1, most)).map(|_| *self.prng.pick(&known)).collect();
        some.sort_unstable();
        some.dedup();
        some
    }

    fn manifest(&mut self, name: &str, key: Option<&str>, place: &Place) -> String {
        let mut lines = vec![format!("name: job-{name}")];
        lines.extend(key.map(|key| format!("idempotencyKey: {key}")));
        let wanted: Vec<&str> = if self.prng.chance(30) {
            vec![NOBODY_HAS]
        } else {
            CAPABILITIES.into_iter().filter(|_| self.prng.chance(250)).collect()
        };
        lines.push(format!(
            "capabilities: [{}]",
            wanted.iter().map(|c| format!("\"{c}\"")).collect::<Vec<_>>().join(", ")
        ));
        lines.push(format!("priority: {}", self.prng.pick(&["critical", "high", "normal", "low"])));
        lines.push(format!("retry: {{max: {}, backoff: 1s}}", self.prng.between(1, 4)));
        lines.push(format!("ship: {}", if self.prng.chance(700) { "auto" } else { "manual" }));
        if self.prng.chance(600) {
            let repos = ["repo: hello", "repo: hello", "repo: world", "repo: world", "repos: [hello, world]"];
            lines.push((*self.prng.pick(&repos)).to_owned());
            lines.push(format!("onConflict: {}", if self.prng.chance(800) { "redo" } else { "fail" }));
        }
        if self.prng.chance(120) {
            lines.push("review: {quorum: 1}".to_owned());
        }
        if self.prng.chance(150) {
            lines.push("concurrency: {key: \"repo:hello\", limit: 1}".to_owned());
        }
        if self.prng.chance(80) {
            let later = Duration::from_millis(self.prng.between(0, 3_000));
            lines.push(format!("runAt: {}", self.world.clock.now().plus(later)));
        }
        if self.world.scenario.rules.money.is_some() && self.prng.chance(700) {
            lines.push(format!("budget: {{usd: {}}}", self.prng.pick(&["0.25", "0.50", "1.00", "2.00"])));
        }
        if self.world.scenario.rules.talk {
            lines.push(format!("ask: {{parkAfter: 1s, deadline: {}s}}", self.prng.between(1, 5)));
        }
        if self.world.scenario.rules.accounts {
            let engines = ["engine: claude", "engine: codex", "engine: [claude, codex]", "engine: any"];
            lines.push((*self.prng.pick(&engines)).to_owned());
        }
        let (often, most) = if self.world.scenario.rules.graphs { (300, 3) } else { (150, 1) };
        if self.prng.chance(often) {
            let deps = self.some_known(&place.product, most);
            lines.extend(deps_line(&deps));
            if deps.len() > 1 && place.may_wait_for_any && self.prng.chance(500) {
                lines.push("depsMode: any".to_owned());
            }
        }
        front_matter(&lines)
    }

    async fn submit(&mut self, text: &str, place: &Place, repeat: bool) -> Option<JobId> {
        loop {
            let (text, product, parent) = (text.to_owned(), place.product.clone(), place.parent);
            let sent = self
                .world
                .call(&mut self.prng, |one| async move { submit(&one, &text, product, parent).await })
                .await;
            match sent {
                Ok(job) => return Some(job),
                Err(Trouble::Refused(error)) => {
                    self.world.trace.note(|| format!("a submit was refused: {error}"));
                    return None;
                }
                Err(Trouble::Lost) if repeat => nap(&mut self.prng, 20, 400).await,
                Err(Trouble::Lost) => return None,
            }
        }
    }
}

fn front_matter(lines: &[String]) -> String {
    format!("---\n{}\n---\nDo it.\n", lines.join("\n"))
}

fn deps_line(deps: &[JobId]) -> Option<String> {
    let deps: Vec<String> = deps.iter().map(ToString::to_string).collect();
    (!deps.is_empty()).then(|| format!("deps: [{}]", deps.join(", ")))
}

async fn submit(
    one: &Coordinator,
    text: &str,
    product: ProductId,
    parent: Option<JobId>,
) -> Result<JobId, Error> {
    let (manifest, body) = parse_markdown(text.as_bytes())?;
    let actor = Actor::system("submitter");
    let Some(parent) = parent else {
        return Ok(one.submit(SubmitRequest { product, manifest, body, actor }).await?.job.id);
    };
    let child = NewItem { product, manifest, body };
    let made = one.submit_children(parent, vec![child], actor).await?;
    Ok(made.first().expect("one child is answered with one job").job.id)
}

//! Somebody with jobs to be done. It repeats a call that was not answered only where the job has an idempotency key, and
//! at times repeats one that was.

use std::sync::Arc;
use std::time::Duration;

use giga_coordinator::{Coordinator, SubmitAnswer, SubmitRequest};
use giga_domain::manifest::parse_markdown;
use giga_domain::{Actor, JobId};
use giga_ports::Clock;

use super::nap;
use crate::history::Record;
use crate::prng::Prng;
use crate::scenario::{CAPABILITIES, NOBODY_HAS};
use crate::world::{Trouble, World};

#[derive(Debug)]
pub(crate) struct Submitter {
    pub world: Arc<World>,
    pub prng: Prng,
}

impl Submitter {
    pub(crate) async fn run(mut self) {
        let jobs = self.world.scenario.jobs;
        let pace = self.world.scenario.storm.as_millis() as u64 * 2 / 3 / jobs.max(1) as u64;
        let mut known = Vec::new();
        for number in 0..jobs {
            nap(&mut self.prng, 0, pace).await;
            let key = self.prng.chance(700).then(|| format!("key-{number}"));
            let text = self.manifest(number, key.as_deref(), &known);
            let again = 1 + u64::from(key.is_some()) * self.prng.below(2);
            for _ in 0..again {
                let Some(job) = self.submit(&text, key.is_some()).await else { break };
                self.world.history.add(Record::Kept { key: key.clone(), job });
                known.push(job);
            }
        }
    }

    fn manifest(&mut self, number: usize, key: Option<&str>, known: &[JobId]) -> String {
        let mut lines = vec![format!("name: job-{number}")];
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
        if !known.is_empty() && self.prng.chance(150) {
            lines.push(format!("deps: [{}]", self.prng.pick(known)));
        }
        format!("---\n{}\n---\nDo it.\n", lines.join("\n"))
    }

    async fn submit(&mut self, text: &str, repeat: bool) -> Option<JobId> {
        loop {
            let text = text.to_owned();
            match self.world.call(&mut self.prng, |one| async move { submit(&one, &text).await }).await {
                Ok(answer) => return Some(answer.job.id),
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

async fn submit(one: &Coordinator, text: &str) -> Result<SubmitAnswer, giga_coordinator::Error> {
    let (manifest, body) = parse_markdown(text.as_bytes())?;
    let product = "demo".parse().expect("four letters make a product id");
    one.submit(SubmitRequest { product, manifest, body, actor: Actor::system("submitter") }).await
}

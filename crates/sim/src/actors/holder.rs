//! The work on one job: start, renew, checkpoint, and a final report. A zombie sleeps past its lease and then goes on as if
//! nothing had happened. What it spends it tells with its renewals and with its final report, and sometimes it spends more
//! than it may. Asked to let go, it does, or does not care.

use std::sync::Arc;
use std::time::Duration;

use giga_coordinator::{Coordinator, Directive};
use giga_domain::{
    Ask, Checkpoint, FactoryId, FailReason, Failure, Holder, HolderAction, Job, JobId, RepoCommit, RunReport,
    Spend, Usd,
};
use giga_ports::Clock;

use super::nap;
use super::provider::Noticed;
use crate::prng::Prng;
use crate::scenario::{ENGINES, micros};
use crate::world::{Trouble, World};

/// What a renewal tells the holder to do.
enum Directed {
    GoOn,
    LetGo,
    /// People said something.
    Listen,
    /// Its job was cancelled: it may still say what the run cost.
    Cancelled,
    Stop,
}

#[derive(Debug)]
pub(crate) struct Holding {
    world: Arc<World>,
    job: JobId,
    holder: Holder,
    /// Where it has several.
    repos: Vec<String>,
    /// What it may spend, where that is known.
    cap: Usd,
    spent: Usd,
    /// The engine that it works with, in seeds with accounts.
    engine: Option<&'static str>,
    noticed: Noticed,
    questions: u32,
    prng: Prng,
}

impl Holding {
    pub(crate) fn new(
        world: Arc<World>,
        factory: FactoryId,
        noticed: Noticed,
        job: &Job,
        prng: Prng,
    ) -> Self {
        let cap = job.lease().map_or(Usd::ZERO, |lease| lease.reserved);
        let several = job.spec.repos().filter(|_| !job.spec.more_repos.is_empty());
        let repos = several.map(str::to_owned).collect();
        let holder = Holder { factory, epoch: job.epoch };
        let now = world.clock.now();
        let mut may =
            ENGINES.into_iter().filter(|name| job.spec.engine.is_any() || job.spec.engine.has(name));
        // As a factory chooses: the first that it does not know to be closed.
        let first = may.clone().next();
        let engine = may.find(|engine| noticed.until(engine, now).is_none()).or(first);
        let engine = engine.filter(|_| world.scenario.rules.accounts);
        let questions = 0;
        Self { world, job: job.id, holder, repos, cap, spent: Usd::ZERO, engine, noticed, questions, prng }
    }

    pub(crate) async fn run(mut self) {
        self.sleep_like_a_zombie().await;
        if !self.say(vec![HolderAction::Start]).await {
            return;
        }
        let lease = self.world.scenario.lease.as_millis() as u64;
        for step in 0..self.prng.below(4) {
            nap(&mut self.prng, lease / 10, lease / 3).await;
            self.sleep_like_a_zombie().await;
            self.spend();
            if self.account_is_closed().await {
                return;
            }
            if self.world.scenario.rules.talk && self.prng.chance(250) && !self.ask_people().await {
                return;
            }
            if self.prng.chance(300) {
                let note = Some(format!("step {step} of epoch {}", self.holder.epoch));
                let checkpoint = HolderAction::Checkpoint(Checkpoint { note, ..Checkpoint::default() });
                if !self.say(vec![checkpoint]).await {
                    return;
                }
                continue;
            }
            match self.renew().await {
                Directed::GoOn | Directed::Listen => {}
                Directed::Cancelled if !self.spent.is_zero() && self.prng.chance(700) => {
                    return self.let_go().await;
                }
                Directed::Cancelled | Directed::Stop => return,
                Directed::LetGo if self.prng.chance(800) => return self.let_go().await,
                Directed::LetGo => {
                    self.world.trace.note(|| format!("{} keeps {}", self.holder.factory, self.job));
                }
            }
        }
        self.sleep_like_a_zombie().await;
        self.spend();
        let last = self.final_report();
        let tells = !self.spent.is_zero() && self.prng.chance(700);
        let spent = tells.then(|| HolderAction::Spend(self.spent_so_far()));
        self.say(spent.into_iter().chain([last]).collect()).await;
    }

    /// What its provider does not let in any more ends the run, after the coordinator was told why.
    async fn account_is_closed(&mut self) -> bool {
        let Some(engine) = self.engine else { return false };
        let now = self.world.clock.now();
        let Some(until) = self.world.accounts.closed(engine, now) else { return false };
        self.noticed.note(engine, until);
        let (id, accounts) = (self.holder.factory.clone(), self.noticed.reported(now));
        // What is lost here comes with the next heartbeat.
        let report = |one: Arc<Coordinator>| async move { one.report_accounts(&id, accounts).await };
        let _ = self.world.call(&mut self.prng, report).await;
        let failure = Failure { reason: FailReason::OutOfQuota, detail: None };
        let spent = HolderAction::Spend(self.spent_so_far());
        self.say(vec![spent, HolderAction::Fail { failure, retryable: true }]).await;
        true
    }

    /// Asks something and waits for the end of it, as long as it keeps its seat; whether it goes on.
    async fn ask_people(&mut self) -> bool {
        self.questions += 1;
        let ask = Ask {
            text: format!("question {} of epoch {}", self.questions, self.holder.epoch),
            default: self.prng.chance(500).then(|| "as you like".to_owned()),
            ..Ask::default()
        };
        // It asks again until it is heard: the same question is the same one.
        let mut asked = None;
        for _ in 0..6 {
            let (job, holder, ask) = (self.job, self.holder.clone(), ask.clone());
            let call = |one: Arc<Coordinator>| async move { one.ask(job, holder, ask).await };
            match self.world.call(&mut self.prng, call).await {
                Ok((_, question)) => asked = Some(question.number),
                Err(Trouble::Refused(_)) => return false,
                Err(Trouble::Lost) => nap(&mut self.prng, 20, 200).await,
            }
            if asked.is_some() {
                break;
            }
        }
        let Some(number) = asked else { return true };
        let lease = self.world.scenario.lease.as_millis() as u64;
        loop {
            nap(&mut self.prng, lease / 10, lease / 3).await;
            self.sleep_like_a_zombie().await;
            match self.renew().await {
                Directed::LetGo => {
                    self.let_go().await;
                    return false;
                }
                Directed::Cancelled | Directed::Stop => return false,
                Directed::GoOn | Directed::Listen => {}
            }
            let job = self.job;
            let look = |one: Arc<Coordinator>| async move { one.conversation(job, 0, Duration::ZERO).await };
            let Ok(talk) = self.world.call(&mut self.prng, look).await else { continue };
            let Some(question) = talk.question(number) else { return true };
            let Some(closed) = &question.closed else { continue };
            return match closed.seq {
                Some(seq) if question.answer().is_some() => {
                    self.say(vec![HolderAction::Delivered(vec![seq])]).await
                }
                // Nobody answered: the run has no way to go on.
                _ => {
                    let failure = Failure { reason: FailReason::Unanswered, detail: None };
                    self.say(vec![HolderAction::Fail { failure, retryable: false }]).await;
                    false
                }
            };
        }
    }

    async fn let_go(&mut self) {
        nap(&mut self.prng, 10, 600).await;
        let note = Some(format!("let go at epoch {}", self.holder.epoch));
        let checkpoint = Some(Checkpoint { note, ..Checkpoint::default() });
        let spent = HolderAction::Spend(self.spent_so_far());
        self.say(vec![spent, HolderAction::Release { checkpoint }]).await;
    }

    /// Part of its cap, or whatever where it has none; now and then too much.
    fn spend(&mut self) {
        if self.world.scenario.rules.money.is_none() {
            return;
        }
        let half_of_the_rest = self.cap.less(self.spent).micros().unsigned_abs() / 2;
        let most = if self.cap.is_zero() { 250_000 } else { half_of_the_rest };
        self.spent += micros(self.prng.between(0, most));
        if self.prng.chance(60) {
            let most = self.cap.max(Usd::from_dollars(1)).micros().unsigned_abs();
            self.spent += micros(self.prng.between(1, most));
        }
    }

    fn spent_so_far(&self) -> Spend {
        Spend { usd: self.spent, tokens: self.spent.micros().unsigned_abs() / 10 }
    }

    async fn sleep_like_a_zombie(&mut self) {
        if self.prng.chance(self.world.rates().zombie) {
            let lease = self.world.scenario.lease.as_millis() as u64;
            self.world.trace.note(|| format!("{} sleeps on {}", self.holder.factory, self.job));
            nap(&mut self.prng, lease, lease * 3).await;
        }
    }

    fn final_report(&mut self) -> HolderAction {
        let drawn = self.prng.below(100);
        let failed = |reason| Failure { reason, detail: None };
        match drawn {
            0..70 => HolderAction::Report(RunReport {
                branch: Some(format!("giga/job/{}/{}", self.job, self.holder.epoch)),
                commit: Some("0".repeat(40)),
                repos: self
                    .repos
                    .iter()
                    .map(|repo| RepoCommit { repo: repo.clone(), commit: "0".repeat(40), base: None })
                    .collect(),
                cost: (!self.spent.is_zero()).then_some(self.spent),
                ..RunReport::default()
            }),
            70..84 => HolderAction::Fail { failure: failed(FailReason::Infrastructure), retryable: true },
            84..90 => HolderAction::Fail { failure: failed(FailReason::VerifyFailed), retryable: false },
            _ => HolderAction::Release { checkpoint: None },
        }
    }

    async fn renew(&mut self) -> Directed {
        for _ in 0..6 {
            let (job, holder) = (self.job, self.holder.clone());
            let spent = (!self.spent.is_zero()).then(|| self.spent_so_far());
            let renewed = self
                .world
                .call(&mut self.prng, |one| async move { one.renew(job, holder, spent).await })
                .await;
            match renewed {
                Ok(renewal) if renewal.directives.is_empty() => return Directed::GoOn,
                Ok(renewal) if renewal.directives.contains(&Directive::Cancel) => return Directed::Cancelled,
                Ok(renewal)
                    if renewal
                        .directives
                        .iter()
                        .any(|d| matches!(d, Directive::Preempt | Directive::Park)) =>
                {
                    return Directed::LetGo;
                }
                Ok(renewal) if renewal.directives == [Directive::Input] => return Directed::Listen,
                Ok(_) | Err(Trouble::Refused(_)) => return Directed::Stop,
                Err(Trouble::Lost) => nap(&mut self.prng, 20, 200).await,
            }
        }
        // It cannot know; the work goes on.
        Directed::GoOn
    }

    /// Repeats itself until somebody answers; whether it may go on.
    async fn say(&mut self, actions: Vec<HolderAction>) -> bool {
        for _ in 0..20 {
            let (job, holder, actions) = (self.job, self.holder.clone(), actions.clone());
            let reply = self
                .world
                .call(&mut self.prng, |one| async move { one.hold(job, holder, actions).await })
                .await;
            match reply {
                Ok(_) => return true,
                Err(Trouble::Refused(_)) => return false,
                Err(Trouble::Lost) => nap(&mut self.prng, 20, 200).await,
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        false
    }
}

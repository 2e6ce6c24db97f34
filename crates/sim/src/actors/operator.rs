//! Somebody who looks at the jobs now and then and ships, approves, requeues or cancels some of them, and who holds the
//! purse.

use std::sync::Arc;

use giga_coordinator::{AddWebhook, Coordinator, Error};
use giga_domain::topic::TopicKey;
use giga_domain::{
    Actor, BudgetChange, BudgetSettings, Delivery, EventKind, FactoryId, FactoryState, Job, Judgement,
    OperatorAction, Period, Stage, Verdict,
};
use giga_ports::store::JobFilter;

use super::{nap, topics};
use crate::history::Record;
use crate::prng::Prng;
use crate::scenario::{Rules, micros};
use crate::world::World;

#[derive(Debug)]
pub(crate) struct Operator {
    pub world: Arc<World>,
    pub prng: Prng,
}

enum Wish {
    Do(OperatorAction),
    Say(Verdict),
}

impl Operator {
    pub(crate) async fn run(mut self) {
        // A call that was given up may still close something later, so what was closed is opened several times.
        let mut times_to_open = if self.world.scenario.rules.money.is_some() { 5 } else { 0 };
        loop {
            let (low, high) = if self.world.is_stormy() { (200, 900) } else { (50, 200) };
            nap(&mut self.prng, low, high).await;
            let rates = self.world.rates();
            if self.prng.chance(rates.switched) {
                self.switch().await;
            }
            if self.prng.chance(rates.switched) {
                self.close_something().await;
                times_to_open = 5;
            }
            if self.world.scenario.rules.money.is_some() && self.world.is_stormy() && self.prng.chance(250) {
                self.steer_some_budget().await;
                times_to_open = 5;
            }
            if self.world.scenario.rules.webhooks > 0 && self.world.is_stormy() && self.prng.chance(120) {
                self.change_who_listens().await;
            }
            let in_time = !self.world.is_stormy() || self.prng.chance(150);
            if times_to_open > 0 && in_time && self.open_everything().await && !self.world.is_stormy() {
                times_to_open -= 1;
            }
            self.look_after_some_job().await;
            let often = if self.world.is_stormy() { 300 } else { 100 };
            if self.world.scenario.rules.talk && self.prng.chance(often) {
                self.answer_some_question().await;
            }
        }
    }

    /// The same person answers each question the same way, however often.
    async fn answer_some_question(&mut self) {
        let filter = JobFilter { needs_input: true, ..JobFilter::default() };
        let look = |one: Arc<Coordinator>| async move {
            one.reads().list_jobs(&filter, None, 50).await.map_err(Error::from)
        };
        let asking = self.world.call(&mut self.prng, look).await.unwrap_or_default();
        if asking.is_empty() {
            return;
        }
        let job = self.prng.pick(&asking).clone();
        let open: Vec<u32> = job.open_questions().map(|question| question.number).collect();
        let (id, question, actor) = (job.id, *self.prng.pick(&open), Actor::system("operator"));
        let say = |one: Arc<Coordinator>| async move {
            one.answer(id, Some(question), format!("answer {question}"), "ana".to_owned(), actor).await
        };
        if self.world.call(&mut self.prng, say).await.is_ok() {
            self.world.history.add(Record::Answered { job: id, question });
        }
    }

    async fn look_after_some_job(&mut self) {
        let stages = vec![Stage::Review, Stage::Testing, Stage::Failed];
        let stages = if self.prng.chance(200) { Vec::new() } else { stages };
        let filter = JobFilter { stages, ..JobFilter::default() };
        let look = self
            .world
            .call(&mut self.prng, |one| async move {
                one.reads().list_jobs(&filter, None, 50).await.map_err(Error::from)
            })
            .await;
        let Some(jobs) = look.ok().filter(|jobs| !jobs.is_empty()) else { return };
        let job = self.prng.pick(&jobs).clone();
        if let Some(wish) = self.wish(&job) {
            self.act(&job, wish).await;
        }
    }

    /// Drains a factory, or pauses a topic or all of them.
    async fn close_something(&mut self) {
        let actor = Actor::system("operator");
        if self.world.scenario.topic_jobs > 0 && self.prng.chance(500) {
            let some = self.prng.pick(&topics::topics()).clone();
            let key = self.prng.chance(600).then(|| TopicKey { product: topics::product(), topic: some });
            self.world.trace.note(|| format!("an operator pauses {key:?}"));
            let pause = |one: Arc<Coordinator>| async move { one.topics().pause(key, actor).await };
            let _ = self.world.call(&mut self.prng, pause).await;
        } else {
            let factory = self.prng.pick(&self.world.scenario.factories).id.clone();
            self.world.trace.note(|| format!("an operator drains {factory}"));
            let drain = |one: Arc<Coordinator>| async move {
                one.set_factory_state(factory, FactoryState::Draining, actor).await
            };
            let _ = self.world.call(&mut self.prng, drain).await;
        }
    }

    /// Pauses a budget, perhaps with all that runs, opens it again, or raises its limits.
    async fn steer_some_budget(&mut self) {
        let product = self.prng.pick(&self.world.scenario.rules.products).clone();
        let (wish, more) = (self.prng.below(10), micros(self.prng.between(1, 4) * 500_000));
        let actor = Actor::system("operator");
        self.world.trace.note(|| format!("an operator steers the budget of {product}: {wish}"));
        let steer = |one: Arc<Coordinator>| async move {
            match wish {
                0..4 => one.pause_budget(product, None, wish < 2, actor).await.map(|_| ()),
                4..7 => one.change_budget(product, BudgetChange::Resume, None, actor).await.map(|_| ()),
                _ => {
                    let budget = one.budget(&product).await?.budget;
                    let mut settings = budget.settings;
                    for period in [Period::Day, Period::Total] {
                        let limit = settings.limits.of_mut(period);
                        *limit = limit.map(|usd| usd + more);
                    }
                    let raise = BudgetChange::Set(settings);
                    // Against a call of before that comes late: limits only ever rise.
                    one.change_budget(product, raise, Some(budget.rev), actor).await.map(|_| ())
                }
            }
        };
        let _ = self.world.call(&mut self.prng, steer).await;
    }

    /// A webhook is added or removed.
    async fn change_who_listens(&mut self) {
        let (adds, some) = (self.prng.chance(700), self.prng.next());
        let actor = Actor::system("operator");
        self.world.trace.note(|| format!("an operator {} a webhook", if adds { "adds" } else { "removes" }));
        let change = |one: Arc<Coordinator>| async move {
            if adds {
                let url = "https://example.org/late".to_owned();
                let add = AddWebhook {
                    product: None,
                    url,
                    kinds: vec![EventKind::Submitted, EventKind::Assigned],
                    actor,
                };
                return one.effects().add_webhook(add).await.map(|_| ());
            }
            let webhooks = one.effects().webhooks().await?;
            match webhooks.get(some as usize % webhooks.len().max(1)) {
                Some(webhook) => one.effects().remove_webhook(webhook.id, actor).await,
                None => Ok(()),
            }
        };
        let _ = self.world.call(&mut self.prng, change).await;
    }

    /// Whether it worked.
    async fn open_everything(&mut self) -> bool {
        let actor = Actor::system("operator");
        let factories: Vec<FactoryId> =
            self.world.scenario.factories.iter().map(|factory| factory.id.clone()).collect();
        let has_topics = self.world.scenario.topic_jobs > 0;
        let Rules { products, money, .. } = self.world.scenario.rules.clone();
        let lifted = !self.world.is_stormy() && money.is_some_and(|money| money.lifted);
        let open = |one: Arc<Coordinator>| async move {
            for factory in factories {
                one.set_factory_state(factory, FactoryState::Active, actor.clone()).await?;
            }
            if has_topics {
                one.topics().resume(None, actor.clone()).await?;
                for topic in topics::topics() {
                    let key = TopicKey { product: topics::product(), topic };
                    one.topics().resume(Some(key), actor.clone()).await?;
                }
            }
            for product in products.into_iter().filter(|_| money.is_some()) {
                if lifted {
                    let none = BudgetChange::Set(BudgetSettings::default());
                    one.change_budget(product.clone(), none, None, actor.clone()).await?;
                }
                one.change_budget(product, BudgetChange::Resume, None, actor.clone()).await?;
            }
            Ok(())
        };
        self.world.trace.note(|| "an operator opens everything".to_owned());
        self.world.call(&mut self.prng, open).await.is_ok()
    }

    /// Lets jobs reach some factory another way from here on.
    async fn switch(&mut self) {
        let factory = self.prng.pick(&self.world.scenario.factories).id.clone();
        let mode = *self.prng.pick(&Delivery::ALL);
        self.world.trace.note(|| format!("{factory} is to work by {mode}"));
        let actor = Actor::system("operator");
        let _ = self
            .world
            .call(&mut self.prng, |one| async move {
                one.set_flag(&format!("delivery.{factory}"), mode.as_str().into(), actor).await
            })
            .await;
    }

    fn wish(&mut self, job: &Job) -> Option<Wish> {
        let stormy = self.world.is_stormy();
        let verdict = self.prng.below(10);
        match job.stage() {
            Stage::Testing => Some(Wish::Do(OperatorAction::Ship)),
            Stage::Review if stormy && verdict == 0 => Some(Wish::Say(Verdict::RequestChanges)),
            Stage::Review if stormy && verdict == 1 => Some(Wish::Say(Verdict::Reject)),
            Stage::Review if stormy && verdict == 2 => Some(Wish::Do(OperatorAction::Requeue)),
            Stage::Review => Some(Wish::Say(Verdict::Approve)),
            Stage::Failed if stormy => Some(Wish::Do(OperatorAction::Requeue)),
            // Cancelling what is over must change nothing.
            _ if stormy && verdict < 4 => Some(Wish::Do(OperatorAction::Cancel)),
            _ => None,
        }
    }

    async fn act(&mut self, job: &Job, wish: Wish) {
        let actor = Actor::system("operator");
        let (id, rev) = (job.id, self.prng.chance(300).then_some(job.rev));
        let _ = self
            .world
            .call(&mut self.prng, |one| async move {
                match wish {
                    Wish::Do(action) => one.operate(id, action, None, rev, actor).await,
                    Wish::Say(verdict) => {
                        let judgement = Judgement {
                            verdict,
                            reviewer: "ana".to_owned(),
                            comment: None,
                            epoch: None,
                            commit: None,
                            acknowledge_unseen: false,
                        };
                        one.review(id, judgement, rev, actor).await
                    }
                }
            })
            .await;
    }
}

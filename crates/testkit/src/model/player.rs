//! Plays a history on several stores at once, under one clock, and compares after every step.

use std::sync::Arc;
use std::time::Duration;

use giga_domain::budget::PerPeriod;
use giga_domain::factory::{Advertised, FactoryScope};
use giga_domain::job::{Concurrency, DepsMode, ReviewGate, ShipMode};
use giga_domain::token::{Permission, Role, TokenRecord, TokenSecret};
use giga_domain::{
    Actor, ArtifactId, Ask, BudgetChange, BudgetSettings, CapabilitySet, Checkpoint, Command, DispatchSeq,
    Epoch, FactoryId, FactoryState, FailReason, Failure, Holder, HolderAction, Job, JobId, JobSpec,
    Judgement, NodeId, OperatorAction, Priority, ProductId, Rev, RunReport, Spend, Stage, Term, Timestamp,
    TokenId, TreeLimits, Usd, Verdict,
};
use giga_ports::store::{
    ChangeBudget, Claim, Divergence, Enroll, Hold, JobFilter, NewEviction, NewJob, NewOffer, PutArtifact,
    Steer,
};
use giga_ports::{Clock, Store};
use proptest::sample::Index;
use serde_json::json;

use super::call::Call;
use super::ledger::{self, Ledger, Look};
use super::step::{Action, Belief, FACTORIES, JobShape, Order, Pick, Purse, Step};
use super::visible::Visible;
use crate::ManualClock;

/// How often everything is compared, and not only the answers.
const LOOK_EVERY: usize = 10;

pub(super) struct Player {
    /// The first is what steps are made concrete by.
    stores: Vec<(String, Arc<dyn Store>)>,
    clock: Arc<ManualClock>,
    submitted: Vec<Vec<NewJob>>,
    budgeted: Option<ChangeBudget>,
    /// Gives every job an id of its own.
    made: u128,
    ledger: Ledger,
}

impl Player {
    pub(super) fn new(stores: Vec<(String, Arc<dyn Store>)>, clock: Arc<ManualClock>) -> Self {
        Self { stores, clock, submitted: Vec::new(), budgeted: None, made: 0, ledger: Ledger::default() }
    }

    pub(super) async fn play(&mut self, history: Vec<Step>) {
        // Two factories from the start, so that short histories get somewhere too.
        for factory in 0..2 {
            self.step(Step::Enroll { factory, narrow: false, again: false }).await;
            self.step(Step::Advertise { factory, seats: 3, gpu: factory == 1 }).await;
        }
        for (number, step) in history.into_iter().enumerate() {
            self.step(step).await;
            if number % LOOK_EVERY == LOOK_EVERY - 1 {
                self.look().await;
            }
        }
        self.look().await;
    }

    async fn jobs(&self) -> Vec<Job> {
        self.stores[0].1.read().list_jobs(&JobFilter::default(), None, 100_000).await.unwrap()
    }

    async fn step(&mut self, step: Step) {
        let Some(call) = self.call(step).await else { return };
        let before = self.jobs().await;
        let leader = self.stores[0].1.read().leader().await.unwrap();
        let mut answers = Vec::with_capacity(self.stores.len());
        for (name, store) in &self.stores {
            answers.push((name, call.clone().make(&**store).await));
        }
        let (reference, expected) = &answers[0];
        for (name, answer) in &answers[1..] {
            assert_eq!(answer.text, expected.text, "{name} answers otherwise than {reference} to {call:?}");
        }
        let after = self.jobs().await;
        let factories = self.stores[0].1.read().factories().await.unwrap();
        let budgets = self.stores[0].1.read().budgets().await.unwrap();
        self.ledger.note(
            &call,
            expected,
            &Look {
                before: &before,
                after: &after,
                factories: &factories,
                budgets: &budgets,
                leader: leader.as_ref(),
                now: self.now(),
            },
        );
    }

    async fn look(&self) {
        let (reference, store) = &self.stores[0];
        let expected = Visible::of(&**store).await;
        ledger::check(&expected);
        for (name, store) in &self.stores[1..] {
            let seen = Visible::of(&**store).await;
            assert_eq!(seen, expected, "{name} looks otherwise than {reference}");
        }
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn call(&mut self, step: Step) -> Option<Call> {
        Some(match step {
            Step::Advance { millis } => {
                self.clock.advance(Duration::from_millis(millis));
                return None;
            }
            Step::Submit(shapes) => {
                let known = self.jobs().await;
                let mut jobs: Vec<NewJob> = Vec::new();
                for shape in shapes {
                    jobs.push(self.new_job(shape, &known, jobs.last()));
                    self.made += 1;
                }
                self.submitted.push(jobs.clone());
                Call::Submit(jobs)
            }
            Step::SubmitAgain(index) => Call::Submit(choose(index, &self.submitted)?.clone()),
            Step::Claim { job, factory, request, rev, offer, lease_ms } => {
                let job = self.pick(job, |job| job.stage() == Stage::Queued).await?;
                Call::Claim(Claim {
                    job: job.id,
                    rev: believed(rev, job.rev.0).map(Rev),
                    dispatch_seq: believed(offer, job.dispatch_seq.0).map(DispatchSeq),
                    factory: factory_id(factory),
                    request: format!("request-{request}").parse().unwrap(),
                    lease: Duration::from_millis(lease_ms.into()),
                })
            }
            Step::Hold { job, actions, epoch, stranger } => {
                let job = self.pick(job, |job| job.stage().is_held()).await?;
                let actions = actions.into_iter().map(holder_action).collect();
                Call::Hold(Hold { job: job.id, holder: writer(&job, epoch, stranger), actions })
            }
            Step::LeaveFile { job, name, epoch, stranger } => {
                let job = self.pick(job, |job| job.stage().is_held()).await?;
                self.made += 1;
                let holder = writer(&job, epoch, stranger);
                Call::PutArtifact(PutArtifact {
                    id: ArtifactId::from_parts(self.clock.now(), self.made),
                    job: job.id,
                    actor: Actor::Factory(holder.factory.clone()),
                    holder,
                    name: format!("file-{name}").parse().unwrap(),
                    media_type: "text/plain".to_owned(),
                    size: name.into(),
                })
            }
            Step::Steer { job, order, rev } => {
                let job = self.pick(job, |job| suits(order, job.stage())).await?;
                let actor = Actor::Token("ana".parse().unwrap());
                let if_rev = believed(rev, job.rev.0).map(Rev);
                Call::Steer(Steer {
                    job: job.id,
                    request: crate::store_suite::steer_request(),
                    command: command(order),
                    if_rev,
                    actor,
                })
            }
            Step::Expire { limit } => Call::Expire(limit),
            Step::Reconsider => Call::Reconsider(1_000),
            Step::Retire { age_ms } => {
                Call::Retire(self.now().minus(Duration::from_millis(age_ms.into())), 1_000)
            }
            Step::Enroll { factory, narrow, again } => {
                let id = factory_id(factory);
                let scope = FactoryScope {
                    products: if narrow { vec![product(0)] } else { Vec::new() },
                    capabilities: narrow.then(|| CapabilitySet::parse(["os:linux"]).unwrap()),
                };
                let permission = Permission::Factory { factory: id.clone(), scope: scope.clone() };
                // Two enrolments with one token are a repetition, with two tokens they are two.
                let token = token(100 + factory * 2 + u8::from(again), permission);
                Call::Enroll(Enroll { id, scope, token, actor: Actor::Token("ana".parse().unwrap()) })
            }
            Step::Advertise { factory, seats, gpu } => {
                let tokens = if gpu { &["os:linux", "gpu"][..] } else { &["os:linux"] };
                let capabilities = CapabilitySet::parse(tokens).unwrap();
                let advertised = Advertised { capabilities, seat_limit: seats, ..Advertised::default() };
                Call::Advertise(factory_id(factory), advertised)
            }
            Step::Touch { factory, later_ms } => {
                let at = self.now().plus(Duration::from_millis(later_ms.into()));
                Call::Touch(vec![(factory_id(factory), at), (factory_id(FACTORIES), at)])
            }
            Step::Drain { factory, draining } => {
                let state = if draining { FactoryState::Draining } else { FactoryState::Active };
                Call::SetState(factory_id(factory), state)
            }
            Step::Deregister { factory } => Call::Deregister(factory_id(factory)),
            Step::Prune { age_ms } => Call::Prune(self.now().minus(Duration::from_millis(age_ms.into()))),
            Step::Rotate { factory, token: number, grace_ms } => {
                let id = factory_id(factory);
                let permission = Permission::Factory { factory: id.clone(), scope: FactoryScope::default() };
                let grace = Duration::from_millis(grace_ms.into());
                Call::Rotate(id, token(50 + factory * 10 + number, permission), grace)
            }
            Step::RevokeFactory { factory } => Call::RevokeFactory(factory_id(factory)),
            Step::IssueToken { token: number } => {
                let permission = Permission::User { role: Role::Viewer, products: vec![product(0)] };
                Call::Issue(token(number, permission))
            }
            Step::RevokeToken { token } => Call::Revoke(token_id(token)),
            Step::SetFlag { flag, value } => match flag {
                0 => Call::SetFlag("strict", json!(value == 0)),
                1 if value == 2 => Call::SetFlag("delivery", json!(null)),
                1 => Call::SetFlag("delivery", json!(["poll", "self_select"][usize::from(value % 2)])),
                _ => Call::SetFlag("lease_ms", json!(1_000 * (u64::from(value) + 1))),
            },
            Step::Lead { node, lease_ms } => {
                Call::Lead(node_id(node), Duration::from_millis(lease_ms.into()))
            }
            Step::Resign { node, term } => Call::StepDown(node_id(node), self.term(term).await),
            Step::Offer { chosen, term, pickup_ms } => {
                let mut offers = Vec::new();
                for (job, rev, factory) in chosen {
                    let Some(job) = self.pick(job, |job| job.stage() == Stage::Queued).await else {
                        continue;
                    };
                    let rev = Rev(believed(rev, job.rev.0).unwrap_or_default());
                    offers.push(NewOffer { job: job.id, rev, factory: factory_id(factory) });
                }
                Call::Offer(self.term(term).await, offers, Duration::from_millis(pickup_ms.into()))
            }
            Step::Sent { count } => {
                let waiting = self.stores[0].1.read().unsent_offers(count).await.unwrap();
                let mut sent: Vec<_> =
                    waiting.into_iter().map(|w| (w.offer.job_id, w.offer.dispatch_seq)).collect();
                sent.push((JobId::MAX, DispatchSeq(1)));
                Call::Sent(sent)
            }
            Step::Diverge { job } => {
                let job = self.pick(job, |job| job.stage().is_held()).await?.id;
                let (routed_to, claimed_by) = (factory_id(0), factory_id(1));
                Call::Diverged(Divergence { job, routed_to, claimed_by, lag_ms: 7 })
            }
            Step::Evict { asked, term, grace_ms } => {
                let mut evictions = Vec::new();
                for (job, rev, needed) in asked {
                    let Some(job) = self.pick(job, |job| job.stage().is_held()).await else { continue };
                    let rev = Rev(believed(rev, job.rev.0).unwrap_or_default());
                    evictions.push(NewEviction { job: job.id, rev, for_job: needed.then_some(JobId::MAX) });
                }
                let term = if term == Belief::None { None } else { Some(self.term(term).await) };
                Call::Evict(term, evictions, Duration::from_millis(grace_ms.into()))
            }
            Step::Budget { product: number, purse, rev } => {
                let product = product(number);
                let known = self.stores[0].1.read().budget(&product).await.unwrap();
                let write = ChangeBudget {
                    product,
                    change: budget_change(purse),
                    if_rev: believed(rev, known.map_or(0, |budget| budget.rev.0)).map(Rev),
                    request: crate::store_suite::steer_request(),
                    actor: Actor::Token("ana".parse().unwrap()),
                };
                self.budgeted = Some(write.clone());
                Call::ChangeBudget(write)
            }
            Step::BudgetAgain => Call::ChangeBudget(self.budgeted.clone()?),
            Step::Outside(step) => Call::Outside(step, self.now()),
        })
    }

    async fn term(&self, belief: Belief) -> Term {
        let leader = self.stores[0].1.read().leader().await.unwrap();
        let current = leader.map_or(0, |leader| leader.term.0);
        Term(believed(belief, current).unwrap_or(u64::MAX >> 1))
    }

    async fn pick(&self, pick: Pick, suits: impl Fn(&Job) -> bool) -> Option<Job> {
        let jobs = self.jobs().await;
        let suiting: Vec<&Job> = jobs.iter().filter(|job| pick.sensible && suits(job)).collect();
        if suiting.is_empty() {
            choose(pick.index, &jobs).cloned()
        } else {
            Some((*pick.index.get(&suiting)).clone())
        }
    }

    fn new_job(&self, shape: JobShape, known: &[Job], neighbour: Option<&NewJob>) -> NewJob {
        let id = JobId::from_parts(self.now(), self.made);
        let product = product(shape.product);
        let own: Vec<JobId> = known.iter().filter(|job| job.product == product).map(|job| job.id).collect();
        let mut spec: JobSpec = serde_json::from_value(json!({ "name": format!("job {id}") })).unwrap();
        spec.priority = Priority::from_rank(shape.priority).unwrap();
        spec.idempotency_key = shape.key.map(|key| format!("key-{key}"));
        spec.deps = shape.deps.iter().filter_map(|index| choose(*index, &own)).copied().collect();
        // Sometimes of another product, or not there at all: both are refused.
        spec.deps.extend(neighbour.filter(|_| shape.after_neighbour).map(|new| new.id));
        spec.deps.extend(shape.unknown_dep.then_some(JobId::MAX));
        spec.deps.sort_unstable();
        spec.deps.dedup();
        spec.deps_mode = if shape.any { DepsMode::Any } else { DepsMode::All };
        spec.concurrency =
            shape.concurrency.map(|(key, limit)| Concurrency { key: format!("key-{key}"), limit });
        spec.retry.max = shape.retries;
        spec.retry.backoff_ms = 500;
        spec.review = ReviewGate { quorum: shape.quorum, reviewers: Vec::new() };
        spec.ship = if shape.auto { ShipMode::Auto } else { ShipMode::Manual };
        spec.run_at = (shape.delay_ms > 0).then(|| self.now().plus(Duration::from_millis(shape.delay_ms)));
        spec.budget.usd = shape.cap.map(cents);
        if shape.demanding {
            spec.capabilities = CapabilitySet::parse(["gpu"]).unwrap();
        }
        let body = format!("body {}\r\n", shape.content);
        let manifest = json!({ "name": spec.name, "content": shape.content });
        NewJob {
            id,
            product,
            spec,
            manifest,
            persona: None,
            fingerprint: body.clone(),
            body,
            under: None,
            tree: TreeLimits::default(),
        }
    }
}

fn choose<T>(index: Index, items: &[T]) -> Option<&T> {
    if items.is_empty() { None } else { Some(index.get(items)) }
}

fn product(number: u8) -> ProductId {
    format!("product-{number}").parse().unwrap()
}

fn factory_id(number: u8) -> FactoryId {
    format!("factory-{number}").parse().unwrap()
}

fn node_id(number: u8) -> NodeId {
    format!("node-{number}").parse().unwrap()
}

fn token_id(number: u8) -> TokenId {
    format!("token-{number}").parse().unwrap()
}

fn token(number: u8, permission: Permission) -> TokenRecord {
    TokenRecord {
        id: token_id(number),
        hash: TokenSecret::from_random("user", [number; 32]).hash(),
        permission,
        label: format!("number {number}"),
        created_at: Timestamp::ZERO,
        expires_at: None,
        revoked_at: None,
    }
}

fn believed(belief: Belief, current: u64) -> Option<u64> {
    match belief {
        Belief::Right => Some(current),
        Belief::Old => Some(current.saturating_sub(1)),
        Belief::Ahead => Some(current + 1),
        Belief::None => None,
    }
}

/// Whoever holds the job or held it last, as far as the writer remembers; or somebody else.
fn writer(job: &Job, epoch: Belief, stranger: bool) -> Holder {
    let last = job.lease().map(|lease| lease.factory.clone()).or(job.last_factory.clone());
    let factory = last.filter(|_| !stranger).unwrap_or_else(|| factory_id(FACTORIES));
    Holder { factory, epoch: Epoch(believed(epoch, job.epoch.0).unwrap_or(0)) }
}

fn cents(number: u8) -> Usd {
    Usd::from_micros(i64::from(number) * 10_000)
}

fn budget_change(purse: Purse) -> BudgetChange {
    match purse {
        Purse::Set { day, total, job } => BudgetChange::Set(BudgetSettings {
            limits: PerPeriod { day: day.map(cents), total: total.map(cents), ..PerPeriod::default() },
            job_cap: job.map(cents),
        }),
        Purse::Pause => BudgetChange::Pause { reason: Some("too fast".to_owned()) },
        Purse::Resume => BudgetChange::Resume,
        Purse::Correct(number) => BudgetChange::Correct { usd: cents(number), reason: "a bill".to_owned() },
    }
}

fn holder_action(action: Action) -> HolderAction {
    let checkpoint =
        |number: u8| Checkpoint { note: Some(format!("note {number}")), ..Checkpoint::default() };
    match action {
        Action::Start => HolderAction::Start,
        Action::Renew(millis) => HolderAction::Renew { lease: Duration::from_millis(millis.into()) },
        Action::Checkpoint(number) => HolderAction::Checkpoint(checkpoint(number)),
        Action::Spend(number) => HolderAction::Spend(Spend { usd: cents(number), tokens: number.into() }),
        Action::Report(cost) => {
            HolderAction::Report(RunReport { tokens: Some(7), cost: cost.map(cents), ..RunReport::default() })
        }
        Action::Fail { retryable } => {
            let failure = Failure { reason: FailReason::Crash, detail: Some("it broke".to_owned()) };
            HolderAction::Fail { failure, retryable }
        }
        Action::Release { checkpoint: with } => {
            HolderAction::Release { checkpoint: with.then(|| checkpoint(9)) }
        }
        Action::Ask(number) => HolderAction::Ask(Ask {
            text: format!("question {number}"),
            default: (number == 0).then(|| "yes".to_owned()),
            deadline: Some(Duration::from_secs(u64::from(number) + 1)),
            ..Ask::default()
        }),
        Action::Delivered(seq) => HolderAction::Delivered(vec![seq.into()]),
    }
}

fn suits(order: Order, stage: Stage) -> bool {
    match order {
        Order::Ship => stage == Stage::Testing,
        Order::Requeue => matches!(stage, Stage::Failed | Stage::Review),
        Order::Cancel => !stage.is_terminal(),
        Order::AskForReview(_) => !stage.is_terminal() && stage != Stage::Testing,
        Order::Answer(_) | Order::Say(_) | Order::CloseQuestions => stage.is_live(),
        Order::Reject | Order::Approve(_) | Order::AskForChanges(_) | Order::Refuse(_) => {
            stage == Stage::Review
        }
    }
}

fn command(order: Order) -> Command {
    let operator = |action| Command::Operator { action, reason: Some("because".to_owned()) };
    let review = |verdict, reviewer: u8| {
        let (reviewer, comment) = (format!("reviewer-{reviewer}"), Some("hm".to_owned()));
        Command::Review(Judgement {
            verdict,
            reviewer,
            comment,
            epoch: None,
            commit: None,
            acknowledge_unseen: false,
        })
    };
    match order {
        Order::Ship => operator(OperatorAction::Ship),
        Order::Requeue => operator(OperatorAction::Requeue),
        Order::Reject => operator(OperatorAction::Reject),
        Order::Cancel => operator(OperatorAction::Cancel),
        Order::Approve(reviewer) => review(Verdict::Approve, reviewer),
        Order::AskForChanges(reviewer) => review(Verdict::RequestChanges, reviewer),
        Order::Refuse(reviewer) => review(Verdict::Reject, reviewer),
        Order::AskForReview(quorum) => {
            Command::RequestReview { gate: ReviewGate { quorum, reviewers: Vec::new() }, may_weaken: true }
        }
        Order::Answer(question) => {
            let (answer, by) = ("yes".to_owned(), "ana".to_owned());
            Command::Answer { question: question.into(), answer, by }
        }
        Order::Say(number) => Command::Say {
            id: format!("say-{number}").parse().unwrap(),
            text: format!("message {number}"),
            by: "ana".to_owned(),
        },
        Order::CloseQuestions => Command::CloseQuestions,
    }
}

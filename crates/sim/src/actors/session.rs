//! How a factory gets its jobs, in each of the modes: by asking, by choosing, by a stream, or by its own look at the
//! broker.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use giga_coordinator::{Accept, StreamEvent};
use giga_domain::{Delivery, Epoch, Job, JobId, Offer, RequestId};
use giga_ports::Broker;
use tokio::task::JoinSet;

use super::factory::Mode;
use super::holder::Holding;
use super::nap;
use super::provider::Noticed;
use crate::prng::Prng;
use crate::scenario::FactoryPlan;
use crate::world::{Address, Trouble, World};

/// How often a waiting factory looks whether it should work another way.
const LOOK: Duration = Duration::from_millis(250);

pub(crate) struct Intake {
    world: Arc<World>,
    plan: FactoryPlan,
    mode: Mode,
    noticed: Noticed,
    life: u32,
    requests: u32,
    prng: Prng,
    held: JoinSet<()>,
    /// What it has begun in this life: what comes twice is begun once.
    begun: BTreeSet<(JobId, Epoch)>,
}

impl Intake {
    pub(crate) fn new(
        world: Arc<World>,
        plan: FactoryPlan,
        mode: Mode,
        noticed: Noticed,
        life: u32,
        prng: Prng,
    ) -> Self {
        let (held, begun) = (JoinSet::new(), BTreeSet::new());
        Self { world, plan, mode, noticed, life, requests: 0, prng, held, begun }
    }

    pub(crate) async fn run(mut self) {
        loop {
            match self.mode.get() {
                Delivery::Poll | Delivery::Shadow => self.poll().await,
                Delivery::SelfSelect => self.choose().await,
                Delivery::Stream => self.follow_stream().await,
                Delivery::Broker => self.follow_broker().await,
            }
        }
    }

    fn has_seat(&mut self) -> bool {
        while self.held.try_join_next().is_some() {}
        self.held.len() < self.plan.seats as usize
    }

    fn begin(&mut self, job: &Job) {
        if self.begun.insert((job.id, job.epoch)) {
            let (world, noticed) = (self.world.clone(), self.noticed.clone());
            let holding = Holding::new(world, self.plan.id.clone(), noticed, job, self.prng.fork());
            self.held.spawn(holding.run());
        }
    }

    fn new_request(&mut self) -> RequestId {
        self.requests += 1;
        let name = format!("{}-{}-{}", self.plan.id, self.life, self.requests);
        name.parse().expect("a factory id, dashes and digits make a request id")
    }

    async fn poll(&mut self) {
        let request = self.new_request();
        if self.has_seat()
            && let Some(Some(job)) = {
                let id = self.plan.id.clone();
                self.insist(|one| {
                    let (id, request) = (id.clone(), request.clone());
                    async move { one.claims().claim(id, request).await }
                })
                .await
            }
        {
            self.begin(&job);
        } else {
            nap(&mut self.prng, 100, 600).await;
        }
    }

    async fn choose(&mut self) {
        let (id, request) = (self.plan.id.clone(), self.new_request());
        if !self.has_seat() {
            return nap(&mut self.prng, 100, 400).await;
        }
        let looked = {
            let id = id.clone();
            self.world.call(&mut self.prng, |one| async move { one.claims().candidates(&id, 5).await }).await
        };
        let jobs: Vec<JobId> = looked.unwrap_or_default().iter().map(|candidate| candidate.job).collect();
        let room = self.plan.seats as usize - self.held.len();
        if jobs.is_empty() {
            return nap(&mut self.prng, 100, 600).await;
        }
        let granted = self
            .insist(|one| {
                let (id, request, jobs) = (id.clone(), request.clone(), jobs.clone());
                async move { one.claims().claim_from(id, &request, &jobs, room).await }
            })
            .await;
        for job in granted.unwrap_or_default() {
            self.begin(&job);
        }
    }

    /// Asks again under the same name while nobody answers, and gives up after a while.
    async fn insist<T, Fut>(&mut self, ask: impl Fn(Arc<giga_coordinator::Coordinator>) -> Fut) -> Option<T>
    where
        Fut: Future<Output = Result<T, giga_coordinator::Error>>,
    {
        for _ in 0..4 {
            match self.world.call(&mut self.prng, &ask).await {
                Ok(answer) => return Some(answer),
                Err(Trouble::Refused(_)) => return None,
                Err(Trouble::Lost) => nap(&mut self.prng, 20, 300).await,
            }
        }
        None
    }

    async fn follow_stream(&mut self) {
        let Some(Address { coordinator, life, .. }) = self.world.some_address(&mut self.prng) else {
            return nap(&mut self.prng, 100, 300).await;
        };
        let Ok(mut stream) = coordinator.dispatch().open_factory_stream(self.plan.id.clone()) else {
            return nap(&mut self.prng, 100, 300).await;
        };
        drop(coordinator);
        self.world.trace.note(|| format!("{} opens a stream", self.plan.id));
        while self.mode.get() == Delivery::Stream {
            while self.held.try_join_next().is_some() {}
            let event = tokio::select! {
                biased;
                () = life.ended() => return,
                event = tokio::time::timeout(LOOK, stream.next()) => event,
            };
            let rates = self.world.rates();
            match event {
                Ok(Some(StreamEvent::Grant(grant))) => {
                    if self.prng.chance(rates.request_lost) {
                        // The connection broke before it was on its way; the coordinator gives it back.
                        return;
                    }
                    let job = grant.job().clone();
                    grant.delivered();
                    if !self.prng.chance(rates.reply_lost) {
                        self.begin(&job);
                    }
                }
                Ok(None) => return nap(&mut self.prng, 20, 200).await,
                Err(_) if self.prng.chance(rates.stream_cut) => return,
                Ok(Some(StreamEvent::News)) | Err(_) => {}
            }
        }
    }

    async fn follow_broker(&mut self) {
        let Ok(mut offers) = self.world.broker.consume(&self.plan.id).await else {
            return nap(&mut self.prng, 100, 300).await;
        };
        while self.mode.get() == Delivery::Broker {
            if !self.has_seat() {
                nap(&mut self.prng, 50, 200).await;
                continue;
            }
            match tokio::time::timeout(LOOK, offers.next()).await {
                Ok(Ok(delivered)) => {
                    for _ in 0..=u64::from(self.prng.chance(self.world.rates().offer_twice)) {
                        self.accept(&delivered.offer).await;
                    }
                    let _ = offers.ack(&delivered).await;
                }
                Ok(Err(_)) => return nap(&mut self.prng, 20, 200).await,
                Err(_) if self.prng.chance(self.world.rates().stream_cut) => return,
                Err(_) => {}
            }
        }
    }

    async fn accept(&mut self, offer: &Offer) {
        let name = format!("{}:{}", self.plan.id, offer.message_id());
        let accept = Accept {
            job: offer.job_id,
            factory: self.plan.id.clone(),
            dispatch_seq: offer.dispatch_seq,
            request: name.parse().expect("a factory id and a message id make a request id"),
        };
        let taken = self
            .insist(|one| {
                let accept = accept.clone();
                async move { one.claims().accept(accept).await }
            })
            .await;
        if let Some(job) = taken {
            self.begin(&job);
        }
    }
}

//! Claims of polling factories: those that come in together are planned together and granted in one transaction.
//!
//! The plan is made on the view, which may be old; the grant is a compare-and-set in the store. Whoever loses is
//! planned again with what is left, so a claimer sees a job or nothing, never a conflict.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use giga_domain::{FactoryId, Job, JobId, RequestId, Rev};
use giga_ports::StoreError;
use giga_ports::store::Lost;
use giga_scheduler::{Placement, plan};
use tokio::sync::{mpsc, oneshot};

use super::{Basis, Claims};
use crate::Error;
use crate::view::Whom;

/// The most claims that are planned at once.
const TOGETHER: usize = 256;
/// After so many lost races in a row a claimer is told that there is nothing; it will ask again.
const ROUNDS: usize = 32;

pub(crate) struct ClaimAsk {
    factory: FactoryId,
    request: RequestId,
    answer: oneshot::Sender<Result<Option<Job>, StoreError>>,
}

impl Claims {
    /// The best job for this factory now, held by it from here on; or nothing. Repeating a request returns what it
    /// was granted.
    pub async fn claim(&self, factory: FactoryId, request: RequestId) -> Result<Option<Job>, Error> {
        self.fleet.may_claim(&factory)?;
        let (answer, answered) = oneshot::channel();
        let stopping =
            || StoreError::Unavailable { reason: "the coordinator is shutting down".into(), source: None };
        self.asks.send(ClaimAsk { factory, request, answer }).await.map_err(|_| stopping())?;
        Ok(answered.await.map_err(|_| stopping())??)
    }

    /// Takes all claims that wait and serves them, until the coordinator stops.
    pub(crate) async fn serve_claims(self: Arc<Self>, mut asked: mpsc::Receiver<ClaimAsk>) {
        let mut asks = Vec::new();
        loop {
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                taken = asked.recv_many(&mut asks, TOGETHER) => if taken == 0 { return },
            }
            let mut open: Vec<ClaimAsk> = std::mem::take(&mut asks);
            for _ in 0..ROUNDS {
                open = match self.grant_round(open).await {
                    Ok(left) => left,
                    Err((failed, error)) => {
                        let reason = error.to_string();
                        for ask in failed {
                            let _ = ask
                                .answer
                                .send(Err(StoreError::Unavailable { reason: reason.clone(), source: None }));
                        }
                        Vec::new()
                    }
                };
                if open.is_empty() {
                    break;
                }
            }
            for ask in open {
                let _ = ask.answer.send(Ok(None));
            }
        }
    }

    /// Plans for all that ask, grants what it can, and returns those that lost a race.
    async fn grant_round(&self, asks: Vec<ClaimAsk>) -> Result<Vec<ClaimAsk>, (Vec<ClaimAsk>, StoreError)> {
        if let Err(error) = self.fleet.refresh().await {
            return Err((asks, error));
        }
        let asks = match self.repeat_grants(asks).await {
            Ok(asks) => asks,
            Err(failed) => return Err(failed),
        };
        let placements = self.place(&asks);
        let mut by_factory: HashMap<FactoryId, VecDeque<(JobId, Rev)>> = HashMap::new();
        for Placement { job, rev, factory, .. } in placements {
            by_factory.entry(factory).or_default().push_back((job, rev));
        }
        let mut granting = Vec::new();
        for ask in asks {
            match by_factory.get_mut(&ask.factory).and_then(VecDeque::pop_front) {
                Some((job, rev)) => granting.push(async move {
                    let (factory, request) = (ask.factory.clone(), ask.request.clone());
                    (ask, self.take_job(job, Basis::Planned(rev), factory, request).await)
                }),
                None => {
                    let _ = ask.answer.send(Ok(None));
                }
            }
        }
        let mut again = Vec::new();
        for (ask, taken) in futures::future::join_all(granting).await {
            let answer = match taken {
                Ok(Ok(job)) => Ok(Some(job)),
                Ok(Err(Lost::NotAllowed(_))) => Ok(None),
                Ok(Err(_)) => {
                    again.push(ask);
                    continue;
                }
                Err(error) => Err(error),
            };
            let _ = ask.answer.send(answer);
        }
        Ok(again)
    }

    /// Answers requests that had won before; their reply was lost.
    async fn repeat_grants(&self, asks: Vec<ClaimAsk>) -> Result<Vec<ClaimAsk>, (Vec<ClaimAsk>, StoreError)> {
        let known: Vec<Option<JobId>> = {
            let state = self.fleet.view.lock();
            asks.iter().map(|ask| state.granted(&ask.factory, &ask.request)).collect()
        };
        let mut open = Vec::with_capacity(asks.len());
        let mut asks = asks.into_iter().zip(known);
        while let Some((ask, known)) = asks.next() {
            if known.is_none() {
                open.push(ask);
                continue;
            }
            match self.core.store.read().grant(&ask.factory, &ask.request).await {
                Ok(Some(job)) => {
                    let _ = ask.answer.send(Ok(Some(job)));
                }
                Ok(None) => open.push(ask),
                Err(error) => {
                    open.push(ask);
                    open.extend(asks.map(|(ask, _)| ask));
                    return Err((open, error));
                }
            }
        }
        Ok(open)
    }

    fn place(&self, asks: &[ClaimAsk]) -> Vec<Placement> {
        let mut wanted: HashMap<&FactoryId, u32> = HashMap::new();
        for ask in asks {
            *wanted.entry(&ask.factory).or_default() += 1;
        }
        let ids: HashSet<FactoryId> = wanted.keys().map(|id| (*id).clone()).collect();
        let now = self.core.store_now();
        let mut state = self.fleet.view.lock();
        state.queue.settle(now);
        let policy = state.policy(now, Whom::Asking(&ids));
        let mut snapshot = self.fleet.snapshot(&state, now, Whom::Asking(&ids));
        for factory in &mut snapshot.factories {
            // No more seats than claims: what is planned is what is asked for.
            let asked = wanted.get(&factory.id).copied().unwrap_or(0);
            factory.seat_limit = factory.seat_limit.min(factory.seats_used + asked);
        }
        plan(&state.queue, &snapshot, now, &policy, asks.len()).placements
    }
}

//! A step made concrete: the very same call for every store, and its answer in a form that can be compared.

use std::fmt::Debug;
use std::time::Duration;

use giga_domain::factory::Advertised;
use giga_domain::token::TokenRecord;
use giga_domain::{
    Actor, DispatchSeq, FactoryId, FactoryState, Job, JobId, NodeId, Term, Timestamp, TokenId,
};
use giga_ports::store::{
    BudgetWrite, Claim, Claimed, Divergence, HolderWrite, NewEviction, NewFactory, NewJob, NewOffer,
    PutArtifact, SteerWrite,
};
use giga_ports::{Store, StoreError};
use serde_json::Value;

use super::outside::Outside;

#[derive(Debug, Clone)]
pub(super) enum Call {
    Submit(Vec<NewJob>),
    Claim(Claim),
    Hold(HolderWrite),
    PutArtifact(PutArtifact),
    Steer(SteerWrite),
    Expire(usize),
    Reconsider(usize),
    Retire(Timestamp, usize),
    Enroll(NewFactory),
    Advertise(FactoryId, Advertised),
    Touch(Vec<(FactoryId, Timestamp)>),
    SetState(FactoryId, FactoryState),
    Deregister(FactoryId),
    Prune(Timestamp),
    Rotate(FactoryId, TokenRecord, Duration),
    RevokeFactory(FactoryId),
    Issue(TokenRecord),
    Revoke(TokenId),
    SetFlag(&'static str, Value),
    Lead(NodeId, Duration),
    StepDown(NodeId, Term),
    Offer(Term, Vec<NewOffer>, Duration),
    Sent(Vec<(JobId, DispatchSeq)>),
    Diverged(Divergence),
    Evict(Option<Term>, Vec<NewEviction>, Duration),
    ChangeBudget(BudgetWrite),
    Outside(Outside, Timestamp),
}

/// The whole answer as text, and what the ledger wants to know of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub(super) text: String,
    /// An error, or a claim that lost.
    pub(super) refused: bool,
    pub(super) granted: Option<Job>,
    pub(super) reaped: Vec<JobId>,
}

impl Answer {
    pub(super) fn of<T: Debug>(result: Result<T, StoreError>) -> Self {
        let (text, refused) = match result {
            Ok(value) => (format!("{value:?}"), false),
            Err(error @ (StoreError::Unavailable { .. } | StoreError::Broken { .. })) => {
                panic!("a store failed instead of answering: {error:?}")
            }
            Err(error) => (format!("{error:?}"), true),
        };
        Self { text, refused, granted: None, reaped: Vec::new() }
    }

    /// For answers that come in no particular order.
    fn of_set<T: Debug + Ord>(result: Result<Vec<T>, StoreError>) -> Self {
        Self::of(result.map(|mut items| {
            items.sort_unstable();
            items
        }))
    }
}

impl Call {
    pub(super) async fn make(self, store: &dyn Store) -> Answer {
        let ana = || Actor::Token("ana".parse().unwrap());
        match self {
            Self::Submit(jobs) => Answer::of(store.submit(jobs, ana()).await),
            Self::Claim(claim) => match store.claim(claim).await {
                Ok(Claimed::Granted(job)) => Answer { granted: Some(job.clone()), ..Answer::of(Ok(job)) },
                lost => Answer { refused: true, ..Answer::of(lost) },
            },
            Self::Hold(write) => Answer::of(store.hold(write).await),
            Self::PutArtifact(put) => Answer::of(store.put_artifact(put).await),
            Self::Steer(write) => Answer::of(store.steer(write).await),
            Self::Expire(limit) => {
                let answer = store.expire_leases(limit).await;
                let reaped = answer.as_ref().map(|reaped| reaped.jobs.clone()).unwrap_or_default();
                Answer { reaped, ..Answer::of(answer) }
            }
            Self::Reconsider(limit) => {
                Answer::of_set(store.reconsider(limit).await.map(|looked_at| looked_at.moved))
            }
            Self::Retire(before, limit) => {
                let old = store.read().retirable(before, limit).await.unwrap();
                Answer::of_set(store.retire(before, old).await)
            }
            Self::Enroll(factory) => Answer::of(store.enroll(factory, ana()).await),
            Self::Advertise(factory, advertised) => Answer::of(store.advertise(factory, advertised).await),
            Self::Touch(seen) => Answer::of(store.touch(seen).await),
            Self::SetState(factory, state) => {
                Answer::of(store.set_factory_state(factory, state, ana()).await)
            }
            Self::Deregister(factory) => Answer::of(store.deregister(factory, ana()).await),
            Self::Prune(before) => Answer::of_set(store.prune(before, ana()).await),
            Self::Rotate(factory, token, grace) => {
                Answer::of(store.rotate_token(factory, token, grace, ana()).await)
            }
            Self::RevokeFactory(factory) => Answer::of(store.revoke_factory_tokens(factory, ana()).await),
            Self::Issue(token) => Answer::of(store.issue_token(token, ana()).await),
            Self::Revoke(token) => Answer::of(store.revoke_token(token, ana()).await),
            Self::SetFlag(name, value) => Answer::of(store.set_flag(name.to_owned(), value, ana()).await),
            Self::Lead(node, lease) => Answer::of(store.lead(node, lease).await),
            Self::StepDown(node, term) => Answer::of(store.step_down(node, term).await),
            Self::Offer(term, chosen, pickup) => Answer::of(store.offer(term, chosen, pickup).await),
            Self::Sent(offers) => Answer::of(store.sent(offers).await),
            Self::Diverged(divergence) => Answer::of(store.diverged(vec![divergence]).await),
            Self::Evict(term, asked, grace) => Answer::of(store.evict(term, asked, grace, ana()).await),
            Self::ChangeBudget(write) => Answer::of(store.change_budget(write).await),
            Self::Outside(step, now) => step.make(store, now).await,
        }
    }
}

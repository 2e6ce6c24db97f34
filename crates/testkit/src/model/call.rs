//! A step made concrete: the very same call for every store, and its answer in a form that can be compared.

use std::fmt::Debug;
use std::time::Duration;

use giga_domain::factory::Advertised;
use giga_domain::token::TokenRecord;
use giga_domain::{
    Actor, DispatchSeq, FactoryId, FactoryState, Job, JobId, NodeId, Term, Timestamp, TokenId,
};
use giga_ports::store::{
    Advertise, ChangeBudget, Claim, Claimed, Deregister, Divergence, Enroll, EvictJobs, ExpireLeases, Hold,
    IssueToken, MakeOffers, NewEviction, NewJob, NewOffer, Prune, PutArtifact, Reconsider, RecordDivergences,
    Retire, RevokeFactoryTokens, RevokeToken, RotateToken, Sent, SetFactoryState, SetFlag, Steer, StepDown,
    Submit, TakeLead, Touch,
};
use giga_ports::{Store, StoreError};
use serde_json::Value;

use super::outside::Outside;

#[derive(Debug, Clone)]
pub(super) enum Call {
    Submit(Vec<NewJob>),
    Claim(Claim),
    Hold(Hold),
    PutArtifact(PutArtifact),
    Steer(Steer),
    Expire(usize),
    Reconsider(usize),
    Retire(Timestamp, usize),
    Enroll(Enroll),
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
    ChangeBudget(ChangeBudget),
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
            Self::Submit(jobs) => Answer::of(store.submit(Submit { jobs, actor: ana() }).await),
            Self::Claim(claim) => match store.claim(claim).await {
                Ok(Claimed::Granted(job)) => Answer { granted: Some(job.clone()), ..Answer::of(Ok(job)) },
                lost => Answer { refused: true, ..Answer::of(lost) },
            },
            Self::Hold(write) => Answer::of(store.hold(write).await),
            Self::PutArtifact(put) => Answer::of(store.put_artifact(put).await),
            Self::Steer(write) => Answer::of(store.steer(write).await),
            Self::Expire(limit) => {
                let answer = store.expire_leases(ExpireLeases { limit }).await;
                let reaped = answer.as_ref().map(|reaped| reaped.jobs.clone()).unwrap_or_default();
                Answer { reaped, ..Answer::of(answer) }
            }
            Self::Reconsider(limit) => {
                Answer::of_set(store.reconsider(Reconsider { limit }).await.map(|looked_at| looked_at.moved))
            }
            Self::Retire(before, limit) => {
                let old = store.read().retirable(before, limit).await.unwrap();
                Answer::of_set(store.retire(Retire { before, jobs: old }).await)
            }
            Self::Enroll(command) => Answer::of(store.enroll(command).await),
            Self::Advertise(factory, advertised) => {
                Answer::of(store.advertise(Advertise { factory, advertised }).await)
            }
            Self::Touch(seen) => Answer::of(store.touch(Touch { seen }).await),
            Self::SetState(factory, state) => {
                Answer::of(store.set_factory_state(SetFactoryState { factory, state, actor: ana() }).await)
            }
            Self::Deregister(factory) => {
                Answer::of(store.deregister(Deregister { factory, actor: ana() }).await)
            }
            Self::Prune(before) => Answer::of_set(store.prune(Prune { before, actor: ana() }).await),
            Self::Rotate(factory, token, grace) => {
                Answer::of(store.rotate_token(RotateToken { factory, token, grace, actor: ana() }).await)
            }
            Self::RevokeFactory(factory) => {
                Answer::of(store.revoke_factory_tokens(RevokeFactoryTokens { factory, actor: ana() }).await)
            }
            Self::Issue(token) => Answer::of(store.issue_token(IssueToken { token, actor: ana() }).await),
            Self::Revoke(token) => Answer::of(store.revoke_token(RevokeToken { token, actor: ana() }).await),
            Self::SetFlag(name, value) => {
                Answer::of(store.set_flag(SetFlag { name: name.to_owned(), value, actor: ana() }).await)
            }
            Self::Lead(node, lease) => Answer::of(store.lead(TakeLead { node, lease }).await),
            Self::StepDown(node, term) => Answer::of(store.step_down(StepDown { node, term }).await),
            Self::Offer(term, chosen, pickup) => {
                Answer::of(store.offer(MakeOffers { term, chosen, pickup }).await)
            }
            Self::Sent(offers) => Answer::of(store.sent(Sent { offers }).await),
            Self::Diverged(divergence) => {
                Answer::of(store.diverged(RecordDivergences { divergences: vec![divergence] }).await)
            }
            Self::Evict(term, asked, grace) => {
                Answer::of(store.evict(EvictJobs { term, asked, grace, actor: ana() }).await)
            }
            Self::ChangeBudget(write) => Answer::of(store.change_budget(write).await),
            Self::Outside(step, now) => step.make(store, now).await,
        }
    }
}

//! Puts tokens for the entities that this connection uses, and puts them again before they expire.
//!
//! A task of its own, so that a request is never given up half-way: its answer would be taken for that of the next one.

use std::collections::HashMap;
use std::time::Duration;

use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp_cbs::client::CbsClient;
use fe2o3_amqp_cbs::token::CbsToken;
use giga_domain::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::address::Address;
use super::credential::Token;
use super::failure::{Failure, Kind, PATIENCE};
use super::{ServiceBusAccess, ServiceBusTuning};

/// A refresh that failed is tried again after so long, or sooner where tokens live for seconds.
const AGAIN: Duration = Duration::from_secs(10);

pub(super) struct Ask {
    pub(super) entity: String,
    pub(super) answer: oneshot::Sender<Result<(), Failure>>,
}

pub(super) struct Keeper {
    pub(super) address: Address,
    pub(super) access: ServiceBusAccess,
    pub(super) tuning: ServiceBusTuning,
    pub(super) http: reqwest::Client,
    pub(super) cbs: CbsClient,
    pub(super) session: SessionHandle<()>,
    pub(super) ended: CancellationToken,
}

/// When a token is to be put again: after two thirds of its life.
fn due(asked: Timestamp, until: Timestamp) -> Timestamp {
    asked.plus(until.since(asked) * 2 / 3)
}

impl Keeper {
    pub(super) async fn keep(mut self, mut asks: mpsc::Receiver<Ask>) {
        let mut due_at: HashMap<String, Timestamp> = HashMap::new();
        // Of an identity: the same for all entities.
        let mut shared: Option<(Token, Timestamp)> = None;
        loop {
            let now = self.access.clock.now();
            let next = due_at.values().min().copied();
            let sleep = next.map_or(Duration::from_hours(24), |at| at.since(now));
            tokio::select! {
                biased;
                () = self.ended.cancelled() => break,
                ask = asks.recv() => {
                    let Some(Ask { entity, answer }) = ask else { break };
                    let result = if due_at.get(&entity).is_some_and(|at| *at > self.access.clock.now()) {
                        Ok(())
                    } else {
                        self.put(&entity, &mut shared).await.map(|at| { due_at.insert(entity, at); })
                    };
                    let _ = answer.send(result);
                }
                () = tokio::time::sleep(sleep) => {
                    let now = self.access.clock.now();
                    let entities: Vec<String> =
                        due_at.iter().filter(|(_, at)| **at <= now).map(|(entity, _)| entity.clone()).collect();
                    for entity in entities {
                        match self.put(&entity, &mut shared).await {
                            Ok(at) => { due_at.insert(entity, at); }
                            Err(failure) => {
                                tracing::warn!(reason = failure.reason, entity, "no new token for Service Bus yet");
                                let again = AGAIN.min(self.tuning.signed_for / 10);
                                due_at.insert(entity, self.access.clock.now().plus(again));
                            }
                        }
                    }
                }
            }
        }
        // An answer that is still on its way is nobody's.
        drop(self.session);
    }

    async fn put(
        &mut self,
        entity: &str,
        shared: &mut Option<(Token, Timestamp)>,
    ) -> Result<Timestamp, Failure> {
        let audience = self.address.audience(entity);
        let now = self.access.clock.now();
        let (token, due_at) = match shared {
            Some((token, due_at)) if *due_at > now => (token.clone(), *due_at),
            _ => {
                let credential = &self.access.credential;
                let token = credential.token(&self.http, &audience, now, self.tuning.signed_for).await?;
                let due_at = due(now, token.until);
                if credential.is_identity() {
                    *shared = Some((token.clone(), due_at));
                }
                (token, due_at)
            }
        };
        let expires = fe2o3_amqp::types::primitives::Timestamp::from_milliseconds(token.until.as_millis());
        let put = self.cbs.put_token(audience, CbsToken::new(token.text, token.kind, expires));
        let result = match tokio::time::timeout(PATIENCE, put).await {
            Ok(result) => result.map_err(Failure::from),
            Err(_) => Err(Failure::lost("$cbs does not answer")),
        };
        result.map(|()| due_at).map_err(|failure| {
            match failure.kind {
                Kind::Lost => self.ended.cancel(),
                // Another may be better.
                _ => *shared = None,
            }
            let what =
                format!("Service Bus refuses the token ({}) for {entity}", self.access.credential.describe());
            failure.during(what)
        })
    }
}

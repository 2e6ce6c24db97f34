//! Puts tokens for the entities that this connection uses, and puts them again before they expire.
//!
//! A task of its own, so that a request is never given up half-way: its answer would be taken for that of the next one.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
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
    pub(super) answer: oneshot::Sender<Result<Used, Failure>>,
}

/// A token is renewed for as long as somebody has one of these.
pub(super) type Used = Arc<()>;

struct Entity {
    due: Timestamp,
    used: Weak<()>,
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
        let mut entities: HashMap<String, Entity> = HashMap::new();
        // Of an identity: the same for all entities.
        let mut shared: Option<(Token, Timestamp)> = None;
        loop {
            let now = self.access.clock.now();
            let next = entities.values().map(|entity| entity.due).min();
            let sleep = next.map_or(Duration::from_hours(24), |at| at.since(now));
            tokio::select! {
                biased;
                () = self.ended.cancelled() => break,
                ask = asks.recv() => {
                    let Some(Ask { entity, answer }) = ask else { break };
                    let _ = answer.send(self.use_of(entity, &mut entities, &mut shared).await);
                }
                () = tokio::time::sleep(sleep) => self.renew(&mut entities, &mut shared).await,
            }
        }
        // An answer that is still on its way is nobody's.
        drop(self.session);
    }

    async fn use_of(
        &mut self,
        name: String,
        entities: &mut HashMap<String, Entity>,
        shared: &mut Option<(Token, Timestamp)>,
    ) -> Result<Used, Failure> {
        let known = entities.get(&name).filter(|entity| entity.due > self.access.clock.now());
        let due = match known {
            Some(entity) => entity.due,
            None => self.put(&name, shared).await?,
        };
        let entity = entities.entry(name).or_insert(Entity { due, used: Weak::new() });
        entity.due = due;
        let used = entity.used.upgrade().unwrap_or_default();
        entity.used = Arc::downgrade(&used);
        Ok(used)
    }

    /// What nobody uses any more is forgotten.
    async fn renew(
        &mut self,
        entities: &mut HashMap<String, Entity>,
        shared: &mut Option<(Token, Timestamp)>,
    ) {
        let now = self.access.clock.now();
        entities.retain(|_, entity| entity.due > now || entity.used.strong_count() > 0);
        for (name, entity) in entities.iter_mut().filter(|(_, entity)| entity.due <= now) {
            entity.due = match self.put(name, shared).await {
                Ok(due) => due,
                Err(failure) => {
                    tracing::warn!(
                        reason = failure.reason,
                        entity = name,
                        "no new token for Service Bus yet"
                    );
                    self.access.clock.now().plus(AGAIN.min(self.tuning.signed_for / 10))
                }
            };
        }
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

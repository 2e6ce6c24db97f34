//! One connection to a namespace, and what is shared on it. It ends once, and is never mended: another takes its place.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fe2o3_amqp::Session;
use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp_cbs::client::CbsClient;
use giga_domain::FactoryId;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::address::Address;
use super::failure::{Failure, Kind, PATIENCE};
use super::offers::Current;
use super::tokens::{Ask, Keeper, Used};
use super::{ServiceBusAccess, ServiceBusTuning, connection};

/// What does not end with a connection.
pub(super) struct Settings {
    pub(super) address: Address,
    pub(super) access: ServiceBusAccess,
    pub(super) tuning: ServiceBusTuning,
    /// Nobody else's, on this namespace: names links, and the subscriptions of this process.
    pub(super) id: String,
    pub(super) http: reqwest::Client,
}

pub(super) struct Namespace {
    settings: Arc<Settings>,
    /// Taken for the moment in which a session is begun on it.
    connection: tokio::sync::Mutex<ConnectionHandle<()>>,
    tokens: mpsc::Sender<Ask>,
    /// The connection is gone, or the broker was dropped.
    pub(super) ended: CancellationToken,
    names: AtomicU64,
    pub(super) may_manage: AtomicBool,
    /// Until when the management is left alone, because it did not answer.
    pub(super) management_down: Mutex<Option<Instant>>,
    /// Subscriptions that are there, and since when that is believed.
    pub(super) known: Mutex<HashMap<String, Instant>>,
    /// The newest consumer of each factory in this process.
    pub(super) consumers: Mutex<HashMap<FactoryId, Current>>,
}

impl std::ops::Deref for Namespace {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl Settings {
    pub(super) fn new(
        address: Address,
        access: ServiceBusAccess,
        tuning: ServiceBusTuning,
    ) -> Result<Self, Failure> {
        let id = const_hex::encode(&access.random.bytes()[..8]);
        // Identity endpoints and the management are not for a proxy, nor may they send us elsewhere.
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build();
        let http = http.map_err(|error| Failure::new(Kind::Refused, error.to_string()))?;
        Ok(Self { address, access, tuning, id, http })
    }
}

impl Namespace {
    /// Ends with `broker`, or with the connection.
    pub(super) async fn open(
        settings: &Arc<Settings>,
        broker: &CancellationToken,
    ) -> Result<Arc<Self>, Failure> {
        let container = format!("gigafactory-{}", settings.id);
        let mut connection = connection::open(&settings.address, &container).await?;
        let ended = broker.child_token();
        let begun = async {
            let mut session = begin(&mut connection).await?;
            let cbs = CbsClient::attach(&mut session).await.map_err(Failure::from)?;
            Ok::<_, Failure>((begin(&mut connection).await?, session, cbs))
        };
        let late = || Failure::lost("$cbs does not answer");
        let (watched, session, cbs) = tokio::time::timeout(PATIENCE, begun).await.map_err(|_| late())??;
        let (tokens, asks) = mpsc::channel(64);
        let keeper = Keeper {
            address: settings.address.clone(),
            access: settings.access.clone(),
            tuning: settings.tuning,
            http: settings.http.clone(),
            cbs,
            session,
            ended: ended.clone(),
        };
        tokio::spawn(keeper.keep(asks));
        tokio::spawn(watch(watched, ended.clone()));
        Ok(Arc::new(Self {
            settings: Arc::clone(settings),
            connection: tokio::sync::Mutex::new(connection),
            tokens,
            ended,
            names: AtomicU64::new(0),
            may_manage: AtomicBool::new(true),
            management_down: Mutex::default(),
            known: Mutex::default(),
            consumers: Mutex::default(),
        }))
    }

    /// For a link or a node, nobody else's on this connection.
    pub(super) fn name(&self, what: &str) -> String {
        format!("{what}-{}-{}", self.id, self.names.fetch_add(1, Ordering::Relaxed))
    }

    /// With a token for the entity, to attach links in. Lives as long as they do.
    pub(super) async fn session_for(&self, entity: &str) -> Result<EntitySession, Failure> {
        let opening = async {
            let (answer, answered) = oneshot::channel();
            let gone = || Failure::lost("it ended");
            self.tokens.send(Ask { entity: entity.to_owned(), answer }).await.map_err(|_| gone())?;
            let used = answered.await.map_err(|_| gone())??;
            let session = begin(&mut *self.connection.lock().await).await?;
            Ok(EntitySession { session, _used: used })
        };
        self.in_time(PATIENCE * 2, opening).await
    }

    /// Fails when the connection ends, or when it takes too long.
    pub(super) async fn in_time<T>(
        &self,
        patience: Duration,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            () = self.ended.cancelled() => Err(Failure::lost("it ended")),
            result = tokio::time::timeout(patience, work) => {
                result.unwrap_or_else(|_| Err(Failure::lost("no answer")))
            }
        }
    }
}

pub(super) struct EntitySession {
    pub(super) session: SessionHandle<()>,
    _used: Used,
}

async fn begin(connection: &mut ConnectionHandle<()>) -> Result<SessionHandle<()>, Failure> {
    Session::begin(connection).await.map_err(Failure::lost)
}

/// A session on which nothing happens ends when the connection does.
async fn watch(mut session: SessionHandle<()>, ended: CancellationToken) {
    tokio::select! {
        _ = session.on_end() => ended.cancel(),
        () = ended.cancelled() => {}
    }
}

//! One connection that notifies. Calls that arrive while a statement is running share the next one.
//!
//! Sends nothing when there is nothing to send. A broken connection is replaced by the next call, once; a statement that
//! was cut off may have been committed, so a notification may arrive twice.

use std::sync::Arc;
use std::time::Duration;

use giga_domain::{Offer, Timestamp};
use giga_ports::BrokerError;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::{Client, Statement};

use super::connect::{Connector, failure};
use super::wire;
use crate::local::never_acknowledged;

const WAITING: usize = 1_024;
/// For one statement, the time to connect included.
const PATIENCE: Duration = Duration::from_secs(10);
const NOTIFY: &str = "SELECT pg_notify(channel, payload) \
                      FROM unnest($1::text[], $2::text[]) AS message (channel, payload)";

pub(super) enum Request {
    Notify {
        channel: &'static str,
        payloads: Vec<String>,
        done: oneshot::Sender<Result<(), BrokerError>>,
    },
    /// An offer that was delivered too often here; dated by the server. Nobody waits for it.
    DeadLetter(Offer),
}

#[derive(Clone)]
pub(super) struct Publisher(mpsc::Sender<Request>);

impl Publisher {
    pub(super) fn start(connector: Arc<Connector>) -> Self {
        let (sender, requests) = mpsc::channel(WAITING);
        tokio::spawn(serve(connector, requests));
        Self(sender)
    }

    /// Answers when the notifications are committed. Without payloads it only asks whether the server is there.
    pub(super) async fn notify(
        &self,
        channel: &'static str,
        payloads: Vec<String>,
    ) -> Result<(), BrokerError> {
        let (done, answer) = oneshot::channel();
        let request = Request::Notify { channel, payloads, done };
        let ended = || BrokerError::because("it was closed");
        self.0.send(request).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }

    pub(super) fn dead_letter(&self, offer: Offer) {
        // A full queue means that the server does not answer; the dead letter is only a mirror.
        let _ = self.0.try_send(Request::DeadLetter(offer));
    }
}

async fn serve(connector: Arc<Connector>, mut requests: mpsc::Receiver<Request>) {
    let mut connection = None;
    let mut taken = Vec::with_capacity(WAITING);
    while requests.recv_many(&mut taken, WAITING).await > 0 {
        let mut batch = Batch::default();
        taken.drain(..).for_each(|request| batch.add(request));
        let was_connected = connection.is_some();
        let result = match batch.send(&connector, &mut connection).await {
            // Most likely the server was restarted since the last time.
            Err(_) if was_connected => batch.send(&connector, &mut connection).await,
            result => result,
        };
        let reason = result.err().map(|error| error.reason);
        for done in batch.done {
            // An error means that the caller has gone.
            let _ = done.send(reason.clone().map_or(Ok(()), |reason| Err(BrokerError::because(reason))));
        }
    }
}

struct Connected {
    client: Client,
    notify: Statement,
}

#[derive(Default)]
struct Batch {
    channels: Vec<&'static str>,
    payloads: Vec<String>,
    expired: Vec<Offer>,
    done: Vec<oneshot::Sender<Result<(), BrokerError>>>,
}

impl Batch {
    fn add(&mut self, request: Request) {
        match request {
            Request::Notify { channel, payloads, done } => {
                self.channels.extend(payloads.iter().map(|_| channel));
                self.payloads.extend(payloads);
                self.done.push(done);
            }
            Request::DeadLetter(offer) => self.expired.push(offer),
        }
    }

    /// Leaves no connection behind that failed.
    async fn send(
        &mut self,
        connector: &Connector,
        connection: &mut Option<Connected>,
    ) -> Result<(), BrokerError> {
        let usable = connection.take().filter(|connected| !connected.client.is_closed());
        let attempt = async {
            let connected = match usable {
                Some(connected) => connected,
                None => connect(connector).await?,
            };
            self.date_expired(&connected.client).await?;
            let Connected { client, notify } = &connected;
            client.execute(notify, &[&self.channels, &self.payloads]).await.map_err(failure)?;
            Ok::<_, BrokerError>(connected)
        };
        let late = |_| BrokerError::because(format!("PostgreSQL did not answer within {PATIENCE:?}"));
        *connection = Some(tokio::time::timeout(PATIENCE, attempt).await.map_err(late)??);
        Ok(())
    }

    async fn date_expired(&mut self, client: &Client) -> Result<(), BrokerError> {
        if self.expired.is_empty() {
            return Ok(());
        }
        let now = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        let row = client.query_one(now, &[]).await.map_err(failure)?;
        let at = Timestamp::from_millis(row.try_get(0).map_err(failure)?);
        let letters = self.expired.drain(..).map(|offer| never_acknowledged(&offer, at));
        let payloads = wire::pack(letters)?;
        self.channels.extend(payloads.iter().map(|_| wire::DEAD));
        self.payloads.extend(payloads);
        Ok(())
    }
}

async fn connect(connector: &Connector) -> Result<Connected, BrokerError> {
    let (client, _) = connector.connect().await?;
    let notify = client.prepare(NOTIFY).await.map_err(failure)?;
    Ok(Connected { client, notify })
}

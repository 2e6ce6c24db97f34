//! From settings to a connection that works: at once if the namespace is there, otherwise as soon as it is; and again, whenever
//! it was lost.

use std::sync::Arc;

use giga_ports::BrokerError;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::failure::{Failure, Kind};
use super::namespace::{Namespace, Settings};
use super::outgoing::TopicSender;
use super::signals::{self, HintSender};
use crate::backoff::Backoff;
use crate::local::{DeadLetterBroadcast, HintBroadcast};

/// A connection with what is sent on it.
pub(super) struct Connected {
    pub(super) namespace: Arc<Namespace>,
    pub(super) offers: Arc<TopicSender>,
    pub(super) dead: Arc<TopicSender>,
    pub(super) hints: Arc<HintSender>,
}

/// What works now, or why nothing does.
pub(super) type Link = Result<Arc<Connected>, String>;

/// The task ends when the set is dropped.
pub(super) async fn establish(
    settings: Settings,
    hints: HintBroadcast,
    dead: DeadLetterBroadcast,
    closed: CancellationToken,
) -> Result<(watch::Receiver<Link>, JoinSet<()>), BrokerError> {
    let settings = Arc::new(settings);
    let first = match Box::pin(connect(&settings, &hints, &dead, &closed)).await {
        Ok(connected) => Ok(connected),
        // The other side answered and refused: an error now rather than a retry.
        Err(failure) if matches!(failure.kind, Kind::Refused | Kind::Missing) => return Err(failure.into()),
        Err(failure) => {
            tracing::warn!(reason = failure.reason, "cannot connect to Service Bus yet; retrying");
            Err(failure.reason)
        }
    };
    let (link, seen) = watch::channel(first);
    let mut tasks = JoinSet::new();
    tasks.spawn(keep(settings, hints, dead, closed, link));
    Ok((seen, tasks))
}

/// Never gives up: an operator may mend meanwhile what is refused now.
async fn keep(
    settings: Arc<Settings>,
    hints: HintBroadcast,
    dead: DeadLetterBroadcast,
    closed: CancellationToken,
    link: watch::Sender<Link>,
) {
    loop {
        let connected = link.borrow().as_ref().ok().cloned();
        if let Some(connected) = connected {
            connected.namespace.ended.cancelled().await;
            if closed.is_cancelled() {
                return;
            }
            tracing::warn!("the connection to Service Bus was lost");
            link.send_modify(|link| *link = Err("the connection to Service Bus was lost".to_owned()));
        }
        let mut backoff = Backoff::new();
        let connected = loop {
            backoff.wait().await;
            match Box::pin(connect(&settings, &hints, &dead, &closed)).await {
                Ok(connected) => break connected,
                Err(failure) => {
                    if matches!(failure.kind, Kind::Refused | Kind::Missing) {
                        tracing::error!(reason = failure.reason, "Service Bus cannot be used");
                    } else {
                        tracing::warn!(reason = failure.reason, "cannot connect to Service Bus yet");
                    }
                    link.send_modify(|link| *link = Err(failure.reason));
                }
            }
        };
        link.send_modify(|link| *link = Ok(connected));
        hints.resync();
    }
}

async fn connect(
    settings: &Arc<Settings>,
    hints: &HintBroadcast,
    dead: &DeadLetterBroadcast,
    closed: &CancellationToken,
) -> Result<Arc<Connected>, Failure> {
    let namespace = Namespace::open(settings, closed).await?;
    let result = prepare(&namespace, hints, dead).await;
    if result.is_err() {
        namespace.ended.cancel();
    }
    result
}

/// Answers when this process hears what is told from now on.
async fn prepare(
    namespace: &Arc<Namespace>,
    hints: &HintBroadcast,
    dead: &DeadLetterBroadcast,
) -> Result<Arc<Connected>, Failure> {
    let address = &namespace.address;
    namespace.ensure_topics().await?;
    // Weak: what is read on a connection must not keep it.
    let (here, readers, looks) = (Arc::downgrade(namespace), hints.clone(), hints.clone());
    let hear = move |message| {
        if let Some(namespace) = here.upgrade() {
            signals::hear(&namespace, &readers, &message);
        }
    };
    signals::read(namespace, address.hints(), hear, move || looks.resync()).await?;
    let mirror = dead.clone();
    signals::read(namespace, address.dead(), move |message| signals::mourn(&mirror, &message), || {}).await?;
    let sender = |topic| TopicSender::new(namespace, topic);
    Ok(Arc::new(Connected {
        namespace: Arc::clone(namespace),
        offers: sender(address.offers()),
        dead: sender(address.dead()),
        hints: HintSender::new(sender(address.hints())),
    }))
}

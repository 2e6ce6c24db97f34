//! Sends to one topic, and says whether all of it arrived. What was throttled is sent again, more slowly each time.
//!
//! One link, opened when it is needed and again when it is lost. Messages are on their way together; each has its outcome.

use std::sync::Arc;
use std::time::Duration;

use fe2o3_amqp::Sender;
use fe2o3_amqp::types::messaging::{ApplicationProperties, Data, Message, Outcome, Properties};
use fe2o3_amqp::types::primitives::Binary;

use super::failure::{Failure, Kind, PATIENCE};
use super::namespace::{EntitySession, Namespace};

/// How often a message is sent before whoever publishes is told, and how long is waited in between at first.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(50);
/// On their way at once.
const IN_FLIGHT: usize = 256;

#[derive(Debug, Clone)]
pub(super) struct Outgoing {
    /// What duplicates are told by.
    pub(super) id: Option<String>,
    pub(super) properties: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

impl Outgoing {
    fn message(&self) -> Message<Data> {
        let mut properties = Properties::builder().content_type("application/json".to_owned());
        if let Some(id) = &self.id {
            properties = properties.message_id(id.clone());
        }
        let mut application = ApplicationProperties::builder();
        for (name, value) in &self.properties {
            application = application.insert(*name, value.clone());
        }
        Message::builder()
            .properties(properties.build())
            .application_properties(application.build())
            .body(Data(Binary::from(self.body.clone())))
            .build()
    }
}

struct Link {
    /// Lives as long as the link.
    _session: EntitySession,
    sender: Sender,
}

pub(super) struct TopicSender {
    namespace: Arc<Namespace>,
    topic: String,
    link: tokio::sync::Mutex<Option<Link>>,
}

impl TopicSender {
    pub(super) fn new(namespace: &Arc<Namespace>, topic: String) -> Arc<Self> {
        Arc::new(Self { namespace: Arc::clone(namespace), topic, link: tokio::sync::Mutex::default() })
    }

    /// Answers when the topic has them all. In a task of its own: a message is never sent by half because whoever waits for it
    /// has given up.
    pub(super) async fn send(self: &Arc<Self>, messages: Vec<Outgoing>) -> Result<(), Failure> {
        if messages.is_empty() {
            return Ok(());
        }
        let this = Arc::clone(self);
        let sending = tokio::spawn(async move { this.send_all(messages).await });
        sending.await.map_err(|error| Failure::lost(format!("sending failed: {error}")))?
    }

    async fn send_all(&self, mut left: Vec<Outgoing>) -> Result<(), Failure> {
        let mut pause = PAUSE;
        let mut for_good = None;
        for attempt in 1..=TRIES {
            let mut again = Vec::new();
            let mut last = None;
            for chunk in left.chunks(IN_FLIGHT) {
                let sent = self.namespace.in_time(PATIENCE, self.send_once(chunk)).await;
                let outcomes = match sent {
                    Ok(outcomes) => outcomes,
                    Err(failure) => {
                        // However far it came, this link is not used again.
                        *self.link.lock().await = None;
                        vec![Err(failure); chunk.len()]
                    }
                };
                for (message, outcome) in chunk.iter().zip(outcomes) {
                    match outcome {
                        Ok(()) => {}
                        Err(failure) if failure.is(Kind::TooLarge) => {
                            let what = message.id.as_deref().unwrap_or("a message");
                            for_good = Some(failure.during(format!("{what} does not fit into Service Bus")));
                        }
                        Err(failure) => {
                            again.push(message.clone());
                            last = Some(failure);
                        }
                    }
                }
            }
            let Some(failure) = last else { break };
            let hopeless = failure.is(Kind::Refused) || self.namespace.ended.is_cancelled();
            if hopeless || attempt == TRIES {
                return Err(self.named(failure));
            }
            match failure.kind {
                Kind::Missing => self.namespace.ensure_topics().await?,
                Kind::Busy => tracing::debug!(reason = failure.reason, "Service Bus is busy; sending again"),
                _ => {}
            }
            tokio::time::sleep(pause).await;
            pause *= 3;
            left = again;
        }
        for_good.map_or(Ok(()), Err)
    }

    /// The entity, and what helps.
    fn named(&self, failure: Failure) -> Failure {
        let topic = &self.topic;
        match failure.kind {
            Kind::Missing => failure.during(format!(
                "the topic {topic} is not there, and this credential may not make it: make it, or give the credential the right to \
                 manage (docs/servicebus.md)"
            )),
            Kind::Refused => failure.during(format!("this credential may not send to the topic {topic}")),
            _ => failure.during(format!("sending to the topic {topic}")),
        }
    }

    async fn send_once(&self, messages: &[Outgoing]) -> Result<Vec<Result<(), Failure>>, Failure> {
        let mut underway = Vec::with_capacity(messages.len());
        {
            let mut link = self.link.lock().await;
            let open = match link.take() {
                Some(open) => open,
                None => self.attach().await?,
            };
            let open = link.insert(open);
            for message in messages {
                match open.sender.send_batchable(message.message()).await {
                    Ok(sent) => underway.push(Ok(sent)),
                    Err(error) => {
                        let failure = Failure::from(error);
                        let lost = !failure.is(Kind::TooLarge);
                        underway.push(Err(failure.clone()));
                        if lost {
                            *link = None;
                            let rest = messages.len() - underway.len();
                            underway.extend(std::iter::repeat_with(|| Err(failure.clone())).take(rest));
                            break;
                        }
                    }
                }
            }
        }
        let mut outcomes = Vec::with_capacity(underway.len());
        let mut broken = false;
        for sent in underway {
            outcomes.push(match sent {
                Err(failure) => Err(failure),
                Ok(sent) => match sent.await {
                    Ok(Outcome::Accepted(_)) => Ok(()),
                    Ok(Outcome::Rejected(rejected)) => Err(rejected.error.as_ref().map_or_else(
                        || Failure::new(Kind::Busy, "the message was rejected without a reason"),
                        Failure::of_condition,
                    )),
                    Ok(_) => Err(Failure::new(Kind::Busy, "the message was given back")),
                    Err(error) => {
                        broken = true;
                        Err(error.into())
                    }
                },
            });
        }
        if broken {
            *self.link.lock().await = None;
        }
        Ok(outcomes)
    }

    async fn attach(&self) -> Result<Link, Failure> {
        let mut session = self.namespace.session_for(&self.topic).await?;
        let name = self.namespace.name("send");
        let sender = Sender::attach(&mut session.session, name, self.topic.as_str()).await?;
        Ok(Link { _session: session, sender })
    }
}

//! Following events as they happen, across lost connections.
//!
//! A reader sees every event once and in order: after a disconnect the stream goes on from the last id it saw. A
//! lost connection is reported, never passed off as silence.

use std::collections::VecDeque;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use reqwest::Response;
use serde::Deserialize;
use serde_json::Value;

use super::sse::{Message, Parser};
use super::transport::Call;
use super::{Answer, Client, ClientError};
use crate::wire::Event;

/// The coordinator sends a comment every 5 s; without one for so long the connection is dead.
const SILENCE: Duration = Duration::from_secs(15);
/// Until the headers of the answer are there.
const ANSWER: Duration = Duration::from_secs(15);
/// After one loss: long enough in total for a coordinator to be restarted or replaced.
const DELAYS: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(100))
    .with_max_delay(Duration::from_secs(3))
    .without_max_times()
    .with_total_delay(Some(Duration::from_mins(1)));

/// What a follower hears.
#[derive(Debug)]
pub enum Signal {
    Event(Box<Answer<Event>>),
    /// The connection was lost; the next call tries again. Reported once per loss.
    Lost(ClientError),
    /// It is back, and nothing was missed.
    Back,
}

#[derive(Debug)]
pub struct Follow {
    client: Client,
    job: Option<String>,
    /// The id of the last event that was passed on.
    last_id: Option<String>,
    connection: Option<Connection>,
    /// A connection was there and is gone.
    lost: bool,
    delays: ExponentialBackoff,
    /// Before the next try.
    delay: Option<Duration>,
}

#[derive(Debug)]
struct Connection {
    response: Response,
    parser: Parser,
    ready: VecDeque<Message>,
}

impl Client {
    /// The events of one job, after `after` of its history.
    pub fn follow_job(&self, id: &str, after: u64) -> Follow {
        Follow::new(self, Some(id.to_owned()), Some(after))
    }

    /// The fleet-wide feed after a position; from now on without one.
    pub fn follow_fleet(&self, after: Option<u64>) -> Follow {
        Follow::new(self, None, after)
    }
}

impl Follow {
    fn new(client: &Client, job: Option<String>, after: Option<u64>) -> Self {
        Self {
            client: client.clone(),
            job,
            last_id: after.map(|id| id.to_string()),
            connection: None,
            lost: false,
            delays: DELAYS.build(),
            delay: None,
        }
    }

    /// The next signal. An error is final: the coordinator refused, or stayed away for too long.
    pub async fn next(&mut self) -> Result<Signal, ClientError> {
        loop {
            let Some(connection) = &mut self.connection else {
                if let Some(signal) = self.connect().await? {
                    return Ok(signal);
                }
                continue;
            };
            if let Some(message) = connection.ready.pop_front() {
                let event = read_event(&self.client, &message)?;
                self.last_id = message.id.or(self.last_id.take());
                return Ok(Signal::Event(Box::new(event)));
            }
            let chunk = tokio::time::timeout(SILENCE, connection.response.chunk()).await;
            let reason = match chunk {
                Ok(Ok(Some(bytes))) => match connection.parser.feed(&bytes) {
                    Ok(messages) => {
                        connection.ready.extend(messages);
                        continue;
                    }
                    Err(_) => "an event was too long".to_owned(),
                },
                Ok(Ok(None)) => "the connection was closed".to_owned(),
                Ok(Err(error)) => error.without_url().to_string(),
                Err(_) => format!("silent for {} s", SILENCE.as_secs()),
            };
            self.connection = None;
            self.lost = true;
            self.delay = self.delays.next();
            let url = self.client.url().to_owned();
            return Ok(Signal::Lost(ClientError::Unreachable { url, reason, source: None }));
        }
    }

    /// One try. A first connection that fails is an error; a lost one is given time to come back.
    async fn connect(&mut self) -> Result<Option<Signal>, ClientError> {
        if let Some(delay) = self.delay.take() {
            tokio::time::sleep(delay).await;
        }
        let path = match &self.job {
            Some(id) => vec!["jobs", id.as_str(), "events", "stream"],
            None => vec!["events", "stream"],
        };
        let call = Call::get(&path)
            .header("accept", Some("text/event-stream"))
            .header("last-event-id", self.last_id.as_ref());
        let tried = tokio::time::timeout(ANSWER, self.client.send(&call, None)).await.unwrap_or_else(|_| {
            let reason = format!("no answer within {} s", ANSWER.as_secs());
            Err(ClientError::Unreachable { url: self.client.url().to_owned(), reason, source: None })
        });
        match tried {
            Ok(response) => {
                self.connection =
                    Some(Connection { response, parser: Parser::default(), ready: VecDeque::new() });
                self.delays = DELAYS.build();
                Ok(std::mem::take(&mut self.lost).then_some(Signal::Back))
            }
            Err(error) => {
                if self.lost && error.is_passing() {
                    self.delay = self.delays.next();
                }
                if self.delay.is_some() { Ok(None) } else { Err(error) }
            }
        }
    }
}

fn read_event(client: &Client, message: &Message) -> Result<Answer<Event>, ClientError> {
    let bad = |error: serde_json::Error| ClientError::BadAnswer {
        url: client.url().to_owned(),
        status: 200,
        reason: format!("event `{}`: {error}", message.event),
    };
    let json: Value = serde_json::from_str(&message.data).map_err(bad)?;
    let value = Event::deserialize(&json).map_err(bad)?;
    Ok(Answer { value, json, status: 200 })
}

//! Many statements, one round trip.
//!
//! A statement is on its way as soon as it is sent here; answers are waited for together. The server runs them in
//! the order they were sent, each on a fresh snapshot, so a look that is sent after a lock sees what the lock
//! waited for.

use std::future::Future;
use std::pin::Pin;

use futures::TryStreamExt;
use giga_ports::StoreError;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

use super::error::failure;

pub(crate) type Value = Box<dyn ToSql + Sync + Send>;

pub(crate) struct Pipeline<'c> {
    client: &'c Client,
    sent: Vec<Sent<'c>>,
}

enum Sent<'c> {
    Waiting(Pin<Box<dyn Future<Output = Result<Vec<Row>, Error>> + Send + 'c>>),
    Answered(Result<Vec<Row>, Error>),
}

/// Where an answer will be found.
#[derive(Clone, Copy)]
pub(crate) struct Ticket(usize);

#[derive(Default)]
pub(crate) struct Answers(Vec<Vec<Row>>);

impl Answers {
    /// What was not asked for has no rows.
    pub(crate) fn take(&mut self, ticket: Option<Ticket>) -> Vec<Row> {
        ticket.and_then(|Ticket(place)| self.0.get_mut(place)).map(std::mem::take).unwrap_or_default()
    }
}

impl<'c> Pipeline<'c> {
    pub(crate) fn new(client: &'c Client) -> Self {
        Self { client, sent: Vec::new() }
    }

    pub(crate) async fn send(&mut self, statement: &'c Statement, values: Vec<Value>) -> Option<Ticket> {
        let client = self.client;
        self.start(Box::pin(async move {
            client.query_raw(statement, values).await?.try_collect::<Vec<_>>().await
        }))
        .await
    }

    pub(crate) async fn send_if(
        &mut self,
        wanted: bool,
        statement: &'c Statement,
        values: impl FnOnce() -> Vec<Value>,
    ) -> Option<Ticket> {
        if wanted { self.send(statement, values()).await } else { None }
    }

    /// `BEGIN`, `COMMIT`, `ROLLBACK`.
    pub(crate) async fn send_plain(&mut self, sql: &'static str) {
        let client = self.client;
        self.start(Box::pin(async move { client.batch_execute(sql).await.map(|()| Vec::new()) })).await;
    }

    /// The driver puts a request into the connection's queue when its future is first polled; polling it here,
    /// once, makes the order of sending the order of the calls.
    async fn start(
        &mut self,
        mut request: Pin<Box<dyn Future<Output = Result<Vec<Row>, Error>> + Send + 'c>>,
    ) -> Option<Ticket> {
        self.sent.push(match futures::poll!(&mut request) {
            std::task::Poll::Ready(answer) => Sent::Answered(answer),
            std::task::Poll::Pending => Sent::Waiting(request),
        });
        Some(Ticket(self.sent.len() - 1))
    }

    /// All answers, or the first thing that went wrong: the errors behind it only say that the transaction is over.
    pub(crate) async fn finish(self) -> Result<Answers, StoreError> {
        let mut answers = Vec::with_capacity(self.sent.len());
        let mut trouble: Option<Error> = None;
        for sent in self.sent {
            let answer = match sent {
                Sent::Waiting(request) => request.await,
                Sent::Answered(answer) => answer,
            };
            match answer {
                Ok(rows) => answers.push(rows),
                Err(error) if trouble.as_ref().is_none_or(is_aftermath) => trouble = Some(error),
                Err(_) => {}
            }
        }
        match trouble {
            Some(error) => Err(failure(error)),
            None => Ok(Answers(answers)),
        }
    }
}

fn is_aftermath(error: &Error) -> bool {
    error.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION)
}

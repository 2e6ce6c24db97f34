//! The few calls of the service that the store makes, with what each was charged.

use std::sync::Arc;
use std::time::Duration;

use azure_data_cosmos::models::ResponseHeaders;
use azure_data_cosmos::options::{BatchReplaceOptions, ItemReadOptions, Precondition};
use azure_data_cosmos::{ContainerClient, CosmosError, TransactionalBatch};
use giga_ports::StoreError;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::documents::{HEAD, Head, LOG};

type Result<T> = std::result::Result<T, StoreError>;

/// What the service has charged since the store was opened, from its own answers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// Documents that were read, and looks that found nothing new.
    pub reads: u64,
    pub writes: u64,
    /// Of changes and rows, as text.
    pub bytes: u64,
    pub request_units: f64,
}

pub(super) struct Service {
    container: ContainerClient,
    spent: Arc<Mutex<Spent>>,
}

#[derive(Debug)]
pub(super) enum Found<T> {
    Document(T, String),
    /// It is still what the caller has.
    Same,
    Missing,
}

#[derive(Debug, PartialEq)]
pub(super) enum Written {
    /// With the new etag of the head.
    Done(String),
    /// The head is not what the caller thought: somebody else was faster.
    Lost,
}

impl Service {
    pub(super) fn new(container: ContainerClient) -> Self {
        Self { container, spent: Arc::default() }
    }

    pub(super) fn spent(&self) -> Spent {
        *self.spent.lock()
    }

    pub(super) fn writes_bytes(&self, bytes: u64) {
        self.spent.lock().bytes += bytes;
    }

    fn charge(&self, headers: Option<&ResponseHeaders>, count: impl FnOnce(&mut Spent)) {
        let mut spent = self.spent.lock();
        count(&mut spent);
        spent.request_units +=
            headers.and_then(ResponseHeaders::request_charge).map_or(0.0, |charge| charge.value());
    }

    fn charge_failed(&self, error: &CosmosError, count: impl FnOnce(&mut Spent)) {
        let mut spent = self.spent.lock();
        count(&mut spent);
        let charge = error.response().and_then(|response| response.headers().request_charge.as_ref());
        spent.request_units += charge.map_or(0.0, |charge| charge.value());
    }

    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        partition: &str,
        id: &str,
        known: Option<&str>,
    ) -> Result<Found<T>> {
        let mut options = ItemReadOptions::default();
        if let Some(etag) = known {
            options = options.with_precondition(Precondition::if_none_match(etag.to_owned()));
        }
        let answer = Box::pin(self.container.read_item(partition.to_owned(), id, Some(options))).await;
        match answer {
            Ok(answer) => {
                self.charge(Some(answer.headers()), |spent| spent.reads += 1);
                if u16::from(answer.status().status_code()) == 304 {
                    return Ok(Found::Same);
                }
                let etag = answer.headers().etag().map(ToString::to_string);
                let etag =
                    etag.ok_or_else(|| StoreError::broken_because(format!("{id} came without an etag")))?;
                Ok(Found::Document(answer.into_model().map_err(failure)?, etag))
            }
            Err(error) => {
                self.charge_failed(&error, |spent| spent.reads += 1);
                match code(&error) {
                    304 => Ok(Found::Same),
                    404 if is_about_an_item(&error) => Ok(Found::Missing),
                    _ => Err(failure(error)),
                }
            }
        }
    }

    /// One that is there already is fine.
    pub(super) async fn create(&self, partition: &str, id: &str, document: &impl Serialize) -> Result<()> {
        match Box::pin(self.container.create_item(partition.to_owned(), id, document, None)).await {
            Ok(answer) => {
                self.charge(Some(answer.headers()), |spent| spent.writes += 1);
                Ok(())
            }
            Err(error) => {
                self.charge_failed(&error, |spent| spent.writes += 1);
                if code(&error) == 409 { Ok(()) } else { Err(failure(error)) }
            }
        }
    }

    /// Whatever was there before.
    pub(super) async fn put(&self, partition: &str, id: &str, document: &impl Serialize) -> Result<()> {
        match Box::pin(self.container.upsert_item(partition.to_owned(), id, document, None)).await {
            Ok(answer) => {
                self.charge(Some(answer.headers()), |spent| spent.writes += 1);
                Ok(())
            }
            Err(error) => {
                self.charge_failed(&error, |spent| spent.writes += 1);
                Err(failure(error))
            }
        }
    }

    /// One that is gone already is fine.
    pub(super) async fn delete(&self, partition: &str, id: &str) -> Result<()> {
        match Box::pin(self.container.delete_item(partition.to_owned(), id, None)).await {
            Ok(answer) => {
                self.charge(Some(answer.headers()), |spent| spent.writes += 1);
                Ok(())
            }
            Err(error) => {
                self.charge_failed(&error, |spent| spent.writes += 1);
                if code(&error) == 404 { Ok(()) } else { Err(failure(error)) }
            }
        }
    }

    /// The head moves on, and with it the log: both or neither, and only from the head that the caller knows.
    pub(super) async fn advance(
        &self,
        known: &str,
        head: &Head,
        commit: Option<&impl Serialize>,
    ) -> Result<Written> {
        let matching =
            BatchReplaceOptions::default().with_precondition(Precondition::if_match(known.to_owned()));
        let mut batch = TransactionalBatch::new(LOG.to_owned())
            .replace_item(HEAD, head, Some(matching))
            .map_err(failure)?;
        if let Some(commit) = commit {
            batch = batch.create_item(commit).map_err(failure)?;
        }
        let answer = match Box::pin(self.container.execute_transactional_batch(batch, None)).await {
            Ok(answer) => answer,
            Err(error) => {
                self.charge_failed(&error, |spent| spent.writes += 1);
                return if matches!(code(&error), 409 | 412) {
                    Ok(Written::Lost)
                } else {
                    Err(failure(error))
                };
            }
        };
        self.charge(Some(answer.headers()), |spent| spent.writes += 1);
        let results = answer.into_model().map_err(failure)?;
        // Of a batch that failed one says why, and the others that they depended on it.
        let why = results.results().iter().find(|result| !result.is_success() && result.status_code() != 424);
        match why.map(|result| (result.status_code(), result.retry_after())) {
            None => {}
            Some((409 | 412, _)) => return Ok(Written::Lost),
            Some((429, after)) => return Err(throttled(after).await),
            Some((404, _)) => return Err(emptied()),
            Some((status @ (400 | 401 | 403 | 413), _)) => {
                return Err(StoreError::broken_because(format!(
                    "Cosmos DB refused a commit with status {status}"
                )));
            }
            Some((status, _)) => {
                return Err(unavailable(format!("Cosmos DB answered a commit with status {status}")));
            }
        }
        let etag = results.results().first().and_then(|result| result.etag());
        let etag = etag.ok_or_else(|| StoreError::broken_because("a commit was answered without an etag"))?;
        Ok(Written::Done(etag.to_owned()))
    }
}

/// The client has waited as often as it does by itself; this waits once more, as long as the service asks for.
async fn throttled(after: Option<Duration>) -> StoreError {
    tokio::time::sleep(after.unwrap_or(Duration::from_millis(100)).min(Duration::from_secs(5))).await;
    unavailable(
        "Cosmos DB throttles this store (429): it has fewer request units per second than are asked for",
    )
}

pub(super) fn emptied() -> StoreError {
    StoreError::broken_because("its head is gone: was the container emptied?")
}

fn unavailable(reason: impl Into<String>) -> StoreError {
    StoreError::Unavailable { reason: reason.into(), source: None }
}

fn code(error: &CosmosError) -> u16 {
    u16::from(error.status().status_code())
}

/// A 404 of a container or a database has a substatus of its own.
fn is_about_an_item(error: &CosmosError) -> bool {
    error.status().sub_status().is_none_or(|sub| sub.value() == 0)
}

/// Which errors pass, and what to do about those that do not.
pub fn failure(error: CosmosError) -> StoreError {
    let remedy = match code(&error) {
        400 | 405 => "this is a bug, or the container is partitioned by something else than /pk",
        401 => {
            "the key or the identity is not accepted: check it, and that the clock of this machine is right"
        }
        403 => {
            "the identity may not use the data: give it the role `Cosmos DB Built-in Data Contributor`, and let \
             this machine through the account's firewall"
        }
        // A replica that is behind what this client has seen elsewhere.
        404 if !is_about_an_item(&error) && error.status().is_read_session_not_available() => {
            return StoreError::unavailable(error);
        }
        404 => "create the database and the container, partitioned by /pk, first (docs/cosmos.md)",
        409 | 412 => "somebody else writes what only the store should",
        413 => "a document was larger than the service takes",
        429 => return unavailable(format!("Cosmos DB throttles this store (429): {error}")),
        _ => return StoreError::unavailable(error),
    };
    StoreError::Broken { reason: format!("Cosmos DB: {error}; {remedy}"), source: Some(Box::new(error)) }
}

//! Folder mode: a Markdown file that is dropped into `inbox/` becomes a job, and moves from folder to folder as the
//! job's stage does.
//!
//! The folders are a view and never the truth: what a job is and where it stands is the coordinator's word, and moving
//! a file by hand changes nothing. Nothing here overwrites a file, follows a link, or submits the same file twice:
//! name and content make the job's idempotency key.

mod listen;
mod places;
mod refusal;
mod tickets;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use giga_api::client::{Client, ClientError, Idempotency};
use giga_api::wire::ProblemCode;
use giga_domain::manifest::Draft;
use giga_domain::{JobId, Phase, Stage, limits};
use sha2::{Digest, Sha256};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::listen::Change;
pub use self::places::Place;
use self::places::{Places, Sighting};
use self::tickets::Ticket;

#[derive(Debug, Clone)]
pub struct FolderConfig {
    /// Where `inbox/` and its siblings are; they are made where they are missing.
    pub root: PathBuf,
    pub client: Client,
    /// For manifests that name none.
    pub product: Option<String>,
    /// How often the inbox is looked at. A file is taken when it looks the same twice.
    pub poll: Duration,
    /// How often every open job is asked about, in case the stream of events had a gap.
    pub look_again: Duration,
    /// Receives what happens to files, to show to people.
    pub events: Option<mpsc::UnboundedSender<FolderEvent>>,
}

/// What happened to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FolderEvent {
    /// It is this job now.
    Submitted { file: String, job: JobId },
    /// It lies here now, under this name.
    Moved { job: JobId, file: String, place: Place },
    /// It lies in `failed/` under this name, with the reasons beside it.
    Refused { file: String },
}

impl FolderConfig {
    pub fn new(root: PathBuf, client: Client) -> Self {
        let (poll, look_again) = (Duration::from_secs(2), Duration::from_secs(30));
        Self { root, client, product: None, poll, look_again, events: None }
    }
}

#[derive(Debug, Error)]
pub enum FolderError {
    #[error("{path} cannot be used as a folder for jobs: {source}")]
    Unusable { path: PathBuf, source: io::Error },
}

/// Runs until `stop`. Later errors are logged and retried.
pub async fn run(config: FolderConfig, stop: CancellationToken) -> Result<(), FolderError> {
    let unusable = |source| FolderError::Unusable { path: config.root.clone(), source };
    let places = Places::open(&config.root).map_err(unusable)?;
    let tickets = tickets::load(&places).map_err(unusable)?;
    let client = match &config.product {
        Some(product) => config.client.for_product(product),
        None => config.client.clone(),
    };
    let (sender, mut changes) = mpsc::channel(64);
    let listener = tokio::spawn(listen::listen(client.clone(), sender, stop.clone()));
    let mut folder = Folder { client, places, tickets, seen: HashMap::new(), events: config.events };
    let mut scan = tokio::time::interval(config.poll);
    scan.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut look_again = tokio::time::interval(config.look_again);
    look_again.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // What ended long ago is asked about once, to forget what the coordinator has forgotten.
    let every = folder.tickets.keys().copied().collect();
    folder.follow_each(every).await;
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            _ = scan.tick() => folder.take_new().await,
            _ = look_again.tick() => folder.follow_all().await,
            Some(change) = changes.recv() => match change {
                Change::Job(job) => folder.follow_each(vec![job]).await,
                Change::Resync => folder.follow_all().await,
            },
        }
    }
    // It ends with the same token.
    let _ = listener.await;
    Ok(())
}

struct Folder {
    client: Client,
    places: Places,
    tickets: HashMap<JobId, Ticket>,
    /// How the files of the inbox looked last time.
    seen: HashMap<String, Sighting>,
    events: Option<mpsc::UnboundedSender<FolderEvent>>,
}

/// Where the file of a job in this stage belongs. What waits, waits in the inbox.
fn place_of(stage: Stage) -> Place {
    match stage.phase() {
        Phase::Queued | Phase::Blocked => Place::Inbox,
        Phase::Running => Place::Building,
        Phase::Review => Place::Review,
        Phase::Ready | Phase::Shipping => Place::Testing,
        Phase::Shipped => Place::Shipped,
        Phase::Failed | Phase::Cancelled => Place::Failed,
    }
}

/// The same file is the same job, whenever and however often it is submitted.
fn key_of(name: &str, content: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(name.as_bytes());
    hash.update([0]);
    hash.update(content);
    format!("folder-{}", const_hex::encode(&hash.finalize()[..16]))
}

impl Folder {
    async fn take_new(&mut self) {
        let found = match self.places.manifests() {
            Ok(found) => found,
            Err(error) => return tracing::warn!(%error, "the inbox cannot be read"),
        };
        let mut seen = HashMap::new();
        for (name, sighting) in found {
            let known = self.tickets.values().any(|t| t.place == Place::Inbox && t.file == name);
            // Somebody may still be writing to a file that changed since the last look.
            if !known && self.seen.get(&name) == Some(&sighting) {
                self.take(&name).await;
            }
            seen.insert(name, sighting);
        }
        self.seen = seen;
    }

    async fn take(&mut self, name: &str) {
        // One byte more than is allowed, so that what is too long is refused and not cut.
        let content = match self.places.read(Place::Inbox, name, limits::MANIFEST_BYTES + 1) {
            Ok(content) => content,
            Err(error) => return tracing::warn!(%error, name, "a file cannot be read"),
        };
        let has_key = Draft::from_markdown(&content).is_ok_and(|draft| draft.has_idempotency_key());
        let idempotency =
            if has_key { Idempotency::InManifest } else { Idempotency::Key(key_of(name, &content)) };
        match self.client.submit(content, &idempotency).await {
            Ok(answer) => {
                for warning in &answer.warnings {
                    tracing::warn!(name, warning, "submitted with a warning");
                }
                self.submitted(name, &answer.job.id, answer.job.stage.into());
            }
            Err(ClientError::Problem(problem)) if refusal::is_about_the_file(&problem) => {
                self.refuse(name, &refusal::text(name, &problem));
            }
            // It stays where it is and is tried again.
            Err(error) => tracing::warn!(%error, name, "a file could not be submitted"),
        }
    }

    fn submitted(&mut self, name: &str, id: &str, stage: Stage) {
        let Ok(job) = id.parse::<JobId>() else {
            return tracing::error!(id, "the coordinator answered with something else than a job");
        };
        if let Some(ticket) = self.tickets.get(&job) {
            let text = refusal::again(name, job, &ticket.file);
            return self.refuse(name, &text);
        }
        let ticket = Ticket { job, file: name.to_owned(), place: Place::Inbox, over: false };
        if let Err(error) = tickets::save(&self.places, &ticket) {
            // Nothing is lost: the next look submits it again under the same key.
            return tracing::warn!(%error, name, "a ticket could not be written");
        }
        self.tickets.insert(job, ticket);
        self.tell(FolderEvent::Submitted { file: name.to_owned(), job });
        self.settle(job, stage);
    }

    fn refuse(&self, name: &str, text: &str) {
        match self.places.refuse(name, text) {
            Ok(file) => self.tell(FolderEvent::Refused { file }),
            Err(error) => tracing::warn!(%error, name, "a refused file could not be moved"),
        }
    }

    /// Asks about every job that can still move.
    async fn follow_all(&mut self) {
        let open = self.tickets.values().filter(|ticket| !ticket.over).map(|ticket| ticket.job).collect();
        self.follow_each(open).await;
    }

    async fn follow_each(&mut self, jobs: Vec<JobId>) {
        for job in jobs {
            if self.follow(job).await.is_none() {
                // Nobody answers, and nobody would answer about the others either.
                return;
            }
        }
    }

    /// `None` when the coordinator could not be asked.
    async fn follow(&mut self, job: JobId) -> Option<()> {
        if !self.tickets.contains_key(&job) {
            return Some(());
        }
        match self.client.job(&job.to_string()).await {
            Ok(answer) => self.settle(job, answer.stage.into()),
            // Retired: the file stays where it is, and may be submitted again one day.
            Err(error) if error.code() == Some(ProblemCode::NotFound) => {
                self.tickets.remove(&job);
                if let Err(error) = tickets::remove(&self.places, job) {
                    tracing::warn!(%error, %job, "a ticket could not be removed");
                }
            }
            Err(error) => {
                tracing::warn!(%error, %job, "the coordinator could not be asked");
                return None;
            }
        }
        Some(())
    }

    /// Moves the job's file to where its stage belongs.
    fn settle(&mut self, job: JobId, stage: Stage) {
        let place = place_of(stage);
        let over = stage.is_terminal();
        let stale = |ticket: &&Ticket| ticket.place != place || ticket.over != over;
        let Some(ticket) = self.tickets.get(&job).filter(stale).cloned() else { return };
        let Some(at) = self.whereabouts(&ticket) else {
            // Somebody took the file away. The job goes on without it, and is not asked about for ever.
            self.remember(Ticket { over, ..ticket });
            return;
        };
        let moved = if at == place {
            Ok(ticket.file.clone())
        } else {
            self.places.move_file(at, &ticket.file, place)
        };
        match moved {
            Ok(file) => {
                self.remember(Ticket { job, file: file.clone(), place, over });
                if ticket.place != place {
                    self.tell(FolderEvent::Moved { job, file, place });
                }
            }
            Err(error) => tracing::warn!(%error, %job, "a file could not be moved"),
        }
    }

    fn remember(&mut self, ticket: Ticket) {
        if self.tickets.get(&ticket.job) == Some(&ticket) {
            return;
        }
        if let Err(error) = tickets::save(&self.places, &ticket) {
            tracing::warn!(%error, job = %ticket.job, "a ticket could not be written");
        }
        self.tickets.insert(ticket.job, ticket);
    }

    fn tell(&self, event: FolderEvent) {
        tracing::info!(?event, "folder");
        if let Some(events) = &self.events {
            // Nobody has to listen.
            let _ = events.send(event);
        }
    }

    /// Where the file is: where the ticket says, or, after a crash between a move and its note, in another place under
    /// the same name that no other job has there.
    fn whereabouts(&self, ticket: &Ticket) -> Option<Place> {
        let others = Place::ALL.into_iter().filter(|place| *place != Place::Inbox && *place != ticket.place);
        std::iter::once(ticket.place).chain(others).find(|place| {
            let claimed = |t: &Ticket| t.job != ticket.job && t.place == *place && t.file == ticket.file;
            self.places.holds(*place, &ticket.file) && !self.tickets.values().any(claimed)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_file_and_content() {
        let key = key_of("a.md", b"x");
        assert_eq!(key, key_of("a.md", b"x"));
        assert_ne!(key, key_of("b.md", b"x"));
        assert_ne!(key, key_of("a.md", b"y"));
        assert_ne!(key_of("a", b".mdx"), key_of("a.md", b"x"));
        assert!(key.len() <= limits::IDEMPOTENCY_KEY_CHARS);
    }
}

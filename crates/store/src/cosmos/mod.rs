//! Azure Cosmos DB: a log of commits in one container, and the tables in memory.
//!
//! ```text
//! load ─▶ decide ─▶ changes (rows) ─▶ one batch: head, If-Match ┬─▶ 200: into the tables, then the answer
//!   ▲       on the tables in memory             + the commit     └─▶ 412: somebody else was faster
//!   └────────────── read what they committed, decide again ◀───────────┘
//! ```
//!
//! The tables are those of the memory store, and so are all reads. Before each, one look at the head says whether
//! anything is new; it costs one request unit, and calls that come in together share it. Why it is done like this, and
//! what the limits are: ADR 26.

mod catch_up;
mod connect;
mod documents;
#[cfg(feature = "cosmos-emulator")]
mod emulator;
mod save;
mod service;
mod turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use azure_data_cosmos::ContainerClient;
use giga_domain::Timestamp;
use giga_ports::store::InterceptReads;
use giga_ports::{Clock, StoreError, StoreReads};
use tokio::sync::Mutex;

use self::catch_up::readable;
pub use self::connect::{Address, Credential, Identity, TopicsAt, connect};
use self::documents::{Carrier, HEAD, Head, LOG, Load, Part, WHOLE, commit_id, cut};
#[cfg(feature = "cosmos-emulator")]
pub use self::emulator::EmulatedAccount;
use self::service::{Found, Service, Written, emptied};
pub use self::service::{Spent, failure};
use crate::MemoryBackend;
use crate::engine::{Backend, Batch, Committed};
use crate::memory::changes::Changes;

type Result<T> = std::result::Result<T, StoreError>;

/// How often a commit is decided again because others were faster, before callers hear of it.
const MOST_LOST: u32 = 200;

/// How far ahead a commit may be for time to go on from it.
const A_DAY: Duration = Duration::from_hours(24);

/// How often the log is read again because it was folded meanwhile.
const MOST_FOLDED: u32 = 20;

/// How much is written to the log before it is folded into a snapshot, at least. Past that, as much as the last
/// snapshot had: so each byte is written about twice.
pub const LOG_BYTES: u64 = 16_000_000;

#[derive(Debug, Clone)]
pub struct CosmosBackend {
    shared: Arc<Shared>,
}

struct Shared {
    service: Service,
    tables: MemoryBackend,
    clock: Arc<dyn Clock>,
    /// Names the documents that only this handle writes.
    writer: u64,
    named: AtomicU64,
    log_bytes: u64,
    link: Mutex<Link>,
    /// Counts those who want to see all that was committed before now.
    asked: AtomicU64,
    /// The latest time of the log.
    at: AtomicI64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cosmos").field("writer", &self.writer).finish_non_exhaustive()
    }
}

/// How far the tables follow the log.
struct Link {
    head: Head,
    etag: String,
    /// The tables have seen all that was committed before so many had asked.
    checked: u64,
    /// A call went wrong and may have been carried out.
    in_doubt: bool,
    /// How many commits went through one after the other.
    streak: u64,
    /// The parts of commits that were too long for one document, as long as these are there.
    parts: Vec<(u64, Vec<String>)>,
}

impl CosmosBackend {
    /// Opens the store in this container, which must be there; what is in it is made where it is missing.
    pub async fn open(container: ContainerClient, clock: Arc<dyn Clock>) -> Result<Self> {
        Self::open_with(container, clock, LOG_BYTES).await
    }

    /// The same, with a snapshot after at least so many bytes.
    pub async fn open_with(
        container: ContainerClient,
        clock: Arc<dyn Clock>,
        log_bytes: u64,
    ) -> Result<Self> {
        let service = Service::new(container);
        let writer = register(&service).await?;
        let shared = Arc::new(Shared {
            service,
            tables: MemoryBackend::new(clock.clone()),
            clock,
            writer,
            named: AtomicU64::new(0),
            log_bytes,
            link: Mutex::new(Link {
                head: Head::new(),
                etag: String::new(),
                checked: 0,
                in_doubt: true,
                streak: 0,
                parts: Vec::new(),
            }),
            asked: AtomicU64::new(0),
            at: AtomicI64::new(0),
        });
        shared.fresh().await?;
        Ok(Self { shared })
    }

    pub fn spent(&self) -> Spent {
        self.shared.service.spent()
    }

    /// Folds the log into a snapshot now. It happens by itself when the log has grown enough.
    pub async fn save(&self) -> Result<()> {
        self.shared.save().await
    }
}

/// Takes the next number of a writer, and makes the head where it is missing.
async fn register(service: &Service) -> Result<u64> {
    loop {
        let (mut head, etag) = match service.read::<Head>(LOG, HEAD, None).await? {
            Found::Document(head, etag) => (head, etag),
            Found::Same | Found::Missing => {
                service.create(LOG, HEAD, &Head::new()).await?;
                continue;
            }
        };
        readable(&head)?;
        head.writers += 1;
        if let Written::Done(_) = service.advance(&etag, &head, None::<&Carrier>).await? {
            return Ok(head.writers);
        }
    }
}

impl Shared {
    /// The store's time: the clock of whoever commits, but not before the time of the last commit. One that is more than
    /// a day ahead was made under a wrong clock, and this one is right now, as when a coordinator starts.
    fn now(&self) -> Timestamp {
        let (own, last) = (self.clock.now(), Timestamp::from_millis(self.at.load(Ordering::SeqCst)));
        if last.since(own) > A_DAY { own } else { own.max(last) }
    }

    fn name(&self, what: &str) -> String {
        format!("{what}-{}-{}", self.writer, self.named.fetch_add(1, Ordering::SeqCst))
    }

    /// The tables have all that was committed before the call.
    async fn fresh(self: &Arc<Self>) -> Result<()> {
        let ticket = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut link = self.link.lock().await;
        if link.checked >= ticket && !link.in_doubt { Ok(()) } else { self.look(&mut link).await.map(drop) }
    }

    /// Whether there was anything new.
    async fn look(&self, link: &mut Link) -> Result<bool> {
        let upto = self.asked.load(Ordering::SeqCst);
        let mut new = false;
        for _ in 0..MOST_FOLDED {
            let known = (!link.etag.is_empty()).then_some(&*link.etag);
            match self.service.read::<Head>(LOG, HEAD, known).await? {
                Found::Same => {}
                Found::Missing => return Err(emptied()),
                Found::Document(head, etag) => {
                    new |= head.last != link.head.last;
                    if !self.follow(link, head).await? {
                        // The log was folded while it was read.
                        continue;
                    }
                    link.etag = etag;
                }
            }
            link.checked = upto;
            link.in_doubt = false;
            return Ok(new);
        }
        Err(StoreError::Unavailable { reason: "its log is folded all the time".to_owned(), source: None })
    }

    async fn commit(self: &Arc<Self>, batch: &mut Batch) -> Result<Committed> {
        let ticket = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut link = self.link.lock().await;
        if link.in_doubt {
            self.look(&mut link).await?;
        }
        self.give_way(&mut link).await?;
        for lost in 1..=MOST_LOST {
            let now = self.now();
            let needs = batch.needs();
            let (changes, appends) = {
                let tables = self.tables.tables();
                let writes = batch.decide(tables.load(&needs, now));
                let appends = !writes.events.is_empty();
                if writes.is_empty() {
                    (Changes::default(), false)
                } else {
                    (tables.changes(writes), appends)
                }
            };
            if changes.is_empty() {
                // Nothing to write was decided too, and so it has to be about what is there now.
                if link.checked >= ticket || !self.look(&mut link).await? {
                    return Ok(Committed { head: None });
                }
                continue;
            }
            let upto = self.asked.load(Ordering::SeqCst);
            let number = link.head.last + 1;
            let (commit, length) = self.carry(commit_id(number), LOG.to_owned(), &changes).await?;
            let mut head = link.head.clone();
            head.last = number;
            head.at = now.as_millis();
            head.bytes += length;
            let folds = self.folds(&mut head);
            match self.service.advance(&link.etag, &head, Some(&commit)).await {
                Ok(Written::Done(etag)) => {
                    let end = {
                        let mut tables = self.tables.tables();
                        tables.apply(&changes)?;
                        tables.last_pos
                    };
                    self.at.store(head.at, Ordering::SeqCst);
                    link.remember(number, &commit.load);
                    (link.head, link.etag, link.checked) = (head, etag, upto);
                    link.streak += 1;
                    if folds {
                        self.save_in_the_background();
                    }
                    return Ok(Committed { head: appends.then_some(end) });
                }
                Ok(Written::Lost) => {
                    link.streak = 0;
                    self.ask_for_a_turn(&link, lost).await?;
                    self.look(&mut link).await?;
                }
                Err(error) => {
                    link.in_doubt = true;
                    return Err(error);
                }
            }
        }
        link.in_doubt = true;
        Err(StoreError::Unavailable { reason: "others write all the time".to_owned(), source: None })
    }

    /// The document for these changes, and how long they are; its parts are written where it needs some. Nobody
    /// knows of parts before the document is there.
    async fn carry(&self, id: String, pk: String, changes: &Changes) -> Result<(Carrier, u64)> {
        let json = changes.to_json();
        let text = json.to_string();
        let length = text.len() as u64;
        self.service.writes_bytes(length);
        if text.len() <= WHOLE {
            return Ok((Carrier { id, pk, load: Load::Changes(json) }, length));
        }
        let mut parts = Vec::new();
        for part in cut(&text) {
            let id = self.name("part");
            self.service
                .create(&id, &id, &Part { id: id.clone(), pk: id.clone(), text: part.to_owned() })
                .await?;
            parts.push(id);
        }
        Ok((Carrier { id, pk, load: Load::Parts(parts) }, length))
    }
}

impl Link {
    fn remember(&mut self, number: u64, load: &Load) {
        if !load.parts().is_empty() {
            self.parts.push((number, load.parts().to_vec()));
        }
    }
}

#[async_trait]
impl Backend for CosmosBackend {
    async fn transact(&self, mut batch: Batch) -> (Batch, Result<Committed>) {
        let result = self.shared.commit(&mut batch).await;
        (batch, result)
    }

    async fn any_to_reconsider(&self) -> Result<bool> {
        self.shared.fresh().await?;
        self.shared.tables.any_to_reconsider().await
    }
}

impl InterceptReads for CosmosBackend {
    fn inner_reads(&self) -> &dyn StoreReads {
        &self.shared.tables
    }

    async fn around<T: Send>(
        &self,
        call: &'static str,
        answer: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        // The other two go to the service, or need not.
        if !matches!(call, "now" | "ping") {
            self.shared.fresh().await?;
        }
        answer.await
    }

    async fn now(&self) -> Result<Timestamp> {
        Ok(self.shared.now())
    }

    async fn ping(&self) -> Result<()> {
        match self.shared.service.read::<Head>(LOG, HEAD, None).await? {
            Found::Document(..) => Ok(()),
            Found::Same | Found::Missing => Err(emptied()),
        }
    }
}

//! How a write happens, whatever the database:
//!
//! ```text
//! callers ──▶ queue ──▶ writer: takes all that waits (a batch)
//!                         │ 1 needs     which rows the batch's commands look at
//!                         │ 2 load      backend: one transaction, rows locked in one order
//!                         │ 3 decide    pure: each command in turn, on the loaded rows
//!                         │ 4 persist   backend: set-wise writes, feed positions last, commit
//!                         ▼ 5 answer    every caller, after its own write is durable
//! ```
//!
//! A batch can be run again from the start after a passing error, even when the commit's fate is unknown, because
//! every command finds its own earlier effect (see `giga_domain::transition`).

mod effects;
mod graph;
mod loaded;
mod money;
mod ops;
mod pools;
mod registry;
mod secrets;
mod working;
mod writer;
mod writes;

pub use effects::{EffectNeeds, EffectWrites, EffectsLoaded};
pub use graph::{GraphLoaded, GraphNeeds, GraphWrites, Standing, Taken};
pub use loaded::{Loaded, Needs};
pub use money::{BudgetRow, ChargeRow};
pub use pools::{PoolWrites, PoolsLoaded};
pub use registry::{RegistryLoaded, RegistryNeeds, RegistryWrites, SharedKey};
pub use secrets::{SecretWrites, SecretsLoaded};
pub use working::Working;
pub use writer::BatchStore;
pub use writes::{JobInsert, LeaseRow, PendingEvent, QueueDelta, RunWrite, Writes};

use async_trait::async_trait;
use giga_domain::FeedPos;
use giga_ports::store::Write;
use giga_ports::{StoreError, StoreReads};
use tokio::sync::oneshot;

/// A database, as the engine sees it.
#[async_trait]
pub trait Backend: StoreReads + 'static {
    /// Runs the batch in one transaction: load what it needs, let it decide, persist, commit. The batch comes back
    /// either way. On an error nothing of it is known to have stayed.
    async fn transact(&self, batch: Batch) -> (Batch, Result<Committed, StoreError>);

    /// Whether a job waits to be looked at again. A plain look, so that nobody writes where there is nothing to do.
    async fn any_to_reconsider(&self) -> Result<bool, StoreError>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The last feed position that exists after the commit, where the batch appended events.
    pub head: Option<FeedPos>,
}

/// How a command of the port is carried out.
pub(crate) trait Op: Write {
    /// A look before it queues up: the reply, where there is nothing to write. Where the look fails the command is carried
    /// out, with the patience that writes have.
    fn look<B: Backend>(
        &self,
        _backend: &B,
    ) -> impl Future<Output = Result<Option<Self::Reply>, StoreError>> + Send {
        std::future::ready(Ok(None))
    }

    /// Which rows it looks at.
    fn needs(&self, needs: &mut Needs);

    /// What it does to what it finds. A refused command leaves `Working` untouched.
    fn decide(&self, working: &mut Working) -> Result<Self::Reply, StoreError>;
}

/// Commands that share a transaction.
#[derive(Debug)]
pub struct Batch {
    ops: Vec<Box<dyn Pending>>,
}

impl Batch {
    pub fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        for op in &self.ops {
            op.needs(&mut needs);
        }
        needs.budgets_of_made_jobs();
        needs
    }

    /// Decides all commands in turn; each sees the effect of those before it.
    pub fn decide(&mut self, loaded: Loaded) -> Writes {
        let mut working = Working::new(loaded);
        for op in &mut self.ops {
            op.decide(&mut working);
        }
        working.into_writes()
    }

    pub fn len(&self) -> usize {
        self.ops.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }
}

/// A command that waits for its answer, its types erased.
trait Pending: Send {
    fn needs(&self, needs: &mut Needs);
    fn decide(&mut self, working: &mut Working);
    /// After the commit: the caller gets what was decided.
    fn answer(self: Box<Self>);
    fn fail(self: Box<Self>, error: StoreError);
}

impl std::fmt::Debug for dyn Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pending")
    }
}

struct Asked<O: Op> {
    op: O,
    decided: Option<Result<O::Reply, StoreError>>,
    caller: oneshot::Sender<Result<O::Reply, StoreError>>,
}

impl<O: Op> Pending for Asked<O> {
    fn needs(&self, needs: &mut Needs) {
        self.op.needs(needs);
    }

    fn decide(&mut self, working: &mut Working) {
        self.decided = Some(self.op.decide(working));
    }

    fn answer(self: Box<Self>) {
        let decided = self.decided.unwrap_or_else(|| {
            Err(StoreError::broken_because("a backend committed a batch without deciding it"))
        });
        // A caller that went away does not mind.
        let _ = self.caller.send(decided);
    }

    fn fail(self: Box<Self>, error: StoreError) {
        let _ = self.caller.send(Err(error));
    }
}

//! A few connections that only read.

use std::path::PathBuf;
use std::sync::Arc;

use giga_ports::StoreError;
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::{blocking, connection, read};
use crate::sql::{Decode, Query};

/// How many reads can run at once.
const READERS: usize = 4;

pub(crate) struct Readers {
    path: PathBuf,
    /// Connections that nobody uses now; the turns bound how many there are.
    idle: Arc<Mutex<Vec<Connection>>>,
    turns: Arc<Semaphore>,
}

impl Readers {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, idle: Arc::default(), turns: Arc::new(Semaphore::new(READERS)) }
    }

    pub(crate) async fn query<T: Send + 'static>(
        &self,
        query: Query,
        decode: Decode<T>,
    ) -> Result<Vec<T>, StoreError> {
        let turn = self.turns.clone().acquire_owned().await;
        let (path, idle) = (self.path.clone(), self.idle.clone());
        blocking(move || {
            let _turn = turn;
            let free = idle.lock().pop();
            let connection = free.map_or_else(|| connection::open_reader(&path), Ok)?;
            let found = read(&connection, &query.sql, query.values, query.table, decode);
            idle.lock().push(connection);
            found
        })
        .await
    }
}

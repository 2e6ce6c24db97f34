//! A few connections for reads. Each is shared: the driver sends one read behind the other without waiting, so
//! nobody has to own a connection to use it.

use std::sync::Arc;

use giga_ports::StoreError;
use parking_lot::Mutex;
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use super::connect::Connector;
use super::decode_all;
use super::error::{failure, is_cut};
use crate::rows::Cell;
use crate::sql::{Decode, Query};

const CONNECTIONS: usize = 4;

#[derive(Default)]
pub(crate) struct Readers {
    slots: [Mutex<Option<Arc<Client>>>; CONNECTIONS],
}

impl Readers {
    /// The connection with the fewest readers on it. One is opened where none is idle and a place is left, so a
    /// quiet coordinator keeps one.
    pub(crate) async fn get(&self, connector: &Connector) -> Result<Arc<Client>, StoreError> {
        let mut best: Option<Arc<Client>> = None;
        let mut vacant = None;
        for slot in &self.slots {
            let mut slot_value = slot.lock();
            if slot_value.as_ref().is_some_and(|client| client.is_closed()) {
                *slot_value = None;
            }
            match slot_value.as_ref() {
                // Only the slot knows it: nobody reads from it now.
                Some(client) if Arc::strong_count(client) == 1 => return Ok(client.clone()),
                Some(client) => {
                    if best.as_ref().is_none_or(|best| busier(best, client)) {
                        best = Some(client.clone());
                    }
                }
                None => vacant = Some(slot),
            }
        }
        match (vacant, best) {
            (Some(slot), _) => {
                let client = Arc::new(connector.connect().await?);
                // Two may have opened one at the same time; the loser's is closed after its read.
                slot.lock().get_or_insert_with(|| client.clone());
                Ok(client)
            }
            (None, Some(client)) => Ok(client),
            (None, None) => connector.connect().await.map(Arc::new),
        }
    }

    pub(crate) async fn query<T>(
        &self,
        connector: &Connector,
        query: Query,
        decode: Decode<T>,
    ) -> Result<Vec<T>, StoreError> {
        let reader = self.get(connector).await?;
        let values: Vec<(Cell, Type)> =
            query.values.into_iter().map(|cell| (cell_type(&cell), cell)).map(|(t, c)| (c, t)).collect();
        let params: Vec<_> =
            values.iter().map(|(cell, kind)| (cell as &(dyn ToSql + Sync), kind.clone())).collect();
        // Planned for these very values and sent in one go: a prepared `LIMIT $1` is planned for a tenth of the table.
        let rows = match reader.query_typed(&query.sql, &params).await {
            // The connection was lost since its last read. A read can be asked again, once, on a new one.
            Err(error) if is_cut(&error) => connector.connect().await?.query_typed(&query.sql, &params).await,
            answer => answer,
        };
        decode_all(&rows.map_err(failure)?, query.table, decode)
    }
}

fn cell_type(cell: &Cell) -> Type {
    match cell {
        Cell::Null | Cell::Text(_) => Type::TEXT,
        Cell::Int(_) => Type::INT8,
        Cell::Bytes(_) => Type::BYTEA,
    }
}

fn busier(one: &Arc<Client>, other: &Arc<Client>) -> bool {
    Arc::strong_count(one) > Arc::strong_count(other)
}

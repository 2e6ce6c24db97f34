//! A few connections for reads. Each is shared: the driver sends one read behind the other without waiting, so
//! nobody has to own a connection to use it.

use std::sync::{Arc, Mutex, PoisonError};

use giga_ports::StoreError;
use tokio_postgres::Client;

use super::connect::Connector;

const CONNECTIONS: usize = 4;

#[derive(Default)]
pub(super) struct Readers {
    slots: [Mutex<Option<Arc<Client>>>; CONNECTIONS],
}

impl Readers {
    /// The connection with the fewest readers on it. One is opened where none is idle and a place is left, so a
    /// quiet coordinator keeps one.
    pub(super) async fn get(&self, connector: &Connector) -> Result<Arc<Client>, StoreError> {
        let mut best: Option<Arc<Client>> = None;
        let mut vacant = None;
        for slot in &self.slots {
            let mut slot_value = slot.lock().unwrap_or_else(PoisonError::into_inner);
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
                slot.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| client.clone());
                Ok(client)
            }
            (None, Some(client)) => Ok(client),
            (None, None) => connector.connect().await.map(Arc::new),
        }
    }
}

fn busier(one: &Arc<Client>, other: &Arc<Client>) -> bool {
    Arc::strong_count(one) > Arc::strong_count(other)
}

//! Folding the log into a snapshot, while others write on.
//!
//! Rows are taken from the tables a few at a time, so a snapshot may hold some that are newer than the commit that it
//! is named after. That does no harm: the log from that commit on puts whole rows, and ends in the same tables.

use std::sync::Arc;

use serde_json::Value;

use super::documents::{Carrier, Head, LOG, Manifest, Snapshot, commit_id};
use super::service::{Found, Written};
use super::{Link, Result, Shared};
use crate::memory::changes::Changes;
use crate::memory::rows::Key;

/// How long a piece gets, about.
const PIECE: usize = 1_000_000;
/// How many rows are taken while the tables are held.
const ROWS: usize = 200;

impl Shared {
    /// Whether this commit is the one whose writer folds the log; others leave it alone until half as much has come again.
    pub(super) fn folds(&self, head: &mut Head) -> bool {
        let enough = self.log_bytes.max(head.snapshot.as_ref().map_or(0, |snapshot| snapshot.bytes));
        let folds = match head.saving {
            None => head.bytes >= enough,
            Some(begun) => head.bytes >= begun + enough / 2,
        };
        if folds {
            head.saving = Some(head.bytes);
        }
        folds
    }

    pub(super) fn save_in_the_background(self: &Arc<Self>) {
        let shared = self.clone();
        tokio::spawn(async move {
            if let Err(error) = shared.save().await {
                tracing::warn!(%error, "the log could not be folded into a snapshot; it will be tried again");
            }
        });
    }

    pub(super) async fn save(&self) -> Result<()> {
        let (at, folded, keys) = {
            let mut link = self.link.lock().await;
            self.look(&mut link).await?;
            (link.head.last, link.head.bytes, self.tables.tables().keys())
        };
        let mut manifest = self.manifest();
        let mut bytes = 0;
        let mut piece: Vec<(Key, Value)> = Vec::new();
        let mut length = 0;
        for keys in keys.chunks(ROWS) {
            {
                let tables = self.tables.tables();
                for key in keys {
                    if let Some(row) = tables.row(key) {
                        length += row.to_string().len();
                        piece.push((key.clone(), row));
                    }
                }
            }
            if length >= PIECE {
                bytes += self.write_piece(&mut manifest, std::mem::take(&mut piece)).await?;
                length = 0;
            }
        }
        bytes += self.write_piece(&mut manifest, piece).await?;
        self.service.create(&manifest.id, &manifest.id, &manifest).await?;
        let snapshot = Snapshot { manifest: manifest.id.clone(), at, bytes };

        let mut link = self.link.lock().await;
        let before = self
            .change_head(&mut link, |head| {
                let newer = head.snapshot.as_ref().is_some_and(|there| there.at >= at);
                if newer {
                    return None;
                }
                head.bytes = head.bytes.saturating_sub(folded);
                head.saving = None;
                Some(head.snapshot.replace(snapshot.clone()))
            })
            .await?;
        let Some(before) = before else {
            // Somebody else did the same and was faster.
            drop(link);
            return self.discard(&manifest).await;
        };
        let oldest = link.head.oldest;
        let parts: Vec<String> = link
            .parts
            .iter()
            .filter(|(number, _)| *number <= at)
            .flat_map(|(_, parts)| parts.clone())
            .collect();
        drop(link);

        for number in oldest..=at {
            self.service.delete(LOG, &commit_id(number)).await?;
        }
        for part in parts {
            self.service.delete(&part, &part).await?;
        }
        if let Some(before) = before
            && let Found::Document(manifest, _) =
                self.service.read::<Manifest>(&before.manifest, &before.manifest, None).await?
        {
            self.discard(&manifest).await?;
        }
        let mut link = self.link.lock().await;
        self.change_head(&mut link, |head| (head.oldest <= at).then(|| head.oldest = at + 1)).await?;
        link.parts.retain(|(number, _)| *number > at);
        Ok(())
    }

    fn manifest(&self) -> Manifest {
        let id = self.name("snapshot");
        Manifest { pk: id.clone(), id, pieces: Vec::new(), parts: Vec::new() }
    }

    async fn write_piece(&self, manifest: &mut Manifest, rows: Vec<(Key, Value)>) -> Result<u64> {
        if rows.is_empty() {
            return Ok(0);
        }
        let id = self.name("piece");
        let (piece, length) =
            self.carry(id.clone(), id.clone(), &Changes { gone: Vec::new(), put: rows }).await?;
        manifest.parts.extend_from_slice(piece.load.parts());
        self.service.create(&id, &id, &piece).await?;
        manifest.pieces.push(id);
        Ok(length)
    }

    async fn discard(&self, manifest: &Manifest) -> Result<()> {
        // The pieces last: who reads them while they go finds one missing and starts over.
        self.service.delete(&manifest.id, &manifest.id).await?;
        for id in manifest.pieces.iter().chain(&manifest.parts) {
            self.service.delete(id, id).await?;
        }
        Ok(())
    }

    /// Changes the head without a commit. `None` of the change leaves it as it is.
    async fn change_head<T>(
        &self,
        link: &mut Link,
        mut change: impl FnMut(&mut Head) -> Option<T> + Send,
    ) -> Result<Option<T>> {
        loop {
            self.look(link).await?;
            let mut head = link.head.clone();
            let Some(changed) = change(&mut head) else { return Ok(None) };
            match self.service.advance(&link.etag, &head, None::<&Carrier>).await {
                Ok(Written::Done(etag)) => {
                    (link.head, link.etag) = (head, etag);
                    return Ok(Some(changed));
                }
                Ok(Written::Lost) => {}
                Err(error) => {
                    link.in_doubt = true;
                    return Err(error);
                }
            }
        }
    }
}

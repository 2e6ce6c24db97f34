//! Reading what others have committed, or everything.

use std::sync::atomic::Ordering;

use futures::{StreamExt, TryStreamExt, stream};
use giga_ports::StoreError;

use super::documents::{Carrier, FORMAT, Head, LOG, Load, Manifest, Part, commit_id};
use super::service::Found;
use super::{Link, Result, Shared};
use crate::memory::Tables;
use crate::memory::changes::Changes;

/// How many documents are asked for at once.
const AT_ONCE: usize = 16;

impl Shared {
    /// Brings the tables to this head. `false` where what it names is gone already: then there is a newer one.
    pub(super) async fn follow(&self, link: &mut Link, head: Head) -> Result<bool> {
        readable(&head)?;
        let from = link.head.last + 1;
        // A log that is shorter than it was came out of a backup.
        let is_another = head.last < link.head.last;
        let is_new = head.last >= from;
        if is_another
            || (is_new && (head.oldest > from || !self.read_log(link, from..=head.last, None).await?))
        {
            // Or somebody has folded what is missing here into a snapshot.
            if !self.start_over(link, &head).await? {
                return Ok(false);
            }
        }
        self.at.store(head.at, Ordering::SeqCst);
        link.parts.retain(|(number, _)| *number >= head.oldest);
        link.head = head;
        Ok(true)
    }

    async fn start_over(&self, link: &mut Link, head: &Head) -> Result<bool> {
        let mut fresh = Tables::default();
        let mut from = 1;
        if let Some(snapshot) = &head.snapshot {
            let Found::Document(manifest, _) =
                self.service.read::<Manifest>(&snapshot.manifest, &snapshot.manifest, None).await?
            else {
                return Ok(false);
            };
            let pieces =
                stream::iter(manifest.pieces).map(|id| async move { self.read_changes(&id, &id).await });
            let mut pieces = std::pin::pin!(pieces.buffered(AT_ONCE));
            while let Some(piece) = pieces.try_next().await? {
                let Some((_, rows)) = piece else { return Ok(false) };
                fresh.apply(&rows)?;
            }
            from = snapshot.at + 1;
        }
        link.parts.clear();
        if !self.read_log(link, from..=head.last, Some(&mut fresh)).await? {
            return Ok(false);
        }
        *self.tables.tables() = fresh;
        link.head.last = head.last;
        Ok(true)
    }

    /// Applies these commits to the tables, or to others; `false` where one of them is gone.
    async fn read_log(
        &self,
        link: &mut Link,
        numbers: std::ops::RangeInclusive<u64>,
        mut instead: Option<&mut Tables>,
    ) -> Result<bool> {
        let commits = stream::iter(numbers).map(|number| async move {
            let id = commit_id(number);
            self.read_changes(LOG, &id).await.map(|found| (number, found))
        });
        let mut commits = std::pin::pin!(commits.buffered(AT_ONCE));
        while let Some((number, found)) = commits.try_next().await? {
            let Some((load, changes)) = found else { return Ok(false) };
            if let Some(tables) = &mut instead {
                tables.apply(&changes)?;
            } else {
                self.tables.tables().apply(&changes)?;
                link.head.last = number;
            }
            link.remember(number, &load);
        }
        Ok(true)
    }

    async fn read_changes(&self, partition: &str, id: &str) -> Result<Option<(Load, Changes)>> {
        let Found::Document(Carrier { load, .. }, _) = self.service.read(partition, id, None).await? else {
            return Ok(None);
        };
        let changes = match &load {
            Load::Changes(changes) => changes.clone(),
            Load::Parts(parts) => {
                let mut text = String::new();
                for part in parts {
                    let Found::Document(Part { text: part, .. }, _) =
                        self.service.read(part, part, None).await?
                    else {
                        return Ok(None);
                    };
                    text.push_str(&part);
                }
                serde_json::from_str(&text).map_err(StoreError::broken)?
            }
        };
        Ok(Some((load, Changes::from_json(changes)?)))
    }
}

/// Whether this program knows what the head and all behind it mean.
pub(super) fn readable(head: &Head) -> Result<()> {
    if head.format > FORMAT {
        return Err(StoreError::broken_because(format!(
            "a newer giga has written this store in format {}; this one reads up to {FORMAT}: update it",
            head.format
        )));
    }
    Ok(())
}

//! Space: mirrors are packed now and then, and go when the disk runs low and they hold nothing but copies.
//!
//! Never a mirror with a branch of ours on it, and never one that a work folder borrows from. Packing never drops an
//! object: work folders borrow also what no ref reaches any more.

use std::collections::BTreeSet;

use super::super::Workspace;
use super::super::error::WorkspaceError;
use super::super::mirror::LockedMirror;
use super::super::policy::RepoSource;
use super::super::record::{Record, Slot};
use super::{GcItem, GcKind, GcOptions, GcReport};

const LOOSE_OBJECTS: u64 = 5_000;
const PACKS: u64 = 50;

/// Nothing else packs: git's own collector is off, because it prunes.
pub(super) async fn pack(locked: &LockedMirror<'_>) -> Result<(), WorkspaceError> {
    let counted = locked.call("counting objects").args(["count-objects", "-v"]).run().await?.text();
    let count = |key: &str| {
        let line = counted.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    if count("count: ") < LOOSE_OBJECTS && count("packs: ") < PACKS {
        return Ok(());
    }
    let call = locked.call("packing objects").args(["repack", "-a", "-d", "-q", "--cruft"]);
    call.arg("--cruft-expiration=never").run().await.map(drop)
}

impl Workspace {
    pub(super) async fn gc_space(
        &self,
        options: &GcOptions,
        report: &mut GcReport,
    ) -> Result<(), WorkspaceError> {
        if self.free_bytes()? >= options.disk_floor_bytes {
            return Ok(());
        }
        let mut idle: Vec<(RepoSource, _)> = self
            .mirrored()
            .map(|source| {
                let used = self.last_used_at(&source);
                (source, used)
            })
            .collect();
        idle.sort_by_key(|(_, used)| *used);
        for (source, used) in idle {
            // Whatever went before may have been enough; a dry run cannot know, so it lists them all.
            if !options.dry_run && self.free_bytes()? >= options.disk_floor_bytes {
                break;
            }
            let item = |why: &str| GcItem::new(GcKind::Mirror, source.name.clone(), why);
            if used.is_none_or(|used| options.now.since(used) < options.mirror_idle) {
                report.kept.push(item("used not long ago"));
                continue;
            }
            let mirror = self.mirror(&source);
            let locked = mirror.lock().await?;
            // Looked at under the lock: a checkout that began meanwhile has its folder by now, or waits.
            let borrowed: BTreeSet<String> =
                self.slots().iter().flat_map(Slot::records).flat_map(Record::borrowed).collect();
            let branches = locked.call("listing branches").args(["for-each-ref", "--count=1", "refs/heads"]);
            if borrowed.contains(source.url.as_str()) {
                report.kept.push(item("a work folder borrows from it"));
            } else if !branches.run().await?.stdout.is_empty() {
                report.kept.push(item("it holds branches of jobs"));
            } else {
                if !options.dry_run {
                    locked.remove().await?;
                }
                report.removed.push(item("unused for long, and the disk is short of space"));
            }
        }
        Ok(())
    }
}

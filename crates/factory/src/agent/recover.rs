//! Settles what a crash left behind: the coordinator knows who holds each job now, and that decides.

use std::path::Path;
use std::time::Duration;

use giga_api::wire::{Checkpoint, Job, ProblemCode, ReleaseRequest, Spend, Stage};

use super::job::run_marker;
use super::place::{SCRATCH, SCRATCH_RUN};
use super::work::SESSIONS;
use super::{Shared, plan};
use crate::engines::{LeftRun, Usage, kill_run};
use crate::workspace::{Leftover, SessionNote, SpendNote, WorkFolder, WorkspaceError, remove_folder};

const KILL_ATTEMPTS: u32 = 200;
const KILL_INTERVAL: Duration = Duration::from_millis(10);

/// Settles every leftover. A failure leaves the folder as it is, for the next start.
pub(super) async fn settle_leftovers(shared: &Shared) {
    clear_scratch(shared).await;
    for leftover in shared.workspace.find_leftovers().await {
        match shared.workspace.adopt(&leftover) {
            Ok(folder) => settle(shared, &leftover, folder).await,
            Err(error) => {
                tracing::warn!(job = %leftover.job, %error, "a leftover could not be adopted");
            }
        }
    }
}

async fn settle(shared: &Shared, leftover: &Leftover, folder: WorkFolder) {
    let id = leftover.job.to_string();
    // Its engine may have outlived the agent, and must not write while the work is saved.
    kill_engine(&run_marker(&id, leftover.epoch.0)).await;
    let job = match shared.client.job(&id).await {
        Ok(job) => Some(job.value),
        Err(error) if error.code() == Some(ProblemCode::NotFound) => None,
        Err(error) => {
            tracing::warn!(job = id, %error, "the coordinator could not be asked about a leftover; it is kept");
            return;
        }
    };
    let still_ours = job.as_ref().is_some_and(|job| {
        job.lease_epoch == leftover.epoch.0
            && job.lease.as_ref().is_some_and(|lease| lease.factory_id == shared.id.as_str())
    });
    // Of an engine elsewhere: its session may still be at work, and goes on under another branch where it is resumed.
    if let Err(error) = folder.take_pushed().await {
        tracing::warn!(job = id, %error, "what was pushed elsewhere could not be taken");
    }
    let settled = match job.filter(|_| still_ours) {
        Some(job) => release(shared, &job, leftover, &folder).await,
        None => quarantine(&id, &folder).await,
    };
    if let Err(error) = folder.settle_offer().await {
        tracing::warn!(job = id, %error, "the branch of an engine elsewhere could not be removed");
    }
    if settled && let Err(error) = folder.remove().await {
        tracing::warn!(job = id, %error, "a leftover could not be removed");
    }
}

/// Until nobody is left: whoever was forking while it was killed has a child.
pub(super) async fn kill_engine(marker: &str) {
    for _ in 0..KILL_ATTEMPTS {
        if kill_run(marker) == 0 {
            return;
        }
        tokio::time::sleep(KILL_INTERVAL).await;
    }
    tracing::warn!(run = marker, "an engine from before the crash could not be killed");
}

/// Jobs without a repository have nothing to save: their leases end by themselves.
async fn clear_scratch(shared: &Shared) {
    let scratch = shared.base.join(SCRATCH);
    for folder in std::fs::read_dir(&scratch).into_iter().flatten().flatten() {
        if let Err(error) = clear_scratch_of(&folder.path()).await {
            tracing::warn!(folder = %folder.path().display(), %error, "a leftover could not be removed");
        }
    }
}

/// What a run left there, its processes first. Earlier versions named the folder as the run is.
pub(super) async fn clear_scratch_of(folder: &Path) -> Result<(), WorkspaceError> {
    if !folder.exists() {
        return Ok(());
    }
    let noted = std::fs::read_to_string(folder.join(SCRATCH_RUN)).ok();
    let marker = noted.or_else(|| Some(folder.file_name()?.to_str()?.to_owned()));
    if let Some(marker) = marker {
        kill_engine(&marker).await;
    }
    remove_folder(folder.to_owned()).await
}

/// The lease is still this factory's: the work is saved and the job goes back to the queue, to be resumed from there
/// without having used up an attempt.
async fn release(shared: &Shared, job: &Job, leftover: &Leftover, folder: &WorkFolder) -> bool {
    let id = job.id.as_str();
    let saved = match folder.checkpoint("after a crash of the agent", true).await {
        Ok(saved) => saved,
        Err(error) => {
            tracing::warn!(job = id, %error, "a leftover could not be saved");
            return false;
        }
    };
    let saved = saved.map(|saved| {
        let mut checkpoint = Checkpoint::from(&saved.checkpoint);
        checkpoint.factory_id = saved.not_pushed.is_some().then(|| shared.id.to_string());
        checkpoint
    });
    let noted = match folder.noted_spend() {
        Some(note) => Some(as_the_session_has_it(shared, id, note).await),
        None => None,
    };
    let checkpoint = with_session(saved, job.checkpoint.as_ref(), noted.as_ref());
    let spend = used_up(job, noted);
    let request = ReleaseRequest { lease_epoch: leftover.epoch.0, checkpoint, spend, spend_assumed: false };
    match shared.client.release(id, &request).await {
        Ok(_) => {
            tracing::info!(job = id, "interrupted work was saved and released");
            true
        }
        Err(error) if error.is_passing() => false,
        Err(_) => quarantine(id, folder).await,
    }
}

/// What the session of an engine that ended with the agent says it used; what was noted is the least.
async fn as_the_session_has_it(shared: &Shared, job: &str, note: SpendNote) -> SpendNote {
    let session = note.session.as_ref().filter(|_| !note.whole && !note.current);
    let (Some(session), Some(began)) = (session, note.began) else { return note };
    let Some(engine) = session.engine.as_deref().and_then(|name| shared.engines.named(name)) else {
        return note;
    };
    let sessions = shared.base.join(SESSIONS).join(job).join(engine.name());
    let run = LeftRun { session: session.id.clone(), sessions, began };
    match engine.used_by(&run).await {
        Some(used) => with_usage(note, used),
        None => note,
    }
}

fn with_usage(note: SpendNote, used: Usage) -> SpendNote {
    let (usd, tokens) = (note.usd.max(used.cost.unwrap_or_default()), note.tokens.max(used.tokens));
    let session = note.session.map(|session| SessionNote {
        usd: session.usd + (usd - note.usd),
        tokens: session.tokens.saturating_add(tokens - note.tokens),
        ..session
    });
    SpendNote { usd, tokens, current: true, session, ..note }
}

/// What was saved, with the session that the run was in: the one that it noted, or else the one that the coordinator knows.
/// `None` where the coordinator knows it all.
fn with_session(
    saved: Option<Checkpoint>,
    known: Option<&Checkpoint>,
    noted: Option<&SpendNote>,
) -> Option<Checkpoint> {
    let mut checkpoint = saved.or_else(|| known.cloned()).unwrap_or_default();
    if let Some(session) = noted.and_then(|note| note.session.as_ref()) {
        checkpoint.session_id = Some(session.id.clone());
        checkpoint.session_engine.clone_from(&session.engine);
        checkpoint.session_spend = Some(Spend { usd: session.usd, tokens: session.tokens });
    } else if let Some(known) = known {
        checkpoint.session_id.clone_from(&known.session_id);
        checkpoint.session_engine.clone_from(&known.session_engine);
        checkpoint.session_spend = known.session_spend;
    }
    Some(checkpoint).filter(|checkpoint| *checkpoint != known.cloned().unwrap_or_default())
}

/// What is noted, where the engine had ended before the agent did, or ended with it and had noted every answer. Otherwise nobody knows what it used after the last
/// renewal: count all that it was allowed to, or more if more is noted. A script has no account.
fn used_up(job: &Job, noted: Option<SpendNote>) -> Option<Spend> {
    let lease = job.lease.as_ref()?;
    if job.stage != Stage::Building || plan::is_script(job) {
        return None;
    }
    let noted = noted.unwrap_or_default();
    let noted_spend = Spend { usd: noted.usd, tokens: noted.tokens };
    if noted.whole || noted.current {
        return Some(noted_spend);
    }
    Some(Spend {
        usd: noted_spend.usd.max(lease.reserved_usd),
        tokens: noted_spend.tokens.max(lease.spent_tokens),
    })
}

async fn quarantine(id: &str, folder: &WorkFolder) -> bool {
    match folder.quarantine("found after a restart; the job is no longer this factory's").await {
        Ok(branch) => {
            tracing::warn!(job = id, branch, "leftover work is in quarantine");
            true
        }
        Err(error) => {
            tracing::warn!(job = id, %error, "a leftover could not be quarantined");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use giga_domain::Usd;
    use serde_json::json;

    use super::*;

    fn job(stage: &str, engine: &str) -> Job {
        let at = "2026-11-15T16:00:00Z";
        let lease = json!({"factoryId": "a", "grantedAt": at, "expiresAt": at, "reservedUsd": 2.5, "spentUsd": 0.5,
            "spentTokens": 7});
        let job = json!({"id": "j", "productId": "demo", "name": "n", "kind": "agent", "stage": stage,
            "priority": "normal", "rev": 1, "leaseEpoch": 1, "engine": engine, "capabilities": [], "deps": [],
            "depsMode": "all", "attempts": 0, "dispatchSeq": 0, "lease": lease, "createdAt": at, "updatedAt": at,
            "enqueuedAt": at});
        serde_json::from_value(job).unwrap()
    }

    fn note(micros: i64, tokens: u64, whole: bool) -> SpendNote {
        SpendNote { usd: Usd::from_micros(micros), tokens, whole, ..SpendNote::default() }
    }

    #[test]
    fn a_session_outlives_a_crash() {
        let session = |id: &str, micros, tokens| SessionNote {
            id: id.to_owned(),
            engine: Some("codex".to_owned()),
            usd: Usd::from_micros(micros),
            tokens,
        };
        let noted = SpendNote { session: Some(session("s-2", 70, 7)), ..SpendNote::default() };
        let spend = |micros, tokens| Some(Spend { usd: Usd::from_micros(micros), tokens });
        let known = Checkpoint {
            wip_ref: Some("giga/wip/j".to_owned()),
            session_id: Some("s-1".to_owned()),
            session_engine: Some("claude".to_owned()),
            session_spend: spend(50, 5),
            ..Checkpoint::default()
        };
        let saved = Checkpoint { commit: Some("c".to_owned()), ..Checkpoint::default() };
        let after = with_session(Some(saved.clone()), Some(&known), Some(&noted)).unwrap();
        assert_eq!((after.session_id.as_deref(), after.session_spend), (Some("s-2"), spend(70, 7)));
        assert_eq!(after.session_engine.as_deref(), Some("codex"));
        assert_eq!(after.commit.as_deref(), Some("c"));
        // Its engine had not begun: the session of the run before is still the one to resume.
        let after = with_session(Some(saved), Some(&known), Some(&SpendNote::default())).unwrap();
        assert_eq!((after.session_id.as_deref(), after.session_spend), (Some("s-1"), spend(50, 5)));
        assert_eq!(after.session_engine.as_deref(), Some("claude"));
        // Nothing new was done, but there is a session.
        let after = with_session(None, Some(&known), Some(&noted)).unwrap();
        assert_eq!(after.session_id.as_deref(), Some("s-2"));
        assert_eq!(after.wip_ref, known.wip_ref);
        assert_eq!(with_session(None, Some(&known), None), None, "the coordinator knows it");
        assert_eq!(with_session(None, None, None), None);
    }

    #[test]
    fn a_run_that_nobody_watched_used_all_that_it_was_allowed_to() {
        let all = Some(Spend { usd: Usd::from_micros(2_500_000), tokens: 7 });
        assert_eq!(used_up(&job("building", "claude"), None), all);
        assert_eq!(
            used_up(&job("building", "claude"), Some(note(1_000_000, 5, false))),
            all,
            "it may have gone on"
        );
        let more = Some(Spend { usd: Usd::from_micros(3_000_000), tokens: 9 });
        assert_eq!(used_up(&job("building", "claude"), Some(note(3_000_000, 9, false))), more);
        assert_eq!(used_up(&job("assigned", "claude"), None), None, "its engine had not begun");
        assert_eq!(used_up(&job("building", "shell"), None), None);
    }

    #[test]
    fn a_run_whose_engine_had_ended_used_what_is_noted() {
        let noted = Some(note(1_000_000, 9, true));
        assert_eq!(
            used_up(&job("building", "claude"), noted),
            Some(Spend { usd: Usd::from_micros(1_000_000), tokens: 9 })
        );
        assert_eq!(used_up(&job("building", "claude"), Some(note(0, 0, true))), Some(Spend::default()));
        let current = SpendNote { current: true, ..note(700, 8, false) };
        assert_eq!(
            used_up(&job("building", "claude"), Some(current)),
            Some(Spend { usd: Usd::from_micros(700), tokens: 8 }),
            "it ended with the agent, and each answer was noted"
        );
    }

    #[test]
    fn what_a_session_has_beyond_the_note_is_used_up_too() {
        let session =
            SessionNote { id: "s".to_owned(), engine: None, usd: Usd::from_micros(5_100), tokens: 51 };
        let noted = SpendNote { session: Some(session), ..note(100, 1, false) };
        let usage = |tokens, micros| Usage { tokens, cost: Some(Usd::from_micros(micros)) };
        let more = with_usage(noted.clone(), usage(3, 300));
        assert_eq!(
            used_up(&job("building", "codex"), Some(more.clone())),
            Some(Spend { usd: Usd::from_micros(300), tokens: 3 }),
            "neither what was reserved nor only what was noted"
        );
        let session = more.session.unwrap();
        assert_eq!((session.usd, session.tokens), (Usd::from_micros(5_300), 53), "what it had before stays");
        let less = with_usage(noted.clone(), usage(0, 0));
        assert_eq!((less.usd, less.tokens, &less.session), (noted.usd, noted.tokens, &noted.session));
        assert!(less.current);
    }

    #[test]
    fn a_script_for_any_engine_is_the_shells() {
        let mut any = job("building", "any");
        any.engine = None;
        any.manifest = Some(json!({"script": "true"}));
        assert_eq!(used_up(&any, None), None);
        any.manifest = Some(json!({"verify": ["true"]}));
        assert_eq!(used_up(&any, None), Some(Spend { usd: Usd::from_micros(2_500_000), tokens: 7 }));
    }
}

//! A forge with pull requests: one per result, and merged through it, on the coordinator's order alone.

use std::sync::Arc;

use async_trait::async_trait;
use giga_api::wire::{OperatorAction, Stage};
use giga_factory::forge::{Forge, ForgeError, Opened, PullRequest, RequestMerge};
use giga_factory::workspace::{CommitId, GitUrl};
use parking_lot::Mutex;

use super::world::{Factory, World};

/// Remembers what it was asked, as a forge would: by the head branch.
#[derive(Debug, Default)]
struct NotedForge {
    requests: Mutex<Vec<PullRequest>>,
    merged: Mutex<Vec<(u64, CommitId)>>,
}

#[async_trait]
impl Forge for NotedForge {
    async fn open_request(&self, request: &PullRequest) -> Result<Option<Opened>, ForgeError> {
        let mut known = self.requests.lock();
        let found = known.iter().position(|r| r.head == request.head);
        let number = found.unwrap_or(known.len());
        if found.is_none() {
            known.push(request.clone());
        }
        let url = format!("https://forge.example/pull/{number}");
        Ok(Some(Opened { url, number: number as u64, existed: found.is_some() }))
    }

    async fn merge_request(
        &self,
        _: &GitUrl,
        number: u64,
        commit: &CommitId,
        _: &str,
    ) -> Result<Option<RequestMerge>, ForgeError> {
        self.merged.lock().push((number, commit.clone()));
        Ok(Some(RequestMerge::Merged { commit: commit.clone() }))
    }

    async fn close_request(&self, _: &GitUrl, _: u64) -> Result<(), ForgeError> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_shown_as_a_request_and_merged_through_it_once_it_ships() {
    let world = World::start().await;
    world.origin("hello");
    let forge = Arc::new(NotedForge::default());
    let mut config = world.config("a");
    config.forge = forge.clone();
    let factory = Factory::start(config);
    let job = world.submit("shown", "repo: hello", "echo x > x.txt").await;

    world.until_stage(&job, Stage::Testing).await;
    assert!(forge.merged.lock().is_empty(), "nobody has said that it may be merged");
    let report = world.runs(&job).await[0].report.clone();
    assert_eq!(report.pull_request.as_deref(), Some("https://forge.example/pull/0"));
    world.client.act(&job, OperatorAction::Ship, None, None).await.unwrap();
    let merged = world.until_merged(&job).await.merge.unwrap();

    let requests = forge.requests.lock().clone();
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert_eq!((requests[0].head.clone(), requests[0].base.as_str()), (format!("giga/job/{job}/1"), "main"));
    assert_eq!(requests[0].key.as_str(), format!("{job}.1"));
    let through_it = forge.merged.lock().clone();
    assert_eq!(through_it.len(), 1);
    assert_eq!((through_it[0].0, Some(through_it[0].1.to_string())), (0, report.commit));
    assert_eq!(merged.commit, Some(through_it[0].1.to_string()));
    factory.drain().await;
}

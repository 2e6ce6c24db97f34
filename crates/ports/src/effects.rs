//! Effects outside of the system: webhooks, trackers and forges. Never called inside a transaction.
//!
//! Whoever implements this may be asked to deliver the same effect again, under the same id, and must not reach any
//! address that its owner has not allowed.

use std::time::Duration;

use async_trait::async_trait;
use giga_domain::job::OpenRequest;
use giga_domain::{Effect, EffectOutcome, ProductId, Verdict, Webhook};
use thiserror::Error;

#[async_trait]
pub trait Effects: Send + Sync {
    /// Sends it, and says what came of it. `webhook` is the receiver, where the target is one.
    async fn deliver(&self, effect: &Effect, webhook: Option<&Webhook>) -> EffectOutcome;

    /// Whether an address could ever be delivered to; the error says what is wrong with it, for whoever typed it.
    async fn check_url(&self, url: &str) -> Result<(), EffectsError>;

    /// The trackers that are set up, by name.
    fn trackers(&self) -> Vec<String>;

    /// What people call the tracker, such as `GitHub` for `github`.
    fn display_name(&self, tracker: &str) -> String {
        tracker.to_owned()
    }

    /// How an item is called, as far as that is known without a look at it.
    fn named(&self, tracker: &str, item: &str) -> Result<ItemName, EffectsError> {
        let _ = tracker;
        Ok(ItemName { item: item.to_owned(), repo: None })
    }

    /// Whether the operator lets the product use this repository of the tracker; `None` where none is configured.
    fn allows(&self, tracker: &str, repo: &str, product: &ProductId) -> Option<bool> {
        let _ = (tracker, repo, product);
        None
    }

    /// Looks an outside item up, such as `acme/app#12` in `github`.
    async fn item(&self, tracker: &str, item: &str) -> Result<TrackerItem, EffectsError>;

    /// The forges that are set up, by name.
    fn forges(&self) -> Vec<String> {
        Vec::new()
    }

    /// The forge that has the repository, and what it is called there. The text says what would be right.
    fn forge_of(&self, place: &RepoPlace) -> Result<ForgeRepo, EffectsError> {
        let _ = place;
        Err(EffectsError::Malformed("no forge is set up here".to_owned()))
    }

    /// The one request of the branch, opened, or changed to what is proposed now.
    async fn open_request(&self, at: &ForgeRepo, proposal: &Proposal) -> Result<OpenRequest, ForgeTrouble> {
        let _ = proposal;
        Err(no_forge(at))
    }

    /// How the request of the branch stands; `None` where there is none. `commit` is what it is to show.
    async fn look_at_request(
        &self,
        at: &ForgeRepo,
        branch: &str,
        commit: &str,
    ) -> Result<Option<RequestState>, ForgeTrouble> {
        let _ = (branch, commit);
        Err(no_forge(at))
    }

    /// Closes the request of the branch, unless it is merged or closed. Says what it found.
    async fn close_request(&self, at: &ForgeRepo, branch: &str) -> Result<String, ForgeTrouble> {
        let _ = branch;
        Err(no_forge(at))
    }

    /// Which request a message is about that came in as a forge's; nothing where it is about something else.
    fn read_hook(&self, forge: &str, message: &HookMessage<'_>) -> Result<Option<HookSubject>, HookError> {
        let _ = message;
        Err(HookError::NoSuchForge(forge.to_owned()))
    }
}

fn no_forge(at: &ForgeRepo) -> ForgeTrouble {
    // Somebody may set it up again.
    ForgeTrouble::Later { detail: format!("there is no forge `{}` here", at.forge), after: None }
}

/// Where a repository is, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoPlace {
    /// As the manifest names it: a URL, or a name.
    pub repo: String,
    /// Host and path of where it is pushed to, such as `github.com/acme/app`, where that is on a host.
    pub origin: Option<String>,
}

/// A repository of a forge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgeRepo {
    pub forge: String,
    pub repo: String,
}

/// What a request is to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    pub branch: String,
    pub into: String,
    pub commit: String,
    pub title: String,
    pub body: String,
}

/// How a request stands, as its forge says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestState {
    pub opened: OpenRequest,
    pub into: String,
    /// What was asked about is what it shows, or among that.
    pub shows_commit: bool,
    pub standing: Standing,
    /// Oldest first, and only the newest of many.
    pub said: Vec<Said>,
    /// Once they are all done.
    pub checks: Option<Checks>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    Open,
    Closed { by: Option<String> },
    Merged { commit: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Begins with its kind and a colon.
    pub id: String,
    pub by: String,
    pub verdict: Option<Verdict>,
    pub words: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checks {
    pub id: String,
    pub passed: bool,
    /// Which ones failed.
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForgeTrouble {
    /// Will never go better.
    Refused(String),
    Later {
        detail: String,
        after: Option<Duration>,
    },
}

impl From<ForgeTrouble> for EffectOutcome {
    fn from(trouble: ForgeTrouble) -> Self {
        match trouble {
            ForgeTrouble::Refused(detail) => Self::Refused { detail },
            ForgeTrouble::Later { detail, after } => Self::Failed { detail, after },
        }
    }
}

/// A message that came in, before anybody believes it.
#[derive(Clone, Copy)]
pub struct HookMessage<'a> {
    pub header: &'a (dyn Fn(&str) -> Option<String> + Sync),
    pub body: &'a [u8],
}

impl std::fmt::Debug for HookMessage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HookMessage").field("bytes", &self.body.len()).finish_non_exhaustive()
    }
}

/// Whose request something happened to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookSubject {
    pub repo: String,
    pub branch: Option<String>,
    pub number: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HookError {
    #[error("no forge `{0}` is set up here")]
    NoSuchForge(String),
    /// Its settings say what would check it.
    #[error("{0}")]
    NoSecret(String),
    #[error("the message is not signed with the secret that is set here")]
    Unsigned,
    #[error("{0}")]
    Malformed(String),
}

/// An item by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemName {
    /// Its one spelling, whatever was asked for.
    pub item: String,
    /// The repository that it is in, such as `acme/app`, where the tracker has such.
    pub repo: Option<String>,
}

/// An item of a tracker, as a job sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackerItem {
    /// Its one spelling, whatever was asked for.
    pub item: String,
    pub url: String,
    pub title: String,
    pub body: String,
    pub labels: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EffectsError {
    #[error("there is no tracker `{0}` here; {1}")]
    NoSuchTracker(String, String),
    #[error("there is no item `{item}` in {tracker}: {reason}")]
    NoSuchItem { tracker: String, item: String, reason: String },
    /// The text says what would be right.
    #[error("{0}")]
    Malformed(String),
    #[error("{0}")]
    Unreachable(String),
}

//! The rows of the matrix: what an engine has to do, and the check that shows it.

use std::path::Path;

use anyhow::Result;
use strum::{Display, EnumString, VariantArray};

use crate::bench::Bench;
use crate::{conversation, fleet, hostile, record, troubles};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Display, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Behaviour {
    Ready,
    Edit,
    Usage,
    Model,
    Resume,
    CommitAndVerify,
    ChangesRequested,
    ResumeAfterKill,
    CapDollars,
    CapTokens,
    CapWall,
    SignedOut,
    ShortRateLimit,
    QuotaWithReset,
    QuotaWithoutReset,
    Overloaded,
    ContextTooLong,
    Refusal,
    Silence,
    Endless,
    Cut,
    HostileRepository,
    ChildrenGone,
}

impl Behaviour {
    pub(crate) const ALL: &'static [Self] = Self::VARIANTS;

    /// For the page.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Ready => "ready where it has an account, and only there",
            Self::Edit => "edits a file headless, prompt byte for byte",
            Self::Usage => "tokens, cost and session exactly as the model sent them",
            Self::Model => "the model of the job instead of the operator's",
            Self::Resume => "a second run resumes the session; cost counted once",
            Self::CommitAndVerify => "whole system: edit, verify, commit",
            Self::ChangesRequested => "whole system: changes requested resume the session",
            Self::ResumeAfterKill => "whole system: kill -9 of the factory, the next run resumes the session",
            Self::CapDollars => "cap in dollars stops it",
            Self::CapTokens => "cap in tokens stops it",
            Self::CapWall => "cap in time stops it",
            Self::SignedOut => "401 is `signed_out`",
            Self::ShortRateLimit => "a short 429 is waited for",
            Self::QuotaWithReset => "used-up quota is `out_of_quota`, with its reset time",
            Self::QuotaWithoutReset => "used-up quota without a reset time is `out_of_quota`",
            Self::Overloaded => "529/503 is `infrastructure`, to be retried",
            Self::ContextTooLong => "`context_too_long`",
            Self::Refusal => "a refusal is `refused`",
            Self::Silence => "silence is ended, and charged nothing where no answer began",
            Self::Endless => "an endless answer is ended",
            Self::Cut => "a cut connection is survived, or `infrastructure`",
            Self::HostileRepository => "a hostile repository runs nothing and gets no key",
            Self::ChildrenGone => "nothing is left running after a stop",
        }
    }
}

pub(crate) async fn show(behaviour: Behaviour, bench: &Bench, record: Option<&Path>) -> Result<()> {
    let seen = record::Recorder::new(record, bench.engine, behaviour);
    let seen = &seen;
    match behaviour {
        Behaviour::Ready => conversation::ready(bench).await,
        Behaviour::Edit => conversation::edit(bench, seen).await,
        Behaviour::Usage => conversation::usage(bench, seen).await,
        Behaviour::Model => conversation::model(bench).await,
        Behaviour::Resume => conversation::resume(bench, seen).await,
        Behaviour::CommitAndVerify => fleet::commit_and_verify(bench).await,
        Behaviour::ChangesRequested => fleet::changes_requested(bench).await,
        Behaviour::ResumeAfterKill => fleet::resume_after_kill(bench).await,
        Behaviour::CapDollars => conversation::cap_dollars(bench).await,
        Behaviour::CapTokens => conversation::cap_tokens(bench).await,
        Behaviour::CapWall => conversation::cap_wall(bench).await,
        Behaviour::SignedOut => troubles::signed_out(bench, seen).await,
        Behaviour::ShortRateLimit => troubles::short_rate_limit(bench, seen).await,
        Behaviour::QuotaWithReset => troubles::quota(bench, Some(3_600), seen).await,
        Behaviour::QuotaWithoutReset => troubles::quota(bench, None, seen).await,
        Behaviour::Overloaded => troubles::overloaded(bench, seen).await,
        Behaviour::ContextTooLong => troubles::context_too_long(bench, seen).await,
        Behaviour::Refusal => troubles::refusal(bench, seen).await,
        Behaviour::Silence => troubles::silence(bench).await,
        Behaviour::Endless => troubles::endless(bench).await,
        Behaviour::Cut => troubles::cut(bench, seen).await,
        Behaviour::HostileRepository => hostile::repository(bench).await,
        Behaviour::ChildrenGone => conversation::children_gone(bench).await,
    }
}

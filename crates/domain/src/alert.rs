//! What somebody should look at: which kinds of alerts there are, and how bad they can be.

use crate::word::words;

words! {
    "alert kind",
    /// Worst first: lists of alerts are in this order.
    pub enum AlertKind {
        DeadLetters,
        BudgetExhausted,
        FactoryDown,
        MergeConflict,
        EffectsGivenUp,
        NeedsInput,
        NoEligibleFactory,
        Starvation,
        StaleFactory,
        AccountSignedOut,
        AccountOutOfQuota,
        PoolStartFailed,
        BudgetNear,
        BudgetPaused,
        EffectsWaiting,
    }
}

impl AlertKind {
    /// What it means and what to do about it, for the guide of operators. An alert itself says both of its own case.
    pub const fn about(self) -> (&'static str, &'static str) {
        match self {
            Self::DeadLetters => (
                "jobs were given up in the last hour",
                "`giga job list --stage dead_letter`, then `giga job events JOB`",
            ),
            Self::BudgetExhausted => (
                "a limit is reached; nothing of the product is started until its period ends or the limit is raised",
                "`giga budget show PRODUCT`, `giga budget set PRODUCT --day USD`",
            ),
            Self::FactoryDown => ("the factory reports that it is down", "look at the machine"),
            Self::MergeConflict => (
                "a result was not merged in the last day: it conflicts, its checks fail on the merged tree, or the repository refuses it",
                "`giga job explain JOB` says why and what to do",
            ),
            Self::EffectsGivenUp => (
                "a delivery to a webhook or tracker failed for good",
                "`giga effects list`, then `giga effects retry ID`",
            ),
            Self::NeedsInput => (
                "a job asks something and waits for a person",
                "`giga job questions`, then `giga job answer JOB TEXT`",
            ),
            Self::NoEligibleFactory => (
                "queued jobs that no factory of today's fleet could ever run",
                "`giga job explain JOB` names what is missing",
            ),
            Self::Starvation => {
                ("a job that could run has waited for 30 minutes", "add seats, or look at what holds them")
            }
            Self::StaleFactory => (
                "a factory missed three heartbeats",
                "its jobs are queued again automatically; `giga factory prune --idle 24h` removes it",
            ),
            Self::AccountSignedOut => (
                "an engine's account is signed out; its factories do not offer the engine until somebody signs in",
                "`giga account list`, then sign in on the machine (`giga doctor` says how)",
            ),
            Self::AccountOutOfQuota => (
                "an engine's account has used up a window of its provider; jobs go on with another engine or account that they allow, or wait",
                "`giga account list` says until when",
            ),
            Self::PoolStartFailed => (
                "factories of a pool do not start; the next try comes later each time",
                "`giga pool show POOL` says why",
            ),
            Self::BudgetNear => ("80 % of a limit is spent or reserved", "`giga budget show PRODUCT`"),
            Self::BudgetPaused => ("somebody paused the product", "`giga budget resume PRODUCT`"),
            Self::EffectsWaiting => (
                "deliveries to a webhook or tracker have been waiting for 15 minutes",
                "look at the receiver",
            ),
        }
    }
}

words! {
    "severity",
    /// Worst first.
    pub enum Severity {
        /// Work is lost or stopped until somebody acts.
        Critical,
        /// Work waits longer than it should.
        Warning,
        /// Worth knowing.
        Info,
    }
}

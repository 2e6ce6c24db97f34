//! Effects: messages to webhooks and trackers, and what came of them.

use std::time::Duration;

use giga_domain::{
    Actor, Effect, EffectId, EffectOutcome, EffectReceiver, EffectStateName, EffectTarget, FeedPos, JobId,
    NewEffect, ProductId, Timestamp,
};

use super::noun::Result;
use super::{Execute, Intercept, InterceptReads, Write};

macro_rules! outbox {
    ($make:ident) => {
        $make! {
            writes OutboxStore {
                /// Puts what a stretch of the feed is to tell into the outbox and moves the cursor from `from` to `to`, in
                /// one step. False, and nothing done, where the cursor stands elsewhere by now; true again for a stretch
                /// that is in there already. Effects that are known are passed over, and so are those for a webhook that
                /// is gone.
                fan_out(FanOut) -> bool;

                /// Puts one more into the outbox, apart from the feed: somebody asked for it. A known one that is over is
                /// sent again.
                add_effect(AddEffect) -> Effect;

                /// Effects that are due for this receiver, longest due first, each taken for `lease`.
                take_effects(TakeEffects) -> Vec<Effect>;

                /// What came of an attempt. An attempt that is not the last changes nothing.
                settle_effect(SettleEffect) -> Effect;

                /// Retries one that was given up.
                revive_effect(ReviveEffect) -> Effect;

                /// Removes effects that were over before that time; says how many.
                retire_effects(RetireEffects) -> usize;
            }
            reads OutboxReads {
                /// Up to where the feed has been put into the outbox.
                fan_out_cursor() -> FeedPos;

                effect(id: &EffectId) -> Option<Effect>;

                /// Newest first.
                effects(filter: &EffectFilter, before: Option<(Timestamp, EffectId)>, limit: usize) -> Vec<Effect>;

                /// Everybody for whom something waits, longest due first, and when the first of it is due. As dear as
                /// there are receivers, however much waits for each.
                effect_receivers() -> Vec<(EffectReceiver, Timestamp)>;

                /// How the outbox stands, for people. Counts no further than [`EffectCounts::MOST`].
                effect_counts() -> EffectCounts;
            }
        }
    };
}
outbox!(traits);
pub(super) use outbox;

#[derive(Debug, Clone)]
pub struct FanOut {
    pub from: FeedPos,
    pub to: FeedPos,
    pub effects: Vec<NewEffect>,
}

#[derive(Debug, Clone)]
pub struct AddEffect {
    pub effect: NewEffect,
}

#[derive(Debug, Clone)]
pub struct TakeEffects {
    pub receiver: EffectReceiver,
    pub limit: usize,
    pub lease: Duration,
}

#[derive(Debug, Clone)]
pub struct SettleEffect {
    pub id: EffectId,
    pub attempt: u32,
    pub outcome: EffectOutcome,
}

#[derive(Debug, Clone)]
pub struct ReviveEffect {
    pub id: EffectId,
    pub actor: Actor,
}

#[derive(Debug, Clone, Copy)]
pub struct RetireEffects {
    pub before: Timestamp,
    pub limit: usize,
}

/// Everything that is set must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EffectFilter {
    /// Empty: all, those of the fleet included.
    pub products: Vec<ProductId>,
    pub state: Option<EffectStateName>,
    pub target: Option<EffectTarget>,
    pub job: Option<JobId>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EffectCounts {
    pub pending: u64,
    pub dead: u64,
    /// When the one that waits longest was made.
    pub oldest_pending: Option<Timestamp>,
}

impl EffectCounts {
    /// So many, or more.
    pub const MOST: u64 = 100_000;
}

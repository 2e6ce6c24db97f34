//! What callers ask of a topic store, while it waits to be written and answered.

use std::time::Duration;

use giga_domain::topic::TopicKey;
use giga_domain::{Actor, Epoch, JobId, Timestamp};
use giga_ports::StoreError;
use giga_ports::topics::{Assignment, Enqueued, NewTopicJob, PauseScope, Settle, Settled, Swept, TopicClaim};
use tokio::sync::oneshot;

use crate::grouping::Command;

/// A question, its answer once it is decided, and who waits for it.
pub(super) struct Asked<Q, R> {
    pub(super) ask: Q,
    reply: Option<Result<R, StoreError>>,
    caller: oneshot::Sender<Result<R, StoreError>>,
}

impl<Q, R> Asked<Q, R> {
    pub(super) fn new(ask: Q) -> (Self, oneshot::Receiver<Result<R, StoreError>>) {
        let (caller, answer) = oneshot::channel();
        (Self { ask, reply: None, caller }, answer)
    }

    /// To be sent after the commit.
    pub(super) fn reply(&mut self, reply: Result<R, StoreError>) {
        self.reply = Some(reply);
    }

    fn answer(self) {
        let reply = self.reply.unwrap_or_else(|| {
            Err(StoreError::broken_because(
                "a transaction was committed without deciding all of its commands",
            ))
        });
        // A caller that went away does not mind.
        let _ = self.caller.send(reply);
    }

    fn fail(self, error: StoreError) {
        let _ = self.caller.send(Err(error));
    }
}

#[derive(Debug)]
pub(super) struct Renewal {
    pub(super) held: Vec<(JobId, Epoch)>,
    pub(super) lease: Duration,
}

#[derive(Debug)]
pub(super) struct RetryDead {
    pub(super) key: TopicKey,
    /// None named means all.
    pub(super) jobs: Vec<JobId>,
    pub(super) limit: usize,
}

#[derive(Debug)]
pub(super) struct SetPause {
    pub(super) scope: PauseScope,
    pub(super) paused: bool,
    pub(super) actor: Actor,
}

#[derive(Debug)]
pub(super) struct Retirement {
    pub(super) before: Timestamp,
    pub(super) limit: usize,
}

macro_rules! commands {
    ($($kind:ident in $list:ident: $ask:ty => $reply:ty,)*) => {
        pub(super) enum TopicCall {
            $($kind(Asked<$ask, $reply>),)*
        }

        /// The commands of a transaction, by kind. They were asked at the same time, so any order of theirs is right.
        #[derive(Default)]
        pub(super) struct Round {
            $(pub(super) $list: Vec<Asked<$ask, $reply>>,)*
        }

        impl Round {
            pub(super) fn of(calls: Vec<TopicCall>) -> Self {
                let mut round = Self::default();
                for call in calls {
                    match call {
                        $(TopicCall::$kind(asked) => round.$list.push(asked),)*
                    }
                }
                round
            }

            pub(super) fn into_calls(self) -> Vec<TopicCall> {
                let mut calls = Vec::new();
                $(calls.extend(self.$list.into_iter().map(TopicCall::$kind));)*
                calls
            }
        }

        impl Command for TopicCall {
            fn weight(&self) -> usize {
                match self {
                    Self::Enqueue(asked) => asked.ask.iter().map(weight_of).sum(),
                    Self::Claim(asked) => asked.ask.slots(),
                    Self::Settle(asked) => asked.ask.len(),
                    Self::Renew(asked) => asked.ask.held.len(),
                    _ => 1,
                }
            }

            fn answer(self) {
                match self {
                    $(Self::$kind(asked) => asked.answer(),)*
                }
            }

            fn fail(self, error: StoreError) {
                match self {
                    $(Self::$kind(asked) => asked.fail(error),)*
                }
            }
        }
    };
}

commands! {
    Enqueue in enqueues: Vec<NewTopicJob> => Vec<Enqueued>,
    Claim in claims: TopicClaim => Vec<Assignment>,
    Settle in settles: Vec<Settle> => Vec<Settled>,
    Renew in renewals: Renewal => Vec<bool>,
    Expire in expiries: usize => Swept,
    Promote in promotions: usize => Swept,
    Retry in retries: RetryDead => Vec<JobId>,
    Pause in pauses: SetPause => (),
    Retire in retirements: Retirement => usize,
}

/// A job, and a kilobyte of payload, count for one.
fn weight_of(job: &NewTopicJob) -> usize {
    1 + job.payload.len() / 1024
}

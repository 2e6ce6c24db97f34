//! The one place to stand between a caller and a store: for counting, probing, injecting faults, and for the simulator.
//!
//! A double says what it stands before and overrides what it cares about: [`InterceptReads::around`] sees every call by
//! its name, and each call has a method of its own that goes to the inner store unless it is overridden. With that the
//! double is a [`Store`]; a method that the port gets later goes through it without another line.

#![allow(
    clippy::wildcard_imports,
    reason = "the lists name the commands and answers of all nouns; in a test build the lint does not fire"
)]

use std::time::Duration;

use giga_domain::token::{TokenHash, TokenRecord};
use giga_domain::{
    Artifact, ArtifactId, Budget, Charge, Effect, EffectId, EffectReceiver, Event, EventSeq, Factory,
    FactoryId, FeedPos, Job, JobId, Leadership, Member, Offer, Pool, Product, ProductId, Profile, RequestId,
    Run, SealedSecret, Secret, SecretName, Timestamp, Usd, Webhook,
};
use serde_json::Value;
use tokio::sync::watch;

use super::noun::Result;
use super::*;

macro_rules! writes {
    (
        writes $Writes:ident {
            $($(#[$_about:meta])* $write:ident($Command:ident) -> $Reply:ty;)*
        }
        $($_reads:tt)*
    ) => {
        $(fn $write(&self, command: $Command) -> impl Future<Output = Result<$Reply>> + Send {
            self.inner().$write(command)
        })*
    };
}

macro_rules! reads {
    (
        $(writes $_Writes:ident { $($_writes:tt)* })?
        reads $Reads:ident {
            $($(#[$_about:meta])* $read:ident($($arg:ident: $Arg:ty),*) -> $Answer:ty;)*
        }
    ) => {
        $(fn $read(&self, $($arg: $Arg),*) -> impl Future<Output = Result<$Answer>> + Send {
            async move { self.inner_reads().$read($($arg),*).await }
        })*
    };
}

/// Stands before the reads of a store.
pub trait InterceptReads: Send + Sync {
    fn inner_reads(&self) -> &dyn StoreReads;

    /// Every call passes here, those of [`Intercept`] too: its name, and what will answer it when it is awaited.
    fn around<T: Send>(
        &self,
        _call: &'static str,
        answer: impl Future<Output = Result<T>> + Send,
    ) -> impl Future<Output = Result<T>> + Send {
        answer
    }

    health::health!(reads);
    jobs::jobs!(reads);
    artifacts::artifacts!(reads);
    graph::graph!(reads);
    factories::factories!(reads);
    tokens::tokens!(reads);
    dispatch::dispatch!(reads);
    budgets::budgets!(reads);
    outbox::outbox!(reads);
    registry::registry!(reads);
    secrets::secrets!(reads);
    pools::pools!(reads);
    events::events!(reads);
}

/// Stands before a whole store.
pub trait Intercept: InterceptReads {
    fn inner(&self) -> &dyn Store;

    fn head(&self) -> watch::Receiver<FeedPos> {
        self.inner().head()
    }

    fn stats(&self) -> StoreStats {
        self.inner().stats()
    }

    jobs::jobs!(writes);
    artifacts::artifacts!(writes);
    merges::merges!(writes);
    graph::graph!(writes);
    factories::factories!(writes);
    tokens::tokens!(writes);
    dispatch::dispatch!(writes);
    budgets::budgets!(writes);
    outbox::outbox!(writes);
    registry::registry!(writes);
    secrets::secrets!(writes);
    pools::pools!(writes);
    events::events!(writes);
}

impl<I: Intercept> Store for I {
    fn read(&self) -> &dyn StoreReads {
        self
    }

    fn head(&self) -> watch::Receiver<FeedPos> {
        Intercept::head(self)
    }

    fn stats(&self) -> StoreStats {
        Intercept::stats(self)
    }
}

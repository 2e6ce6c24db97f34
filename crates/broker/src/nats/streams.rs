//! The streams, their subjects and the names of consumers.
//!
//! Both are created when they are missing, so a server that lost its disk is usable again at once. What an operator changed
//! on a stream that is there, its replicas for example, is left alone.

use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy};
use giga_domain::FactoryId;
use giga_ports::BrokerError;

use super::failure;
use crate::local::DELIVERIES;

pub(super) const OFFERS: &str = "GIGA_OFFERS";
pub(super) const DEAD: &str = "GIGA_DEAD";
pub(super) const DEAD_SUBJECT: &str = "giga.dead";
pub(super) const HINTS_SUBJECT: &str = "giga.hints";
/// The server's notices about offers that were delivered too often; they stay in the stream until they are deleted.
pub(super) const EXPIRED: &str = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.GIGA_OFFERS.*";
/// Each notice goes to one of the processes that subscribe.
pub(super) const EXPIRED_GROUP: &str = "giga-dead";

/// Longer than any pickup deadline that makes sense: past it the job has another target.
const KEPT_FOR: Duration = Duration::from_mins(10);
const KEPT_PER_FACTORY: i64 = 4_096;
const DUPLICATES: Duration = Duration::from_mins(2);
const DEAD_LETTERS: i64 = 10_000;
/// A factory that has left for good should not leave its consumer behind. Its offers are the stream's.
const FORGOTTEN_AFTER: Duration = Duration::from_hours(1);
pub(super) const UNACKNOWLEDGED: usize = 4_096;

/// A subject's token and a consumer's name may not contain a dot; a factory's id cannot contain an equals sign.
pub(super) fn token(factory: &FactoryId) -> String {
    factory.as_str().replace('.', "=")
}

pub(super) fn subject(factory: &FactoryId) -> String {
    format!("giga.offers.{}", token(factory))
}

pub(super) async fn ensure(context: &Context) -> Result<(), BrokerError> {
    let offers = Config {
        name: OFFERS.to_owned(),
        description: Some("offers of jobs to factories; hints, safe to purge".to_owned()),
        subjects: vec!["giga.offers.*".to_owned()],
        // An acknowledged offer is gone, so a consumer can be made anew without meeting it again.
        retention: RetentionPolicy::WorkQueue,
        discard: DiscardPolicy::Old,
        max_messages_per_subject: KEPT_PER_FACTORY,
        max_age: KEPT_FOR,
        duplicate_window: DUPLICATES,
        ..Config::default()
    };
    let dead = Config {
        name: DEAD.to_owned(),
        description: Some("jobs and offers that were given up; a mirror, safe to purge".to_owned()),
        subjects: vec![DEAD_SUBJECT.to_owned()],
        max_messages: DEAD_LETTERS,
        ..Config::default()
    };
    for config in [offers, dead] {
        context.get_or_create_stream(config).await.map_err(failure)?;
    }
    Ok(())
}

pub(super) fn consumer(factory: &FactoryId, ack_wait: Duration) -> pull::Config {
    pull::Config {
        durable_name: Some(token(factory)),
        filter_subject: subject(factory),
        ack_policy: AckPolicy::Explicit,
        ack_wait,
        max_deliver: i64::from(DELIVERIES),
        max_ack_pending: UNACKNOWLEDGED as i64,
        inactive_threshold: FORGOTTEN_AFTER,
        ..pull::Config::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_factories_have_different_subjects_of_one_token() {
        let names = ["mac-1.local", "mac-1_local", "mac-1-local", "mac.1-local"];
        let subjects: std::collections::BTreeSet<_> =
            names.iter().map(|name| subject(&name.parse().unwrap())).collect();
        assert_eq!(subjects.len(), names.len());
        assert!(subjects.iter().all(|subject| subject.split('.').count() == 3), "{subjects:?}");
    }
}

//! The payload of a notification: JSON values, one per line, each notification below PostgreSQL's limit.
//!
//! Unreadable lines are skipped: a newer coordinator may send values that this one does not know.

use giga_ports::BrokerError;
use giga_ports::broker::Hint;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(super) const OFFERS: &str = "giga_offers";
pub(super) const HINTS: &str = "giga_hints";
pub(super) const DEAD: &str = "giga_dead";

/// PostgreSQL takes payloads of up to 7,999 bytes.
pub(super) const MOST: usize = 7_999;

/// As few payloads as hold all the values, in their order.
pub(super) fn pack<T: Serialize>(values: impl IntoIterator<Item = T>) -> Result<Vec<String>, BrokerError> {
    let mut payloads: Vec<String> = Vec::new();
    for value in values {
        let line = serde_json::to_string(&value).map_err(BrokerError::from_source)?;
        if line.len() > MOST {
            return Err(BrokerError::because(format!(
                "a message of {} bytes does not fit into a notification of {MOST}",
                line.len()
            )));
        }
        match payloads.last_mut() {
            Some(payload) if payload.len() + 1 + line.len() <= MOST => {
                payload.push('\n');
                payload.push_str(&line);
            }
            _ => payloads.push(line),
        }
    }
    Ok(payloads)
}

pub(super) fn unpack<T: DeserializeOwned>(payload: &str) -> impl Iterator<Item = T> {
    payload.lines().filter_map(|line| match serde_json::from_str(line) {
        Ok(value) => Some(value),
        Err(error) => {
            tracing::debug!(%error, "skipped an unreadable notification");
            None
        }
    })
}

/// The same hint in parts that fit. Lists are what makes a hint long, and half a list is a hint of its own.
pub(crate) fn small_enough(hint: Hint, most: usize) -> Vec<Hint> {
    let fits = serde_json::to_string(&hint).is_ok_and(|line| line.len() <= most);
    let halves = match hint {
        hint if fits => return vec![hint],
        Hint::Ready { mut topics } if topics.len() > 1 => {
            let rest = topics.split_off(topics.len() / 2);
            [Hint::Ready { topics }, Hint::Ready { topics: rest }]
        }
        Hint::Settled { worker, mut jobs } if jobs.len() > 1 => {
            let rest = jobs.split_off(jobs.len() / 2);
            [Hint::Settled { worker: worker.clone(), jobs }, Hint::Settled { worker, jobs: rest }]
        }
        // Nothing to split; packing refuses it.
        hint => return vec![hint],
    };
    halves.into_iter().flat_map(|half| small_enough(half, most)).collect()
}

#[cfg(test)]
mod tests {
    use giga_domain::JobId;

    use super::*;

    #[test]
    fn payloads_are_full_but_never_too_full() {
        let values: Vec<String> = (0..1_000).map(|n| format!("{n:0>100}")).collect();
        let payloads = pack(&values).unwrap();
        assert!(payloads.iter().all(|payload| payload.len() <= MOST));
        assert_eq!(payloads.len(), 1_000_usize.div_ceil((MOST + 1) / 103));
        let back: Vec<String> = payloads.iter().flat_map(|payload| unpack(payload)).collect();
        assert_eq!(back, values);
    }

    #[test]
    fn the_limit_is_exact() {
        let (fits, too_long) = ("x".repeat(MOST - 2), "x".repeat(MOST - 1));
        assert_eq!(pack([fits]).unwrap()[0].len(), MOST);
        assert!(pack([too_long]).unwrap_err().reason.contains("8000 bytes"));
    }

    #[test]
    fn a_long_hint_is_split_and_nothing_of_it_is_lost() {
        let jobs: Vec<JobId> = (0..2_000).map(JobId::from_u128).collect();
        let parts = small_enough(Hint::Settled { worker: "w1".parse().unwrap(), jobs: jobs.clone() }, MOST);
        assert!(parts.len() > 1 && pack(&parts).is_ok());
        let back = parts.into_iter().flat_map(|part| match part {
            Hint::Settled { jobs, .. } => jobs,
            other => panic!("{other:?}"),
        });
        assert_eq!(back.collect::<Vec<_>>(), jobs);
    }

    #[test]
    fn what_cannot_be_read_is_skipped() {
        let read: Vec<u32> = unpack("1\n{\"hint\":\"from the future\"}\n3").collect();
        assert_eq!(read, [1, 3]);
    }
}

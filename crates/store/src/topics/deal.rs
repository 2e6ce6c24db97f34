//! Who gets which job of a claim: in turn, until everybody's slots are full.

use giga_domain::WorkerId;
use giga_ports::topics::TopicClaim;

/// How many bytes of payload a claim has still room for. The first job fits in any case.
pub(super) struct ByteRoom {
    left: u64,
    empty: bool,
}

impl ByteRoom {
    pub(super) fn of(claim: &TopicClaim) -> Self {
        Self { left: claim.most_bytes, empty: true }
    }

    pub(super) fn takes(&mut self, bytes: u64) -> bool {
        let fits = self.empty || bytes <= self.left;
        self.empty = false;
        self.left = self.left.saturating_sub(bytes);
        fits
    }
}

/// The place of a worker in the list, for each slot: everybody's first, everybody's second, and so on.
pub(super) fn slots(workers: &[(WorkerId, u32)]) -> Vec<usize> {
    let mut left: Vec<(usize, u32)> = workers.iter().map(|(_, free)| *free).enumerate().collect();
    let mut slots = Vec::new();
    while !left.is_empty() {
        left.retain(|(_, free)| *free > 0);
        for (place, free) in &mut left {
            slots.push(*place);
            *free -= 1;
        }
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_a_turn_until_it_is_full() {
        let worker = |name: &str, free| (name.parse().unwrap(), free);
        let workers = [worker("one", 1), worker("none", 0), worker("three", 3)];
        assert_eq!(slots(&workers), [0, 2, 2, 2]);
        assert!(slots(&[]).is_empty());
    }
}

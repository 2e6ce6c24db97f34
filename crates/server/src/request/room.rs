//! Memory for bodies that are read whole. What all of them hold at once is bounded, and so is what one caller's hold: whoever
//! sends many large ones and never ends them is told to come back, and others are served.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use giga_domain::TokenId;
use parking_lot::Mutex;

use crate::problem::Problem;

/// So much of a body is not counted: everyday calls always fit.
const UNCOUNTED: usize = 16 * 1024;
const ALL: usize = 128 * 1024 * 1024;
const ONE_CALLER: usize = ALL / 2;
const RETRY_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct BodyRoom(Mutex<InUse>);

#[derive(Debug, Default)]
struct InUse {
    all: usize,
    by_caller: HashMap<Option<TokenId>, usize>,
}

/// A body on its way in. Its room is free again when it, or what was made of it, is dropped.
pub(crate) struct GrowingBody {
    bytes: Vec<u8>,
    counted: usize,
    caller: Option<TokenId>,
    room: Arc<BodyRoom>,
}

impl GrowingBody {
    pub(crate) fn new(room: &Arc<BodyRoom>, caller: Option<TokenId>) -> Self {
        Self { bytes: Vec::new(), counted: 0, caller, room: room.clone() }
    }

    pub(crate) fn extend(&mut self, data: &[u8]) -> Result<(), Problem> {
        self.bytes.extend_from_slice(data);
        let more = self.bytes.capacity().saturating_sub(UNCOUNTED).saturating_sub(self.counted);
        if more == 0 {
            return Ok(());
        }
        let mut in_use = self.room.0.lock();
        let own = in_use.by_caller.get(&self.caller).copied().unwrap_or(0);
        if in_use.all + more > ALL || own + more > ONE_CALLER {
            let detail =
                "too many large bodies are on their way at once; send this one again, or less at a time";
            return Err(Problem::too_many(detail.to_owned(), RETRY_AFTER));
        }
        in_use.all += more;
        *in_use.by_caller.entry(self.caller.clone()).or_default() += more;
        self.counted += more;
        Ok(())
    }
}

impl AsRef<[u8]> for GrowingBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for GrowingBody {
    fn drop(&mut self) {
        if self.counted == 0 {
            return;
        }
        let mut in_use = self.room.0.lock();
        in_use.all -= self.counted;
        if let Some(own) = in_use.by_caller.get_mut(&self.caller) {
            *own -= self.counted;
            if *own == 0 {
                in_use.by_caller.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    #[test]
    fn one_caller_gets_half_of_it_and_gives_it_back() {
        let room = Arc::new(BodyRoom::default());
        let caller = |name: &str| Some(name.parse().unwrap());
        let piece = vec![0; 16 * MIB];
        let mut bodies = Vec::new();
        let refused = loop {
            let mut body = GrowingBody::new(&room, caller("tok-one"));
            match body.extend(&piece) {
                Ok(()) => bodies.push(body),
                Err(refused) => break refused,
            }
        };
        assert!(refused.retry_after().is_some(), "{refused:?}");
        assert!((2..=4).contains(&bodies.len()), "{}", bodies.len());
        GrowingBody::new(&room, caller("tok-one")).extend(&[0; 1_000]).expect("small ones always fit");
        let mut other = GrowingBody::new(&room, caller("tok-two"));
        other.extend(&piece).expect("others have room");
        drop((bodies, other));
        assert_eq!(room.0.lock().all, 0);
        assert!(room.0.lock().by_caller.is_empty());
    }
}

//! The real clock and the real randomness. Nothing else in the workspace may ask the machine for either: whoever
//! needs them is handed them from here.

use std::time::SystemTime;

use giga_domain::Timestamp;
use giga_ports::{Clock, Randomness};

#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp::ZERO.plus(since_1970)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemRandomness;

impl Randomness for SystemRandomness {
    fn bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).expect("the operating system gives randomness once it has started");
        bytes
    }
}

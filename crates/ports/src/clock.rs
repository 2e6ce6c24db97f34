//! Time and randomness as ports: only the composition root knows the real ones.

use giga_domain::{JobId, Timestamp};

pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
}

pub trait Randomness: Send + Sync {
    fn bytes(&self) -> [u8; 32];

    fn job_id(&self, at: Timestamp) -> JobId {
        let mut sixteen = [0u8; 16];
        sixteen.copy_from_slice(&self.bytes()[..16]);
        JobId::from_parts(at, u128::from_be_bytes(sixteen))
    }
}

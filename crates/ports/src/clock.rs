//! Time and randomness as ports: only the composition root knows the real ones.

use giga_domain::{ArtifactId, JobId, Timestamp};

pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
}

pub trait Randomness: Send + Sync {
    fn bytes(&self) -> [u8; 32];

    fn job_id(&self, at: Timestamp) -> JobId {
        JobId::from_parts(at, sixteen_of(self.bytes()))
    }

    fn artifact_id(&self, at: Timestamp) -> ArtifactId {
        ArtifactId::from_parts(at, sixteen_of(self.bytes()))
    }
}

fn sixteen_of(bytes: [u8; 32]) -> u128 {
    let mut sixteen = [0u8; 16];
    sixteen.copy_from_slice(&bytes[..16]);
    u128::from_be_bytes(sixteen)
}

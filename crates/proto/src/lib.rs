//! The gRPC contracts of `proto/`, generated. Nothing is written here by hand.

#[expect(clippy::large_enum_variant, reason = "an event of a stream lives from its arrival to its reading")]
pub mod v1 {
    tonic::include_proto!("gigafactory.v1");
}

/// KEDA's contract for external scalers.
pub mod externalscaler {
    tonic::include_proto!("externalscaler");
}

/// For reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

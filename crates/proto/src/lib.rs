//! The gRPC contract of `proto/gigafactory/v1`, generated. Nothing is written here by hand.

#[expect(clippy::large_enum_variant, reason = "an event of a stream lives from its arrival to its reading")]
pub mod v1 {
    tonic::include_proto!("gigafactory.v1");
}

/// For reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

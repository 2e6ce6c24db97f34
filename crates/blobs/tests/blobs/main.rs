//! Where bytes are kept: folders, S3, Azure.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod azure;
mod folder;
mod links;
mod s3;

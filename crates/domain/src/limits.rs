//! Sizes past which input is refused. One place, so that routes, parser and docs cannot disagree.

/// A manifest with its body.
pub const MANIFEST_BYTES: usize = 1024 * 1024;
/// Any other JSON request body.
pub const REQUEST_BYTES: usize = 256 * 1024;
/// The payload of a topic job.
pub const TOPIC_PAYLOAD_BYTES: usize = 256 * 1024;
pub const NAME_CHARS: usize = 120;
pub const CAPABILITIES: usize = 64;
pub const DEPS: usize = 1_000;
pub const VERIFY_COMMANDS: usize = 32;
pub const REVIEWERS: usize = 32;
pub const IDEMPOTENCY_KEY_CHARS: usize = 200;
pub const CONCURRENCY_KEY_CHARS: usize = 200;
pub const CHECKPOINT_BYTES: usize = 16 * 1024;
pub const REASON_CHARS: usize = 4_000;
pub const FACTORY_REPOS: usize = 2_000;
pub const SEATS: u32 = 1_024;
pub const PAGE_DEFAULT: usize = 50;
pub const PAGE_MAX: usize = 500;
/// The log of one run.
pub const LOG_BYTES: u64 = 64 * 1024 * 1024;
/// One piece of a log.
pub const LOG_CHUNK_BYTES: usize = 1024 * 1024;
pub const ARTIFACT_BYTES: usize = 64 * 1024 * 1024;
pub const ARTIFACT_NAME_CHARS: usize = 200;

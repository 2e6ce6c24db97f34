//! Sizes past which input is refused. One place, so that routes, parser and docs cannot disagree.

/// A manifest with its body.
pub const MANIFEST_BYTES: usize = 1024 * 1024;
/// Texts that are rendered in one call.
pub const MARKDOWN_TEXTS: usize = 50;
/// Any other JSON request body.
pub const REQUEST_BYTES: usize = 256 * 1024;
/// The payload of a topic job.
pub const TOPIC_PAYLOAD_BYTES: usize = 256 * 1024;
/// One call about topic jobs, over REST or gRPC, with everything in it.
pub const TOPIC_REQUEST_BYTES: usize = 16 * 1024 * 1024;
/// Topic jobs in one enqueue call, results in one report, renewals in one heartbeat.
pub const TOPIC_BATCH: usize = 1_000;
/// Topics that one worker's stream may serve.
pub const STREAM_TOPICS: usize = 100;
/// Jobs that one worker may have at once.
pub const IN_FLIGHT: u32 = 10_000;
/// Bytes of payload that one worker may have at once, but for a single job that is larger.
pub const IN_FLIGHT_BYTES: u64 = 64 * 1024 * 1024;
/// An offer on the broker.
pub const OFFER_BYTES: usize = 4 * 1024;
pub const NAME_CHARS: usize = 120;
pub const CAPABILITIES: usize = 64;
/// Engines that a job may name.
pub const JOB_ENGINES: usize = 16;
/// Logins of engines on one factory.
pub const ACCOUNTS: usize = 64;
pub const ACCOUNT_WINDOWS: usize = 8;
pub const DEPS: usize = 1_000;
pub const VERIFY_COMMANDS: usize = 32;
pub const REVIEWERS: usize = 32;
pub const IDEMPOTENCY_KEY_CHARS: usize = 200;
pub const CONCURRENCY_KEY_CHARS: usize = 200;
pub const CHECKPOINT_BYTES: usize = 16 * 1024;
pub const REASON_CHARS: usize = 4_000;
/// A sentence of a factory about a repository or a merge.
pub const NOTE_CHARS: usize = 600;
/// Repositories that one job works on.
pub const JOB_REPOS: usize = 8;
/// A hash, in hexadecimal digits.
pub const COMMIT_CHARS: usize = 64;
pub const FACTORY_REPOS: usize = 2_000;
pub const FACTORY_CLONES: usize = 100;
pub const REPO_URL_CHARS: usize = 400;
pub const SEATS: u32 = 1_024;
/// Seats of a factory of a pool.
pub const POOL_SEATS: u32 = SEATS;
/// Factories of one pool.
pub const POOL_FACTORIES: u32 = 500;
pub const POOLS: usize = 200;
/// How long a factory of a pool may start, or be idle.
pub const POOL_TIME: std::time::Duration = std::time::Duration::from_hours(7 * 24);
/// One argument of a pool's command or of its factories, and what a driver says of a failure.
pub const POOL_TEXT: usize = 1_000;
pub const POOL_ARGS: usize = 100;
/// Jobs that one claim may name, and be granted.
pub const CLAIM_JOBS: usize = 100;
/// Jobs that a list may be asked for by their ids.
pub const LISTED_IDS: usize = 100;
pub const PAGE_DEFAULT: usize = 50;
pub const PAGE_MAX: usize = 500;
/// The log of one run.
pub const LOG_BYTES: u64 = 64 * 1024 * 1024;
/// One piece of a log.
pub const LOG_CHUNK_BYTES: usize = 1024 * 1024;
/// Artifacts of one job, over all of its runs.
pub const JOB_ARTIFACTS: usize = 1_000;
/// Uploads of one job that are under way at once.
pub const JOB_UPLOADS: usize = 4;
/// How long a link to an artifact may work, in seconds.
pub const LINK_SECONDS: u64 = 24 * 3600;
pub const ARTIFACT_NAME_CHARS: usize = 200;
/// The end of a verify command's output that is kept with its run.
pub const CHECK_OUTPUT_BYTES: usize = 4 * 1024;
/// Jobs in one submit, children of a job in one call.
pub const SUBMIT_JOBS: usize = 1_000;
/// How deep children may have children.
pub const DAG_DEPTH: usize = 16;
/// Children that what runs inside a job may give it, where no policy says otherwise.
pub const CHILDREN_FROM_INSIDE: usize = 100;
/// How deep these may have children in turn.
pub const DEPTH_FROM_INSIDE: usize = 4;
/// Jobs that a look at a subtree shows.
pub const DAG_JOBS: usize = 5_000;
/// Verdicts of reviewers that are kept with a job, the newest.
pub const REVIEW_NOTES: usize = 20;
/// What a job asks, and what it is answered.
pub const QUESTION_CHARS: usize = 2_000;
pub const QUESTION_OPTIONS: usize = 10;
pub const QUESTION_OPTION_CHARS: usize = 200;
pub const QUESTION_KEY_CHARS: usize = 200;
/// Questions of one job that are open at once, and over all of its runs.
pub const OPEN_QUESTIONS: usize = 5;
pub const JOB_QUESTIONS: u32 = 200;
/// Of those that are closed, so many stay with the job.
pub const QUESTIONS_KEPT: usize = 20;
/// What a person says to a job.
pub const MESSAGE_CHARS: usize = 4_000;
/// Messages of one job that its engine has not read yet.
pub const WAITING_MESSAGES: usize = 20;
pub const MESSAGES_KEPT: usize = 20;
/// The persona of a profile.
pub const PERSONA_BYTES: usize = 64 * 1024;
/// The value of a secret. A shorter one could not be told from ordinary text in a log.
pub const SECRET_LEAST_BYTES: usize = 6;
pub const SECRET_BYTES: usize = 64 * 1024;
/// Secrets that one job may name.
pub const JOB_SECRETS: usize = 32;
pub const PRODUCT_SECRETS: usize = 1_000;
pub const PRODUCT_REPOS: usize = 2_000;
/// A webhook's address.
pub const URL_CHARS: usize = 2_000;
/// Each makes an effect of every event that it wants.
pub const WEBHOOKS_PER_PRODUCT: usize = 100;

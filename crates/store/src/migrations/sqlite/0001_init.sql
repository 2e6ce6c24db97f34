-- The first schema. Ids are text, times are milliseconds since 1970 (UTC), JSON is text.

-- The hot part of a job. `spec` is what it asks for and never changes; the columns before it repeat parts of it to
-- filter by. The lease stands in `leases` alone, so that a renewal leaves this row in peace.
CREATE TABLE jobs (
    id TEXT NOT NULL PRIMARY KEY,
    product_id TEXT NOT NULL,
    name TEXT NOT NULL,
    priority INTEGER NOT NULL,
    repo TEXT,
    parent_id TEXT,
    idempotency_key TEXT,
    concurrency_key TEXT,
    deps_mode TEXT NOT NULL,
    spec TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    stage TEXT NOT NULL,
    state TEXT,
    rev INTEGER NOT NULL,
    lease_epoch INTEGER NOT NULL,
    last_event INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    dispatch_seq INTEGER NOT NULL,
    checkpoint TEXT,
    settled TEXT,
    updated_at INTEGER NOT NULL,
    enqueued_at INTEGER NOT NULL,
    ended_at INTEGER,
    last_factory_id TEXT,
    last_steer TEXT,
    result TEXT,
    merge TEXT,
    merge_due INTEGER
) STRICT;
CREATE UNIQUE INDEX jobs_by_idempotency_key ON jobs (product_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX jobs_by_product ON jobs (product_id, id);
CREATE INDEX jobs_by_stage ON jobs (stage, id);
CREATE INDEX jobs_live ON jobs (id) WHERE stage IN ('queued', 'assigned', 'building');
CREATE INDEX jobs_ended ON jobs (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX jobs_to_merge ON jobs (merge_due, id) WHERE merge_due IS NOT NULL;
CREATE INDEX jobs_by_parent ON jobs (parent_id, id) WHERE parent_id IS NOT NULL;

-- The cold part: read when somebody looks at the job, never when it is claimed.
CREATE TABLE job_texts (
    job_id TEXT NOT NULL PRIMARY KEY,
    product_id TEXT NOT NULL,
    manifest TEXT NOT NULL,
    body BLOB NOT NULL,
    fingerprint TEXT NOT NULL
) STRICT;

CREATE TABLE deps (
    job_id TEXT NOT NULL,
    dep_id TEXT NOT NULL,
    product_id TEXT NOT NULL,
    PRIMARY KEY (job_id, dep_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX deps_by_dep ON deps (dep_id);

CREATE TABLE leases (
    job_id TEXT NOT NULL PRIMARY KEY,
    product_id TEXT NOT NULL,
    factory_id TEXT NOT NULL,
    request_id TEXT NOT NULL,
    granted_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    concurrency_key TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX leases_by_expiry ON leases (expires_at);
CREATE INDEX leases_by_request ON leases (factory_id, request_id);
CREATE INDEX leases_by_concurrency_key ON leases (product_id, concurrency_key)
    WHERE concurrency_key IS NOT NULL;

CREATE TABLE runs (
    job_id TEXT NOT NULL,
    lease_epoch INTEGER NOT NULL,
    product_id TEXT NOT NULL,
    factory_id TEXT NOT NULL,
    engine TEXT,
    assigned_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    outcome TEXT NOT NULL,
    failure TEXT,
    report TEXT NOT NULL,
    PRIMARY KEY (job_id, lease_epoch)
) STRICT, WITHOUT ROWID;

-- What points to the files of runs; their bytes are in the object store, under job, epoch and id.
CREATE TABLE artifacts (
    id TEXT NOT NULL PRIMARY KEY,
    job_id TEXT NOT NULL,
    product_id TEXT NOT NULL,
    lease_epoch INTEGER NOT NULL,
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX artifacts_by_name ON artifacts (job_id, lease_epoch, name);

-- `product_id` is empty for events of the fleet, `job_id` and `seq` for those of no job.
CREATE TABLE events (
    pos INTEGER NOT NULL PRIMARY KEY,
    job_id TEXT,
    seq INTEGER,
    product_id TEXT,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    kind TEXT NOT NULL,
    from_stage TEXT,
    to_stage TEXT,
    cause TEXT NOT NULL,
    data TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_by_job ON events (job_id, seq);

-- One row. Positions are never given twice, also when the events that had them are gone.
CREATE TABLE feed (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    last_pos INTEGER NOT NULL
) STRICT;
INSERT INTO feed (one, last_pos) VALUES (1, 0);

CREATE TABLE queue_state (
    product_id TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    queued INTEGER NOT NULL,
    blocked INTEGER NOT NULL,
    assigned INTEGER NOT NULL,
    building INTEGER NOT NULL,
    review INTEGER NOT NULL,
    testing INTEGER NOT NULL,
    shipped INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    dead_letter INTEGER NOT NULL,
    cancelled INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE factories (
    id TEXT NOT NULL PRIMARY KEY,
    state TEXT NOT NULL,
    scope TEXT NOT NULL,
    advertised TEXT NOT NULL,
    enrolled_at INTEGER NOT NULL,
    last_seen_at INTEGER
) STRICT;

-- Only the hash of a token is kept.
CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    factory_id TEXT,
    allows TEXT NOT NULL,
    label TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;
CREATE INDEX tokens_by_factory ON tokens (factory_id);

CREATE TABLE flags (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

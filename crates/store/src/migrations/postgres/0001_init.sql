-- The first schema. Ids are text in byte order, times are milliseconds since 1970 (UTC), JSON is text.
-- Hot tables leave room on their pages, so that updates of columns without an index stay on the page, and are
-- vacuumed by count rather than by share.

-- The hot part of a job. `spec` is what it asks for and never changes; the columns before it repeat parts of it to
-- filter by. The lease stands in `leases` alone, so that a renewal leaves this row in peace.
CREATE TABLE jobs (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    product_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    priority BIGINT NOT NULL,
    repo TEXT COLLATE "C",
    parent_id TEXT COLLATE "C",
    idempotency_key TEXT COLLATE "C",
    concurrency_key TEXT COLLATE "C",
    deps_mode TEXT COLLATE "C" NOT NULL,
    spec TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    stage TEXT COLLATE "C" NOT NULL,
    state TEXT,
    rev BIGINT NOT NULL,
    lease_epoch BIGINT NOT NULL,
    last_event BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    dispatch_seq BIGINT NOT NULL,
    checkpoint TEXT,
    settled TEXT,
    updated_at BIGINT NOT NULL,
    enqueued_at BIGINT NOT NULL,
    ended_at BIGINT,
    last_factory_id TEXT COLLATE "C",
    last_steer TEXT COLLATE "C",
    result TEXT,
    merge TEXT,
    merge_due BIGINT
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05);
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
    job_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    product_id TEXT COLLATE "C" NOT NULL,
    manifest TEXT NOT NULL,
    body BYTEA NOT NULL,
    fingerprint TEXT COLLATE "C" NOT NULL
);

CREATE TABLE deps (
    job_id TEXT COLLATE "C" NOT NULL,
    dep_id TEXT COLLATE "C" NOT NULL,
    product_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (job_id, dep_id)
);
CREATE INDEX deps_by_dep ON deps (dep_id);

-- Small and busy: every claim adds a row, every report deletes one.
CREATE TABLE leases (
    job_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    product_id TEXT COLLATE "C" NOT NULL,
    factory_id TEXT COLLATE "C" NOT NULL,
    request_id TEXT COLLATE "C" NOT NULL,
    granted_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    concurrency_key TEXT COLLATE "C"
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX leases_by_expiry ON leases (expires_at);
CREATE INDEX leases_by_request ON leases (factory_id, request_id);
CREATE INDEX leases_by_concurrency_key ON leases (product_id, concurrency_key)
    WHERE concurrency_key IS NOT NULL;

CREATE TABLE runs (
    job_id TEXT COLLATE "C" NOT NULL,
    lease_epoch BIGINT NOT NULL,
    product_id TEXT COLLATE "C" NOT NULL,
    factory_id TEXT COLLATE "C" NOT NULL,
    engine TEXT,
    assigned_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    outcome TEXT COLLATE "C" NOT NULL,
    failure TEXT,
    report TEXT NOT NULL,
    PRIMARY KEY (job_id, lease_epoch)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

-- What points to the files of runs; their bytes are in the object store, under job, epoch and id.
CREATE TABLE artifacts (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    job_id TEXT COLLATE "C" NOT NULL,
    product_id TEXT COLLATE "C" NOT NULL,
    lease_epoch BIGINT NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    media_type TEXT NOT NULL,
    size BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX artifacts_by_name ON artifacts (job_id, lease_epoch, name);

-- `product_id` is empty for events of the fleet, `job_id` and `seq` for those of no job.
CREATE TABLE events (
    pos BIGINT NOT NULL PRIMARY KEY,
    job_id TEXT COLLATE "C",
    seq BIGINT,
    product_id TEXT COLLATE "C",
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    from_stage TEXT COLLATE "C",
    to_stage TEXT COLLATE "C",
    cause TEXT NOT NULL,
    data TEXT NOT NULL
);
CREATE UNIQUE INDEX events_by_job ON events (job_id, seq);

-- One row, locked last by every writer and until its commit: that is what makes positions visible in their order,
-- which a sequence would not. Positions are never given twice, also when the events that had them are gone.
CREATE TABLE feed (
    one BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    last_pos BIGINT NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 200);
INSERT INTO feed (one, last_pos) VALUES (1, 0);

CREATE TABLE queue_state (
    product_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    version BIGINT NOT NULL,
    queued BIGINT NOT NULL,
    blocked BIGINT NOT NULL,
    assigned BIGINT NOT NULL,
    building BIGINT NOT NULL,
    review BIGINT NOT NULL,
    testing BIGINT NOT NULL,
    shipped BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    dead_letter BIGINT NOT NULL,
    cancelled BIGINT NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 200);

CREATE TABLE factories (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    state TEXT COLLATE "C" NOT NULL,
    scope TEXT NOT NULL,
    advertised TEXT NOT NULL,
    enrolled_at BIGINT NOT NULL,
    last_seen_at BIGINT
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);

-- Only the hash of a token is kept.
CREATE TABLE tokens (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    hash TEXT COLLATE "C" NOT NULL UNIQUE,
    factory_id TEXT COLLATE "C",
    allows TEXT NOT NULL,
    label TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
);
CREATE INDEX tokens_by_factory ON tokens (factory_id);

CREATE TABLE flags (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

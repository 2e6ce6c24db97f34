-- Topic jobs. Thousands pass each second: rows are narrow, indexes few, and nothing is counted by counting rows.

-- Never deleted, so that a coordinator may remember an id. 0 is nobody's: it stands for everything.
CREATE TABLE topics (
    id INTEGER NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    UNIQUE (product_id, name)
);

-- state: 0 scheduled, 1 ready, 2 running, 3 done, 4 dead. `at` is the one time that the state has: due, the end of the
-- lease, or when it ended. Wide columns last, so that the others lie at fixed places.
CREATE TABLE topic_jobs (
    id UUID NOT NULL PRIMARY KEY,
    created_at BIGINT NOT NULL,
    at BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    backoff_ms BIGINT NOT NULL,
    topic_id INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    retry_max INTEGER NOT NULL,
    state SMALLINT NOT NULL,
    priority SMALLINT NOT NULL,
    worker TEXT COLLATE "C",
    idempotency_key TEXT COLLATE "C",
    last_error TEXT,
    payload BYTEA NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 20000,
        autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 20000);
CREATE INDEX topic_jobs_ready ON topic_jobs (topic_id, priority, id) WHERE state = 1;
CREATE INDEX topic_jobs_leased ON topic_jobs (at) WHERE state = 2;
CREATE INDEX topic_jobs_scheduled ON topic_jobs (at) WHERE state = 0;
CREATE INDEX topic_jobs_dead ON topic_jobs (topic_id, id) WHERE state = 4;
CREATE UNIQUE INDEX topic_jobs_by_key ON topic_jobs (topic_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

-- How many jobs a topic has in each stage is what stands in `topic_counts` plus all of `topic_deltas`. A transaction
-- appends what it changed; nobody waits for anybody's row, and an old snapshot leaves no chain of dead versions to
-- walk. Now and then somebody folds the second into the first.
CREATE TABLE topic_counts (
    topic_id INTEGER NOT NULL PRIMARY KEY,
    scheduled BIGINT NOT NULL,
    ready BIGINT NOT NULL,
    running BIGINT NOT NULL,
    done BIGINT NOT NULL,
    dead BIGINT NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE topic_deltas (
    topic_id INTEGER NOT NULL,
    scheduled INTEGER NOT NULL DEFAULT 0,
    ready INTEGER NOT NULL DEFAULT 0,
    running INTEGER NOT NULL DEFAULT 0,
    done INTEGER NOT NULL DEFAULT 0,
    dead INTEGER NOT NULL DEFAULT 0
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);

-- A row is a closed gate. Topic 0 is everything.
CREATE TABLE topic_gates (
    topic_id INTEGER NOT NULL PRIMARY KEY,
    since BIGINT NOT NULL,
    closed_by TEXT NOT NULL
);

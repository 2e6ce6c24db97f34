-- Topic jobs. Thousands pass each second: rows are narrow, indexes few, and nothing is counted by counting rows.

-- Never deleted. 0 is nobody's: it stands for everything.
CREATE TABLE topics (
    id INTEGER NOT NULL PRIMARY KEY,
    product_id TEXT NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (product_id, name)
) STRICT;

-- state: 0 scheduled, 1 ready, 2 running, 3 done, 4 dead. `at` is the one time that the state has: due, the end of the
-- lease, or when it ended.
CREATE TABLE topic_jobs (
    id BLOB NOT NULL PRIMARY KEY,
    created_at INTEGER NOT NULL,
    at INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    backoff_ms INTEGER NOT NULL,
    topic_id INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    retry_max INTEGER NOT NULL,
    state INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    worker TEXT,
    idempotency_key TEXT,
    last_error TEXT,
    payload BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX topic_jobs_ready ON topic_jobs (topic_id, priority, id) WHERE state = 1;
CREATE INDEX topic_jobs_leased ON topic_jobs (at, id) WHERE state = 2;
CREATE INDEX topic_jobs_scheduled ON topic_jobs (at, id) WHERE state = 0;
CREATE INDEX topic_jobs_dead ON topic_jobs (topic_id, id) WHERE state = 4;
CREATE UNIQUE INDEX topic_jobs_by_key ON topic_jobs (topic_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

CREATE TABLE topic_counts (
    topic_id INTEGER NOT NULL PRIMARY KEY,
    scheduled INTEGER NOT NULL,
    ready INTEGER NOT NULL,
    running INTEGER NOT NULL,
    done INTEGER NOT NULL,
    dead INTEGER NOT NULL
) STRICT;

-- A row is a closed gate. Topic 0 is everything.
CREATE TABLE topic_gates (
    topic_id INTEGER NOT NULL PRIMARY KEY,
    since INTEGER NOT NULL,
    closed_by TEXT NOT NULL
) STRICT;

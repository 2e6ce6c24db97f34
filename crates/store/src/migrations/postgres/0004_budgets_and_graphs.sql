-- Budgets, graphs of jobs, reviews, evictions.

-- Under its new name the coordinators of before do not find it. They know neither what a job may spend nor who waits for
-- it, so one that still runs beside this version must not be able to move a job.
ALTER TABLE jobs RENAME COLUMN settled TO last_word;
ALTER TABLE jobs ADD COLUMN evictions BIGINT NOT NULL DEFAULT 0;
-- Asked for after submit; stands above the manifest's.
ALTER TABLE jobs ADD COLUMN gate TEXT;
ALTER TABLE jobs ADD COLUMN reviews TEXT;
ALTER TABLE job_texts ADD COLUMN persona TEXT;
-- Repeated from `spec`, for the way from a child to the composite that waits for it.
ALTER TABLE jobs ADD COLUMN kind TEXT COLLATE "C" NOT NULL DEFAULT 'agent';
-- Until now a composite was a job like any other, for a factory to take: those that are there stay so. A quote inside
-- of a text is escaped, so nothing but the key itself can look like this.
UPDATE jobs SET spec = replace(spec, '"kind":"composite"', '"kind":"agent"') WHERE spec LIKE '%"kind":"composite"%';

-- What is set aside stands on the lease, so it can never outlive it. `due_at` is when somebody has to look: the lease
-- ends, or its holder was to let go.
ALTER TABLE leases ADD COLUMN reserved_usd BIGINT NOT NULL DEFAULT 0;
ALTER TABLE leases ADD COLUMN spent_usd BIGINT NOT NULL DEFAULT 0;
ALTER TABLE leases ADD COLUMN spent_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE leases ADD COLUMN evict TEXT;
ALTER TABLE leases ADD COLUMN due_at BIGINT NOT NULL DEFAULT 0;
UPDATE leases SET due_at = expires_at;
DROP INDEX leases_by_expiry;
CREATE INDEX leases_by_due ON leases (due_at, job_id);

-- One row per product that something was ever claimed or set for. Money is in millionths of a dollar.
CREATE TABLE budgets (
    product_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    settings TEXT NOT NULL,
    paused TEXT,
    spent TEXT NOT NULL,
    reserved_usd BIGINT NOT NULL,
    rev BIGINT NOT NULL,
    last_request TEXT COLLATE "C"
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 200);

-- What was charged, for ever: it outlives the jobs. `job_id` and `lease_epoch` are empty for a correction by hand.
CREATE TABLE charges (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_id TEXT COLLATE "C" NOT NULL,
    job_id TEXT COLLATE "C",
    lease_epoch BIGINT,
    at BIGINT NOT NULL,
    usd BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    how TEXT COLLATE "C" NOT NULL,
    request_id TEXT COLLATE "C"
);
-- A correction by hand stands here under the call that made it: the same call again books nothing.
CREATE UNIQUE INDEX charges_by_request ON charges (product_id, request_id) WHERE request_id IS NOT NULL;
CREATE INDEX charges_by_time ON charges (product_id, at);
-- Not unique: a job that is submitted once more after its retirement counts its epochs from the start.
CREATE INDEX charges_by_run ON charges (job_id, lease_epoch) WHERE job_id IS NOT NULL;

-- Jobs to look at again because something that they hang on has moved. Rows are only ever added and removed, and a job
-- may stand here twice: nobody waits for anybody else's row.
CREATE TABLE reconsider (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id TEXT COLLATE "C" NOT NULL,
    -- 1: because its parent ended, before the job itself had failed.
    parent_ended BIGINT NOT NULL DEFAULT 0
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);
INSERT INTO reconsider (job_id) SELECT id FROM jobs WHERE stage = 'blocked' ORDER BY id;

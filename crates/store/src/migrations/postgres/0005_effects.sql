-- Products, profiles, and what the world outside is to be told.

CREATE TABLE products (
    product_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    settings TEXT NOT NULL,
    rev BIGINT NOT NULL
);

-- A version never changes.
CREATE TABLE profiles (
    product_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    persona TEXT NOT NULL,
    defaults TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    PRIMARY KEY (product_id, name, version)
);

-- `product_id` is empty for one that is told of everything. The secret is in hexadecimal digits.
CREATE TABLE webhooks (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    product_id TEXT COLLATE "C",
    url TEXT NOT NULL,
    kinds TEXT NOT NULL,
    secret TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    since_pos BIGINT NOT NULL
);

-- The outbox. `receiver` is who is spoken to for `target`. `due_at` is empty once it is over. One that is being sent is due again when its sender must have given up.
CREATE TABLE effects (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    product_id TEXT COLLATE "C",
    target TEXT COLLATE "C" NOT NULL,
    job_id TEXT COLLATE "C",
    payload TEXT NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    due_at BIGINT,
    attempts BIGINT NOT NULL,
    detail TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    receiver TEXT COLLATE "C" NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX effects_waiting ON effects (receiver, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX effects_pending ON effects (created_at) WHERE due_at IS NOT NULL;
CREATE INDEX effects_dead ON effects (created_at, id) WHERE state = 'dead';
CREATE INDEX effects_by_age ON effects (created_at, id);
CREATE INDEX effects_by_product ON effects (product_id, created_at, id);
CREATE INDEX effects_by_target ON effects (target, created_at, id);
CREATE INDEX effects_by_job ON effects (job_id, created_at, id) WHERE job_id IS NOT NULL;
CREATE INDEX effects_over ON effects (updated_at, id) WHERE due_at IS NULL;

-- One row: up to where the feed has been put into the outbox. What happened before there was one is never told.
CREATE TABLE fan_out (
    one BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    pos BIGINT NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 200);
INSERT INTO fan_out (one, pos) SELECT 1, last_pos FROM feed;

-- What every coordinator has to know and nobody else may: 32 bytes each, in hexadecimal digits.
CREATE TABLE secrets (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

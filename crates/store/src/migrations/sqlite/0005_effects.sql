-- Products, profiles, and what the world outside is to be told.

CREATE TABLE products (
    product_id TEXT NOT NULL PRIMARY KEY,
    settings TEXT NOT NULL,
    rev INTEGER NOT NULL
) STRICT;

-- A version never changes.
CREATE TABLE profiles (
    product_id TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    persona TEXT NOT NULL,
    defaults TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    PRIMARY KEY (product_id, name, version)
) STRICT;

-- `product_id` is empty for one that is told of everything. The secret is in hexadecimal digits.
CREATE TABLE webhooks (
    id TEXT NOT NULL PRIMARY KEY,
    product_id TEXT,
    url TEXT NOT NULL,
    kinds TEXT NOT NULL,
    secret TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    since_pos INTEGER NOT NULL
) STRICT;

-- The outbox. `receiver` is who is spoken to for `target`. `due_at` is empty once it is over. One that is being sent is due again when its sender must have given up.
CREATE TABLE effects (
    id TEXT NOT NULL PRIMARY KEY,
    product_id TEXT,
    target TEXT NOT NULL,
    job_id TEXT,
    payload TEXT NOT NULL,
    state TEXT NOT NULL,
    due_at INTEGER,
    attempts INTEGER NOT NULL,
    detail TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    receiver TEXT NOT NULL
) STRICT;
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
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    pos INTEGER NOT NULL
) STRICT;
INSERT INTO fan_out (one, pos) SELECT 1, last_pos FROM feed;

-- What every coordinator has to know and nobody else may: 32 bytes each, in hexadecimal digits.
CREATE TABLE secrets (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

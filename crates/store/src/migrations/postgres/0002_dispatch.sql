-- Dispatch: who leads, and what the broker has yet to be told.

-- One row, which is there to be locked before anybody has led. The term rises with every change of leader.
CREATE TABLE leader (
    one BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    node_id TEXT COLLATE "C",
    term BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 200);
INSERT INTO leader (one, node_id, term, expires_at) VALUES (1, NULL, 0, 0);

-- Written with the target that it tells of, deleted once the broker has it.
CREATE TABLE outbox (
    job_id TEXT COLLATE "C" NOT NULL,
    dispatch_seq BIGINT NOT NULL,
    product_id TEXT COLLATE "C" NOT NULL,
    offer TEXT NOT NULL,
    since BIGINT NOT NULL,
    PRIMARY KEY (job_id, dispatch_seq)
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX outbox_by_age ON outbox (since, job_id, dispatch_seq);

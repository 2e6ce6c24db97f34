-- Dispatch: who leads, and what the broker has yet to be told.

-- One row, which is there to be locked before anybody has led. The term rises with every change of leader.
CREATE TABLE leader (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    node_id TEXT,
    term INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
INSERT INTO leader (one, node_id, term, expires_at) VALUES (1, NULL, 0, 0);

-- Written with the target that it tells of, deleted once the broker has it.
CREATE TABLE outbox (
    job_id TEXT NOT NULL,
    dispatch_seq INTEGER NOT NULL,
    product_id TEXT NOT NULL,
    offer TEXT NOT NULL,
    since INTEGER NOT NULL,
    PRIMARY KEY (job_id, dispatch_seq)
) STRICT;
CREATE INDEX outbox_by_age ON outbox (since, job_id, dispatch_seq);

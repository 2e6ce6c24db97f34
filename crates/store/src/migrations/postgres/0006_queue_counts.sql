-- How many jobs stand in each stage: a row per product and stage instead of a column per stage, so that a stage more needs
-- no migration. A product's version is the sum over its rows.
CREATE TABLE queue_counts (
    product_id TEXT NOT NULL,
    stage TEXT NOT NULL,
    version BIGINT NOT NULL,
    jobs BIGINT NOT NULL,
    PRIMARY KEY (product_id, stage)
);

INSERT INTO queue_counts (product_id, stage, version, jobs)
SELECT product_id, 'queued', version, queued FROM queue_state
UNION ALL
SELECT product_id, 'blocked', 0, blocked FROM queue_state
UNION ALL
SELECT product_id, 'assigned', 0, assigned FROM queue_state
UNION ALL
SELECT product_id, 'building', 0, building FROM queue_state
UNION ALL
SELECT product_id, 'review', 0, review FROM queue_state
UNION ALL
SELECT product_id, 'testing', 0, testing FROM queue_state
UNION ALL
SELECT product_id, 'shipped', 0, shipped FROM queue_state
UNION ALL
SELECT product_id, 'failed', 0, failed FROM queue_state
UNION ALL
SELECT product_id, 'dead_letter', 0, dead_letter FROM queue_state
UNION ALL
SELECT product_id, 'cancelled', 0, cancelled FROM queue_state;

DROP TABLE queue_state;

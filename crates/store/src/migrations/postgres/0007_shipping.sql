-- Shipped means merged: what was shipped and is not merged yet is shipping.
INSERT INTO queue_counts (product_id, stage, version, jobs)
SELECT product_id, 'shipping', 0, count(*) FROM jobs
WHERE stage = 'shipped' AND merge::json ->> 'state' IN ('waiting', 'taken')
GROUP BY product_id;

UPDATE queue_counts SET jobs = jobs - (
    SELECT moved.jobs FROM queue_counts AS moved
    WHERE moved.product_id = queue_counts.product_id AND moved.stage = 'shipping')
WHERE stage = 'shipped' AND EXISTS (
    SELECT 1 FROM queue_counts AS moved
    WHERE moved.product_id = queue_counts.product_id AND moved.stage = 'shipping');

UPDATE jobs SET stage = 'shipping', ended_at = NULL, state = json_build_object('stage', 'shipping', 'since', to_char(to_timestamp(updated_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))::text
WHERE stage = 'shipped' AND merge::json ->> 'state' IN ('waiting', 'taken');

-- Why the last attempt failed, while the job is tried again.
ALTER TABLE jobs ADD COLUMN setback TEXT;

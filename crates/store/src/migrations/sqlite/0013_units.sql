-- What the job uses of capabilities that a factory may have a number of, repeated from the job so that a claim can add up
-- what is in use there. Leases of before count as using nothing until they end.
ALTER TABLE leases ADD COLUMN units TEXT;
CREATE INDEX leases_with_units ON leases (factory_id) WHERE units IS NOT NULL;

-- Keys are replaced after a time: since when the one in use is.
ALTER TABLE secrets ADD COLUMN created_at BIGINT NOT NULL DEFAULT 0;

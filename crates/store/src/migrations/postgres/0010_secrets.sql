-- Named secrets of products, sealed with a key that is not in here.
CREATE TABLE job_secrets (
    product_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    key_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL,
    sealed BYTEA NOT NULL,
    PRIMARY KEY (product_id, name)
);

-- Named secrets of products, sealed with a key that is not in here.
CREATE TABLE job_secrets (
    product_id TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    key_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (product_id, name)
) STRICT;

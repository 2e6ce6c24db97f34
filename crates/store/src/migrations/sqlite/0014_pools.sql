-- Pools of factories that come and go, and their members.
CREATE TABLE pools (
    name TEXT NOT NULL PRIMARY KEY,
    settings TEXT NOT NULL,
    record TEXT NOT NULL,
    rev INTEGER NOT NULL
) STRICT;
CREATE TABLE pool_members (
    factory_id TEXT NOT NULL PRIMARY KEY,
    pool TEXT NOT NULL,
    state TEXT NOT NULL,
    since INTEGER NOT NULL,
    ordered_at INTEGER NOT NULL,
    enrolled_at INTEGER,
    handle TEXT,
    reason TEXT,
    charged_until INTEGER NOT NULL
) STRICT;

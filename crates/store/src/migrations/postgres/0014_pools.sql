-- Pools of factories that come and go, and their members.
CREATE TABLE pools (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    settings TEXT NOT NULL,
    record TEXT NOT NULL,
    rev BIGINT NOT NULL
);
CREATE TABLE pool_members (
    factory_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    pool TEXT COLLATE "C" NOT NULL,
    state TEXT NOT NULL,
    since BIGINT NOT NULL,
    ordered_at BIGINT NOT NULL,
    enrolled_at BIGINT,
    handle TEXT,
    reason TEXT,
    charged_until BIGINT NOT NULL
);

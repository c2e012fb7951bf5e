CREATE TABLE sandboxes (
    pool TEXT NOT NULL REFERENCES pools (name),
    name TEXT NOT NULL,
    id TEXT NOT NULL UNIQUE,
    generation INTEGER NOT NULL,
    provider TEXT NOT NULL,
    image TEXT,
    spec TEXT NOT NULL,
    services TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('making', 'live', 'removing')),
    -- Who is at work on it. Nobody is on a live one.
    owner_pid INTEGER,
    owner_start_ticks INTEGER,
    owner_boot_id TEXT,
    sleep_after_ms INTEGER,
    created_ms INTEGER NOT NULL,
    deadline_ms INTEGER,
    last_change_ms INTEGER NOT NULL,
    -- Copies of what the spec says, for the sums that quotas are held against.
    memory_mib INTEGER,
    disk_mib INTEGER,
    PRIMARY KEY (pool, name),
    CHECK ((state = 'live') = (owner_pid IS NULL)),
    CHECK ((owner_pid IS NULL) = (owner_start_ticks IS NULL)),
    CHECK ((owner_pid IS NULL) = (owner_boot_id IS NULL))
) STRICT;

-- How often a sandbox was made under a name; outlives the sandboxes.
CREATE TABLE generations (
    pool TEXT NOT NULL,
    name TEXT NOT NULL,
    generation INTEGER NOT NULL,
    PRIMARY KEY (pool, name)
) STRICT, WITHOUT ROWID;

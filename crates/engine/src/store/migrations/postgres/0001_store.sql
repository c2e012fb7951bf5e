-- The tables of the store as they are in a file, after its migrations; texts sort as they do there, by their bytes.

CREATE TABLE pools (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    created_ms BIGINT NOT NULL,
    options TEXT NOT NULL
);

CREATE TABLE sandboxes (
    pool TEXT COLLATE "C" NOT NULL REFERENCES pools (name),
    name TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    generation BIGINT NOT NULL,
    provider TEXT NOT NULL,
    image TEXT,
    spec TEXT NOT NULL,
    services TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('making', 'live', 'removing')),
    -- Who is at work on it. Nobody is on a live one.
    owner_pid BIGINT,
    owner_start_ticks BIGINT,
    owner_boot_id TEXT,
    sleep_after_ms BIGINT,
    created_ms BIGINT NOT NULL,
    deadline_ms BIGINT,
    last_change_ms BIGINT NOT NULL,
    -- Copies of what the spec says, for the sums that quotas are held against.
    memory_mib BIGINT,
    disk_mib BIGINT,
    pids BIGINT,
    -- Whether it is known, and recorded, that it sleeps.
    is_asleep BIGINT NOT NULL DEFAULT 0 CHECK (is_asleep IN (0, 1)),
    -- Always NULL: no sandbox of several hosts ends with a process.
    process TEXT,
    PRIMARY KEY (pool, name),
    CHECK ((state = 'live') = (owner_pid IS NULL)),
    CHECK ((owner_pid IS NULL) = (owner_start_ticks IS NULL)),
    CHECK ((owner_pid IS NULL) = (owner_boot_id IS NULL))
);

-- How often a sandbox was made under a name; outlives the sandboxes.
CREATE TABLE generations (
    pool TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    generation BIGINT NOT NULL,
    PRIMARY KEY (pool, name)
);

-- Who wakes which sandbox at the moment.
CREATE TABLE wakes (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES sandboxes (id) ON DELETE CASCADE,
    owner_pid BIGINT NOT NULL,
    owner_start_ticks BIGINT NOT NULL,
    owner_boot_id TEXT NOT NULL
);

-- Who may use a server: only the hash of a key is kept. A revoked one stays, so that its name says whose it was.
CREATE TABLE api_keys (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    hash BYTEA NOT NULL UNIQUE CHECK (length(hash) = 32),
    pools TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    revoked_ms BIGINT
);
CREATE UNIQUE INDEX api_keys_of_a_name ON api_keys (name) WHERE revoked_ms IS NULL;

-- The runs of agents. JSON: payload, result, error, owner, options.
CREATE TABLE agent_runs (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    instance TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'completed', 'errored')),
    payload TEXT NOT NULL,
    result TEXT,
    error TEXT,
    started_ms BIGINT NOT NULL,
    ended_ms BIGINT,
    -- The process that runs it, while it is active.
    owner TEXT,
    -- Grows each time that a process takes it over: what an earlier owner still writes is refused.
    lease BIGINT NOT NULL,
    -- The pool whose callers may see a run and the sandbox that it works in; NULL: it has none.
    pool TEXT COLLATE "C",
    sandbox TEXT,
    options TEXT
);
CREATE INDEX agent_runs_by_age ON agent_runs (started_ms, id);
CREATE INDEX agent_runs_by_instance ON agent_runs (agent, instance, started_ms);
CREATE INDEX agent_runs_by_pool ON agent_runs (pool, started_ms, id);

-- Their events, numbered from 0 without a gap.
CREATE TABLE agent_events (
    run TEXT COLLATE "C" NOT NULL REFERENCES agent_runs (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    kind TEXT NOT NULL,
    event TEXT NOT NULL,
    PRIMARY KEY (run, number)
);

-- What the handler of a run asked for, by session and order, and what came of it.
CREATE TABLE agent_steps (
    run TEXT COLLATE "C" NOT NULL REFERENCES agent_runs (id) ON DELETE CASCADE,
    session TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    step TEXT NOT NULL,
    PRIMARY KEY (run, session, number)
);

CREATE TABLE agent_conversations (
    key TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    created_ms BIGINT NOT NULL,
    changed_ms BIGINT NOT NULL,
    -- The run that writes it, as long as it is active. Another run is refused.
    run TEXT COLLATE "C" REFERENCES agent_runs (id) ON DELETE SET NULL
);

CREATE TABLE agent_entries (
    conversation TEXT COLLATE "C" NOT NULL REFERENCES agent_conversations (key) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (conversation, number)
);

-- The processes that use this database, by the database's clock: when each was there last, and since when without a gap.
CREATE TABLE servers (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    seen_ms BIGINT NOT NULL,
    since_ms BIGINT NOT NULL
);

-- Whose sandboxes these are, such as those of a signing key. One row, once a server has said so.
CREATE TABLE sandbox_owner (
    is_there BIGINT NOT NULL PRIMARY KEY DEFAULT 1 CHECK (is_there = 1),
    owner TEXT NOT NULL
);

-- Work that one server at a time does, and until when it is another's not to do.
CREATE TABLE turns (
    work TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    until_ms BIGINT NOT NULL
);

-- The event log: its lines, and its end.
CREATE TABLE events (
    seq BIGINT NOT NULL PRIMARY KEY,
    line TEXT NOT NULL
);
CREATE TABLE events_end (
    seq BIGINT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
);
INSERT INTO events_end VALUES (0, repeat('0', 64), repeat('0', 64));

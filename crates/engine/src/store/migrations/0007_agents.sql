-- The runs of agents. JSON: payload, result, error, owner.
CREATE TABLE agent_runs (
    id TEXT NOT NULL PRIMARY KEY,
    instance TEXT NOT NULL,
    agent TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'completed', 'errored')),
    payload TEXT NOT NULL,
    result TEXT,
    error TEXT,
    started_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    -- The process that runs it, while it is active.
    owner TEXT,
    -- Grows each time that a process takes it over: what an earlier owner still writes is refused.
    lease INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_runs_by_age ON agent_runs (started_ms, id);
CREATE INDEX agent_runs_by_instance ON agent_runs (agent, instance, started_ms);

-- Their events, numbered from 0 without a gap.
CREATE TABLE agent_events (
    run TEXT NOT NULL REFERENCES agent_runs (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    event TEXT NOT NULL,
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

-- What the handler of a run asked for, by session and order, and what came of it.
CREATE TABLE agent_steps (
    run TEXT NOT NULL REFERENCES agent_runs (id) ON DELETE CASCADE,
    session TEXT NOT NULL,
    number INTEGER NOT NULL,
    step TEXT NOT NULL,
    PRIMARY KEY (run, session, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE agent_conversations (
    key TEXT NOT NULL PRIMARY KEY,
    created_ms INTEGER NOT NULL,
    changed_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE agent_entries (
    conversation TEXT NOT NULL REFERENCES agent_conversations (key) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (conversation, number)
) STRICT, WITHOUT ROWID;

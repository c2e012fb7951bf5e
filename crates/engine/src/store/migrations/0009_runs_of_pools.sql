-- The pool whose callers may see a run and the sandbox that it works in; NULL: it has none. Options: what its caller asked for
-- beside the input, as JSON.
ALTER TABLE agent_runs ADD COLUMN pool TEXT;
ALTER TABLE agent_runs ADD COLUMN sandbox TEXT;
ALTER TABLE agent_runs ADD COLUMN options TEXT;
CREATE INDEX agent_runs_by_pool ON agent_runs (pool, started_ms, id);

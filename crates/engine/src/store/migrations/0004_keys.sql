-- Who may use a server: only the hash of a key is kept. A revoked one stays, so that its name says whose it was.
CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    pools TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    revoked_ms INTEGER
) STRICT;
CREATE UNIQUE INDEX api_keys_of_a_name ON api_keys (name) WHERE revoked_ms IS NULL;

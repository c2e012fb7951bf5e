-- How far a log had come that lies outside of the store. It is at that event or behind it, never before.
CREATE TABLE anchors (
    log TEXT NOT NULL PRIMARY KEY,
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL,
    -- The log was seen not to hold that event any more, though it had it. It stays so.
    is_contradicted INTEGER NOT NULL DEFAULT 0 CHECK (is_contradicted IN (0, 1))
) STRICT, WITHOUT ROWID;

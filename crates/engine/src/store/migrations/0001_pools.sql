-- "Eyot" in ASCII: tells a store from any other SQLite file.
PRAGMA application_id = 0x45796f74;

CREATE TABLE pools (
    name TEXT NOT NULL PRIMARY KEY,
    created_ms INTEGER NOT NULL,
    options TEXT NOT NULL
) STRICT;

-- Whether it is known, and recorded, that it sleeps.
ALTER TABLE sandboxes ADD COLUMN is_asleep INTEGER NOT NULL DEFAULT 0 CHECK (is_asleep IN (0, 1));

-- Who wakes which sandbox at the moment.
CREATE TABLE wakes (
    id TEXT NOT NULL PRIMARY KEY REFERENCES sandboxes (id) ON DELETE CASCADE,
    owner_pid INTEGER NOT NULL,
    owner_start_ticks INTEGER NOT NULL,
    owner_boot_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A copy of what the spec says, as of memory and disk.
ALTER TABLE sandboxes ADD COLUMN pids INTEGER;
UPDATE sandboxes SET pids = json_extract(spec, '$.limits.pids');

-- The process that a sandbox ends with, as JSON; NULL: it ends with none.
ALTER TABLE sandboxes ADD COLUMN process TEXT;

-- The run that writes a conversation, as long as it is active. Another run is refused.
ALTER TABLE agent_conversations ADD COLUMN run TEXT REFERENCES agent_runs (id) ON DELETE SET NULL;

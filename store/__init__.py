"""The state: engine, transactions, schema version."""

"""What stays of a run: its row in the store, and the table that others query."""

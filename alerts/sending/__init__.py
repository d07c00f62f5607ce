"""Empties the outbox: what is due, who sends it, and what became of it."""

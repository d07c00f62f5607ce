"""SHELF: one file per check kind."""

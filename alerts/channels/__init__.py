"""SHELF: one file per channel."""

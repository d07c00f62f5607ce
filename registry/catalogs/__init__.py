"""SHELF: one file per catalog."""

"""SHELF: one file per report format."""

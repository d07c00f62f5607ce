"""SHELF: plug-ins, one file per rule; its docstring is the user's page and its test."""

"""Alembic migrations of the state store."""

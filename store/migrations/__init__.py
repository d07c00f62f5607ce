"""Alembic migrations of the state store; `versions/NNNN_name.py`, each following the one before."""

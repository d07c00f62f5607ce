"""Run the migrations for Alembic, on the connection and in the transaction of the store."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()

"""Stores for the tests of the store: on SQLite, and on PostgreSQL where it is installed."""

from __future__ import annotations

import pytest
from fakes import postgres


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    return postgres.new_database() if request.param == "postgres" else f"sqlite:///{tmp_path / 'dq.db'}"

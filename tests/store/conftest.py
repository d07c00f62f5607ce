"""What the tests of the store share: databases in which no table stands yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import postgres, stores


@pytest.fixture(autouse=True)
def stores_are_as_users_have_them() -> Iterator[None]:
    """Here every commit waits for its disk."""
    stores.wait()
    yield
    stores.hurry()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A state store that is not made yet, on each of its databases; PostgreSQL where it is installed."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'dq.db'}"
        return
    with postgres.new_database() as address:
        yield address

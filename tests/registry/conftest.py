"""What the tests of this room share: a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dq.store.engine import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = open_store(f"sqlite:///{tmp_path}/state.db")
    yield made
    made.close()

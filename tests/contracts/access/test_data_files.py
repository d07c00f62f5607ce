"""Which files of a table hold rows, by their paths below it."""

from __future__ import annotations

import pytest

from dq.lake.storage import is_data_path


@pytest.mark.parametrize(
    ("path", "holds_rows"),
    [
        ("a.parquet", True), ("day=1/a.parquet", True), ("_day=1/a.parquet", True), ("_a=b.parquet", True),
        ("a.parquet._COPYING_", False), ("_a.parquet", False), (".a=b.parquet", False),
        (".day=1/a.parquet", False), ("_delta_log/0.json", False), ("a._COPYING_.parquet", True),
    ],
)  # fmt: skip
def test_the_rule_of_names_is_that_of_spark(path: str, holds_rows: bool) -> None:
    assert is_data_path(path) is holds_rows

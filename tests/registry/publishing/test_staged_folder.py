"""What was audited is what is published: a staged folder whose files changed meanwhile is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dq.contracts.outcome import DqError
from dq.registry.publish_audit import staged_folder

OLD = 1_700_000_000


def rewrite(file: Path) -> None:
    file.write_bytes(b"bad rows")
    os.utime(file, (OLD, OLD))


def replace(file: Path) -> None:
    rewrite(other := file.with_name("_other"))
    other.rename(file)


def add(file: Path) -> None:
    file.with_name("b.parquet").write_bytes(b"")


@pytest.mark.parametrize("change", [rewrite, replace, add, Path.unlink])
def test_a_file_that_changed_during_the_audit_is_found_even_with_its_time_set_back(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    partition = tmp_path / "run-1" / "day=2026-05-10"
    partition.mkdir(parents=True)
    for name in ("a.parquet", "kept.parquet"):
        (partition / name).write_bytes(b"new rows")
        os.utime(partition / name, (OLD, OLD))
    staged = staged_folder(str(tmp_path / "run-1"), (("day", "2026-05-10"),), str(tmp_path / "lake"))
    audited = staged.files()
    staged.require_unchanged(audited)

    change(partition / "a.parquet")

    with pytest.raises(DqError, match="changed while it was checked"):
        staged.require_unchanged(audited)
    assert staged.run(audited) == staged.run(frozenset((*file[:3], "another") for file in audited))

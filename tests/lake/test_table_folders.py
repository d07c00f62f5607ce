"""Folders that look like tables, by the names below a root: each file in one table, whatever it is called."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from dq.contracts.outcome import ReadError
from dq.lake.storage import MAX_NESTING, folder_tree
from dq.lake.table_folders import FolderTable, is_listed, table_folders


def tables_of(root: Path, names: Sequence[str], known: Sequence[str] = ()) -> list[FolderTable]:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
    return list(table_folders(folder_tree(str(root), is_listed), known))


CASES: dict[str, tuple[list[str], dict[str, tuple[str, int]]]] = {
    "files": (["orders/a.parquet", "orders/b.parquet"], {"orders": ("parquet", 2)}),
    "the root itself": (["a.parquet"], {"": ("parquet", 1)}),
    "partitions": (["t/day=1/a.parquet", "t/day=2/deep/b.parquet"], {"t": ("parquet", 2)}),
    "dates": (["t/2026/05/01/a.json", "t/2026/05/02/b.json"], {"t": ("json", 2)}),
    "hours": (["t/2026/05/01/03/a.json"], {"t": ("json", 1)}),
    "dates in two spellings": (
        ["t/2026-05-01/a.orc", "t/20260502/x.orc"],
        {"t": ("orc", 1), "t/20260502": ("orc", 1)},
    ),
    "years": (["t/2025/a.csv", "t/2026/b.csv"], {"t": ("csv", 2)}),
    "numbers are no years": (["t/1234/a.csv"], {"t/1234": ("csv", 1)}),
    "a category above the dates": (
        ["views/2026/05/01/a.csv", "clicks/2026/05/01/a.csv"],
        {"clicks": ("csv", 1), "views": ("csv", 1)},
    ),
    "tables of one day": (
        ["dump/2026-05-01/orders/a.csv", "dump/2026-05-01/items/a.csv"],
        {"dump/2026-05-01/items": ("csv", 1), "dump/2026-05-01/orders": ("csv", 1)},
    ),
    "one in another": (
        ["t/a.parquet", "t/day=1/b.parquet", "t/old/c.parquet"],
        {"t": ("parquet", 1), "t/old": ("parquet", 1)},
    ),
    "delta": (
        ["t/_delta_log/0.json", "t/day=1/a.parquet", "t/b.parquet", "t/s/_delta_log/0.json", "t/s/c.parquet"],
        {"t": ("delta", 2), "t/s": ("delta", 1)},
    ),
    "iceberg": (["t/metadata/v1.metadata.json", "t/data/a.parquet"], {"t": ("iceberg", 1)}),
    "a folder named metadata": (["t/metadata/a.csv"], {"t/metadata": ("csv", 1)}),
    "hudi": (["t/.hoodie/hoodie.properties", "t/2026/a.parquet"], {"t": ("hudi", 1)}),
    "two formats": (["t/a.csv", "t/b.parquet"], {"t csv": ("csv", 1), "t parquet": ("parquet", 1)}),
    "no data": (["t/README.md", "t/_SUCCESS", "t/.hidden.csv", "t/.git/a.csv", "t/a.csv._COPYING_"], {}),
    "parts without an ending": (["t/000000_0", "t/000001_0"], {"t": ("", 2)}),
    "compressed": (["t/a.csv.gz", "t/b.JSON.GZ"], {"t csv": ("csv", 1), "t json": ("json", 1)}),
    "names of all kinds": (
        ["a b/x.csv", "new\nline/x.csv", "-rf/x.csv", "st*r/x.csv", "%41/x.csv", os.fsdecode(b"\xe9/x.csv")],
        dict.fromkeys(("a b", "new\nline", "-rf", "st*r", "%41", os.fsdecode(b"\xe9")), ("csv", 1)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_every_file_is_in_one_table(case: str, tmp_path: Path) -> None:
    names, expected = CASES[case]
    found = tables_of(tmp_path, names)

    paths = [table.path for table in found]
    titles = [
        f"{table.path} {table.format}" if paths.count(table.path) > 1 else table.path for table in found
    ]
    assert dict(zip(titles, ((t.format, len(t.files)) for t in found), strict=True)) == expected
    files = [f"{table.path}/{name}" for table in found for name, _ in table.files]
    assert len(set(files)) == len(files)


def test_a_known_folder_is_a_table_whatever_its_folders_are_named(tmp_path: Path) -> None:
    names = ["events/eu/x.csv", "events/us/2026/x.csv", "events/inner/a.csv"]

    assert [table.path for table in tables_of(tmp_path, names)] == ["events/eu", "events/inner", "events/us"]
    known = tables_of(tmp_path, names, ["events", "events/inner"])
    assert [(table.path, len(table.files)) for table in known] == [("events", 2), ("events/inner", 1)]
    known = tables_of(tmp_path, [*names, "events/own.csv"], ["events"])
    assert [table.path for table in known] == ["events", "events/eu", "events/inner", "events/us"]
    (tmp_path / "events/own.csv").unlink()
    known = tables_of(tmp_path, [*names, "events/day=1/a.csv"], ["events"])
    assert [table.path for table in known] == ["events", "events/eu", "events/inner", "events/us"]


def test_files_next_to_partitions_are_outside(tmp_path: Path) -> None:
    [table] = tables_of(tmp_path, ["t/day=1/a.parquet", "t/top.parquet", "t/day=1/notes.csv"])

    assert [name for name, _ in table.files] == ["day=1/a.parquet"]
    assert table.outside == ("day=1/notes.csv", "top.parquet")


def test_links_and_folders_that_cannot_be_listed_are_problems_of_their_own(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.csv").write_text("a\n1\n")
    root = tmp_path / "lake"
    root.mkdir()
    (root / "linked").symlink_to(elsewhere)
    (root / "cycle").symlink_to(root)
    deep = root.joinpath(*["d"] * (MAX_NESTING + 3))
    found = tables_of(root, ["good/a.csv", str(deep.relative_to(root) / "a.csv")])

    assert [table.path for table in found if not table.problem] == ["good"]
    problems = sorted(table.problem.removeprefix(str(root)) for table in found if table.problem)
    assert problems[0] == "/cycle is a link, which is not followed."
    assert problems[1].endswith(f"is nested more than {MAX_NESTING} folders deep.")


def test_a_root_that_is_no_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("file", "nowhere"):
        with pytest.raises(ReadError, match="is not a folder"):
            folder_tree(str(tmp_path / name), is_listed)

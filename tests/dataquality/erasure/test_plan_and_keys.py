"""The plan names the settings of a filter where it would help; files of keys are read and never quoted."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.erasure import KEY, Place

from dq.contracts.outcome import UsageError
from dq.operations.erasure import PlannedColumn, plan_erasure, read_keys

EXACT = "{name: customer.email, normalize: exact}"


def _planned(folder: Path, identity: str, **options: object) -> PlannedColumn:
    place = Place(folder, "parquet", identity)
    (place.lake / "day=2026-05-01").mkdir(parents=True)
    table = pa.table({"email": [f"user{number}@example.com" for number in range(2_000)]})
    pq.write_table(table, place.lake / "day=2026-05-01/a.parquet", **options)
    outcome = plan_erasure("registry", identity="customer.email", folder=folder)
    assert outcome.gaps == ()
    return next(column for column in outcome.columns if column.column == "email")


def test_a_column_of_one_spelling_gets_the_settings_of_a_filter(tmp_path: Path) -> None:
    planned = _planned(tmp_path, EXACT)

    assert planned.settings[0] == "parquet.bloom.filter.enabled#email=true"
    assert (planned.files, planned.with_bloom, planned.reason) == (1, 0, "")
    assert planned.bytes > 0


def test_a_column_with_filters_needs_none(tmp_path: Path) -> None:
    planned = _planned(tmp_path, EXACT, bloom_filter_options={"email": True})

    assert planned.with_bloom == planned.bytes
    assert planned.settings == ()


def test_a_filter_does_not_help_where_a_key_has_several_spellings(tmp_path: Path) -> None:
    planned = _planned(tmp_path, "customer.email")

    assert planned.settings == ()
    assert "declare normalize: exact" in planned.reason


@pytest.mark.parametrize(
    ("content", "values"),
    [
        (b"a@x\nb@x\n", ("a@x", "b@x")),
        (b"\xef\xbb\xbfa@x\r\n\r\n b@x \r\n", ("a@x", " b@x ")),
        (b'id,Customer.Email\n1,a@x\n2,"b,x"\n', ("a@x", "b,x")),
        (b"customer.email\na@x\n", ("a@x",)),
    ],
)
def test_keys_are_lines_or_a_column(tmp_path: Path, content: bytes, values: tuple[str, ...]) -> None:
    (tmp_path / "keys").write_bytes(content)

    assert read_keys(tmp_path / "keys", "customer.email").values == values


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (f"mail,id\n{KEY},1\n".encode(), "several columns"),
        (b"\n \n", "no keys"),
        (f"{KEY}\n\u200b\n".encode(), "key 2 is blank"),
        (KEY.encode("utf-16"), "not UTF-8"),
    ],
)
def test_keys_that_cannot_be_used_are_not_quoted(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "keys").write_bytes(content)

    with pytest.raises(UsageError, match=why) as raised:
        read_keys(tmp_path / "keys", "customer.email")
    assert KEY not in f"{raised.value} {raised.value.hint}"


def test_a_folder_with_earlier_rows_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path, "parquet")
    place.lake.mkdir()
    place.put("out/old.jsonl", "{}")

    with pytest.raises(UsageError, match="is not empty"):
        place.find()


def test_an_identity_that_no_contract_has_names_the_nearest(tmp_path: Path) -> None:
    Place(tmp_path, "parquet", "customer.emails")

    with pytest.raises(UsageError, match="no contract has the identity") as raised:
        plan_erasure("registry", identity="customer.email", folder=tmp_path)
    assert "customer.emails" in raised.value.hint

"""Keys that tasks exchange are counted as a set counts them, however files, runs and buckets cut them."""

from __future__ import annotations

import datetime as dt
import pickle
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dq.contracts.types import DataType
from dq.dataquality.answers.python_tasks import ExchangedKeys, KeyCount, Overlaps, Work, answer, merge_outputs

KINDS: dict[str, tuple[DataType, pa.DataType, st.SearchStrategy[Any]]] = {
    "tinyint": (DataType("tinyint"), pa.int8(), st.integers(-128, 127)),
    "bigint": (
        DataType("bigint"),
        pa.int64(),
        st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1]) | st.integers(-9, 9),
    ),
    "date": (DataType("date"), pa.date32(), st.dates(dt.date(1900, 1, 1), dt.date(1900, 3, 1))),
    "boolean": (DataType("boolean"), pa.bool_(), st.booleans()),
    "decimal": (
        DataType("decimal", (38, 2)),
        pa.decimal128(38, 2),
        st.sampled_from([Decimal("-0.00"), Decimal("0.01"), Decimal(10) ** 35, -(Decimal(10) ** 35)]),
    ),
    "string": (
        DataType("string"),
        pa.string(),
        st.sampled_from(["", "a", "A", "\0", "a\0", "e\u0301", "é", "🙂", "x" * 300]),
    ),
}


def counted(
    lake: Path, tables: list[pa.Table], question: KeyCount, types: dict[str, DataType], buckets: int
) -> int:
    """The answer of tasks over these files, with all that travels between them pickled."""
    work = Work((question,), types, most_keys=5)
    sent: list[tuple[int, Any]] = []
    for number, table in enumerate(tables):
        path = lake / f"{number}.parquet"
        pq.write_table(table, path)
        sent += answer([str(path)], work, buckets)
    told = [
        one
        for bucket in range(buckets)
        for one in merge_outputs(pickle.loads(pickle.dumps([part for at, part in sent if at == bucket])))
    ]
    different = sum(one[1] or 0 for one in told if isinstance(one, tuple))
    rows = sum(one[0] for one in told if isinstance(one, list))
    assert {at for at, part in sent} <= set(range(buckets))
    assert all(not isinstance(part, ExchangedKeys) or len(part.keys) for _, part in sent)
    return rows - different if question.repeated else different


@pytest.mark.parametrize("names", [*((name,) for name in KINDS), ("string", "bigint"), ("date", "decimal")])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_they_are_counted_as_a_set_counts_them(
    tmp_path_factory: pytest.TempPathFactory, names: tuple[str, ...], data: st.DataObject
) -> None:
    one = st.tuples(*(st.none() | KINDS[name][2] for name in names))
    files = data.draw(st.lists(st.lists(one, max_size=20), min_size=1, max_size=4))
    buckets, repeated = data.draw(st.integers(1, 9)), data.draw(st.booleans())
    tables = [
        pa.table({name: pa.array([row[at] for row in rows], KINDS[name][1]) for at, name in enumerate(names)})
        for rows in files
    ]

    found = counted(
        tmp_path_factory.mktemp("keys"),
        tables,
        KeyCount(names, repeated),
        {name: KINDS[name][0] for name in names},
        buckets,
    )

    present = Counter(row for rows in files for row in rows if None not in row)
    assert found == (present.total() - len(present) if repeated else len(present))


@settings(max_examples=40, deadline=None)
@given(
    files=st.lists(st.lists(st.integers(0, 30), max_size=20), min_size=1, max_size=4),
    buckets=st.integers(1, 4),
)
def test_keys_of_one_file_alone_are_counted_there(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[int]], buckets: int
) -> None:
    # Each value in two files is a range of its own: more of them than a batch is compared with, too.
    shared = sorted(v for v, times in Counter(v for rows in files for v in set(rows)).items() if times > 1)
    question = KeyCount(("n",), True, Overlaps("n", tuple((v, v) for v in shared)))
    tables = [pa.table({"n": pa.array(rows, pa.int64())}) for rows in files]

    found = counted(tmp_path_factory.mktemp("own"), tables, question, {"n": DataType("bigint")}, buckets)

    assert found == sum(map(len, files)) - len({v for rows in files for v in rows})

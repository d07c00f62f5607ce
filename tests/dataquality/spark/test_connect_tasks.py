"""Answers of tasks on a Connect server: values are read, and nothing that a server made is run."""

from __future__ import annotations

import datetime as dt
import os
import pickle
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from pyspark.errors import PySparkException

from dq.dataquality.answers.statistics import ColumnStatistics, FileStatistics
from dq.dataquality.model.column import Column
from dq.dataquality.spark import connect_tasks


class Attack:
    def __init__(self, *call: object) -> None:
        self.call = call

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        function, *arguments = self.call
        return function, tuple(arguments)


class Rows:
    """What a server answers, as rows of a frame."""

    def __init__(self, *contents: bytes) -> None:
        self.rows = [Row(number, content) for number, content in enumerate(contents)]

    def collect(self) -> list[Row]:
        return self.rows[::-1]


class Row:
    def __init__(self, number: int, content: bytes) -> None:
        self.number, self.content = number, content


def read(*contents: bytes) -> list[object]:
    return connect_tasks._collect(Rows(*contents))  # type: ignore[arg-type]  # has rows, as a frame


def test_values_of_answers_are_read_in_order() -> None:
    statistics = FileStatistics("a", 3, columns={Column(("id",)): ColumnStatistics(0, 1, 2, True)})
    values = [statistics, [Decimal("1.5"), dt.date(2026, 5, 1), None, {"a": frozenset({1})}], (7, b"x")]

    answers = read(*(connect_tasks._pickled(value) for value in values))
    (keys,) = read(connect_tasks._pickled(np.arange(5)))

    assert answers == values
    assert list(keys) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "attack",
    [
        Attack(os.system, "touch attacked"),
        Attack(eval, "__import__('os').system('touch attacked')"),
        Attack(connect_tasks.map_items, 1, [], 2),
        Attack(getattr, 1, "real"),
    ],
)
def test_a_server_runs_nothing_here(
    attack: Attack, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))

    with pytest.raises(PySparkException, match="which is not a value"):
        read(pickle.dumps(attack))

    assert list(Path().iterdir()) == []

"""Faults that people meet, planted into any table: what a pipeline loses, doubles, mixes up or breaks.

Nothing here knows of rules. Which columns and rows are hit is drawn anew for each table and fault, from a
seed, among the columns of a kind.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a table, and its columns by what they hold: number, text, date, or another word.

    As text, numbers and dates are texts too; `null` is how a missing value is written.
    """

    rows: Sequence[Row]
    kinds: Mapping[str, str]
    as_text: bool
    null: object = None

    def of(self, *kinds: str) -> list[str]:
        """The columns of these kinds, in their order."""
        return [name for name, kind in self.kinds.items() if kind in kinds]


def _changed(
    table: Rows, dice: random.Random, column: str, share: float, change: Callable[[object], object]
) -> list[Row] | None:
    """This share of the rows that have a value there, changed in that column; None where nothing changes."""
    filled = [at for at, row in enumerate(table.rows) if row[column] not in (None, "", table.null)]
    hit = set(dice.sample(filled, max(1, round(share * len(filled))))) if filled else set()
    rows = [{**row, column: change(row[column])} if at in hit else row for at, row in enumerate(table.rows)]
    return rows if rows != list(table.rows) else None


def _some(dice: random.Random, names: Sequence[str]) -> str:
    return dice.choice(names) if names else ""


def nulls(table: Rows, dice: random.Random) -> list[Row] | None:
    """A join found no partner: three rows in ten lack a value that all had."""
    whole = [
        name for name in table.kinds if all(row[name] not in (None, "", table.null) for row in table.rows)
    ]
    column = _some(dice, whole)
    return _changed(table, dice, column, 0.3, lambda _: table.null) if column else None


def repeated(table: Rows, dice: random.Random) -> list[Row]:
    """A batch was sent again: one row in twenty stands twice."""
    return [*table.rows, *dice.sample(list(table.rows), max(2, len(table.rows) // 20))]


def truncated(table: Rows, _: random.Random) -> list[Row]:
    """The transfer broke off: less than half of the rows is there."""
    return list(table.rows[: round(0.45 * len(table.rows))])


def doubled(table: Rows, _: random.Random) -> list[Row]:
    """The job ran twice and appended: every row stands twice."""
    return [*table.rows, *table.rows]


def empty(_table: Rows, _: random.Random) -> list[Row]:
    """The source had nothing: a file without rows."""
    return []


def unit(table: Rows, dice: random.Random) -> list[Row] | None:
    """Cents instead of euros: a column of numbers is a hundred times as large."""
    column = _some(dice, table.of("number"))
    if not column:
        return None
    return _changed(table, dice, column, 1, lambda value: _number(table, value, 100))


def sign(table: Rows, dice: random.Random) -> list[Row] | None:
    """A sign is lost in a conversion: one row in ten has it the other way about."""
    column = _some(dice, table.of("number"))
    if not column:
        return None
    return _changed(table, dice, column, 0.1, lambda value: _number(table, value, -1))


def _number(table: Rows, value: object, factor: int) -> object:
    if not table.as_text:
        return value * factor  # type: ignore[operator]
    text = str(value)
    made = float(text) * factor
    return str(round(made)) if "." not in text else f"{made:.{len(text.partition('.')[2])}f}"


def dates(table: Rows, dice: random.Random) -> list[Row] | None:
    """A clock that was not set: one row in ten is of the first day of 1970 or of a century ahead."""
    column = _some(dice, table.of("date"))
    if not column:
        return None
    ahead = dice.random() < 0.5

    def change(value: object) -> object:
        text = str(value)
        year = f"{int(text[:4]) + 100}" if ahead else "1900"
        made = f"{year}{text[4:]}" if ahead else f"{year}-01-01{text[10:]}"
        return made if table.as_text or isinstance(value, str) else type(value).fromisoformat(made)  # type: ignore[attr-defined]

    return _changed(table, dice, column, 0.1, change)


def shifted(table: Rows, dice: random.Random) -> list[Row] | None:
    """A separator within a value: in one row in twenty, what follows it stands a column further on."""
    names = list(table.kinds)
    hit = set(dice.sample(range(len(table.rows)), max(2, len(table.rows) // 20)))
    if table.as_text:
        begin = dice.randrange(len(names) - 1)
        return [
            {name: row[names[at - 1]] if at > begin else row[name] for at, name in enumerate(names)}
            if number in hit
            else row
            for number, row in enumerate(table.rows)
        ]
    # Where values have types, two columns of one type change places.
    for kind in ("text", "number"):
        if len(table.of(kind)) > 1:
            one, other = dice.sample(table.of(kind), 2)
            return [{**row, one: row[other], other: row[one]} for row in table.rows]
    return None


def unknown(table: Rows, dice: random.Random) -> list[Row] | None:
    """A new code that nobody was told of, in one row in twenty, where there are few."""
    few = [name for name in table.of("text") if len({row[name] for row in table.rows}) <= 30]
    column = _some(dice, few)
    return _changed(table, dice, column, 0.05, lambda _: "Other") if column else None


def encoding(table: Rows, dice: random.Random) -> list[Row] | None:
    """UTF-8 read as Latin-1, in one row in ten: a letter becomes two wrong ones."""
    column = _some(dice, table.of("text"))
    return (
        _changed(table, dice, column, 0.1, lambda text: f"{str(text)[:1]}Ã©{str(text)[1:]}")
        if column
        else None
    )


def as_words(table: Rows, dice: random.Random) -> list[Row] | None:
    """A number with a word to it, in one row in fifty."""
    column = _some(dice, table.of("number"))
    return _changed(table, dice, column, 0.02, lambda value: f"{value} (est.)") if column else None


def column_lost(table: Rows, dice: random.Random) -> list[Row]:
    """A column is not delivered any more."""
    gone = _some(dice, list(table.kinds))
    return [{name: value for name, value in row.items() if name != gone} for row in table.rows]


FAULTS: tuple[Callable[[Rows, random.Random], list[Row] | None], ...] = (
    nulls, repeated, truncated, doubled, empty, unit, dates, shifted, unknown, encoding, as_words, sign,
    column_lost,
)  # fmt: skip


def planted(table: Rows, name: str, count: int = 10) -> dict[str, list[Row]]:
    """The first so many faults that the table can have, each in rows of its own."""
    made: dict[str, list[Row]] = {}
    for fault in FAULTS:
        rows = fault(table, random.Random(f"{name} {fault.__name__}")) if len(made) < count else None
        if rows is not None:
            made[fault.__name__] = rows
    return made

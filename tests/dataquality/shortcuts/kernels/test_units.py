"""Files that one task must see together, because a key may stand in both."""

from __future__ import annotations

from dq.dataquality.model.column import Column
from dq.dataquality.shortcuts.kernels.units import MOST_ROWS, Apart, joined, units
from dq.dataquality.shortcuts.statistics.facts import Facts, File

ID, DAY = Column(("id",)), Column(("day",))


def file(
    name: str, least: int | None, greatest: int | None, rows: int = 10, day: Facts | None = None
) -> File:
    facts = Facts(0, least, greatest, True) if least is not None else Facts(rows)
    return File(name, rows, True, {ID: facts, **({DAY: day} if day else {})})


def names(made: Apart | tuple[tuple[File, ...], ...] | None) -> list[str]:
    assert made is not None
    groups = made.units if isinstance(made, Apart) else made
    return sorted("".join(sorted(one.path for one in unit)) for unit in groups)


def shared(files: list[File]) -> tuple[object, ...]:
    made = units(files, [ID])
    assert made is not None
    return made.shared


def test_disjoint_ranges_stand_apart_and_overlapping_ones_together() -> None:
    files = [file("a", 1, 5), file("b", 6, 9), file("c", 8, 12), file("d", 20, 21), file("e", 11, 11)]

    assert names(units(files, [ID])) == ["a", "bce", "d"]


def test_ranges_that_touch_stand_apart_and_the_shared_value_is_known() -> None:
    files = [file("b", 5, 9), file("a", 1, 5), file("c", 9, 12)]

    assert names(units(files, [ID])) == ["a", "b", "c"]
    assert shared(files) == (5, 9)


def test_a_file_of_one_value_stands_with_those_that_have_it_too() -> None:
    files = [file("a", 1, 5), file("b", 5, 5), file("c", 5, 5), file("d", 5, 9)]

    assert names(units(files, [ID])) == ["abc", "d"]
    assert shared(files) == (5,)


def test_files_of_the_same_one_value_stand_together() -> None:
    files = [file("a", 5, 5), file("b", 5, 5), file("c", 5, 9)]

    assert names(units(files, [ID])) == ["abc"]
    assert shared(files) == ()


def test_files_without_a_key_stand_alone() -> None:
    assert names(units([file("a", None, None), file("b", 1, 2)], [ID])) == ["a", "b"]


def test_unknown_ranges_are_no_ranges() -> None:
    unknown = File("a", 10, True, {ID: Facts(0)})

    assert units([unknown, file("b", 1, 2)], [ID]) is None


def test_another_column_of_the_key_may_keep_files_apart() -> None:
    one, other = Facts(0, values=frozenset({"mon"})), Facts(0, values=frozenset({"tue"}))
    files = [file("a", 1, 9, day=one), file("b", 2, 8, day=other), file("c", 3, 3, day=other)]

    assert names(units(files, [DAY])) == ["a", "bc"]


def test_a_unit_is_never_larger_than_a_task_can_hold() -> None:
    files = [file("a", 1, 5, MOST_ROWS), file("b", 2, 9, 1)]

    assert units(files, [ID]) is None
    assert joined([(files[0],), (files[1],)], [(files[0], files[1])]) is None


def test_the_units_of_two_keys_are_joined() -> None:
    a, b, c, d = (file(name, 1, 1) for name in "abcd")

    assert names(joined([(a, b), (c,), (d,)], [(a,), (b, c), (d,)])) == ["abc", "d"]

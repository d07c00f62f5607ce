"""Which keys may stand in two files, by the bounds of the files."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dq.dataquality.answers.python_tasks import ANYWHERE, MOST_ROWS, Overlaps, find_overlaps, ranges_between
from dq.dataquality.answers.statistics import ColumnStatistics, FileStatistics
from dq.dataquality.model.column import Column

ID, DAY = Column(("id",)), Column(("day",))


def file(
    least: int | None, greatest: int | None, rows: int = 10, day: ColumnStatistics | None = None
) -> FileStatistics:
    facts = ColumnStatistics(0, least, greatest, True) if least is not None else ColumnStatistics(rows)
    return FileStatistics("f", rows, True, {ID: facts, **({DAY: day} if day else {})})


def ranges(*ends: tuple[int | None, int | None]) -> Overlaps:
    return find_overlaps([file(*each) for each in ends], [ID])


def test_ranges_overlap_where_two_files_have_them() -> None:
    assert ranges((1, 5), (6, 9), (8, 12), (20, 21), (11, 11)) == Overlaps("id", ((8, 9), (11, 11)))


def test_a_sorted_table_shares_the_value_at_each_cut() -> None:
    assert ranges((5, 9), (1, 5), (9, 12)) == Overlaps("id", ((5, 5), (9, 9)))


def test_files_of_one_value_share_it() -> None:
    assert ranges((1, 5), (5, 5), (5, 5), (5, 9)) == Overlaps("id", ((5, 5),))


def test_a_file_without_a_key_shares_none() -> None:
    assert ranges((None, None), (1, 2)) == Overlaps("id", ())


def test_unknown_ranges_are_no_ranges() -> None:
    unknown = FileStatistics("a", 10, True, {ID: ColumnStatistics(0)})

    assert find_overlaps([unknown, file(1, 2)], [ID]) == ANYWHERE


def test_the_column_by_which_fewer_rows_are_shared_tells() -> None:
    one, other = (
        ColumnStatistics(0, values=frozenset({"mon"})),
        ColumnStatistics(0, values=frozenset({"tue"})),
    )
    files = [file(1, 9, day=one), file(2, 8, day=other)]

    assert find_overlaps(files, [ID, DAY]) == Overlaps("day", ())


def test_a_file_larger_than_a_task_can_hold_shares_all() -> None:
    assert find_overlaps([file(1, 5, MOST_ROWS + 1), file(7, 9)], [ID]) == ANYWHERE


SPANS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)).map(lambda span: (span[0], sum(span))))


@given(SPANS, st.integers(0, 25), st.integers(0, 5))
def test_exactly_what_two_files_may_have_is_in_a_range(
    spans: list[tuple[int, int]], least: int, more: int
) -> None:
    told = ranges(*spans)

    shared = [value for value in range(26) if sum(low <= value <= high for low, high in spans) > 1]
    assert [v for v in range(26) if any(low <= v <= high for low, high in told.ranges)] == shared
    inside = [span for span in told.ranges if span[0] <= least + more and span[1] >= least]
    assert list(ranges_between(told.ranges, least, least + more)) == inside

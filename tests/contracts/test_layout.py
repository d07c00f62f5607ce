"""Layouts: the folder of a partition and the partition of a folder, for any template and any value."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dq.contracts.layout import HIVE, Layout, parse_layout
from dq.contracts.outcome import ValueProblem


def layout(template: str) -> Layout:
    parsed = parse_layout(template)
    assert isinstance(parsed, Layout), parsed
    return parsed


@pytest.mark.parametrize(
    ("template", "values", "folder"),
    [
        ("{hour:%Y/%m/%d/%H}", {"hour": "2026-11-20 03:00:00"}, "2026/11/20/03"),
        ("{tenant}/{day:%Y%m%d}", {"tenant": "acme", "day": "2026-11-20"}, "acme/20261120"),
        (
            "region={region}/{day:%Y/%m}/x-{day:%d}",
            {"region": "a:b", "day": "2026-11-20"},
            "region=a%3Ab/2026/11/x-20",
        ),
        ("{day:%Y/%j}", {"day": "2024-12-31"}, "2024/366"),
        ("{month:%Y-%m}", {"month": "2026-11-01"}, "2026-11"),
        ("logs/{hour:%F-%H}", {"hour": "2026-11-20 23:00:00"}, "logs/2026-11-20-23"),
        ("{tenant}{day:%Y%m%d}", {"tenant": "7", "day": "2026-11-20"}, "720261120"),
    ],
)
def test_a_partition_has_one_folder_and_the_folder_is_read_back(template, values, folder):
    parsed = layout(template)

    assert parsed.folder_of(values.items()) == folder
    assert dict(parsed.partition_of(folder)) == values
    assert parsed.values_of_file(f"{folder}/part-0.parquet") == values


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{a}{b}", "two values in one folder name"),
        ("{a}-{b}/{day:%F}", "two values in one folder name"),
        ("{day:%m/%d}", "has no year (%Y)"),
        ("{day:%Y/%d}", "has no month (%m)"),
        ("{hour:%Y/%m/%d/%M}", "has no hour (%H)"),
        ("{day:%y%m%d}", "'%y' in"),
        ("{day:%Y%W}", "'%W' in"),
        ("/{day:%F}", "relative to the server's location"),
        ("s3://b/{day:%F}", "relative to the server's location"),
        ("../{day:%F}", "readers skip folders"),
        ("_tmp/{day:%F}", "readers skip folders"),
        ("a//{day:%F}", "empty folder name"),
        ("{day:%F}/", "empty folder name"),
        ("a/*/{day:%F}", "pattern"),
        ("{day", "unmatched"),
        ("2026/11", "names no column"),
        ("", "empty"),
        ("{Day:%Y}/{day:%m}", "in two ways"),
        ("{day}/{day:%F}", "more than once"),
        ("x" * 2_000, "longer"),
    ],
)
def test_a_template_that_two_partitions_share_or_that_cannot_be_read_back_is_refused(template, problem):
    parsed = parse_layout(template)

    assert isinstance(parsed, ValueProblem)
    assert problem in parsed.message


@pytest.mark.parametrize(
    ("template", "values", "problem"),
    [
        ("{hour:%Y/%m/%d/%H}", {"hour": "2026-11-20 03:15:00"}, "shares its folder with others"),
        ("{month:%Y/%m}", {"month": "2026-11-20"}, "shares its folder with others"),
        ("{day:%F}", {"day": "2026-02-30"}, "is not a time"),
        ("{day:%F}", {"day": "__HIVE_DEFAULT_PARTITION__"}, "is not a date"),
        ("{tenant}/{day:%F}", {"day": "2026-11-20"}, "needs a value for each column above 'day'"),
        ("{tenant}/{day:%F}", {"tenant": "", "day": "2026-11-20"}, "empty value"),
        ("{day:%F}", {"days": "2026-11-20"}, "has no column 'days'"),
    ],
)
def test_a_partition_without_a_folder_of_its_own_has_none(template, values, problem):
    with pytest.raises(ValueError, match=re.escape(problem)):
        layout(template).folder_of(values.items())


@pytest.mark.parametrize(
    "text", ["2026-11-20T03", "2026-11-20 03:00", "2026-11-20 03:00:00", "2026-11-20 03:00:00.000"]
)
def test_a_time_may_be_written_in_several_ways(text):
    parsed = layout("{hour:%Y/%m/%d/%H}")

    assert parsed.folder_of([("HOUR", text)]) == "2026/11/20/03"
    assert parsed.normalized([("HOUR", text)]) == (("HOUR", "2026-11-20 03:00:00"),)


def test_the_first_columns_are_the_folder_above():
    assert layout("{tenant}/{day:%Y/%m/%d}").folder_of([("tenant", "acme")]) == "acme"
    assert layout("{tenant}/{day:%Y/%m/%d}").folder_of([]) == ""


@pytest.mark.parametrize(
    "folder",
    [
        "2026/11/20",
        "2026/11/20/03/x",
        "2026/13/01/00",
        "2026/02/30/00",
        "2026/11/20/24",
        "a/b/c/d",
        "",
        "٢٠٢٦/11/20/03",
    ],
)
def test_another_folder_is_no_partition(folder):
    assert layout("{hour:%Y/%m/%d/%H}").partition_of(folder) is None


def test_the_layout_of_hive_names_its_columns():
    values = (("day", "2026-11-20"), ("region", "a/b"))

    assert HIVE.folder_of(values) == "day=2026-11-20/region=a%2Fb"
    assert HIVE.partition_of("day=2026-11-20/region=a%2Fb") == values
    assert HIVE.partition_of("2026/11/20") is None


# Templates: levels of text, values and times, in any order, of which some are Hive's.

NAME = st.text("abcxyz-. 0ü", min_size=1, max_size=6).filter(
    lambda text: text[0] not in "._ " and text[-1] != " "
)
TIMES = st.sampled_from(
    [
        "%Y/%m/%d",
        "%Y%m%d",
        "%F",
        "%Y/%j",
        "%Y/%m",
        "%Y",
        "%Y/%m/%d/%H",
        "%F-%H",
        "%Y%m%d%H%M",
        "%Y/%m/%d/%H/%M/%S",
    ]
)
LEVEL = st.one_of(
    NAME, st.just("{tenant}"), st.just("region={region}"), st.builds("{}-{{tenant}}".format, NAME)
)


@st.composite
def templates(draw: st.DrawFn) -> str:
    levels = draw(st.lists(LEVEL, max_size=3, unique_by=lambda level: level.partition("{")[2] or level))
    at = draw(st.integers(0, len(levels)))
    return "/".join([*levels[:at], f"{{at:{draw(TIMES)}}}", *levels[at:]])


UNITS = {"year": 1, "month": 2, "day": 3, "hour": 4, "minute": 5, "second": 6}
VALUE = st.text(min_size=1, max_size=8).filter(lambda text: text != "__HIVE_DEFAULT_PARTITION__")


@given(templates(), st.datetimes(), VALUE, VALUE)
def test_every_partition_comes_back_from_its_folder_which_is_below_the_table(
    template, moment, tenant, region
):
    parsed = parse_layout(template)
    if isinstance(parsed, ValueProblem):
        # `{tenant}` and `x-{tenant}` in one template.
        assert "more than once" in parsed.message
        return
    parts = [*moment.timetuple()[:6]][: UNITS[parsed.precision("at")]]
    whole = datetime(*parts, *[1, 1, 1][len(parts) : 3], tzinfo=UTC)
    text = f"{whole:%H:%M:%S}" if len(parts) > 3 else ""
    at = f"{whole.year:04}-{whole:%m-%d} {text}".strip()
    values = {"at": at, "tenant": tenant, "region": region}
    values = {column: values[column] for column in parsed.columns}

    folder = parsed.folder_of(values.items())

    assert dict(parsed.partition_of(folder)) == values
    names = PurePosixPath(folder).parts
    assert not folder.startswith("/")
    assert not {".", ".."} & set(folder.split("/"))
    assert len(names) == parsed.depth
    assert parsed.may_contain(folder)
    assert not any(ord(character) < 32 for character in folder)


@given(templates(), st.text("abc0123456789-/=%.{}_ü", max_size=40))
def test_a_folder_that_is_read_is_the_one_that_its_partition_has(template, folder):
    parsed = parse_layout(template)
    values = parsed.partition_of(folder) if isinstance(parsed, Layout) else None

    assert values is None or parsed.folder_of(values) == folder


@given(st.integers(0, 366 * 24 * 3))
def test_hours_of_nights_with_a_clock_change_have_folders_of_their_own(hours):
    # By the producer's clock: an hour that is skipped has no folder, and one that is repeated has one.
    moment = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
    parsed = layout("{hour:%Y/%m/%d/%H}")

    assert parsed.partition_of(f"{moment:%Y/%m/%d/%H}") == (("hour", f"{moment:%Y-%m-%d %H}:00:00"),)

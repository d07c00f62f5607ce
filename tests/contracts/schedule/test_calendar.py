"""Calendars: days that are skipped, moved to the next working day, or excused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cache

import holidays as foreign
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dq.contracts.outcome import ValueProblem
from dq.contracts.schedule.calendar import (
    DayEffect,
    HolidayCalendar,
    holiday_name_problem,
    holidays_release,
    public_holidays,
)
from dq.contracts.schedule.clock import Schedule, parse
from dq.contracts.slo import Cycle, cycles

# Christmas Day of 2026 is a Friday.
EVE, CHRISTMAS, BOXING = date(2026, 12, 24), date(2026, 12, 25), date(2026, 12, 26)
START = datetime(2026, 12, 23, 12, tzinfo=UTC)


def schedule(expression: str, calendar: HolidayCalendar, zone: str = "Europe/Berlin") -> Schedule:
    found = parse(expression, timezone=zone, calendar=calendar)
    assert isinstance(found, Schedule), found
    return found


def cycles_of(expression: str, calendar: HolidayCalendar, days: int, start: datetime = START) -> list[Cycle]:
    return list(
        cycles(
            schedule(expression, calendar),
            start,
            start + timedelta(days=days),
            contract="c",
            object="o",
            slo="s",
            grace=timedelta(0),
            partition={"day": "{due - 1d:%m-%d}"},
        )
    )


def dues(expression: str, calendar: HolidayCalendar, days: int) -> list[str]:
    return [f"{cycle.nominal:%m-%d %H:%M}" for cycle in cycles_of(expression, calendar, days)]


@pytest.mark.parametrize(
    ("calendar", "expected"),
    [
        pytest.param(HolidayCalendar(skip=frozenset({CHRISTMAS})), ["12-24", "12-26", "12-27"], id="skip"),
        pytest.param(
            HolidayCalendar(move=frozenset({CHRISTMAS})), ["12-24", "12-26", "12-27", "12-28"], id="move"
        ),
        pytest.param(
            HolidayCalendar(excuse=frozenset({CHRISTMAS})), ["12-24", "12-25", "12-26"], id="excuse"
        ),
        pytest.param(HolidayCalendar(weekdays_only=True), ["12-24", "12-25", "12-28"], id="weekends"),
        pytest.param(HolidayCalendar(holidays=("DE",)), ["12-24", "12-27", "12-28"], id="holidays"),
        pytest.param(HolidayCalendar(weekdays_only=True, holidays=("DE",)), ["12-24", "12-28"], id="both"),
        pytest.param(
            HolidayCalendar(skip=frozenset({EVE}), holidays=("DE",), free_days=DayEffect.EXCUSE),
            ["12-25", "12-26", "12-27"],
            id="a list goes before the holidays",
        ),
    ],
)
def test_the_days_of_a_daily_schedule(calendar: HolidayCalendar, expected: list[str]) -> None:
    assert dues("0 6 * * *", calendar, 6)[: len(expected)] == [f"{day} 06:00" for day in expected]


def test_a_moved_delivery_brings_what_it_would_have_brought() -> None:
    calendar = HolidayCalendar(move=frozenset({CHRISTMAS}))

    (moved,) = cycles_of("0 6 25 12 *", calendar, 9)

    assert (f"{moved.nominal:%a %m-%d}", moved.partitions) == ("Mon 12-28", ((("day", "12-24"),),))


def test_deliveries_that_meet_on_one_day_are_one_cycle_that_brings_all() -> None:
    calendar = HolidayCalendar(weekdays_only=True, holidays=("DE",), free_days=DayEffect.MOVE)

    found = {f"{one.nominal:%m-%d}": one.partitions for one in cycles_of("0 6 * * *", calendar, 5)}

    assert found == {
        "12-24": ((("day", "12-23"),),),
        "12-28": tuple(((("day", f"12-{day}"),)) for day in (24, 25, 26, 27)),
    }


def test_a_delivery_moves_into_the_next_month_and_year() -> None:
    calendar = HolidayCalendar(weekdays_only=True, holidays=("DE",), free_days=DayEffect.MOVE)
    # 31 January 2027 is a Sunday.
    start = datetime(2027, 1, 10, tzinfo=UTC)

    (moved,) = cycles_of("0 6 31 1 *", calendar, 60, start)

    assert f"{moved.nominal:%Y-%m-%d}" == "2027-02-01"


def test_a_delivery_of_the_last_year_moves_beyond_it() -> None:
    from dq.contracts.schedule.cron import Dialect

    calendar = HolidayCalendar(weekdays_only=True, holidays=("US",), free_days=DayEffect.MOVE)
    # 31 December 2028 is a Sunday, the day after a holiday.
    found = parse("cron(0 6 31 12 ? 2028)", dialect=Dialect.EVENTBRIDGE, calendar=calendar)

    assert isinstance(found, Schedule)
    assert [f"{due.at:%Y-%m-%d}" for due in found.after(START)] == ["2029-01-02"]


def test_a_moved_time_inside_a_gap_is_due_at_the_change() -> None:
    # In Berlin the clock jumps from 2 to 3 on Sunday 29 March 2026; Cairo's does at midnight on a Friday.
    calendar = HolidayCalendar(move=frozenset({date(2026, 4, 23)}))

    found = schedule("30 0 23 4 *", calendar, "Africa/Cairo")

    due = next(found.after(datetime(2026, 4, 1, tzinfo=UTC)))
    assert (f"{due.nominal:%m-%d %H:%M}", due.at) == ("04-24 00:30", datetime(2026, 4, 23, 22, tzinfo=UTC))


def test_an_excused_cycle_says_why_and_by_which_release() -> None:
    calendar = HolidayCalendar(holidays=("DE-BY",), free_days=DayEffect.EXCUSE)

    first, second = cycles_of("0 6 24,25 12 *", calendar, 3)

    assert (first.excuse, first.calendar) == ("", holidays_release())
    assert second.excuse == "Excluded by the calendar: DE-BY: Erster Weihnachtstag."


@pytest.mark.parametrize(
    ("calendar", "code", "part"),
    [
        pytest.param(HolidayCalendar(holidays=("EN",)), "HOLIDAYS_COUNTRY", "'EN'", id="no country"),
        pytest.param(HolidayCalendar(holidays=("de",)), "HOLIDAYS_COUNTRY", "'DE'", id="lower case"),
        pytest.param(
            HolidayCalendar(holidays=("DE", "DE-XX")), "HOLIDAYS_SUBDIVISION", "'XX'", id="no subdivision"
        ),
        pytest.param(
            HolidayCalendar(holidays=("DE-",)), "HOLIDAYS_SUBDIVISION", "''", id="an empty subdivision"
        ),
        pytest.param(
            HolidayCalendar(holidays=("__name__",)), "HOLIDAYS_COUNTRY", "__name__", id="a name of Python"
        ),
        pytest.param(
            HolidayCalendar(skip=frozenset({EVE}), move=frozenset({EVE})),
            "CALENDAR_TWICE",
            "2026-12-24",
            id="twice",
        ),
        pytest.param(
            HolidayCalendar(
                move=frozenset({EVE}),
                skip=frozenset(CHRISTMAS + timedelta(days=count) for count in range(80)),
            ),
            "CALENDAR_FAR",
            "2026-12-24",
            id="nowhere to move to",
        ),
    ],
)
def test_a_calendar_that_cannot_be_followed_is_refused(
    calendar: HolidayCalendar, code: str, part: str
) -> None:
    fault = parse("0 6 * * *", calendar=calendar)

    assert isinstance(fault, ValueProblem)
    assert fault.code == code
    assert part in str(fault)


def test_a_schedule_of_holidays_alone_never_comes_where_they_are_skipped() -> None:
    fault = parse("0 6 25 12 *", calendar=HolidayCalendar(holidays=("DE",)))

    assert isinstance(fault, ValueProblem)
    assert fault.code == "CRON_NEVER"


def test_holidays_are_those_of_the_package_whatever_the_language_of_the_machine(monkeypatch) -> None:
    monkeypatch.setenv("LANGUAGE", "en_US")

    assert public_holidays("DE-BY", 2026)[CHRISTMAS] == "Erster Weihnachtstag"
    assert set(public_holidays("US-NY", 2027)) == {
        day for day in foreign.country_holidays("US", subdiv="NY", years=2027) if day.year == 2027
    }


def test_every_country_of_the_package_is_known_by_its_two_letters() -> None:
    assert [
        code
        for code in foreign.list_supported_countries(include_aliases=False)
        if holiday_name_problem(code) is not None
    ] == []


_DATES = st.frozensets(
    st.integers(0, 50).map(lambda count: date(2026, 12, 1) + timedelta(days=count)), max_size=8
)


@cache
def _foreign(name: str) -> frozenset[date]:
    country, _, part = name.partition("-")
    return frozenset(foreign.country_holidays(country, subdiv=part or None, years=(2026, 2027)))


@given(
    skip=_DATES,
    move=_DATES,
    excuse=_DATES,
    weekdays_only=st.booleans(),
    holidays=st.sampled_from([(), ("DE-BY",), ("FR", "US")]),
    free_days=st.sampled_from(list(DayEffect)),
    expression=st.sampled_from(["0 6 * * *", "0 6 1 * *", "0 6 * * 5", "0 6 25,31 * *", "0 6 L * *"]),
)
def test_days_are_those_of_a_walk_over_the_dates(
    skip: frozenset[date],
    move: frozenset[date],
    excuse: frozenset[date],
    weekdays_only: bool,
    holidays: tuple[str, ...],
    free_days: DayEffect,
    expression: str,
) -> None:
    move, excuse = move - skip, excuse - skip - move
    calendar = HolidayCalendar(skip, weekdays_only, None, move, excuse, holidays, free_days)
    plain = parse(expression)
    found = parse(expression, calendar=calendar)
    assert isinstance(plain, Schedule)
    assert isinstance(found, Schedule)
    begin, end = datetime(2026, 9, 1, tzinfo=UTC), datetime(2027, 3, 1, tzinfo=UTC)

    def effect(day: date) -> str:
        for name, days in (("skip", skip), ("move", move), ("excuse", excuse)):
            if day in days:
                return name
        free = (weekdays_only and day.isoweekday() > 5) or any(day in _foreign(one) for one in holidays)
        return free_days.value if free else "due"

    expected: dict[date, list[date]] = {}
    for due in plain.between(begin, end):
        day = due.at.date()
        said = effect(day)
        if said == "move":
            day += timedelta(days=1)
            while day.isoweekday() > 5 or effect(day) != "due":
                day += timedelta(days=1)
        if said != "skip":
            expected.setdefault(day, []).append(due.at.date())

    seen = {due.at.date(): [one.date() for one in found.origins(due)] for due in found.between(begin, end)}
    lasting = datetime(2027, 2, 1, tzinfo=UTC).date()
    assert {day: of for day, of in seen.items() if day < lasting} == {
        day: sorted(of) for day, of in expected.items() if day < lasting
    }

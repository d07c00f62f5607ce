"""Quiet hours: a time of the day, on the clock of a zone, at which people are not called for small things."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from dq.contracts.schedule.zone import known, transitions, zone
from dq.contracts.shared.outcome import TextFault

_FORM = re.compile(r"([01]\d|2[0-3]):([0-5]\d)\s*-\s*([01]\d|2[0-3]):([0-5]\d)", re.ASCII)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Every day from `start` to before `end` on the clock of an IANA zone, over midnight where end is first.

    What a clock shows decides: an hour that comes twice is quiet twice, one that is left out is over before
    it begins.
    """

    start: time
    end: time
    zone: str = "UTC"

    def __str__(self) -> str:
        return f"{self.start:%H:%M}-{self.end:%H:%M} {self.zone}"

    def covers(self, instant: datetime) -> bool:
        """Whether an aware instant lies in them."""
        shown = instant.astimezone(known(self.zone)).time()
        if self.start < self.end:
            return self.start <= shown < self.end
        return shown >= self.start or shown < self.end

    def over_at(self, instant: datetime) -> datetime:
        """The first instant from this one on, in UTC, that does not lie in them."""
        begin = instant.astimezone(UTC)
        if not self.covers(begin):
            return begin
        place = known(self.zone)
        today = begin.astimezone(place).date()
        ends = [
            datetime.combine(today + days * _DAY, self.end, place).replace(fold=fold).astimezone(UTC)
            for days in (0, 1, 2)
            for fold in (0, 1)
        ]
        # Where the clock jumps, it may jump out of them.
        jumps = [
            one.at for year in {begin.year, (begin + 2 * _DAY).year} for one in transitions(self.zone, year)
        ]
        return min(one for one in (*ends, *jumps) if one > begin and not self.covers(one))


def quiet_hours(text: str, timezone: str = "UTC") -> QuietHours | TextFault:
    """The quiet hours of a text such as `22:00-07:00`, or what is wrong with it or the zone."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        return TextFault(
            "QUIET_FORM", f"{text!r} is no time of the day.", "Write it like '22:00-07:00', in quotes."
        )
    hours = [int(part) for part in match.groups()]
    made = QuietHours(time(hours[0], hours[1]), time(hours[2], hours[3]), timezone)
    if made.start == made.end:
        mend = "Let it end at another time than it begins; leave a channel out that is to hear nothing."
        return TextFault("QUIET_ALWAYS", f"{text!r} has no end.", mend)
    place = zone(timezone)
    return place if isinstance(place, TextFault) else made


def written(text: str) -> QuietHours | None:
    """The quiet hours that `str` wrote; None for no text."""
    if not text:
        return None
    hours, _, timezone = text.partition(" ")
    found = quiet_hours(hours, timezone)
    return found if isinstance(found, QuietHours) else None

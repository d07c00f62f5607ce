"""The tools that alerts go through, their support entries, and quiet hours."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from fnmatch import fnmatchcase

from dq.contracts import extension
from dq.contracts.access.access_policy import WEB, web_address
from dq.contracts.model import Node, SupportChannel
from dq.contracts.outcome import Finding, Severity, TextFault, mistake, nearest, parse_elapsed
from dq.contracts.schedule.calendar import known, transitions, zone

# Quiet hours: a time of the day, on the clock of a zone, at which people are not called for small things.

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


# Which tools alerts go through, what a support entry must name for each, and when it hears of a breach.

# TABLE: which tools alerts go through, and what a support entry must name for each of them.

# Scopes of support channels that want to hear of breaches; an entry without a scope does too.
HEARING = (None, "notifications", "issues")
# Tools whose channel is a path of the machine that watches.
FILES = frozenset({"file"})

# A name that stands for a secret of the operator's: it becomes the end of a variable, as FILE does.
NAME = r"(?!(?:.*-)?file$)[a-z][a-z0-9\-]{0,62}"
_NAMED = (
    "Write the name under which the operator knows it: small letters, digits and hyphens, such as sales-data."
)
_ATEXT = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\-]"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?"

# By tool: what a channel must be, what it must not be, and what to write. Slack's own limit is 80 signs.
_FORMS: dict[str, tuple[str, str, str]] = {
    "slack": (
        r"#?[\w.\-]{1,80}",
        r"[UW][A-Z0-9]{7,}",
        "Write a channel such as '#sales-data', in quotes, or its id, such as C024BE91L.",
    ),
    "slack-webhook": (NAME, "", _NAMED),
    "teams": (NAME, "", _NAMED),
    "pagerduty": (NAME, "", _NAMED),
    "webhook": (
        rf"{NAME}|https://[A-Za-z0-9.\-]{{1,253}}(?::[0-9]{{1,5}})?(?:/[A-Za-z0-9._~\-/]{{0,500}})?",
        "",
        f"{_NAMED} Or an https:// URL without a user and a query.",
    ),
    # RFC 5321, without quoted local parts; one address, so that nobody can slip in others.
    "email": (
        rf"{_ATEXT}(?:[.]?{_ATEXT}){{0,63}}@{_LABEL}(?:[.]{_LABEL})+",
        r".{255,}|.{65,}@.*",
        "Write one address, such as sales-data@acme.example.",
    ),
}
UNSERVED = "ALERT_TOOL"
# Tools that the standard names and dq sends nothing to: such an entry is there for people.
FOR_PEOPLE = frozenset({"discord", "ticket", "googlechat", "other"})
TOOLS = ("console", "file", *_FORMS)
"""Every tool that alerts go through; the shelf of channels holds one of each."""


def target_of(support: SupportChannel) -> str:
    """Where the alerts of an entry go: its channel; of mail, the address in its `url` if the channel is none.

    So the standard's own examples have it: `{channel: sales-ann, tool: email, url: "mailto:ann@…"}`.
    """
    url = support.url or ""
    if support.tool == "email" and "@" not in support.channel and url.lower().startswith("mailto:"):
        return url[len("mailto:") :]
    return support.channel


def target_fault(support: SupportChannel) -> TextFault | None:
    """What is wrong with the target of an entry, taken by itself; None for tools that have no form here."""
    return form_fault(support.tool or "", target_of(support))


def form_fault(tool: str, target: str) -> TextFault | None:
    """What is wrong with a target of a tool; None for tools that have no form here."""
    if tool not in _FORMS:
        return None
    wanted, unwanted, mend = _FORMS[tool]
    plain = "://" not in target or web_address(target) is not None
    if plain and re.fullmatch(wanted, target) and not re.fullmatch(unwanted, target):
        return None
    return TextFault("ALERT_TARGET", f"{target!r} is no channel of {tool}", mend)


def tool_fault(support: SupportChannel) -> TextFault | None:
    """Whether an entry that wants to hear of breaches names a tool that brings none of them.

    One without a scope may be there for people alone: it is at fault only where a tool of ours was meant.
    """
    if not hears(support) or support.tool is None or support.tool in TOOLS:
        return None
    if support.tool in FOR_PEOPLE and support.scope is None:
        return None
    near = nearest(support.tool, TOOLS)
    if support.scope is None and near is None:
        return None
    mend = f"Did you mean {near!r}? " if near else ""
    mend += f"Write one of {', '.join(TOOLS)}, or a scope that hears of no breaches, such as interactive."
    return TextFault(UNSERVED, f"{support.tool!r} is no channel of dq, so its alerts would go nowhere", mend)


def hears(support: SupportChannel) -> bool:
    """Whether breaches are told to this entry."""
    return support.scope in HEARING


def host_allowed(url: str, hosts: Iterable[str]) -> bool:
    """Whether the host of a URL is on a list of patterns; a port other than the usual one must be named."""
    address = web_address(url, WEB)
    return address is not None and any(fnmatchcase(address.authority, host.lower()) for host in hosts)


def domain_allowed(address: str, domains: Iterable[str]) -> bool:
    """Whether the domain of an email address is on a list of patterns."""
    domain = address.rpartition("@")[2].lower()
    return any(fnmatchcase(domain, one.lower().lstrip("@")) for one in domains)


# When a support entry hears of a breach: the terms of its route, ready to be asked.
#
# A rule of the gate and the watcher read them through the same door.

RULE = "alert-route-invalid"
_LONGEST = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class RouteTerms:
    """Which severities are told, after which time open and unacknowledged, and when small things wait."""

    severities: frozenset[Severity] = frozenset(Severity)
    escalate_after: timedelta = timedelta(0)
    quiet: QuietHours | None = None
    quiet_severities: frozenset[Severity] = frozenset()


def route_terms(support: SupportChannel) -> tuple[RouteTerms, list[Finding]]:
    """The terms of an entry, and what is wrong with them.

    A term that cannot be understood is as if it were not written, so that nobody hears less or later.
    """
    route, findings = extension.route(support)

    def wrong(node: Node, key: str, odd: TextFault) -> None:
        message = f"{key}: {odd.message}"
        findings.append(mistake(RULE, message, odd.mend, node.at(key), node.path(key)))

    after = _after(route.escalate_after)
    if isinstance(after, TextFault):
        wrong(route, "escalateAfter", after)
    quiet = quiet_hours(route.quiet, route.timezone) if route.quiet else None
    if isinstance(quiet, TextFault):
        wrong(route, "timezone" if quiet.code.startswith("ZONE") else "quiet", quiet)
    return RouteTerms(
        frozenset(Severity(word) for word in route.severities),
        after if isinstance(after, timedelta) else timedelta(0),
        quiet if isinstance(quiet, QuietHours) else None,
        frozenset(Severity(word) for word in route.quiet_severities),
    ), findings


def _after(text: str | None) -> timedelta | TextFault:
    if text is None:
        return timedelta(0)
    elapsed = parse_elapsed(text)
    if isinstance(elapsed, timedelta) and elapsed > _LONGEST:
        return TextFault("ROUTE_LATE", f"{text!r} is too long to wait.", "Write something up to 7d.")
    return elapsed

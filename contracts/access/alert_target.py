"""Alert tools, their targets in support entries, routes, and quiet hours."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from fnmatch import fnmatchcase

from dq.contracts import extension
from dq.contracts.access.access_policy import WEB, web_address
from dq.contracts.model import Node, SupportChannel
from dq.contracts.outcome import Finding, Severity, ValueProblem, error_finding, nearest, parse_elapsed
from dq.contracts.schedule.calendar import load_zone, parse_zone, transitions

# Quiet hours: time of the day in a zone during which minor alerts are deferred.

_FORM = re.compile(r"([01]\d|2[0-3]):([0-5]\d)\s*-\s*([01]\d|2[0-3]):([0-5]\d)", re.ASCII)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Every day from `start` to before `end` in an IANA zone, over midnight if `end` is earlier.

    Civil time counts: an hour that is repeated is quiet twice, one that is skipped is not quiet.
    """

    start: time
    end: time
    zone: str = "UTC"

    def __str__(self) -> str:
        return f"{self.start:%H:%M}-{self.end:%H:%M} {self.zone}"

    def covers(self, instant: datetime) -> bool:
        """Return True if an aware instant is in the quiet hours."""
        clock_time = instant.astimezone(load_zone(self.zone)).time()
        if self.start < self.end:
            return self.start <= clock_time < self.end
        return clock_time >= self.start or clock_time < self.end

    def end_at(self, instant: datetime) -> datetime:
        """Return the first instant in UTC, from this one on, that is not in the quiet hours."""
        begin = instant.astimezone(UTC)
        if not self.covers(begin):
            return begin
        zone_info = load_zone(self.zone)
        today = begin.astimezone(zone_info).date()
        ends = [
            datetime.combine(today + days * _DAY, self.end, zone_info).replace(fold=fold).astimezone(UTC)
            for days in (0, 1, 2)
            for fold in (0, 1)
        ]
        # A clock change may end the quiet hours.
        jumps = [
            transition.at
            for year in {begin.year, (begin + 2 * _DAY).year}
            for transition in transitions(self.zone, year)
        ]
        return min(instant for instant in (*ends, *jumps) if instant > begin and not self.covers(instant))


def parse_quiet_hours(text: str, timezone: str = "UTC") -> QuietHours | ValueProblem:
    """Parse quiet hours such as `22:00-07:00`, or return the problem of the text or the zone."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        return ValueProblem(
            "QUIET_FORM", f"{text!r} is not a valid time range.", "Write e.g. '22:00-07:00', in quotes."
        )
    hours = [int(part) for part in match.groups()]
    quiet = QuietHours(time(hours[0], hours[1]), time(hours[2], hours[3]), timezone)
    if quiet.start == quiet.end:
        hint = "Use different start and end times; to mute a channel completely, remove it."
        return ValueProblem("QUIET_ALWAYS", f"{text!r} never ends.", hint)
    zone_info = parse_zone(timezone)
    return zone_info if isinstance(zone_info, ValueProblem) else quiet


def load_quiet_hours(text: str) -> QuietHours | None:
    """Parse quiet hours that `str` has formatted; return None for ""."""
    if not text:
        return None
    hours, _, timezone = text.partition(" ")
    quiet = parse_quiet_hours(hours, timezone)
    return quiet if isinstance(quiet, QuietHours) else None


# TABLE: alert tools, and the form of their targets in support entries.

# Scopes of support channels that receive breaches; an entry without a scope does too.
BREACH_SCOPES = (None, "notifications", "issues")
# Tools whose channel is a path on the watcher's machine.
FILES = frozenset({"file"})

# Name of an operator's secret: it becomes the suffix of a variable, as FILE does.
NAME = r"(?!(?:.*-)?file$)[a-z][a-z0-9\-]{0,62}"
_NAME_HINT = (
    "Write the name that the operator configured: lowercase letters, digits and hyphens, e.g. sales-data."
)
_ATEXT = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\-]"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?"

# By tool: pattern of a channel, forbidden pattern, and hint. Slack's own limit is 80 characters.
_FORMS: dict[str, tuple[str, str, str]] = {
    "slack": (
        r"#?[\w.\-]{1,80}",
        r"[UW][A-Z0-9]{7,}",
        "Write a channel in quotes, e.g. '#sales-data', or its id, e.g. C024BE91L.",
    ),
    "slack-webhook": (NAME, "", _NAME_HINT),
    "teams": (NAME, "", _NAME_HINT),
    "pagerduty": (NAME, "", _NAME_HINT),
    "webhook": (
        rf"{NAME}|https://[A-Za-z0-9.\-]{{1,253}}(?::[0-9]{{1,5}})?(?:/[A-Za-z0-9._~\-/]{{0,500}})?",
        "",
        f"{_NAME_HINT} Or write an https:// URL without user and query.",
    ),
    # RFC 5321, without quoted local parts; one address, so that no others can be injected.
    "email": (
        rf"{_ATEXT}(?:[.]?{_ATEXT}){{0,63}}@{_LABEL}(?:[.]{_LABEL})+",
        r".{255,}|.{65,}@.*",
        "Write one address, e.g. sales-data@acme.example.",
    ),
}
UNSUPPORTED_TOOL = "ALERT_TOOL"
# Tools of the standard that dq does not send to: such entries are for people.
FOR_PEOPLE = frozenset({"discord", "ticket", "googlechat", "other"})
TOOLS = ("console", "file", *_FORMS)
"""All alert tools; there is one channel plug-in for each."""


def alert_target(support: SupportChannel) -> str:
    """Return the target of an entry's alerts: its channel, or for email the address that only `url` has.

    The standard's own examples do so: `{channel: sales-ann, tool: email, url: "mailto:ann@…"}`.
    """
    url = support.url or ""
    if support.tool == "email" and "@" not in support.channel and url.lower().startswith("mailto:"):
        return url[len("mailto:") :]
    return support.channel


def alert_target_problem(support: SupportChannel) -> ValueProblem | None:
    """Return the problem of an entry's target, or None if it is valid or the tool has no form."""
    return target_problem(support.tool or "", alert_target(support))


def target_problem(tool: str, target: str) -> ValueProblem | None:
    """Return the problem of a tool's target, or None if it is valid or the tool has no form."""
    if tool not in _FORMS:
        return None
    allowed, forbidden, hint = _FORMS[tool]
    is_plain = "://" not in target or web_address(target) is not None
    if is_plain and re.fullmatch(allowed, target) and not re.fullmatch(forbidden, target):
        return None
    return ValueProblem("ALERT_TARGET", f"{target!r} is not a valid {tool} channel", hint)


def tool_problem(support: SupportChannel) -> ValueProblem | None:
    """Return a problem if an entry that receives breaches has an unsupported tool, else None.

    An entry without a scope may be for people: it is a problem only if the tool is a misspelt one of ours.
    """
    if not receives_breaches(support) or support.tool is None or support.tool in TOOLS:
        return None
    if support.tool in FOR_PEOPLE and support.scope is None:
        return None
    match = nearest(support.tool, TOOLS)
    if support.scope is None and match is None:
        return None
    hint = f"Did you mean {match!r}? " if match else ""
    hint += f"Write one of {', '.join(TOOLS)}, or a scope without breach alerts, e.g. interactive."
    return ValueProblem(
        UNSUPPORTED_TOOL, f"dq has no channel {support.tool!r}, so its alerts would not be delivered", hint
    )


def receives_breaches(support: SupportChannel) -> bool:
    """Return True if this entry receives breaches."""
    return support.scope in BREACH_SCOPES


def host_allowed(url: str, hosts: Iterable[str]) -> bool:
    """Return True if the host of a URL matches a pattern; a port other than the default must be in the
    pattern.
    """
    address = web_address(url, WEB)
    return address is not None and any(fnmatchcase(address.authority, host.lower()) for host in hosts)


def domain_allowed(address: str, domains: Iterable[str]) -> bool:
    """Return True if the domain of an email address matches a pattern."""
    domain = address.rpartition("@")[2].lower()
    return any(fnmatchcase(domain, pattern.lower().lstrip("@")) for pattern in domains)


# Routes: parsed terms of a support entry.
#
# Validation and the watcher use the same function.

RULE = "alert-route-invalid"
_MAX_DELAY = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class RouteTerms:
    """Severities to notify, delay of escalation for unacknowledged incidents, and quiet hours."""

    severities: frozenset[Severity] = frozenset(Severity)
    escalate_after: timedelta = timedelta(0)
    quiet: QuietHours | None = None
    quiet_severities: frozenset[Severity] = frozenset()


def route_terms(support: SupportChannel) -> tuple[RouteTerms, list[Finding]]:
    """Return the route terms of an entry, and the findings about them.

    Invalid terms are ignored, so that no notification is lost or delayed.
    """
    route, findings = extension.route(support)
    terms, term_findings = parse_terms(route)
    return terms, findings + term_findings


def parse_terms(route: extension.Route) -> tuple[RouteTerms, list[Finding]]:
    """Return the parsed terms of a route, and the findings about them. Invalid terms are ignored."""
    findings: list[Finding] = []

    def report(node: Node, key: str, problem: ValueProblem) -> None:
        message = f"{key}: {problem.message}"
        findings.append(error_finding(RULE, message, problem.hint, node.locate(key), node.path(key)))

    escalate_after = _escalation_delay(route.escalate_after)
    if isinstance(escalate_after, ValueProblem):
        report(route, "escalateAfter", escalate_after)
    quiet = parse_quiet_hours(route.quiet, route.timezone) if route.quiet else None
    if isinstance(quiet, ValueProblem):
        report(route, "timezone" if quiet.code.startswith("ZONE") else "quiet", quiet)
    return RouteTerms(
        frozenset(Severity(word) for word in route.severities),
        escalate_after if isinstance(escalate_after, timedelta) else timedelta(0),
        quiet if isinstance(quiet, QuietHours) else None,
        frozenset(Severity(word) for word in route.quiet_severities),
    ), findings


def _escalation_delay(text: str | None) -> timedelta | ValueProblem:
    if text is None:
        return timedelta(0)
    elapsed = parse_elapsed(text)
    if isinstance(elapsed, timedelta) and elapsed > _MAX_DELAY:
        return ValueProblem("ROUTE_LATE", f"{text!r} is too long.", "Write at most 7d.")
    return elapsed

"""`dq.init` and `dq.fmt`: a new registry, and contracts in their canonical form."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from dq.contracts.access.data_location import SERVERS
from dq.contracts.access.discovery import find
from dq.contracts.access.files import POLICY_FILE, FileRefused, Found, create, read, replace
from dq.contracts.outcome import DqError, TextFault, Unreadable, UsageError
from dq.contracts.schedule.clock import Schedule, shortest_gap
from dq.contracts.schedule.clock import parse as parse_schedule
from dq.contracts.yaml.formatting import Formatted, formatted
from dq.contracts.yaml.insertion import quoted
from dq.operations.runtime.context import here
from dq.validators.git.repository import BRANCH, make_repository, require_none
from dq.validators.lint import lint, rules_of
from dq.validators.policy.policy import Policy

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: {id}
name: {name}
version: 0.1.0
status: draft
domain: {domain}
description:
  purpose: Who reads this, and what for.

servers:
  - server: production
    type: {server}
    {key}: {location}
    format: parquet

team:
  name: {domain}
  members:
    - username: {owner}
      role: owner

support:
  - channel: {channel}
    tool: slack
    scope: notifications

schema:
  - name: {id}
    physicalType: table
    description: One row per key and day.
    customProperties:
      - property: dataset
        vendor: dq
        value: {{additionalColumns: warn}}
    properties:
      - name: day
        logicalType: date
        physicalType: date
        description: The day that a row is about.
        required: true
        partitioned: true
        partitionKeyPosition: 1
        primaryKey: true
        primaryKeyPosition: 1
      - name: key
        logicalType: string
        physicalType: string
        description: What is counted.
        required: true
        primaryKey: true
        primaryKeyPosition: 2
      - name: amount
        logicalType: number
        physicalType: decimal(18,2)
        description: How much of it.
        logicalTypeOptions: {{minimum: 0}}
    quality:
      - name: not empty
        metric: rowCount
        mustBeGreaterThan: 0
        severity: error

slaProperties:
  - id: delivery
    property: frequency
    value: {every}
    unit: {unit}
    element: {id}
    driver: operational
    scheduler: cron
    schedule: {schedule}
    customProperties:
      - property: delivery
        vendor: dq
        value:
          timezone: {timezone}
          grace: {grace}
          partition: {{day: "{{{day}:%Y-%m-%d}}"}}
          objective: {objective}
          window: {window}
"""

POLICY = """\
# What this organisation asks of every contract. 'dq rules' lists what can be set here.
profile: default
"""

_ID = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class _Rhythm:
    """What follows from how often a delivery is due, as texts of a contract.

    The grace is shorter than the time between two dues, and the objective allows for one miss at least.
    """

    every: str
    unit: str
    grace: str
    day: str
    objective: str = "95%"
    window: str = "90d"


@dataclass(frozen=True, slots=True)
class InitOutcome:
    """The files that were written, and the branch that both were committed on, if any.

    `problem` is why not everything was done.
    """

    files: tuple[Path, ...]
    branch: str | None = None
    problem: DqError | None = None

    @property
    def exit_code(self) -> int:
        """As `dq init` ends: 0 everything was done."""
        return 0 if self.problem is None else self.problem.exit_code


def init(
    folder: Path | str = ".",
    *,
    id: str = "orders",
    domain: str = "sales",
    owner: str = "you@example.com",
    channel: str = "#data-alerts",
    schedule: str = "0 6 * * *",
    timezone: str = "UTC",
    location: str = "lake/{object}",
    git: bool = False,
) -> InitOutcome:
    """Write a first contract that passes into a folder, and the policy beside it, as `dq init` does.

    `id` is the contract's, in small letters; `owner` answers for it, `channel` of Slack hears of faults, and
    `schedule` is the cron of its delivery in the IANA zone `timezone`. `location` is a folder or a URL of the
    data. With `git` the folder becomes a Git repository with both files committed. Nothing is overwritten.

    Raises UsageError for a contract that is there already, and for answers with which none would pass.
    """
    if not _ID.fullmatch(id):
        raise UsageError(f"{id!r} is not an id.", "Use small letters, digits and _, beginning with a letter.")
    due = parse_schedule(schedule, timezone=timezone)
    if isinstance(due, TextFault):
        raise UsageError(due.message, due.mend)
    world, root = here(), Path(folder)
    if git:
        require_none(root)
    root.mkdir(parents=True, exist_ok=True)
    contract, policy = root / f"{id}.odcs.yaml", root / POLICY_FILE
    if os.path.lexists(contract):
        raise UsageError(f"{contract} is there already.", "Choose another --id, or edit the file.")
    answers = {"domain": domain, "owner": owner, "channel": channel, "schedule": schedule}
    text = _text(id, location, _rhythm(due, world.now()), {**answers, "timezone": timezone})
    findings = lint(
        _encoded(text), contract.name, rules=rules_of(), policy=Policy("strict"), today=world.now().date()
    )
    if findings:
        raise UsageError(
            f"no contract with these answers would pass: {findings[0].message}", findings[0].mend
        )
    _create(contract, text)
    written = [contract]
    try:
        if not os.path.lexists(policy):
            _create(policy, POLICY)
            written.append(policy)
        if git:
            make_repository(root, [contract, policy], f"registry: add the contract of {id}")
    except DqError as error:
        return InitOutcome(tuple(written), problem=error)
    return InitOutcome(tuple(written), BRANCH if git else None)


def _create(file: Path, text: str) -> None:
    try:
        create(file, text.encode())
    except FileExistsError as error:
        raise UsageError(f"{file} is there already.", "Remove it, or choose another folder.") from error


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # A command line can hold bytes that are no text.
        raise UsageError("an answer is not UTF-8.", "Write it in UTF-8.") from None


def _text(id: str, location: str, rhythm: _Rhythm, flags: dict[str, str]) -> str:
    """The contract's text. Raises UsageError for a location whose kind of server is not known."""
    scheme = location.partition("://")[0] if "://" in location else ""
    if scheme not in SERVERS:
        known = ", ".join(f"{one}://" for one in SERVERS if one)
        raise UsageError(
            f"dq init knows no server for {scheme}://.", f"Give a folder, or a location with {known}."
        )
    server, key = SERVERS[scheme]
    return CONTRACT.format(
        id=quoted(id),
        name=quoted(id.replace("_", " ").capitalize()),
        server=server,
        key=key,
        location=quoted(location),
        every=rhythm.every,
        unit=rhythm.unit,
        grace=rhythm.grace,
        day=rhythm.day,
        objective=rhythm.objective,
        window=rhythm.window,
        **{name: quoted(value) for name, value in flags.items()},
    )


def _rhythm(schedule: Schedule, now: datetime) -> _Rhythm:
    """What suits a schedule; the night when the clocks change makes a day of 23 hours, which is a day."""
    gap = shortest_gap(schedule, now) or timedelta(days=1)
    days = round(gap / timedelta(days=1))
    minutes = int(gap / timedelta(minutes=1))
    if gap < timedelta(hours=12):
        return _Rhythm(str(minutes), "min", f"{max(1, minutes // 2)}m", "due")
    if days < 7:
        return _Rhythm(str(max(1, days)), "d", "1h", "due - 1d")
    return _Rhythm(str(days), "d", "1h", "due - 1d", "90%", "365d")


@dataclass(frozen=True, slots=True)
class FmtFile:
    """One file. `before` and `after` are None where it stays as it is.

    `reasons` say why it cannot be formatted, and `error` why it could not be written.
    """

    path: str
    before: bytes | None = None
    after: bytes | None = None
    reasons: tuple[str, ...] = ()
    error: FileRefused | None = None


@dataclass(frozen=True, slots=True)
class FmtOutcome:
    """What became of each file, in order; nothing was written with `check`."""

    files: tuple[FmtFile, ...]
    check: bool

    @property
    def changed(self) -> tuple[FmtFile, ...]:
        """Those that were written, or would be."""
        return tuple(file for file in self.files if file.after is not None)

    @property
    def refused(self) -> tuple[FmtFile, ...]:
        """Those that cannot be formatted."""
        return tuple(file for file in self.files if file.reasons)

    @property
    def unwritten(self) -> tuple[FmtFile, ...]:
        """Those that could not be written."""
        return tuple(file for file in self.files if file.error is not None)

    @property
    def exit_code(self) -> int:
        """As `dq fmt` ends: 3 a file could not be written, 1 one cannot be formatted, or would change."""
        if self.unwritten:
            return Unreadable.exit_code
        return 1 if self.refused or (self.check and self.changed) else 0


def fmt(paths: Path | str | Sequence[Path | str] = ".", *, check: bool = False) -> FmtOutcome:
    """Write contracts in their canonical form, as `dq fmt` does; with `check` nothing is written.

    `paths` are files and folders. Values and comments stay as they are; a file that is no YAML is left alone.

    Raises Unreadable for a path that does not exist or holds no contract.
    """
    listed = [paths] if isinstance(paths, Path | str) else paths
    return FmtOutcome(tuple(_formatted(file, check) for file in find(map(Path, listed))), check)


def _formatted(file: Found, check: bool) -> FmtFile:
    try:
        before = read(file)
    except FileRefused as error:
        return FmtFile(str(file), reasons=(str(error.finding(str(file))),))
    made = formatted(before, str(file))
    if not isinstance(made, Formatted):
        return FmtFile(str(file), reasons=tuple(map(str, made)))
    if made.why_not:
        return FmtFile(str(file), reasons=(f"{file}: left as it is: {made.why_not}",))
    if made.data == before:
        return FmtFile(str(file))
    try:
        if not check:
            replace(file, before, made.data)
    except FileRefused as error:
        return FmtFile(str(file), error=error)
    return FmtFile(str(file), before, made.data)

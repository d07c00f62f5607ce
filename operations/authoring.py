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
from dq.contracts.access.files import POLICY_FILE, FileRef, FileRejected, create, read, replace
from dq.contracts.outcome import DqError, ReadError, UsageError, ValueProblem
from dq.contracts.schedule.clock import Schedule, shortest_gap
from dq.contracts.schedule.clock import parse as parse_schedule
from dq.contracts.yaml.formatting import Formatted, formatted
from dq.contracts.yaml.portable import quoted
from dq.operations.project_files import CONTRACTS, Ci, dag_files, pipeline_files
from dq.operations.runtime.context import runtime_context
from dq.validators.git.repository import BRANCH, make_repository, require_no_repository
from dq.validators.lint import lint, load_rules
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
# Policy for all contracts of this organisation. 'dq rules' lists the rules that can be set here.
profile: default
"""

_ID = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class _Rhythm:
    """Contract values derived from how often a delivery is due.

    The grace is shorter than the time between two due times, and the objective allows at least one miss.
    """

    every: str
    unit: str
    grace: str
    day: str
    objective: str = "95%"
    window: str = "90d"


@dataclass(frozen=True, slots=True)
class InitOutcome:
    """The files written, those that existed and are unchanged, and the branch of the commit, if any.

    `problem` is the error that stopped it, if any.
    """

    files: tuple[Path, ...]
    existing: tuple[Path, ...] = ()
    branch: str | None = None
    problem: DqError | None = None

    @property
    def exit_code(self) -> int:
        """Exit code of `dq init`: 0 everything was done."""
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
    ci: str | None = None,
    airflow: bool = False,
) -> InitOutcome:
    """Write a first valid contract and a policy into a folder, as `dq init` does.

    With `ci` (`github`, `gitlab` or `codepipeline`) or `airflow` the folder is that of a whole project: the
    contract and the policy are in its folder `contracts`, next to pipelines that validate pull requests and
    register contracts after the merge, or a DAG that waits for each delivery and checks it.

    `id` is the contract's id, in lower case; `owner` is its owner, `channel` the Slack channel for alerts,
    and `schedule` the cron of its delivery in the IANA zone `timezone`. `location` is a folder or a URL of
    the data. With `git` the folder becomes a Git repository with all files committed. Nothing is
    overwritten: files of a project that exist are kept.

    Raises UsageError if the contract exists (unless there is a project to add), or if it would not pass the
    gate with these arguments.
    """
    if not _ID.fullmatch(id):
        raise UsageError(
            f"invalid id {id!r}.", "Use lowercase letters, digits and _, starting with a letter."
        )
    due = parse_schedule(schedule, timezone=timezone)
    if isinstance(due, ValueProblem):
        raise UsageError(due.message, due.hint)
    if ci is not None and ci not in list(Ci):
        raise UsageError(f"ci={ci!r} is not a CI system.", f"Choose one of {', '.join(Ci)}.")
    context, root = runtime_context(), Path(folder)
    is_project = ci is not None or airflow
    if git:
        require_no_repository(root)
    registry = root / CONTRACTS if is_project else root
    registry.mkdir(parents=True, exist_ok=True)
    contract, policy = registry / f"{id}.odcs.yaml", registry / POLICY_FILE
    if os.path.lexists(contract) and not is_project:
        raise UsageError(f"{contract} already exists.", "Choose another --id, or edit the file.")
    answers = {"domain": domain, "owner": owner, "channel": channel, "schedule": schedule}
    text = _text(id, location, _rhythm(due, context.now()), {**answers, "timezone": timezone})
    findings = lint(
        _encode(text), contract.name, rules=load_rules(), policy=Policy("strict"), today=context.now().date()
    )
    if findings:
        raise UsageError(f"a contract with these answers is invalid: {findings[0].message}", findings[0].hint)
    texts = {contract: text, policy: POLICY}
    if ci is not None:
        texts |= {root / path: text for path, text in pipeline_files(Ci(ci)).items()}
    if airflow:
        today = context.now().date()
        start = (today.year, today.month, today.day)
        texts |= {root / path: text for path, text in dag_files(id, schedule, timezone, start).items()}
    existing = [file for file in texts if os.path.lexists(file)]
    files: list[Path] = []
    try:
        for file in texts:
            if file not in existing:
                file.parent.mkdir(parents=True, exist_ok=True)
                _create(file, texts[file])
                files.append(file)
        if git:
            make_repository(root, list(texts), f"registry: add the contract of {id}")
    except DqError as error:
        return InitOutcome(tuple(files), tuple(existing), problem=error)
    return InitOutcome(tuple(files), tuple(existing), BRANCH if git else None)


def _create(file: Path, text: str) -> None:
    try:
        create(file, text.encode())
    except FileExistsError as error:
        raise UsageError(f"{file} already exists.", "Remove it, or choose another folder.") from error


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Command-line arguments can contain bytes that are not UTF-8.
        raise UsageError("an answer is not UTF-8.", "Write it in UTF-8.") from None


def _text(id: str, location: str, rhythm: _Rhythm, flags: dict[str, str]) -> str:
    """Return the contract's text. Raises UsageError for a location with an unknown scheme."""
    scheme = location.partition("://")[0] if "://" in location else ""
    if scheme not in SERVERS:
        known_schemes = ", ".join(f"{known_scheme}://" for known_scheme in SERVERS if known_scheme)
        raise UsageError(
            f"dq init does not support {scheme}://.", f"Use a folder, or a location with {known_schemes}."
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
    """Return values that suit a schedule; a day of 23 hours at a clock change counts as a day."""
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
    """Result of one file. `before` and `after` are None if it is unchanged.

    `reasons` explain why it cannot be formatted, and `error` why it could not be written.
    """

    path: str
    before: bytes | None = None
    after: bytes | None = None
    reasons: tuple[str, ...] = ()
    error: FileRejected | None = None


@dataclass(frozen=True, slots=True)
class FmtOutcome:
    """Result of each file, in order; with `check` nothing was written."""

    files: tuple[FmtFile, ...]
    check: bool

    @property
    def changed(self) -> tuple[FmtFile, ...]:
        """Files that were written, or would be with `check`."""
        return tuple(file for file in self.files if file.after is not None)

    @property
    def refused(self) -> tuple[FmtFile, ...]:
        """Files that cannot be formatted."""
        return tuple(file for file in self.files if file.reasons)

    @property
    def unwritten(self) -> tuple[FmtFile, ...]:
        """Files that could not be written."""
        return tuple(file for file in self.files if file.error is not None)

    @property
    def exit_code(self) -> int:
        """Exit code of `dq fmt`: 3 a file could not be written, 1 one cannot be formatted, or would
        change.
        """
        if self.unwritten:
            return ReadError.exit_code
        return 1 if self.refused or (self.check and self.changed) else 0


def fmt(paths: Path | str | Sequence[Path | str] = ".", *, check: bool = False) -> FmtOutcome:
    """Write contracts in their canonical form, as `dq fmt` does; with `check` nothing is written.

    `paths` are files and folders. Values and comments are unchanged; a file that is not YAML is left alone.

    Raises ReadError for a path that does not exist or holds no contract.
    """
    listed = [paths] if isinstance(paths, Path | str) else paths
    return FmtOutcome(tuple(_format_file(file, check) for file in find(map(Path, listed))), check)


def _format_file(file: FileRef, check: bool) -> FmtFile:
    try:
        before = read(file)
    except FileRejected as error:
        return FmtFile(str(file), reasons=(str(error.finding(str(file))),))
    result = formatted(before, str(file))
    if not isinstance(result, Formatted):
        return FmtFile(str(file), reasons=tuple(map(str, result)))
    if result.unchanged_reason:
        return FmtFile(str(file), reasons=(f"{file}: not changed: {result.unchanged_reason}",))
    if result.data == before:
        return FmtFile(str(file))
    try:
        if not check:
            replace(file, before, result.data)
    except FileRejected as error:
        return FmtFile(str(file), error=error)
    return FmtFile(str(file), before, result.data)

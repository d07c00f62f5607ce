"""dq init"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import typer

from dq.cli.terminal import output
from dq.contracts.access.data_location import SERVERS
from dq.contracts.access.files import POLICY_FILE, create
from dq.contracts.escaping import shell_word
from dq.contracts.schedule.clock import Schedule, shortest_gap
from dq.contracts.schedule.clock import parse as parse_schedule
from dq.contracts.shared.outcome import TextFault, UsageError
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
class Rhythm:
    """What follows from how often a delivery is due, as texts of a contract.

    The grace is shorter than the time between two dues, and the objective allows for one miss at least.
    """

    every: str
    unit: str
    grace: str
    day: str
    objective: str = "95%"
    window: str = "90d"


def command(
    folder: Path = typer.Argument(Path(), help="The registry's folder."),
    id: str = typer.Option(
        "orders", "--id", prompt="Id of the contract (small letters)", help="Contract id."
    ),
    domain: str = typer.Option("sales", "--domain", prompt="Domain", help="Domain that owns it."),
    owner: str = typer.Option("you@example.com", "--owner", prompt="Owner", help="Who answers for it."),
    channel: str = typer.Option(
        "#data-alerts", "--channel", prompt="Slack channel", help="Where breaches go."
    ),
    schedule: str = typer.Option(
        "0 6 * * *", "--schedule", prompt="Due at (cron)", help="Cron of the delivery."
    ),
    tz: str = typer.Option("UTC", "--tz", prompt="Time zone of the cron", help="IANA zone."),
    location: str = typer.Option("lake/{object}", "--location", help="Folder or s3:// prefix of the data."),
    git: bool = typer.Option(False, "--git", help="Make the folder a Git repository, and commit both files."),
) -> None:
    """Write a first contract that passes, and the policy beside it. Nothing is overwritten.

    Asks for what the flags do not say.

    Example: dq init registry --id orders --domain sales --owner ana@example.com
    """
    if not _ID.fullmatch(id):
        raise UsageError(f"{id!r} is not an id.", "Use small letters, digits and _, beginning with a letter.")
    fault = parse_schedule(schedule, timezone=tz)
    if isinstance(fault, TextFault):
        raise UsageError(fault.message, fault.mend)
    world = here()
    if git:
        require_none(folder)
    folder.mkdir(parents=True, exist_ok=True)
    contract = folder / f"{id}.odcs.yaml"
    if os.path.lexists(contract):
        raise UsageError(f"{contract} is there already.", "Choose another --id, or edit the file.")
    flags = {"domain": domain, "owner": owner, "channel": channel, "schedule": schedule, "timezone": tz}
    text = written(id, location, rhythm(fault, world.now()), flags)
    found = lint(
        _encoded(text), contract.name, rules=rules_of(), policy=Policy("strict"), today=world.now().date()
    )
    if found:
        raise UsageError(f"no contract with these answers would pass: {found[0].message}", found[0].mend)
    _create(contract, text)
    output.line(f"Wrote {contract}.")
    policy = folder / POLICY_FILE
    if not os.path.lexists(policy):
        _create(policy, POLICY)
        output.line(f"Wrote {policy}.")
    if git:
        make_repository(folder, [contract, policy], f"registry: add the contract of {id}")
        output.line(f"Committed both on the branch {BRANCH}.")
    output.line()
    output.line("Next: edit the columns, then run")
    output.line(f"  dq validate {shell_word(str(folder))}")


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


def written(id: str, location: str, rhythm: Rhythm, flags: dict[str, str]) -> str:
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


def rhythm(schedule: Schedule, now: datetime) -> Rhythm:
    """What suits a schedule; the night when the clocks change makes a day of 23 hours, which is a day."""
    gap = shortest_gap(schedule, now) or timedelta(days=1)
    days = round(gap / timedelta(days=1))
    minutes = int(gap / timedelta(minutes=1))
    if gap < timedelta(hours=12):
        return Rhythm(str(minutes), "min", f"{max(1, minutes // 2)}m", "due")
    if days < 7:
        return Rhythm(str(max(1, days)), "d", "1h", "due - 1d")
    return Rhythm(str(days), "d", "1h", "due - 1d", "90%", "365d")

"""dq init"""

from __future__ import annotations

import re
from pathlib import Path

import typer

from dq.cli import show
from dq.cli.world import POLICY_FILE
from dq.contracts.errors import UsageError
from dq.contracts.fault import Fault
from dq.contracts.schedule import parse as parse_schedule

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: {id}
name: {name}
version: 0.1.0
status: draft
domain: {domain}
description:
  purpose: What {name} is for, in one sentence.

servers:
  - server: production
    type: {server}
    {place}
    format: parquet

team:
  name: {domain}
  members:
    - username: {owner}
      role: owner

support:
  - channel: "{channel}"
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
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: {id}
    driver: operational
    scheduler: cron
    schedule: "{schedule}"
    customProperties:
      - property: delivery
        vendor: dq
        value:
          timezone: {timezone}
          grace: 1h
          partition: {{day: "{{due - 1d:%Y-%m-%d}}"}}
          objective: 95%
          window: 90d
"""

POLICY = """\
# What this organisation asks of every contract. 'dq rules' lists what can be set here.
profile: default
"""

_ID = re.compile(r"[a-z][a-z0-9_]*")


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
) -> None:
    """Write a first contract that passes, and the policy beside it. Nothing is overwritten.

    Asks for what the flags do not say.

    Example: dq init registry --id orders --domain sales --owner ana@example.com
    """
    if not _ID.fullmatch(id):
        raise UsageError(f"{id!r} is not an id.", "Use small letters, digits and _, beginning with a letter.")
    fault = parse_schedule(schedule, timezone=tz)
    if isinstance(fault, Fault):
        raise UsageError(fault.message, fault.mend)
    remote = "://" in location
    text = CONTRACT.format(
        id=id,
        name=id.replace("_", " ").capitalize(),
        domain=domain,
        owner=owner,
        channel=channel,
        schedule=schedule,
        timezone=tz,
        server="s3" if remote else "local",
        place=f'location: "{location}"' if remote else f'path: "{location}"',
    )
    folder.mkdir(parents=True, exist_ok=True)
    contract = folder / f"{id}.odcs.yaml"
    if contract.exists():
        raise UsageError(f"{contract} is there already.", "Choose another --id, or edit the file.")
    contract.write_text(text, encoding="utf-8")
    show.line(f"Wrote {contract}.")
    policy = folder / POLICY_FILE
    if not policy.exists():
        policy.write_text(POLICY, encoding="utf-8")
        show.line(f"Wrote {policy}.")
    show.line(f"\nNext: edit the columns, then run\n  dq validate {folder}")

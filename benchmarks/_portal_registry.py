"""A registry of thousands of products, and a store that looks as after ninety days of watching them.

The rows are put into the store's own tables at once: to tick ninety times for ten thousand products would
take longer than all that is measured. They are like what the watcher writes, which tests/fakes/portal_mesh.py
lets it do itself.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, insert
from sqlalchemy import text as sql

from dq.alerts.tables import incident, incident_event, incident_subject
from dq.contracts.schedule.clock import DstNote
from dq.dataquality.delivery.tables import cycle, heartbeat, watermark
from dq.dataquality.results import check_result, check_run
from dq.store.engine import Store

NOW = datetime(2026, 5, 31, 9, tzinfo=UTC)
CYCLES = 90
_DUE = NOW.replace(hour=6)
_DOMAINS = ("orders", "billing", "shipping", "inventory", "web", "crm", "risk", "hr")
_WORDS = (
    "customer", "order", "invoice", "parcel", "carrier", "stock", "basket", "visit", "session", "campaign",
    "ticket", "claim", "limit", "salary", "region", "currency", "discount", "refund", "pallet", "route",
    "harbour", "customs", "vendor", "contract", "tariff", "meter", "voucher",
)  # fmt: skip
_AT_ONCE = 500
# A multiple of the number of domains, so that a copy's name differs in its number alone.
_SEEDS = 1_000

_CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: {id}
name: {title} of {domain}
version: 1.{minor}.0
status: active
domain: {domain}
dataProduct: {domain}-{product}
description: {{purpose: Every {word} that was closed, usage: Read by day., limitations: Nothing before 2020.}}
servers: [{{server: lake, type: glue, account: "123456789012", database: {domain}, format: parquet}}]
team: {{name: team-{team}, members: [{{username: owner{team}@example.com, role: owner}}]}}
support: [{{channel: "#help-{team}", tool: slack, scope: notifications}}]
schema:
  - name: closed
    description: One row per {word}.
    properties:
      - {{name: day, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 1}}
      - {{name: {word}_id, logicalType: integer, physicalType: bigint, required: true, unique: true}}
{columns}
    quality: [{{name: a day is whole, metric: rowCount, mustBeGreaterThan: 900}}]
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: closed
    schedule: "0 6 * * *"
    customProperties:
      - property: delivery
        vendor: dq
        value: {{grace: 30m, partition: {{day: "{{due - 1d:%F}}"}}, objective: 95%}}
{inputs}"""
_COLUMN = (
    "      - {{name: {word}_{number}, logicalType: {kind}, description: The {word} of it., "
    "classification: {secret}}}"
)


def name(number: int) -> str:
    """The id of a product; its file has it too."""
    return f"{_DOMAINS[number % len(_DOMAINS)]}-{number:06d}"


def file(registry: Path, number: int) -> Path:
    """The file of its contract."""
    return registry / _DOMAINS[number % len(_DOMAINS)] / f"{name(number)}.odcs.yaml"


def write(registry: Path, count: int) -> None:
    """The contracts, the same in every run."""
    for domain in _DOMAINS:
        (registry / domain).mkdir(parents=True, exist_ok=True)
    (registry / "dq-policy.yaml").write_text("{}\n", "utf-8")
    for number in range(count):
        file(registry, number).write_text(text(number), "utf-8")


def text(number: int, minor: int = 0) -> str:
    """A contract of a dozen columns, a third of them with their inputs."""
    draw = random.Random(number)
    columns = "\n".join(
        _COLUMN.format(
            word=draw.choice(_WORDS),
            number=place,
            kind=draw.choice(("string", "integer", "number", "timestamp")),
            secret=draw.choice(("public", "internal", "restricted")),
        )
        for place in range(10)
    )
    word = draw.choice(_WORDS)
    made_from = (
        f"customProperties: [{{property: inputs, value: [{name(number - 1)}]}}]\n" if number % 3 else ""
    )
    return _CONTRACT.format(
        id=name(number), title=f"{word} {draw.choice(_WORDS)} {number}".capitalize(), minor=minor, word=word,
        domain=_DOMAINS[number % len(_DOMAINS)], product=number // 10, team=number % 97, columns=columns,
        inputs=made_from,
    )  # fmt: skip


def fill(store: Store, count: int) -> None:
    """The rows that watching and checking left of all of them: the first are written, the rest are copies."""
    with store.write() as tx:
        tx.execute(insert(heartbeat), [{"name": "watch", "at": NOW}, {"name": "complete", "at": NOW}])
        for start in range(0, min(count, _SEEDS), _AT_ONCE):
            numbers = range(start, min(start + _AT_ONCE, count))
            _put(tx, watermark, _watermarks(numbers))
            _put(tx, cycle, (row for number in numbers for row in _cycles(number)))
            _put(tx, check_run, (run for number in numbers for run, _ in _runs(number)))
            _put(tx, check_result, (row for number in numbers for _, rows in _runs(number) for row in rows))
            _put(tx, incident, (row for number in numbers for row, _, _ in _incidents(number)))
            _put(tx, incident_subject, (row for number in numbers for _, row, _ in _incidents(number)))
            _put(tx, incident_event, (row for number in numbers for _, _, row in _incidents(number)))
        for offset in range(_SEEDS, count, _SEEDS):
            for table in (
                watermark,
                cycle,
                check_run,
                check_result,
                incident,
                incident_subject,
                incident_event,
            ):
                _copy(tx, table, offset)


def _copy(tx: Connection, table: Table, offset: int) -> None:
    """The rows of the first thousand products, for those whose numbers are greater by so many."""
    number = f"printf('%06d', substr(contract, -6) + {offset})"
    incidents = (
        f"substr({{0}}, 1, 24) || printf('%06d', substr({{0}}, 25, 6) + {offset}) || substr({{0}}, 31)"
    )
    moved = {
        "contract": f"substr(contract, 1, length(contract) - 6) || {number}",
        "incident_id": incidents.format("incident_id"),
        "run_id": f"run_id + {3 * offset}",
        "id": f"id + {3 * offset}" if table is check_run else incidents.format("id"),
    }
    # What counts its rows by itself goes on counting.
    own = [
        column.name
        for column in table.columns
        if not (column.name == "id" and table in (cycle, incident_event))
    ]
    values = ", ".join(moved.get(column, f'"{column}"') for column in own)
    first = {
        check_result: f"run_id <= {3 * _SEEDS}",
        check_run: f"id <= {3 * _SEEDS}",
        incident: f"substr(id, 25, 6) < '{_SEEDS:06}'",
        incident_subject: f"substr(incident_id, 25, 6) < '{_SEEDS:06}'",
        incident_event: f"substr(incident_id, 25, 6) < '{_SEEDS:06}'",
    }.get(table, f"substr(contract, -6) < '{_SEEDS:06}'")
    names = ", ".join(f'"{column}"' for column in own)
    tx.execute(sql(f'INSERT INTO "{table.name}" ({names}) SELECT {values} FROM "{table.name}" WHERE {first}'))


def _put(tx: Connection, table: Table, rows: Iterator[dict[str, Any]]) -> None:
    if ready := list(rows):
        tx.execute(insert(table), ready)


def _watermarks(numbers: range) -> Iterator[dict[str, Any]]:
    for number in numbers:
        yield {
            "contract": name(number),
            "object": "closed",
            "slo": "daily",
            "through": _DUE,
            "delivered_at": _DUE,
        }


def _history(number: int, ago: int) -> str:
    """Of a hundred products two miss today; of a hundred past cycles two were late."""
    if ago == 0:
        return "missing" if number % 50 == 7 else "unknown" if number % 200 == 8 else "on_time"
    return "late" if (number * 31 + ago * 17) % 50 == 0 else "on_time"


def _cycles(number: int) -> Iterator[dict[str, Any]]:
    for ago in range(CYCLES - 1, -1, -1):
        due, status = _DUE - timedelta(days=ago), _history(number, ago)
        gap = {"on_time": timedelta(minutes=-(number + ago) % 60 - 1), "late": timedelta(hours=2)}.get(status)
        came = due + gap if gap is not None else None
        day = f"{due - timedelta(days=1):%F}"
        yield {
            "contract": name(number), "object": "closed", "slo": "daily", "due_at": due,
            "breach_at": due + timedelta(minutes=30), "nominal": f"{due:%Y-%m-%dT%H:%M:%S}",
            "note": DstNote.NORMAL.value,
            "partitions": [[["day", day]]], "status": status, "reason": f"Judged {status}.",
            "delivered_at": came, "first_seen_at": came, "source": "marker" if came else None,
            "claims": [["marker", came.isoformat(), 1000]] if came else None,
            "notified": status == "missing", "contract_version": "1.0.0", "tzdata": "2026.1",
        }  # fmt: skip


def _runs(number: int) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Three days of runs, with a result for each of three clauses."""
    for days in range(3):
        run_id, at = number * 3 + days + 1, _DUE - timedelta(days=2 - days)
        scope = f"day={at - timedelta(days=1):%F}"
        run = {
            "id": run_id, "contract": name(number), "object": "closed", "contract_version": "1.0.0",
            "scope": scope, "at": at, "jobs": 1,
        }  # fmt: skip
        clauses = (
            ("schema[0].quality[0]", "rowCount", "", 1000.0 + number % 50 + days),
            ("schema[0].properties[1].required", "required", "id", 0.0),
            ("schema[0].properties[1].unique", "unique", "id", 0.0),
        )
        status = "fail" if number % 100 == 9 and days == 2 else "pass"
        yield run, [
            {
                "run_id": run_id, "clause": clause, "check": check, "property": column, "status": status,
                "severity": "error", "observed": f"{value:.0f}", "allowed": "as promised",
                "message": f"{check} ended", "value": value, "samples": [],
            }
            for clause, check, column, value in clauses
        ]  # fmt: skip


def _incidents(number: int) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """An open one for what misses today, and a few of the past ninety days."""
    days = [ago for ago in range(0, CYCLES, 9) if ago and (number + ago) % 30 == 0]
    for ago in ([0] if _history(number, 0) == "missing" else []) + days:
        at, open_ = _DUE - timedelta(days=ago), ago == 0
        id_ = f"00000000-0000-4000-8000-{number:06}{ago:06}"
        ended = None if open_ else at + timedelta(hours=2)
        key = {"contract": name(number), "object": "closed", "group_id": "daily"}
        yield (
            {
                **key, "id": id_, "severity": "error", "title": f"closed is missing: day={at:%F}",
                "state": "open" if open_ else "resolved", "revision": 2, "breaches": 1, "opened_at": at,
                "resolved_at": ended, "acked_at": ended, "acked_by": "ana" if ended else None,
            },
            {
                "incident_id": id_, "subject": f"{at:%FT%H:%MZ}", "opened_at": at, "closed_at": ended,
                "facts": [["promised", "by six"]], "closing_facts": [],
                "ended": None if open_ else "recovered",
            },
            {
                "incident_id": id_, "at": at, "kind": "opened", "revision": 1, "subject": f"{at:%FT%H:%MZ}",
                "detail": "",
            },
        )  # fmt: skip

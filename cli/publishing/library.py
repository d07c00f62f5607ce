"""Publishing from Python: `dq.publish("orders.odcs.yaml", partition={"day": day}, report=report)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from dq.cli.publishing.delivering import CatalogChoice, Delivered, PublishRequest, deliver
from dq.cli.world.environment import here
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import UsageError
from dq.contracts.yaml.parse import TEXT, read
from dq.dataquality.report import Report
from dq.dataquality.request import pick


def publish(
    contract: Contract | Path | str,
    object: str | None = None,
    *,
    partition: Mapping[str, object] | None = None,
    cycle: datetime | None = None,
    report: Report | None = None,
    rows: int | None = None,
    redelivery: bool = False,
    run: str = "",
    server: str | None = None,
    catalog: str = "local",
    role_arn: str = "",
    catalog_id: str = "",
    now: datetime | None = None,
) -> Delivered:
    """Says that a delivery is complete, as `dq publish` does: partition, marker, receipt, notice.

    `contract` is the path of its file, its YAML as a text, or one already read; `object` may be left out when
    it has one object. `partition` has a value for each key of the table; `cycle` is the due instant, with a
    zone, needed without partitions. `report` is that of `dq.check` on this data: one that is not good is
    raised, and its count of rows is taken where `rows` are not given. `redelivery` makes a new revision, once
    for each `run`, a word of your scheduler's; so do other `rows` than last time. The other arguments are the
    options of the command, and the settings are those of the working folder and the environment.

    Consumers who cannot be told hear later; `raise_for_status()` of the answer makes that an error. Raises
    Violated and Unreadable as `report.raise_for_status()` does, UsageError where something does not fit, and
    Unreadable where catalog, files or store do not answer.
    """
    known = read(contract)
    one = pick(known, object)
    for name, instant in (("cycle", cycle), ("now", now)):
        if instant is not None and instant.tzinfo is None:
            raise UsageError(f"{name}={instant!r} has no zone.", "Give an aware datetime.")
    values = {key: str(value) for key, value in (partition or {}).items()}
    if report is not None:
        _suit(report, known, one.name, values)
        report.raise_for_status()
        if rows is None and len(report.partitions) <= 1:
            rows = report.rows
    world = here(None, [] if known.file == TEXT else [Path(known.file)])
    given = PublishRequest(values, cycle, rows, server, redelivery, run.strip())
    choice = CatalogChoice(catalog, role_arn, catalog_id)
    return deliver(replace(world, as_of=now), known, one, given, choice)


def _suit(report: Report, contract: Contract, object: str, partition: Mapping[str, str]) -> None:
    """Raises UsageError for a report of something else than what is published."""
    found = (report.contract, report.version, report.object)
    wanted = (contract.id, contract.version, object)
    if found != wanted:
        raise UsageError(
            f"The report is of {' '.join(found)}, and {' '.join(wanted)} is published.",
            "Check what you publish.",
        )
    checked = [{key.lower(): str(value) for key, value in part} for part in report.partitions]
    given = {key.lower(): value for key, value in partition.items()}
    if checked and not any(part.items() <= given.items() for part in checked):
        raise UsageError(
            f"The report is of the partitions {checked}, and {given} is published.", "Check what you publish."
        )

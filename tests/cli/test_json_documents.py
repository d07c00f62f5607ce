"""What each command prints for machines, byte for byte, as one small registry goes through two weeks of May.

A key that was renamed by mistake, another order, another spelling of an instant: each is a line that differs
in golden/, where `make goldens` writes the files anew.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import golden
from fakes.command import FIND, PROVE, Place, contract, people, proof, replaced

from dq.operations.output_schemas import OUTPUTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOLDEN = Path(__file__).parent / "golden"
ORDERS = "registry/orders.odcs.yaml"
OWNED = {
    "support:": """\
domain: sales
team:
  name: shop
  members: [{username: ana@example.com, role: owner}]
description: {purpose: Every order of the shop.}
support:""",
    "physicalType: bigint}": """\
physicalType: bigint, required: true}
      - name: amount
        logicalType: number
        physicalType: double
        logicalTypeOptions: {minimum: 0}
        quality:
          - {name: few nulls, type: library, metric: nullValues, mustBeLessThan: 10, unit: percent}""",
}
REVENUE = {"support:": "customProperties: [{property: inputs, value: [orders/orders]}]\nsupport:"}
NARROW = {"physicalType: bigint": "physicalType: int"}
BROKEN = {"logicalType: integer": "logicalType: nmber"}
BILLING = """\
contract: orders
major: 1
consumer: {team: billing, account: '210987654321', principal: role/invoices, contact: '#billing'}
purpose: The invoices of each month.
columns: [orders.id, orders.amount]
tags: [finance]
startDate: 2026-01-01
endDate: 2026-12-31
approvers: [ana@example.com]
"""
DAYS = ("2026-05-07", "2026-05-08", "2026-05-10")
BEGIN, MISSED, LATE, LATER = (
    "2026-05-10T12:00:00Z",
    "2026-05-11T07:12:00Z",
    "2026-05-11T09:30:00Z",
    "2026-05-12T07:00:00Z",
)

CONSOLE = ("--channel", "console")


def furnished(folder: Path) -> Place:
    """Two contracts, one subscription, and a lake in which two of four days were delivered in time."""
    place = Place(folder)
    place.put("registry/dq-policy.yaml", "profile: default\n")
    place.put(ORDERS, contract("orders", **OWNED))
    place.put("registry/revenue.odcs.yaml", contract("revenue", **REVENUE))
    place.put("registry/subscriptions/billing.yaml", BILLING)
    place.put("mixed/broken.odcs.yaml", contract("broken", **BROKEN))
    place.put("mixed/orders.odcs.yaml", contract("orders", **OWNED))
    place.put("narrow.odcs.yaml", replaced(contract("orders", version="1.1.0", **OWNED), NARROW))
    place.put("orders.csv", "day,id,amount\n2026-05-10,1,9.5\n2026-05-10,,-3\n2026-05-10,3,\n")
    for day, at in zip(DAYS[:2], ("2026-05-08T05:40:00Z", "2026-05-09T05:50:00Z"), strict=True):
        delivered(place, day, at)
    return place


def delivered(place: Place, day: str, at: str) -> None:
    """One file of a day and its marker, as if they were written at an instant."""
    when = datetime.fromisoformat(at).timestamp()
    folder = place.folder / "lake" / "orders" / f"day={day}"
    folder.mkdir(parents=True)
    # One row alone is shown of those that fail, whatever order Spark reads files in.
    amounts = [9.5, 0.0, None if day == DAYS[-1] else 4.25]
    pq.write_table(pa.table({"id": [1, 2, 3], "amount": amounts}), folder / "part-0.parquet")
    (folder / "_SUCCESS").touch()
    for file in folder.iterdir():
        os.utime(file, (when, when))


def late(place: Place) -> None:
    """What was missing arrives."""
    delivered(place, DAYS[-1], "2026-05-11T09:10:00Z")


def as_repository(place: Place) -> None:
    """The registry is in a Git repository."""
    subprocess.run(["git", "init", "-q", str(place.folder)], check=True)


# In this order, each in the state that those before it have left; a step between them has no document.
STORY: tuple[tuple[str, ...] | Callable[[Place], None], ...] = (
    ("doctor",),
    ("rules",),
    ("validate", "registry"),
    ("validate", "mixed"),
    ("explain", ORDERS),
    ("explain", "cron-invalid"),
    ("diff", ORDERS, "narrow.odcs.yaml"),
    ("sample", ORDERS, "orders.csv"),
    ("schedule next", "0 6 * * *", "--count", "2", "--after", BEGIN),
    ("schedule next", "nonsense"),
    ("schedule explain", ORDERS, "--after", "2026-10-24T00:00:00Z"),
    ("schedule convert", "30 2 * * *", "--tz", "Europe/Berlin", "--after", BEGIN),
    ("schedule convert", "nonsense"),
    ("subscriptions", "registry", "--as-of", BEGIN),
    ("register", "registry"),
    ("register", "registry", "--apply"),
    ("repair", ORDERS),
    ("tables", "registry"),
    ("discover", "lake", "--registry", "registry"),
    people,
    ("erasure find", *FIND, "hits"),
    ("erasure plan", "people", "--identity", "customer.email"),
    ("erasure prove", *PROVE),
    proof,
    ("erasure verify", "proof.json"),
    ("watch", "registry", "--as-of", BEGIN, "--since", "2026-05-08T00:00:00Z", *CONSOLE),
    ("watch", "registry", "--as-of", MISSED, "--channel", "file:lake"),
    ("status", "registry", "--as-of", MISSED),
    ("incidents list", "--as-of", MISSED),
    ("outbox",),
    ("incidents ack", "orders", "--by", "ana", "--as-of", MISSED, *CONSOLE),
    ("incidents silence", "revenue*", "--for", "2h", "--reason", "known", "--by", "ana", "--as-of", MISSED),
    ("incidents silence", "--as-of", MISSED),
    late,
    ("repair", ORDERS, "--apply"),
    ("register", "registry", "--log", "9"),
    ("publish", ORDERS, "--partition", "day=2026-05-10", "--rows", "3", "--as-of", LATE),
    ("publish", "--pending"),
    ("watch", "mixed", "--as-of", LATE, *CONSOLE),
    ("incidents list", "--all", "--as-of", LATE),
    (
        "cycles exclude",
        ORDERS,
        "--due",
        "2026-05-13T06:00:00Z",
        "--by",
        "ana",
        "--reason",
        "holiday",
        "--channel",
        "console",
    ),
    ("watch", "registry", "--as-of", LATER, *CONSOLE),
    ("status", "registry", "--by", "product", "--as-of", LATER),
    ("cycles show", ORDERS, "--partition", "day=2026-05-10", "--as-of", LATER),
    ("cycles replay", "--as-of", LATER),
    ("incidents list", "00083402", "--as-of", LATER),
    ("cycles audit", "registry"),
    ("incidents test", *CONSOLE),
    ("portal build", "site", "registry", "--as-of", LATER),
    ("store upgrade",),
    ("store check",),
    ("store prune", "--as-of", LATER),
    ("store export", "exported"),
    ("store copy", "sqlite:///.dq/store.db", "sqlite:///copy.db"),
    as_repository,
    ("codeowners", "registry", "--check"),
    ("subscribe", "orders", "registry", "--team", "search", "--purpose", "Ranks.", "--from", "2026-05-01"),
)


OF_SPARK: tuple[tuple[str, ...], ...] = (
    ("check", ORDERS, "--partition", "day=2026-05-10", "--as-of", LATER, *CONSOLE),
    ("check", ORDERS, "--all", "--scan", "--as-of", LATER, *CONSOLE),
    ("check", ORDERS, "mixed/broken.odcs.yaml", "--all", "--dry-run", "--as-of", LATER, *CONSOLE),
    ("backtest", ORDERS, "--last", "3"),
    ("propose", ORDERS),
    ("reconcile", ORDERS, "lake/orders", "--key", "id"),
)


def in_order(shown: dict[str, Any]) -> dict[str, Any]:
    """The document with an incident's history sorted: places are told side by side, in any order."""
    steps = shown.get("history")
    if steps is None:
        return shown
    kept = sorted(steps, key=lambda each: (each["revision"], each["kind"], each["detail"]))
    return {**shown, "history": kept}


def without_digests(certificate: dict[str, Any]) -> dict[str, Any]:
    """The certificate without what depends on its salt, and on the times of files."""
    text = re.sub(r"[0-9a-f]{64}", "<digest>", json.dumps(certificate))
    return dict(json.loads(text))


# What differs from run to run or machine to machine, and what docs/reference holds already, each cut down.
CUT: dict[str, Callable[[Any], Any]] = {
    "doctor": lambda parts: [{**part, "ok": "…", "detail": "…", "hint": "…"} for part in parts],
    "erasure prove": without_digests,
    "rules": lambda rules: rules[:3],
    "incidents list": in_order,
}
# What is another one each time: ids at random, and instants of the real clock, which alone have fractions.
OF_THE_DAY = {
    r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}": "<id>",
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00": "<instant>",
}


def printed(place: Place, line: tuple[str, ...]) -> str:
    """The command line, what it prints, and its exit code."""
    name, *rest = line
    ran = place.dq(*name.split(), *rest, "--format", "json")
    assert "Traceback" not in ran.err
    out = ran.out
    if name in CUT:
        out = json.dumps(CUT[name](ran.json), indent=2, ensure_ascii=False) + "\n"
    for pattern, word in OF_THE_DAY.items():
        out = re.sub(pattern, word, out)
    out = out.replace(str(place.folder), "<folder>")
    return f"$ dq {shlex.join((*name.split(), *rest))}\n{out}exit {ran.code}\n"


def by_command(place: Place, story: Sequence[tuple[str, ...] | Callable[[Place], None]]) -> dict[str, str]:
    """What is printed in a story, in a text for each command."""
    documents: dict[str, list[str]] = {}
    for step in story:
        if callable(step):
            step(place)
        else:
            documents.setdefault(step[0], []).append(printed(place, step))
    return {name: "\n".join(texts) for name, texts in documents.items()}


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            if name.startswith(("DQ_", "SLACK_")):
                patch.delenv(name)
        return by_command(furnished(tmp_path_factory.mktemp("documents")), STORY)


@pytest.fixture(scope="module")
def documents_of_spark(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> dict[str, str]:
    place = furnished(tmp_path_factory.mktemp("documents"))
    delivered(place, DAYS[-1], "2026-05-11T05:10:00Z")
    # The session of the tests was started in another folder.
    place.put(ORDERS, contract("orders", **OWNED, **{"path: lake": f"path: {place.folder}/lake"}))
    return by_command(place, OF_SPARK)


@pytest.mark.spark
@pytest.mark.parametrize("name", dict.fromkeys(step[0] for step in OF_SPARK))
def test_a_document_of_spark_is_what_it_was(documents_of_spark: dict[str, str], name: str) -> None:
    golden.compare(GOLDEN / f"{name}.txt", documents_of_spark[name])


@pytest.mark.parametrize("name", dict.fromkeys(step[0] for step in STORY if not callable(step)))
def test_a_document_is_what_it_was(documents: dict[str, str], name: str) -> None:
    golden.compare(GOLDEN / f"{name.replace(' ', '-')}.txt", documents[name])


def test_every_document_is_held() -> None:
    files = {file.stem for file in GOLDEN.glob("*.txt")} - {"help", "options"}

    assert files == {name.replace(" ", "-") for name in (*OUTPUTS, "validate")}

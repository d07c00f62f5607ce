"""A registry of many products in every state that there is, and a store with what became of them.

All of it comes by dq's own doors: contracts as files, ticks of the real watcher as of some instants, results
and receipts by the functions that checks and publishing write them with. Nothing but the clock is made up.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import yaml
from fakes.command import Place
from fakes.portal_products import LONG, NOW, SHORT, MeshProduct, products
from fakes.strangers import TEXTS

from dq.alerts.incident_store import unresolved
from dq.alerts.record import acknowledge, record
from dq.alerts.route import CONSOLE
from dq.contracts import slo as promises
from dq.contracts.check_result import AnsweredBy, CheckResult, Status
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import Severity
from dq.contracts.yaml.parse import parse
from dq.dataquality import results as check_runs
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import EnforcementState, clause_coverage, expected_clauses
from dq.dataquality.clauses.foreign_key import ContractSet
from dq.dataquality.delivery import replay
from dq.dataquality.delivery.cycle_store import Excuse, write_receipt
from dq.store.engine import Store, open_store

# When the watcher looks: once for all that was before, and on the last days when grace is over.
FIRST = NOW - timedelta(days=2)
TICKS = tuple(NOW - timedelta(hours=hours) for hours in (26, 2, 1, 0))
AS_OF = f"{NOW:%FT%TZ}"
SAMPLE = "a-value-of-the-data"


@dataclass(frozen=True)
class PortalMesh(Place):
    """The folder with `registry/`, `lake/` and the store; `products` are what lies in it."""

    products: Sequence[MeshProduct] = ()

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder / '.dq' / 'store.db'}"

    def of(self, mark: str) -> list[MeshProduct]:
        """The products of some mark or fate."""
        return [one for one in self.products if mark in one.marks or mark == one.fate]


def made(folder: Path, of: Sequence[MeshProduct] | None = None) -> PortalMesh:
    """Writes and plays all of it; `folder` becomes the working folder of its commands."""
    mesh = PortalMesh(folder, products() if of is None else of)
    _registry(mesh)
    arrivals = _arrivals(mesh)
    _deliver(mesh, arrivals, FIRST)
    long, short = (f"{NOW - timedelta(days=days, hours=4):%FT%TZ}" for days in (LONG, SHORT))
    _watch(mesh, FIRST - timedelta(minutes=1), "registry/long", "--since", long)
    _watch(mesh, FIRST, "registry", "--since", short)
    store = open_store(mesh.url)
    for at in TICKS:
        _deliver(mesh, arrivals, at)
        if at == TICKS[-1]:
            _change(mesh)
        _watch(mesh, at, "registry")
        if at == TICKS[0]:
            _check(mesh, store, at - timedelta(days=3))
        if at == TICKS[-2]:
            _answer(mesh, store, at)
    for one in mesh.of("taken away")[:3]:
        for day in sorted((mesh.folder / _lake(one)).iterdir())[-1:]:
            (day / "_SUCCESS").unlink()
    for one in mesh.products:
        if one.born:
            _write(mesh, one)
    return mesh


def _registry(mesh: PortalMesh) -> None:
    for one in mesh.products:
        if not one.born:
            _write(mesh, replace(one, text=None))
        if one.fate == "unreadable":
            lake = mesh.folder / _lake(one)
            lake.parent.mkdir(exist_ok=True)
            lake.symlink_to(lake)
    waivers = [
        {
            "rule": "missing-description",
            "contract": id_,
            "path": "",
            "reason": reason,
            "by": "ana",
            "expires": day,
        }
        for id_, reason, day in (
            ("hub", "until the move is done", "2026-06-03"),
            ("ledger", "long", "2027-01-01"),
            ("weekly", TEXTS["img"], "2026-06-01"),
        )
    ]
    mesh.put("registry/dq-policy.yaml", yaml.safe_dump({"waivers": waivers}))
    for place, text in enumerate(("forecasts", TEXTS["script"], TEXTS["link of markdown"])):
        who = {"team": text, "account": "123456789012", "contact": f"#{text}"}
        agreed = {"contract": "hub", "major": 1, "consumer": who, "purpose": text, "startDate": "2026-01-01"}
        mesh.put(f"registry/subscriptions/{place}.yaml", yaml.safe_dump(agreed | {"approvers": [text]}))


def _write(mesh: PortalMesh, one: MeshProduct) -> None:
    # The fast dumper refuses what no UTF-8 can say; the other one escapes it.
    dumper = yaml.SafeDumper if "hostile" in one.marks else yaml.CSafeDumper
    made_of = yaml.dump(one.document, Dumper=dumper, sort_keys=False, width=10_000)
    mesh.put(f"registry/{one.file}", made_of if one.text is None else one.text)


def _lake(one: MeshProduct) -> str:
    servers = one.document.get("servers", [])
    assert isinstance(servers, list)
    return str(servers[0]["path"])


def _arrivals(mesh: PortalMesh) -> Iterator[tuple[datetime, str]]:
    """Every marker, with the instant of its writing, oldest first."""
    found = [
        (at, f"{mesh.folder}/{_lake(one)}/day={day}")
        for one in mesh.products
        if one.fate not in ("", "unreadable")
        for at, day in one.arrivals()
    ]
    return iter(sorted(found))


def _deliver(mesh: PortalMesh, arrivals: Iterator[tuple[datetime, str]], until: datetime) -> None:
    """Writes the markers of what came up to an instant. One too many is taken for one that came early."""
    for at, folder in arrivals:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103  # a third of the time of Path's
        os.close(os.open(f"{folder}/_SUCCESS", os.O_CREAT))
        os.utime(f"{folder}/_SUCCESS", (at.timestamp(),) * 2)
        if at >= until:
            return


def _watch(mesh: PortalMesh, at: datetime, *words: str) -> None:
    """One tick of the real command; it finds what is wrong, and goes on."""
    ran = mesh.dq("watch", *words, "--as-of", f"{at:%FT%TZ}", "--channel", "console")
    assert ran.code in (0, 1, 3), ran.err


def _change(mesh: PortalMesh) -> None:
    """What is broken, removed and retired after it was watched."""
    for one in mesh.products:
        if one.text == "":
            (mesh.folder / "registry" / one.file).unlink()
        elif one.text is not None and not one.born:
            _write(mesh, one)


def _contract(mesh: PortalMesh, one: MeshProduct) -> Contract:
    file = mesh.folder / "registry" / one.file
    parsed = parse(file.read_bytes(), one.file)
    assert parsed.contract is not None, parsed.findings
    return parsed.contract


def _answer(mesh: PortalMesh, store: Store, at: datetime) -> None:
    """People excuse what is planned, and take what is open."""
    for one in mesh.of("excused"):
        slos, _ = promises.read_slos(_contract(mesh, one))
        due = [at.replace(hour=6, minute=0) - timedelta(days=ago) for ago in (0, 1)]
        words = [Excuse(slos[0].key, when, at, "ana", "a planned outage") for when in due]
        with store.write() as tx:
            replay.apply_excuses(
                tx, {slos[0].key: slos[0]}, words, at, lambda tx, event: record(tx, event, [CONSOLE], at)
            )
    with store.write() as tx:
        for incident in unresolved(tx, [one.id for one in mesh.of("acknowledged")]):
            acknowledge(tx, incident.id, TEXTS["img"] if incident.id < "2" else "ben", at)


def _check(mesh: PortalMesh, store: Store, first: datetime) -> None:
    """Three days of results and receipts, as runs and publish steps leave them, for every third product.

    Those with a past have ten days more before them, in which one row of a thousand was NULL.
    """
    for one in mesh.of("checked before"):
        contract = _contract(mesh, one)
        for days in range(10, 0, -1):
            at = first - timedelta(days=days)
            with store.write() as tx:
                check_runs.save_run(
                    tx, contract=contract.key, object="closed", version="1.0.0",
                    scope=f"day={at - timedelta(days=1):%F}", jobs=1, now=at,
                    results=list(_results(contract, contract.objects[0], 1, kept=True)),
                )  # fmt: skip
    for number, one in enumerate(mesh.products):
        if one.fate in ("", "unreadable") or one.born or one.text is not None or number % 3:
            continue
        contract = _contract(mesh, one)
        with store.write() as tx:
            for days in range(3):
                at = first + timedelta(days=days)
                day = f"{at - timedelta(days=1):%F}"
                write_receipt(
                    tx, id=f"{number}-{days}", contract=contract.key, object="closed", partition=f"day={day}",
                    due_at=None, delivered_at=at - timedelta(hours=3), rows=1000 + 10 * days, version="1.0.0",
                )  # fmt: skip
                results = list(_results(contract, contract.objects[0], number + days, kept=not number % 12))
                scope = f"day={day}"
                check_runs.save_run(
                    tx, contract=contract.key, object="closed", version="1.0.0", scope=scope, results=results,
                    jobs=1, now=at,
                )  # fmt: skip
                event = check_runs.verdict(contract.key, "closed", scope, results, at)
                if event is not None:
                    record(tx, event, [CONSOLE], at)


_ENDS = (Status.PASS, Status.PASS, Status.FAIL, Status.PASS, Status.ERROR, Status.SKIPPED)


# None is what an older dq has kept.
_FOUND_IN = (*AnsweredBy, None)


def _results(contract: Contract, one: SchemaObject, turn: int, *, kept: bool) -> Iterator[CheckResult]:
    """A result for each clause that a check enforces; those of some products always pass."""
    clauses = expected_clauses(contract, one, built_in(), ContractSet.from_contracts([contract]))
    for place, account in enumerate(clause_coverage(contract, one, clauses)):
        if account.state is not EnforcementState.ENFORCED or account.reason == "dq watch":
            continue
        status = Status.PASS if kept else _ENDS[(turn + place) % len(_ENDS)]
        counts = account.reason == "row_count"
        yield CheckResult(
            account.reason, account.path, one.name, account.property, status, Severity.ERROR,
            observed=f"{1000 + turn} rows" if counts else f"{turn} of 1000 rows", allowed="as promised",
            message=f"{account.clause} ended as {status}", at=account.at,
            value=1000.0 + turn if counts else turn / 10 if account.reason == "null_values" else None,
            samples=({"id": SAMPLE},) if status is Status.FAIL else (),
            answered_by=_FOUND_IN[(turn + place) % len(_FOUND_IN)] if status is not Status.ERROR else None,
        )  # fmt: skip

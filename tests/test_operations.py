"""A command and its function are one operation: on the same input they say the same."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import chdir, closing
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.command import BEGIN, FIND, MISSED, PROVE, Place, contract, people
from typer.main import get_command

import dq
from dq.cli.main import application, names

# The commands that a test of this file compares with their functions.
COMPARED: set[str] = set()
SUBSCRIPTION = """\
contract: orders
major: 1
consumer: {team: billing, contact: "#billing"}
purpose: Invoices.
columns: [orders.id]
startDate: 2026-01-01
endDate: 2026-06-01
approvers: [ana]
"""


def compares(*commands: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Marks a test as one that compares these commands with their functions."""

    def marked(test: Callable[..., None]) -> Callable[..., None]:
        COMPARED.update(commands)
        return test

    return marked


def _registry(folder: Path) -> Place:
    place = Place(folder)
    place.put("registry/orders.odcs.yaml", contract("orders"))
    return place


def _below(place: Place, document: object) -> Any:
    """A JSON document without the folder that it names files by."""
    return json.loads(json.dumps(document).replace(f"{place.folder}/", ""))


@pytest.fixture
def twins(tmp_path: Path) -> tuple[Place, Place]:
    """Two folders of the same content: one for the command, one for the function."""
    return _registry(tmp_path / "command"), _registry(tmp_path / "function")


@compares("watch")
def test_watch_is_the_command(twins: tuple[Place, Place]) -> None:
    command, function = twins
    for at, code in ((BEGIN, 0), (MISSED, 1), (MISSED, 0)):
        ran = command.dq("watch", "registry", "--as-of", at, "--channel", "console", "--format", "json")
        outcome = dq.watch(
            "registry", channel="console", folder=function.folder, now=datetime.fromisoformat(at)
        )

        assert ran.code == code == outcome.exit_code, ran.all
        assert ran.json == json.loads(json.dumps(outcome.as_dict()))
        for text in outcome.alerts:
            assert text.splitlines()[0] in ran.err


def test_watch_finds_deliveries_below_the_folder(twins: tuple[Place, Place]) -> None:
    command, function = twins
    for place in twins:
        place.dq("watch", "registry", "--as-of", BEGIN)
        place.put("lake/orders/day=2026-05-10/_SUCCESS", "")
        place.put("lake/orders/day=2026-05-10/part-0.parquet", "PAR1")
        for file in place.folder.glob("lake/orders/*/*"):
            os.utime(file, (1_778_472_000, 1_778_472_000))
    ran = command.dq("watch", "registry", "--as-of", MISSED, "--format", "json")
    outcome = dq.watch("registry", folder=function.folder, now=datetime.fromisoformat(MISSED))

    assert ran.json == json.loads(json.dumps(outcome.as_dict()))
    assert [change.after.good for change in outcome.tick.changes] == [True]


def test_watch_says_why_nothing_is_judged(twins: tuple[Place, Place]) -> None:
    command, function = twins
    for at, code in ((MISSED, 0), (BEGIN, 3)):
        ran = command.dq("watch", "registry", "--as-of", at, "--format", "json")
        outcome = dq.watch("registry", folder=function.folder, now=datetime.fromisoformat(at))

        assert ran.code == code == outcome.exit_code, ran.all
        assert ran.json == json.loads(json.dumps(outcome.as_dict()))
    assert outcome.refused is not None


def test_watch_keeps_its_notes(twins: tuple[Place, Place]) -> None:
    command, function = twins
    for place in twins:
        place.put("registry/orders.odcs.yaml", contract("orders", status="draft"))
        place.put("registry/other.yaml", "a: 1\n")
    ran = command.dq("watch", "registry", "--as-of", BEGIN)
    outcome = dq.watch("registry", folder=function.folder, now=datetime.fromisoformat(BEGIN))

    # The function names files by the folder that it was given.
    notes = [text.replace(f"{function.folder}/", "") for text in outcome.notes]
    assert "orders is draft, so its deliveries are not evaluated." in notes
    assert [f"dq: {text}" for text in notes] == ran.err.splitlines()


@compares("register")
def test_register_is_the_command(twins: tuple[Place, Place]) -> None:
    command, function = twins
    for options, arguments, code in (
        (("--check",), {}, 1),
        (("--apply",), {"apply": True}, 0),
        (("--check",), {}, 0),
    ):
        ran = command.dq("register", "registry", "--format", "json", *options)
        outcome = dq.register("registry", folder=function.folder, **arguments)

        assert ran.code == code, ran.all
        assert outcome.exit_code == 0
        assert outcome.pending == (code == 1 or "apply" in arguments)
        assert _below(command, ran.json) == _below(function, outcome.as_dict())


def test_a_plan_is_kept_and_applied_below_the_folder(twins: tuple[Place, Place]) -> None:
    folder = twins[1].folder
    assert dq.register("registry", out="plan.json", folder=folder).exit_code == 0
    assert (folder / "plan.json").is_file()
    outcome = dq.register("registry", apply=True, plan="plan.json", folder=folder)

    assert outcome.exit_code == 0
    assert not dq.register("registry", folder=folder).pending


@pytest.mark.parametrize("name", ["watch", "register", "repair", "audit", "tables", "status"])
def test_no_path_is_a_mistake_in_a_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(dq.DqError, match="no contract given"):
        getattr(dq, name)([], folder=tmp_path)


def test_register_refuses_what_excludes_each_other(twins: tuple[Place, Place]) -> None:
    with pytest.raises(dq.DqError, match="--plan needs --apply"):
        dq.register("registry", plan="plan.json", folder=twins[1].folder)
    with pytest.raises(dq.DqError, match="--prune-limit -1 is below 0"):
        dq.register("registry", prune=True, prune_limit=-1, folder=twins[1].folder)


def test_register_names_what_could_not_be_registered(twins: tuple[Place, Place]) -> None:
    command, function = twins
    for place in twins:
        place.put(
            "registry/items.odcs.yaml",
            contract("items").replace("logicalType: integer", "logicalType: nonsense"),
        )
    ran = command.dq("register", "registry", "--apply", "--prune", "--format", "json")
    outcome = dq.register("registry", apply=True, prune=True, folder=function.folder)

    assert ran.code == 3 == outcome.exit_code
    assert _below(command, ran.json) == _below(function, outcome.as_dict())
    assert outcome.unpruned
    assert outcome.findings


@compares("validate")
def test_validate_is_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = _registry(tmp_path)
    _commit(place)
    place.put(
        "registry/orders.odcs.yaml", contract("orders", **{"physicalType: bigint": "physicalType: int"})
    )
    place.put("registry/items.odcs.yaml", contract("items", status="nothing"))
    monkeypatch.chdir(place.folder)
    for options, arguments in (
        ((), {}),
        (("--base", "HEAD"), {"base": "HEAD"}),
        (("--base", "HEAD", "--mode", "backward"), {"base": "HEAD", "mode": "backward"}),
    ):
        ran = place.dq("validate", "registry", "--format", "json", *options)
        findings = dq.validate("registry", **arguments)

        assert ran.code == int(any(finding.severity.blocks for finding in findings)), ran.all
        assert ran.json["findings"] == json.loads(json.dumps([finding.as_dict() for finding in findings]))


def test_validate_refuses_a_mode_without_a_base(twins: tuple[Place, Place]) -> None:
    with pytest.raises(dq.DqError, match="needs a base"):
        dq.validate(twins[0].folder / "registry", mode="FULL")


@compares("cycles audit", "cycles replay")
def test_audit_and_replay_are_the_commands(twins: tuple[Place, Place]) -> None:
    command, function = twins
    _agree(command, function, "audit", "registry", code=3)
    _agree(command, function, "replay", code=3)
    for place in twins:
        _commit(place)
        for at in (BEGIN, MISSED):
            place.dq("watch", "registry", "--as-of", at)

    _agree(command, function, "audit", "registry", code=0)
    _agree(command, function, "replay", code=0)
    ran = command.dq("replay", "--as-of", MISSED, "--format", "json")
    outcome = dq.replay(folder=function.folder, now=datetime.fromisoformat(MISSED))
    assert ran.json == json.loads(json.dumps(outcome.as_dict()))
    assert ran.json["shown"]


def test_settings_beside_the_store_are_no_matter_for_a_call_without_contracts(tmp_path: Path) -> None:
    place = _registry(tmp_path)
    place.put("dq.toml", "")
    _commit(place)

    assert dq.replay(folder=tmp_path).exit_code == 3 == place.dq("replay").code


@compares("repair")
def test_repair_is_the_command(twins: tuple[Place, Place]) -> None:
    command, function = twins
    for place in twins:
        place.put("registry/dq-policy.yaml", "rules: {}\n")
        for day in ("2026-05-09", "2026-05-10"):
            place.put(f"lake/orders/day={day}/part-0.parquet", "")
        place.dq("register", "registry", "--apply")

    _agree(command, function, "repair", "registry", code=0)
    assert command.dq("repair", "registry", "--check").code == 1
    assert dq.repair("registry", folder=function.folder).pending
    ran = command.dq("repair", "registry", "--apply", "--format", "json")
    outcome = dq.repair("registry", apply=True, folder=function.folder)
    assert _below(command, ran.json) == _below(function, outcome.as_dict())
    assert len(outcome.tables[0].plan.missing) == 2
    assert not dq.repair("registry", folder=function.folder).pending


@pytest.mark.spark
@compares("reconcile")
def test_reconcile_is_the_command(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for name, values in (("left", [1, 2]), ("right", [1, 3])):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"id": [1, 2], "value": values}), tmp_path / name / "part-0.parquet")
    ran = place.dq("reconcile", "left", "right", "--key", "id", "--format", "json")
    result = dq.reconcile("left", "right", key=["id"], folder=tmp_path)

    assert ran.code == 1 == result.exit_code, ran.all
    (document,) = ran.json
    assert document == json.loads(json.dumps({**result.as_dict(), "error": None}))


@compares("erasure find", "erasure plan")
def test_erasure_is_the_commands(twins: tuple[Place, Place]) -> None:
    command, function = twins
    for place in twins:
        people(place)
    ran = command.dq("erasure", "find", *FIND, "hits", "--format", "json")
    outcome = dq.find_erasure(
        "people", keys="keys.txt", identity="customer.email", out="hits", folder=function.folder
    )
    timeless = [
        {**_below(place, document), "started": "", "finished": ""}
        for place, document in ((command, ran.json), (function, outcome.as_dict()))
    ]

    assert timeless[0] == timeless[1]
    assert (outcome.rows, ran.code) == (1, outcome.exit_code)
    planned = command.dq("erasure", "plan", "people", "--identity", "customer.email", "--format", "json")
    plan = dq.plan_erasure("people", identity="customer.email", folder=function.folder)
    assert planned.json == json.loads(json.dumps(plan.as_dict()))


def _without_keys(certificate: Any) -> Any:
    """The tables of a certificate without the digests of keys, which are other ones each time."""
    tables = json.loads(json.dumps(certificate["tables"]))
    for table in tables:
        for file in table["files"]:
            file["hits"] = [{**hit, "key": ""} for hit in file["hits"]]
    return tables


@compares("erasure prove", "erasure verify")
def test_certificates_are_the_commands(tmp_path: Path) -> None:
    place = Place(tmp_path)
    people(place)
    arguments = {"keys": "keys.txt", "identity": "customer.email", "folder": tmp_path}
    proven = place.dq("erasure", "prove", *PROVE)
    outcome = dq.prove_erasure("people", **arguments)
    place.put("proof.json", proven.out)
    verified = place.dq("erasure", "verify", "proof.json", "--registry", "people", "--format", "json")
    verification = dq.verify_erasure("proof.json", registry="people", folder=tmp_path)

    assert _without_keys(proven.json) == _without_keys(json.loads(json.dumps(outcome.as_dict())))
    assert (proven.code, verified.code) == (outcome.exit_code, verification.exit_code) == (1, 1)
    assert verified.json == json.loads(json.dumps(verification.as_dict()))


@compares("tables")
def test_tables_is_the_command(twins: tuple[Place, Place]) -> None:
    command, function = twins
    for place in twins:
        folder = place.folder / "lake/orders/day=2026-05-10"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [1, 2, 3]}), folder / "part-0.parquet")
        os.utime(folder / "part-0.parquet", (1_778_400_000, 1_778_400_000))

    _agree(command, function, "tables", "registry", code=0)
    for place in twins:
        place.put("registry/items.odcs.yaml", contract("items"))
    _agree(command, function, "tables", "registry", code=3)
    assert dq.tables("registry", folder=function.folder).counts.rows == 3


@compares("discover")
def test_discover_is_the_command(twins: tuple[Place, Place]) -> None:
    command, function = twins
    for place in twins:
        folder = place.folder / "lake/orders/day=2026-05-10"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [1, 2, 3]}), folder / "part-0.parquet")
        os.utime(folder / "part-0.parquet", (1_778_400_000, 1_778_400_000))
    ran = command.dq("discover", "lake", "--registry", "registry", "--format", "json")
    outcome = dq.discover("lake", registry="registry", folder=function.folder)

    assert ran.code == 0 == outcome.exit_code, ran.all
    assert ran.json == json.loads(json.dumps(outcome.as_dict()))
    assert [table.contracted.contract.id for table in outcome.tables if table.contracted] == ["orders"]


@compares("export")
@pytest.mark.parametrize("kind", ["odcs", "sql", "jsonschema", "avro", "dbt", "html"])
def test_export_is_the_command(twins: tuple[Place, Place], kind: str) -> None:
    command, function = twins
    ran = command.dq("export", kind, "registry/orders.odcs.yaml")
    outcome = dq.export(kind, function.folder / "registry/orders.odcs.yaml")

    assert ran.code == 0, ran.all
    assert outcome.text.splitlines() == ran.out.splitlines()
    assert [f"{lost}." for lost in outcome.losses] == ran.err.splitlines()


@compares("import")
def test_import_is_the_command(tmp_path: Path) -> None:
    place = Place(tmp_path)
    pq.write_table(pa.table({"id": [1, 2], "name": ["a", "b"]}), tmp_path / "orders.parquet")
    source = str(tmp_path / "orders.parquet")
    ran = place.dq("import", "parquet", source, "--owner", "ana@example.com")
    outcome = dq.import_("parquet", source, owner="ana@example.com")

    assert ran.code == 0, ran.all
    assert outcome.text.splitlines() == ran.out.splitlines()
    assert outcome.columns == 2
    with pytest.raises(dq.DqError, match="has no table 'items'"):
        dq.import_("parquet", source, objects=["items"])


@compares("portal build")
def test_build_portal_is_the_command(twins: tuple[Place, Place]) -> None:
    command, function = twins
    for place in twins:
        place.put("registry/dq-policy.yaml", "rules: {}\n")
    ran = command.dq("portal", "build", "site", "registry", "--as-of", MISSED, "--format", "json")
    outcome = dq.build_portal("site", "registry", folder=function.folder, now=datetime.fromisoformat(MISSED))

    assert ran.code == 0 == outcome.exit_code, ran.all
    assert _below(command, ran.json) == _below(function, outcome.as_dict())
    # The function names files by the folder that it was given.
    folder = f"{function.folder}/".encode()
    command_pages = _pages(command)
    assert {page: text.replace(folder, b"") for page, text in _pages(function).items()} == command_pages
    assert Path("index.html") in command_pages


def _pages(place: Place) -> dict[Path, bytes]:
    site = place.folder / "site"
    return {path.relative_to(site): path.read_bytes() for path in site.rglob("*.html")}


@pytest.fixture
def missed(twins: tuple[Place, Place]) -> tuple[Place, Place]:
    """The same two folders, where one delivery is missing: with an incident in both."""
    for place in twins:
        for at in (BEGIN, MISSED):
            place.dq("watch", "registry", "--as-of", at, "--channel", "console")
    return twins


@compares("status", "incidents list")
def test_status_and_incidents_are_the_commands(missed: tuple[Place, Place]) -> None:
    command, function = missed
    at = datetime.fromisoformat(MISSED)
    ran = command.dq("status", "registry", "--as-of", MISSED, "--format", "json")
    outcome = dq.status("registry", folder=function.folder, now=at)
    assert (ran.code, _json(ran.json)) == (0, _json(outcome.as_dict()))
    ran = command.dq("incidents", "--as-of", MISSED, "--format", "json")
    assert _json(ran.json) == _json(dq.incidents(folder=function.folder, now=at).as_dict())
    [first], [second] = (ran.json["incidents"], dq.incidents(folder=function.folder, now=at).incidents)
    for options, arguments in (
        (("--all",), {"ended": True}),
        (("--contract", "items"), {"contract": "items"}),
        ((first["id"][:8],), {"incident": second.id[:8]}),
    ):
        ran = command.dq("incidents", *options, "--as-of", MISSED, "--format", "json")
        assert _json(ran.json) == _json(dq.incidents(folder=function.folder, now=at, **arguments).as_dict())
    assert ran.json["history"]
    with pytest.raises(dq.DqError, match="no open incident 'nothing'"):
        dq.incidents("nothing", folder=function.folder)


@compares("incidents ack", "incidents silence", "outbox")
def test_what_people_do_to_incidents_is_the_commands(missed: tuple[Place, Place]) -> None:
    command, function = missed
    at = {"folder": function.folder, "now": datetime.fromisoformat(MISSED)}
    words = ("--as-of", MISSED, "--format", "json")
    for state in (True, False):
        ran = command.dq("ack", "orders", "--by", "ana", *words)
        acked = dq.acknowledge("orders", by="ana", **at)
        assert (ran.code, _json(ran.json)) == (acked.exit_code, _json(acked.as_list()))
        assert ran.json[0]["acknowledged"] is state
    assert acked.exit_code == 0

    silence = ("orders", "--for", "2h", "--reason", "the lake moves", "--by", "ana")
    ran = command.dq("silence", *silence, *words)
    begun = dq.silence("orders", length="2h", reason="the lake moves", by="ana", **at)
    assert (ran.code, _json(ran.json)) == (begun.exit_code, _json(begun.as_dict()))
    assert len(begun.incidents) == 1
    assert command.dq("silence", *words).json == _json(dq.silence(**at).as_list())
    ran = command.dq("silence", "orders", "--end", "--by", "ana", *words)
    ended = dq.silence("orders", end=True, by="ana", **at)
    assert (ran.code, _json(ran.json)) == (ended.exit_code, _json(ended.as_list()))
    assert len(ended.silences) == 1

    ran = command.dq("outbox", "--format", "json")
    outbox = dq.outbox(folder=function.folder)
    assert (ran.code, _json(ran.json)) == (outbox.exit_code, _json(outbox.as_list()))
    for call, reason in (
        (lambda: dq.silence("a/b/c/d", length="2h", reason="a", **at), "invalid pattern 'a/b/c/d'"),
        (lambda: dq.silence("orders", length="91d", reason="a", **at), "invalid --for '91d'"),
        (lambda: dq.outbox(dismiss="slack:#a", by="ana", folder=function.folder), "no rejected alerts"),
    ):
        with pytest.raises(dq.DqError, match=reason):
            call()


def test_alerts_of_a_function_are_on_its_outcome(missed: tuple[Place, Place]) -> None:
    command, function = missed
    at = {"folder": function.folder, "now": datetime.fromisoformat(MISSED)}
    ran = command.dq("excuse", "registry", "--due", "2026-05-11T06:00:00Z", "--by", "a", "--reason", "b")
    assert ran.code == 0, ran.all
    outcome = dq.excuse(
        "registry", due=[datetime.fromisoformat("2026-05-11T06:00:00Z")], by="a", reason="b", **at
    )

    [alert] = outcome.alerts
    assert alert.splitlines()[0] in ran.err
    assert "EXCUSED" in alert


@compares("incidents test")
def test_a_test_of_alerts_is_the_command(twins: tuple[Place, Place]) -> None:
    command, function = twins
    ran = command.dq("test-alert", "--channel", "console", "--format", "json")
    outcome = dq.send_test_alert(channel="console", folder=function.folder)
    assert (ran.code, _json(ran.json)) == (outcome.exit_code, _json(outcome.as_list()))
    assert "nothing is broken" in "".join(outcome.alerts)
    ran = command.dq("test-alert", "registry", "--format", "json")
    outcome = dq.send_test_alert("registry", folder=function.folder)
    assert (ran.code, _json(ran.json)) == (outcome.exit_code, _json(outcome.as_list()))
    assert ran.code == 4


@compares("schedule next", "schedule convert", "schedule explain")
def test_schedules_are_the_commands(twins: tuple[Place, Place]) -> None:
    command, function = twins
    start = datetime.fromisoformat(BEGIN)
    for expression in ("30 2 * * *", "0 6 1 * 1", "cron(0 6 15W * ? *)", "nonsense"):
        words = (expression, "--tz", "Europe/Berlin", "--after", BEGIN, "--format", "json")
        for name, call in (("next", dq.next_dues), ("convert", dq.convert_schedule)):
            ran = command.dq("schedule", name, *words)
            outcome = call(expression, timezone="Europe/Berlin", after=start)
            assert (ran.code, _json(ran.json)) == (outcome.exit_code, _json(outcome.as_dict()))
    ran = command.dq("schedule", "explain", "registry/orders.odcs.yaml", "--after", BEGIN, "--format", "json")
    outcome = dq.next_deliveries("registry/orders.odcs.yaml", after=start, folder=function.folder)
    assert (ran.code, _json(ran.json)) == (outcome.exit_code, _json(outcome.as_list()))
    assert len(outcome.schedules[0].cycles) == 10
    with pytest.raises(dq.DqError, match="has no time zone"):
        dq.next_dues("@daily", after=start.replace(tzinfo=None))


@compares("cycles show")
def test_cycle_is_the_command(missed: tuple[Place, Place]) -> None:
    command, function = missed
    contract_file, due = "registry/orders.odcs.yaml", datetime.fromisoformat("2026-05-11T06:00:00Z")
    now = datetime.fromisoformat(MISSED)
    for options, arguments in (
        (("--due", "2026-05-11T06:00:00Z"), {"due": due}),
        (("--partition", "day=2026-05-10", "--around", BEGIN), {"partition": {"day": "2026-05-10"}}),
    ):
        ran = command.dq("cycles", "show", contract_file, *options, "--as-of", MISSED, "--format", "json")
        standing = dq.cycle(function.folder / contract_file, now=now, folder=function.folder, **arguments)
        assert (ran.code, ran.json) == (0, standing.as_dict()), ran.all
        assert ran.json["status"] == "missing"

    both = ("--due", MISSED, "--partition", "day=2026-05-10")
    for options in ((), both, ("--partition", "day")):
        assert command.dq("cycles", "show", contract_file, *options).code == 2


@compares("cycles exclude")
def test_excuse_is_the_command(missed: tuple[Place, Place]) -> None:
    command, function = missed
    due = "2026-05-11T06:00:00Z"
    who = ("--by", "ana", "--reason", "a planned outage")
    named = {"by": "ana", "reason": "a planned outage", "folder": function.folder}
    instant = datetime.fromisoformat(due)
    for options, arguments in (
        (("--due", due), {"due": [instant]}),
        (("--from", due, "--to", due, "--undo"), {"since": instant, "until": instant, "undo": True}),
    ):
        ran = command.dq("excuse", "registry", *options, *who, "--format", "json")
        outcome = dq.excuse("registry", **arguments, **named)
        assert (ran.code, _json(ran.json)) == (outcome.exit_code, _json(outcome.as_list()))
        assert outcome.judged == 1
    for arguments, reason in (
        ({"since": instant}, "--from and --to must be used together"),
        ({"due": [instant], "undo": True}, "nothing to undo"),
        ({"due": [datetime.fromisoformat(BEGIN)]}, "no delivery is due at that time"),
    ):
        with pytest.raises(dq.DqError, match=reason):
            dq.excuse("registry", **arguments, **named)


@compares("rules", "explain", "schema")
def test_what_can_be_found_is_the_commands(twins: tuple[Place, Place]) -> None:
    command, function = twins
    assert command.dq("rules", "--format", "json").json == dq.rules().as_list()
    for what in ("duplicate-property", "column-removed", "registry/orders.odcs.yaml", "registry"):
        ran = command.dq("explain", what, "--format", "json")
        path = function.folder / what
        outcome = dq.explain(path if path.exists() else what)
        assert (ran.code, ran.json) == (outcome.exit_code, _below(function, outcome.as_json()))
    assert outcome.accounts
    for place in twins:
        place.put("registry/items.odcs.yaml", contract("items", **{"logicalType: integer": "logicalType: a"}))
    ran = command.dq("explain", "registry", "--format", "json")
    outcome = dq.explain(function.folder / "registry")
    assert (ran.code, ran.json) == (3, _below(function, outcome.as_json()))
    assert outcome.exit_code == 3
    for of in ("contract", "policy", "status", "store check"):
        assert command.dq("schema", of).json == dq.json_schema(of)
    for call in (lambda: dq.explain("duplicate-propertys"), lambda: dq.json_schema("contracts")):
        with pytest.raises(dq.DqError, match=r"unknown (rule 'duplicate-propertys'|schema 'contracts')\."):
            call()


@compares("emr")
def test_emr_is_the_command(tmp_path: Path) -> None:
    given = {
        "application": "00f1abc",
        "role": "arn:aws:iam::123456789012:role/dq",
        "entry": "s3://lake/dq_submit.py",
        "environment": "s3://lake/dq-env.tar.gz",
        "once": "day=2026-05-10",
    }
    options = [f"--{name}={value}" for name, value in given.items()]
    words = ("check", "contracts/orders.odcs.yaml")
    ran = Place(tmp_path).dq("emr", *options, "--tag", "team=sales", "--", *words)
    assert (ran.code, ran.json) == (0, dq.emr(words, tags={"team": "sales"}, **given))
    with pytest.raises(dq.DqError, match="AWS would reject"):
        dq.emr(words, **{**given, "application": "Orders"})


@compares("doctor")
def test_doctor_is_the_command(twins: tuple[Place, Place]) -> None:
    command, function = twins
    for words, arguments in (((), {}), (("--catalog", "hiv"), {"catalog": "hiv"})):
        ran = command.dq("doctor", *words, "--format", "json")
        outcome = dq.doctor(folder=function.folder, **arguments)
        text = json.dumps(outcome.as_list()).replace(str(function.folder), str(command.folder))
        assert (ran.code, ran.json) == (outcome.exit_code, json.loads(text))
    assert outcome.exit_code == 3


@compares("init", "fmt")
def test_init_and_fmt_are_the_commands(tmp_path: Path) -> None:
    command, function = Place(tmp_path / "command"), Place(tmp_path / "function")
    command.folder.mkdir()
    words = (
        "--id",
        "items",
        "--domain",
        "sales",
        "--owner",
        "a",
        "--channel",
        "#a",
        "--schedule",
        "@daily",
    )
    ran = command.dq("init", "registry", "--tz", "UTC", "--git", *words)
    outcome = dq.init(
        function.folder / "registry", id="items", owner="a", channel="#a", schedule="@daily", git=True
    )
    assert ran.code == 0 == outcome.exit_code, ran.all
    assert [file.name for file in outcome.files] == ["items.odcs.yaml", "dq-policy.yaml"]
    for file in outcome.files:
        twin = command.folder / file.relative_to(function.folder)
        assert twin.read_bytes() == file.read_bytes()
        assert f"Wrote registry/{file.name}." in ran.out
    assert f"to branch {outcome.branch}." in ran.out

    for place in (command, function):
        place.put("registry/orders.odcs.yaml", "version: 1.0.0\nid:   orders\nkind: DataContract\n")
        place.put("registry/broken.odcs.yaml", "kind: DataContract\nid: [\n")
    for options, arguments in ((("--check",), {"check": True}), ((), {}), (("--check",), {"check": True})):
        ran = command.dq("fmt", "registry", *options)
        formatted = dq.fmt(function.folder / "registry", **arguments)
        assert ran.code == 1 == formatted.exit_code
        reasons = [reason.replace(f"{function.folder}/", "") for reason in formatted.refused[0].reasons]
        assert ran.err.splitlines()[:-1] == reasons
        verb = "Would write" if arguments else "Wrote"
        paths = [file.path.replace(f"{function.folder}/", "") for file in formatted.changed]
        assert ran.out.splitlines() == [f"{verb} {path}." for path in paths]
    assert not formatted.changed
    with pytest.raises(dq.DqError, match="already exists"):
        dq.init(function.folder / "registry", id="items")

    for _ in range(2):
        ran = command.dq("init", "project", "--tz", "UTC", "--ci", "gitlab", "--airflow", *words)
        project = dq.init(
            function.folder / "project", id="items", owner="a", channel="#a", schedule="@daily",
            ci="gitlab", airflow=True,
        )  # fmt: skip
        assert ran.code == 0 == project.exit_code, ran.all
        for files, line in ((project.files, "Wrote {}."), (project.existing, "Kept {}, which exists.")):
            names = [file.relative_to(function.folder) for file in files]
            assert [line.format(name) in ran.out for name in names] == [True] * len(names)
    assert (len(project.files), len(project.existing)) == (0, 6)
    with pytest.raises(dq.DqError, match="is not a CI system"):
        dq.init(function.folder / "other", ci="jenkins")


@compares("store upgrade", "store check", "store prune", "store export", "store copy")
def test_what_keeps_the_store_is_the_commands(missed: tuple[Place, Place]) -> None:
    command, function = missed
    folder, at = function.folder, datetime.fromisoformat("2027-08-01T00:00:00Z")
    ran = command.dq("store", "upgrade", "--format", "json")
    assert ran.json == dataclasses.asdict(dq.upgrade_store(folder=folder))
    ran = command.dq("store", "export", "history", "--format", "json")
    assert ran.json["rows"] == dq.export_store(folder / "history", folder=folder)
    for table in ran.json["rows"]:
        assert (folder / "history" / f"{table}.parquet").is_file()
    ran = command.dq("store", "copy", "sqlite:///.dq/store.db", "sqlite:///copy.db", "--format", "json")
    copied = dq.copy_store(f"sqlite:///{folder}/.dq/store.db", f"sqlite:///{folder}/copy.db")
    assert ran.json == {"rows": copied}
    with pytest.raises(dq.DqError, match="is not empty"):
        dq.copy_store(f"sqlite:///{folder}/.dq/store.db", f"sqlite:///{folder}/copy.db")
    with pytest.raises(dq.DqError, match="399d is less than 400 days"):
        dq.prune_store("399d", folder=folder)
    for place, code in ((None, 0), (".dq/store.db", 1)):
        for twin in missed:
            if place is not None:
                with closing(sqlite3.connect(twin.folder / place)) as base, base:
                    base.execute("UPDATE cycle SET status = 'late'")
        ran = command.dq("store", "check", "--format", "json")
        assert (ran.code, ran.json) == (code, {"faults": dq.check_store(folder=folder)}), ran.all
    ran = command.dq("store", "prune", "--as-of", "2027-08-01T00:00:00Z", "--format", "json")
    pruned = dataclasses.asdict(dq.prune_store(folder=folder, now=at))
    assert (ran.code, ran.json) == (0, {**pruned, "before": pruned["before"].isoformat()})


@compares("subscriptions")
def test_subscriptions_is_the_command(twins: tuple[Place, Place]) -> None:
    command, function = twins
    for place in twins:
        place.put("registry/dq-policy.yaml", "rules: {}\n")
        place.put("registry/subscriptions/billing.yaml", SUBSCRIPTION)
        place.put("registry/subscriptions/broken.yaml", "contract: 1\n")
    for options, arguments in (
        ((), {}),
        (("--within", "30d", "--contract", "orders"), {"within": "30d", "contract": "orders"}),
        (("--team", "nobody"), {"team": "nobody"}),
    ):
        ran = command.dq("subscriptions", "registry", "--as-of", MISSED, *options, "--format", "json")
        outcome = dq.list_subscriptions(
            "registry", folder=function.folder, now=datetime.fromisoformat(MISSED), **arguments
        )
        assert (ran.code, ran.json) == (outcome.exit_code, _below(function, outcome.as_dict()))
        assert len(outcome.subscriptions) == (0 if "team" in arguments else 1)
    assert outcome.exit_code == 3


@compares("metrics")
def test_metrics_is_the_command(missed: tuple[Place, Place]) -> None:
    command, function = missed
    ran = command.dq("metrics", "--as-of", MISSED)
    text = dq.metrics(folder=function.folder, now=datetime.fromisoformat(MISSED))
    # What took how long is another number each time.
    duration = re.compile(r"^(dq_metrics_read_duration_seconds|dq_send_latency_seconds\S+) .*$", re.MULTILINE)
    assert (ran.code, duration.sub("", ran.out)) == (0, duration.sub("", text))
    assert "dq_watched_slos 1" in text


@compares("link")
def test_link_is_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "DEFAULT_REGION": "eu-central-1"}
    for name, value in {**environment, "ENDPOINT_URL": "http://127.0.0.1:1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    for table, owner in (("orders", "123456789012"), ("sales.orders", "12345"), ("a.b", "123456789012")):
        ran = Place(tmp_path).dq("link", table, "--owner", owner, "--principal", "arn:aws:iam::1:role/a")
        with pytest.raises(dq.DqError) as raised:
            dq.link(table, owner=owner, principal="arn:aws:iam::1:role/a")
        assert ran.code == raised.value.exit_code
        assert f"dq: {raised.value.message}" in ran.err


@compares("diff")
def test_diff_is_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = _registry(tmp_path)
    place.put("registry/dq-policy.yaml", "rules: {}\n")
    place.put("registry/subscriptions/billing.yaml", SUBSCRIPTION)
    place.put("registry/subscriptions/broken.yaml", "contract: 1\n")
    place.put("new.odcs.yaml", contract("orders", **{"name: id,": "name: number,"}))
    monkeypatch.chdir(place.folder)
    old, new = "registry/orders.odcs.yaml", "new.odcs.yaml"
    day = date(2026, 5, 11)
    for versions, options, arguments in (
        ((new, old), (), {}),
        (
            (old, new),
            ("--mode", "BACKWARD", "--engines", "spark"),
            {"mode": "BACKWARD", "engines": ["spark"]},
        ),
        ((old, new), ("--subscriptions", "registry"), {"subscriptions": "registry"}),
    ):
        ran = place.dq("diff", *versions, "--today", f"{day}", *options, "--format", "json")
        found = dq.diff(*versions, today=day, **arguments)
        assert (ran.code, ran.json) == (int(found.verdict == "break"), found.as_dict()), ran.err
    with pytest.raises(dq.DqError, match="unknown mode"):
        dq.diff(old, new, mode="backwards")
    # A text is of no registry.
    assert dq.diff(old, Path(old).read_text(), today=day).as_dict() == dq.diff(old, old, today=day).as_dict()


@compares("sample")
def test_sample_is_the_command(twins: tuple[Place, Place]) -> None:
    command, _ = twins
    command.put("orders.csv", "day,id\n2026-05-10,1\n2026-05-10,b\n")
    command.put("other.csv", "day;id\n2026-05-10;1\n")
    file = command.folder / "registry/orders.odcs.yaml"
    for options, name, arguments, code in (
        ((), "orders.csv", {}, 1),
        (("--delimiter", ";"), "other.csv", {"delimiter": ";"}, 0),
    ):
        ran = command.dq("sample", "registry/orders.odcs.yaml", name, *options, "--format", "json")
        report = dq.sample(file, command.folder / name, **arguments)
        assert ran.code == code == report.exit_code, ran.all
        assert ran.json == [_below(command, report.as_dict())]


@pytest.fixture
def lakes(twins: tuple[Place, Place]) -> tuple[Place, Place]:
    """The same two folders, with two days of data each, of which the second breaks a rule."""
    for place in twins:
        for day, values in (("2026-05-09", [1, 2]), ("2026-05-10", [3, None])):
            folder = place.folder / f"lake/orders/day={day}"
            folder.mkdir(parents=True)
            pq.write_table(pa.table({"id": pa.array(values, pa.int64())}), folder / "part-0.parquet")
        text = contract("orders", **{"Type: bigint": "Type: bigint, required: true, unique: true"})
        # Spark's working folder is that of the process, and a test before may have begun it.
        at_lake = f"path: {place.folder}/lake/" if place is twins[0] else "path: lake/"
        place.put("registry/orders.odcs.yaml", text.replace("path: lake/", at_lake))
    return twins


@pytest.mark.spark
@compares("check")
def test_check_is_the_command(lakes: tuple[Place, Place]) -> None:
    command, function = lakes
    at = {"folder": function.folder, "now": datetime.fromisoformat(MISSED)}
    words = ("registry", "--as-of", MISSED, "--channel", "console", "--format", "json")
    day = {"day": "2026-05-09"}
    for options, arguments, code in (
        (("--all", "--dry-run"), {"everything": True, "dry_run": True}, 0),
        (("--partition", "day=2026-05-09"), {"partitions": [day]}, 0),
        (("--all",), {"everything": True}, 1),
        (("--all", "--rule", "required"), {"everything": True, "rules": ["required"]}, 1),
    ):
        ran = command.dq("check", *words, *options)
        outcome = dq.check_contracts("registry", channel="console", **arguments, **at)
        assert (ran.code, outcome.exit_code) == (code, code), ran.all
        assert _json(ran.json) == _json(_below(function, outcome.as_list()))
        for alert in outcome.alerts:
            assert alert.splitlines()[0] in ran.err
    assert outcome.results[0].verdict == "failed"
    out = command.folder / "out"
    command.dq("check", *words, "--all", "--results-table", f"{out}/results", "--quarantine", f"{out}/bad")
    outputs = {"results_table": "out/results", "quarantine": "out/bad"}
    dq.check_contracts("registry", channel="console", everything=True, **outputs, **at)
    ran = command.dq("check", *words, "--all", "--clean", f"{out}/clean", "--keep", "newest by day")
    cleaning = {"clean": "out/clean", "keep": "newest by day"}
    outcome = dq.check_contracts("registry", channel="console", everything=True, **cleaning, **at)
    for place, [entry] in ((command, ran.json), (function, outcome.as_list())):
        path = f"{place.folder}/out/clean/orders/orders"
        assert entry["cleaned"] == {"rows": 3, "path": path, "problem": "", "superseded": []}
    with pytest.raises(dq.DqError, match="no effect without"):
        dq.check_contracts("registry", keep="newest by day", **at)
    for output in outputs.values():
        theirs, ours = ([*place.folder.glob(f"{output}/**/*.parquet")] for place in lakes)
        assert len(theirs) == len(ours) > 0, output
    for place in lakes:
        place.put("registry/items.odcs.yaml", contract("items", **{"logicalType: integer": "logicalType: a"}))
    ran = command.dq("check", *words, "--all")
    outcome = dq.check_contracts("registry", channel="console", everything=True, **at)
    assert (ran.code, outcome.exit_code) == (3, 3)
    assert ran.json == _below(function, outcome.as_list())
    assert [_below(function, str(finding)) for finding in outcome.findings] == ran.err.splitlines()[:1]
    with pytest.raises(dq.DqError, match="exclude each other"):
        dq.check_contracts("registry", everything=True, partitions=[day], **at)


@pytest.mark.spark
@compares("backtest")
def test_backtest_is_the_command(lakes: tuple[Place, Place]) -> None:
    command, function = lakes
    for options, arguments, code in (
        ((), {}, 1),
        (("--last", "1", "--object", "orders"), {"last": 1, "object": "orders"}, 1),
        (("--rule", "required"), {"rules": ["required"]}, 1),
        (("--server", "lake", "--parallel", "1"), {"server": "lake", "parallel": 1}, 1),
    ):
        ran = command.dq("backtest", "registry", *options, "--format", "json")
        outcome = dq.backtest_contracts("registry", folder=function.folder, **arguments)
        assert (ran.code, outcome.exit_code) == (code, code), ran.all
        assert _untimed(ran.json) == _untimed(_below(function, outcome.as_list()))
    [past] = outcome.results
    assert len(past.partitions) == 2
    for place in lakes:
        place.put("registry/dq-policy.yaml", "rules: {}\n")
        _commit(place)
        text = (place.folder / "registry/orders.odcs.yaml").read_text()
        limit = "physicalType: bigint, logicalTypeOptions: {maximum: 2}"
        place.put("registry/orders.odcs.yaml", text.replace("physicalType: bigint", limit))
        place.put("registry/items.odcs.yaml", contract("items", **{"logicalType: integer": "logicalType: a"}))
    ran = command.dq("backtest", "registry", "--base", "main", "--format", "json")
    outcome = dq.backtest_contracts("registry", base="main", folder=function.folder)
    assert (ran.code, outcome.exit_code) == (3, 3), ran.all
    assert _untimed(ran.json) == _untimed(_below(function, outcome.as_list()))
    for finding in outcome.findings:
        assert _below(function, str(finding)) in ran.err.splitlines()
    assert [rule.check for past in outcome.results for rule in past.rules] == ["bounds"]
    with pytest.raises(dq.DqError, match="no object 'nothing'"):
        dq.backtest_contracts("registry", object="nothing", folder=function.folder)


@pytest.mark.spark
@compares("propose")
def test_propose_is_the_command(lakes: tuple[Place, Place]) -> None:
    command, function = lakes
    path = "registry/orders.odcs.yaml"
    lake = f"path: {command.folder}/lake/"
    for options, arguments in (
        ((), {}),
        (("--last", "1", "--object", "orders", "--server", "lake"),
         {"last": 1, "object": "orders", "server": "lake"}),
        (("--output", "new.odcs.yaml"), {"output": "new.odcs.yaml"}),
        (("--output", path), {"output": path}),
    ):  # fmt: skip
        ran = command.dq("propose", path, *options, "--format", "json")
        outcome = dq.propose_contract(path, folder=function.folder, **arguments)
        assert ran.code == 0 == outcome.exit_code, ran.all
        assert ran.json == outcome.as_list()
        if output := arguments.get("output"):
            text = (function.folder / output).read_text()
            assert text == outcome.text == (command.folder / output).read_text().replace(lake, "path: lake/")
    assert outcome.is_changed
    ran = command.dq("propose", path)
    outcome = dq.propose_contract(path, folder=function.folder)
    assert ran.out.startswith(outcome.text.replace("path: lake/", lake).rstrip())
    with pytest.raises(dq.DqError, match="already exists"):
        dq.propose_contract(path, output="new.odcs.yaml", folder=function.folder)


@compares("publish")
def test_publish_is_the_command(twins: tuple[Place, Place]) -> None:
    command, function = twins
    for place in twins:
        assert place.dq("register", "registry", "--apply").code == 0
        folder = place.folder / "lake/orders/day=2026-05-10"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [1, 2]}), folder / "part-0.parquet")
    delivery = {"partition": {"day": "2026-05-10"}, "rows": 2, "now": datetime.fromisoformat(MISSED)}
    words = ("--partition", "day=2026-05-10", "--rows", "2", "--as-of", MISSED, "--format", "json")
    for done in (True, False):
        ran = command.dq("publish", "registry/orders.odcs.yaml", *words)
        with chdir(function.folder):
            outcome = dq.publish("registry/orders.odcs.yaml", **delivery)
        assert ran.code == 0 == len(outcome.unsent), ran.all
        event = json.loads(json.dumps(outcome.event.as_json()))
        differing = {"id", "delivery", "location", "catalog"}
        assert {key: value for key, value in event.items() if key not in differing} == {
            key: value for key, value in ran.json.items() if key in event and key not in differing
        }
        assert ran.json["done"] == list(outcome.published.steps)
        assert ran.json.keys() == outcome.as_dict().keys()
        assert bool(ran.json["done"]) is done


@pytest.mark.spark
def test_publish_audits_what_is_staged_as_the_command(
    lakes: tuple[Place, Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    command, function = lakes
    monkeypatch.setenv("DQ_LAKE_ROOTS", f"{command.folder.parent}")
    for place in lakes:
        assert place.dq("register", "registry", "--apply").code == 0
        for run, values in (("bad", [4, None]), ("good", [4, 5])):
            folder = place.folder / f"staged/{run}/day=2026-05-11"
            folder.mkdir(parents=True)
            pq.write_table(pa.table({"id": pa.array(values, pa.int64())}), folder / "part-0.parquet")
    words = ("--partition", "day=2026-05-11", "--as-of", MISSED, "--format", "json")
    now = datetime.fromisoformat(MISSED)

    def publish(run: str) -> dq.Delivered:
        staged = f"{function.folder}/staged/{run}"
        with chdir(function.folder):
            return dq.publish(
                "registry/orders.odcs.yaml", partition={"day": "2026-05-11"}, audit=staged, now=now
            )

    ran = command.dq(
        "publish", "registry/orders.odcs.yaml", "--audit", f"{command.folder}/staged/bad", *words
    )
    with pytest.raises(dq.Violated) as raised:
        publish("bad")
    assert ran.code == 1 == raised.value.exit_code, ran.all
    report = raised.value.report
    assert report is not None
    assert ran.json == json.loads(json.dumps([{**report.as_dict(), "error": None}], default=str))
    [sentence] = raised.value.__notes__
    assert _below(function, sentence) in ran.err.replace(f"{command.folder}/", "")
    for done in (True, False):
        path = f"{command.folder}/staged/good"
        ran = command.dq("publish", "registry/orders.odcs.yaml", "--audit", path, *words)
        outcome = publish("good")
        assert ran.code == 0 == outcome.exit_code, ran.all
        document = outcome.as_dict()
        for key in ("done", "rows", "revision", "repairs", "waiting"):
            assert ran.json[key] == document[key]
        assert outcome.audited is not None
        assert bool(ran.json["done"]) is (outcome.audited.report is not None) is done


def test_publish_sends_what_is_pending_as_the_command(twins: tuple[Place, Place]) -> None:
    command, function = twins
    for place in twins:
        assert place.dq("register", "registry", "--apply").code == 0
        folder = place.folder / "lake/orders/day=2026-05-10"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [1, 2]}), folder / "part-0.parquet")
        notices = place.folder / ".dq/published.jsonl"
        notices.mkdir()
        delivery = ("--partition", "day=2026-05-10", "--as-of", MISSED)
        assert place.dq("publish", "registry/orders.odcs.yaml", *delivery).code == 4
    for code in (4, 0):
        ran = command.dq("publish", "--pending", "--format", "json")
        outcome = dq.publish_pending(folder=function.folder)
        assert ran.code == code == outcome.exit_code, ran.all
        theirs, ours = ran.json, json.loads(json.dumps(outcome.as_dict()))
        for notices in (*theirs["waiting"], *ours["waiting"]):
            del notices["since"]
        assert _below(command, theirs) == _below(function, ours)
        for place in twins:
            if code:
                (place.folder / ".dq/published.jsonl").rmdir()
    assert outcome.sent == 1


# `tests/cli/test_demo.py` and `test_demo_aws.py` compare the demonstrations, which they play for other tests.
@compares("demo")
def test_the_tables_of_the_demonstration_are_those_of_the_command(tmp_path: Path) -> None:
    ran = Place(tmp_path).dq("demo", "--tables", "command")
    tables = dq.demo_tables(tmp_path / "function")
    assert ran.code == 0, ran.all
    lines = [
        f"Wrote command/{table.path.name}: {table.files} file{'' if table.files == 1 else 's'}, "
        f"{table.rows:,} rows."
        for table in tables
    ]
    assert ran.out.splitlines() == lines
    theirs, ours = (
        {
            file.relative_to(tmp_path / name): (file.read_bytes(), file.stat().st_mtime)
            for file in (tmp_path / name).rglob("*.parquet")
        }
        for name in ("command", "function")
    )
    assert len(theirs) == sum(table.files for table in tables)
    assert theirs == ours
    for call in (lambda: dq.demo_tables(tmp_path / "function"), lambda: dq.demo(tmp_path)):
        with pytest.raises(dq.DqError, match="already exists"):
            call()


# Commands that no test above compares with a function, each with the reason.
APART = {
    "portal serve": "serves a folder until it is stopped",
}


def test_each_command_is_compared_with_its_function() -> None:
    root = get_command(application(names()))
    commands = {
        f"{name} {inner}".strip()
        for name, command in root.commands.items()
        for inner in getattr(command, "commands", {"": command})
    }

    assert commands == {*COMPARED, *APART}
    assert not COMPARED & APART.keys()


def _untimed(documents: list[dict[str, object]]) -> list[dict[str, object]]:
    """Documents without the instant at which each was made."""
    return [{key: value for key, value in document.items() if key != "at"} for document in documents]


def _json(document: object) -> Any:
    """A document as JSON has it, in which all ids of incidents are the same."""
    return json.loads(re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "id", json.dumps(document)))


def _agree(command: Place, function: Place, name: str, *paths: str, code: int) -> None:
    """The command's JSON and exit code are those of its function."""
    ran = command.dq(name, *paths, "--format", "json")
    outcome = getattr(dq, name)(*paths, folder=function.folder)

    assert ran.code == code == outcome.exit_code, ran.all
    assert _below(command, ran.json) == _below(function, outcome.as_dict())


def _commit(place: Place) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "a")):
        subprocess.run(["git", *who, *words], cwd=place.folder, check=True, capture_output=True)


@compares("codeowners")
def test_codeowners_is_the_command(tmp_path: Path) -> None:
    command, function = Place(tmp_path / "command"), Place(tmp_path / "function")
    owned = (
        re.sub("(?m)^team:.*\n", "", contract("orders"))
        + "team: {name: sales, members: [{username: ana@example.com, role: owner}]}\n"
    )
    hostile = owned.replace("ana@example.com", "'x\\n* @mallory'").replace("name: sales", "name: 'a b'")
    for place in (command, function):
        place.put("registry/dq-policy.yaml", "{}\n")
        place.put("registry/sales/orders.odcs.yaml", owned)
        place.put("registry/hostile #.odcs.yaml", hostile.replace("id: orders", "id: hostile"))
        place.put("CODEOWNERS", "* @everyone\n")
        subprocess.run(["git", "init", "-q", str(place.folder)], check=True)
    for options, arguments in (
        (("--check",), {"check": True}),
        (("--organization", "acme"), {"organization": "acme"}),
        (("--organization", "acme", "--check"), {"organization": "acme", "check": True}),
    ):
        ran = command.dq("codeowners", "registry", *options, "--format", "json")
        outcome = dq.codeowners("registry", folder=function.folder, **arguments)
        assert ran.code == outcome.exit_code == (1 if options == ("--check",) else 0)
        assert ran.json["changed"] == outcome.changed == (len(options) < 3)
        assert ran.json["notes"] == list(outcome.notes)
        assert "no owner" in outcome.notes[0]
    text = (function.folder / "CODEOWNERS").read_text()
    assert text == (command.folder / "CODEOWNERS").read_text()
    assert text.startswith("* @everyone\n\n# BEGIN dq codeowners")
    assert "\n/registry/sales/orders.odcs.yaml @acme/sales ana@example.com\n" in text
    assert "\n/registry/subscriptions/orders/ @acme/sales ana@example.com\n" in text
    assert "mallory" not in text


@compares("subscribe")
def test_subscribe_is_the_command(tmp_path: Path) -> None:
    command, function = Place(tmp_path / "command"), Place(tmp_path / "function")
    file = "registry/subscriptions/orders/bill-co.yaml"
    for place in (command, function):
        place.put("registry/dq-policy.yaml", "{}\n")
        place.put("registry/orders.odcs.yaml", contract("orders"))
        place.put("notes.txt", "not committed\n")
        folder = str(place.folder)
        subprocess.run(["git", "init", "-q", "-b", "main", folder], check=True)
        for key, value in (("user.name", "Rita"), ("user.email", "rita@example.com")):
            subprocess.run(["git", "-C", folder, "config", key, value], check=True)
        subprocess.run(["git", "-C", folder, "add", "registry"], check=True)
        subprocess.run(["git", "-C", folder, "commit", "-q", "-m", "one"], check=True)
        subprocess.run(["git", "init", "-q", "--bare", f"{folder}-origin"], check=True)
        subprocess.run(["git", "-C", folder, "remote", "add", "origin", f"{folder}-origin"], check=True)
    options = (
        "--team",
        "Bill & Co",
        "--purpose",
        "a: b # c",
        "--account",
        "210987654321",
        "--from",
        "2026-01-01",
        *("--alert-channel", "#billing", "--alert-tool", "slack", "--severity", "error"),
        *("--needs-by", "09:30", "--timezone", "Europe/Berlin"),
    )
    terms = {
        "team": "Bill & Co",
        "purpose": "a: b # c",
        "account": "210987654321",
        "since": date(2026, 1, 1),
        "alerts": {"channel": "#billing", "tool": "slack", "severities": ["error"]},
        "needs": {"by": "09:30", "timezone": "Europe/Berlin"},
    }

    ran = command.dq("subscribe", "orders", "registry", *options, "--open", "--format", "json")
    outcome = dq.subscribe("orders", "registry", folder=function.folder, open_branch=True, **terms)

    assert ran.code == outcome.exit_code == 0, ran.err
    assert {**ran.json, "commit": None} == {**outcome.as_dict(), "commit": None}
    assert outcome.as_dict()["pushed"] is True
    assert "own_accounts" in outcome.approval_needed
    for place in (command, function):
        for repository in (place.folder, f"{place.folder}-origin"):
            git = ["git", "-C", str(repository), "show", f"subscribe/orders-bill-co:{file}"]
            assert subprocess.run(git, capture_output=True, text=True, check=True).stdout == outcome.text
        git = ["git", "-C", str(place.folder), "status", "--porcelain", "--branch"]
        status = subprocess.run(git, capture_output=True, text=True, check=True).stdout
        assert status == "## main\n?? notes.txt\n"
        # The branch tracks the pushed one: a later `git push` needs no more words.
        tracked = [
            "git",
            "-C",
            str(place.folder),
            "rev-parse",
            "--abbrev-ref",
            "subscribe/orders-bill-co@{upstream}",
        ]
        upstream = subprocess.run(tracked, capture_output=True, text=True, check=True).stdout
        assert upstream == "origin/subscribe/orders-bill-co\n"
    # Mistakes, and the file itself.
    for wrong in (("--columns", "orders.nothing"), ("--major", "7"), ("--row-filter", "1; DROP")):
        assert command.dq("subscribe", "orders", "registry", *options, *wrong).code == 2
    assert command.dq("subscribe", "nothing", "registry", *options).code == 2
    assert command.dq("subscribe", "orders", "registry", *options, "--open").code == 2
    assert command.dq("subscribe", "orders", "registry", *options).code == 0
    assert (command.folder / file).read_text() == outcome.text
    assert command.dq("subscribe", "orders", "registry", *options).code == 2

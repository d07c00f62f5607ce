"""What commands print for machines has the form that is published, with every key of it and no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import git
import pytest
import typer.main
from fakes.command import BEGIN, FIND, MISSED, PROVE, Place, contract, people, proof
from jsonschema import Draft202012Validator

from dq.cli.main import application, names
from dq.operations.output_schemas import OUTPUTS, SCHEMAS, json_schema
from dq.store import engine

NARROW = {"physicalType: bigint": "physicalType: int"}


def with_json() -> Iterator[str]:
    """Each command line that takes `--format json`."""
    root: Any = typer.main.get_command(application(names()))
    for name, command in root.commands.items():
        for sub, one in (getattr(command, "commands", None) or {"": command}).items():
            if any("--format" in parameter.opts for parameter in one.params):
                yield f"{name} {sub}".strip()


def test_every_command_that_prints_json_has_its_form() -> None:
    # What 'dq validate' prints was published first, as findings.
    assert sorted(OUTPUTS) == sorted(set(with_json()) - {"validate"})
    assert {"findings", *OUTPUTS} <= SCHEMAS.keys()


def closed(form: Any) -> Any:
    """The form without room for further keys."""
    if isinstance(form, dict):
        inner = {key: closed(value) for key, value in form.items()}
        return {**inner, "additionalProperties": False} if "properties" in form else inner
    return [closed(one) for one in form] if isinstance(form, list) else form


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A registry with a delivery that is missing, and one of which somebody says that it does not count."""
    made = Place(tmp_path_factory.mktemp("outputs"))
    made.put("registry/dq-policy.yaml", "profile: default\n")
    made.put("registry/orders.odcs.yaml", contract("orders"))
    made.put(
        "registry/broken.odcs.yaml", contract("broken", **{"logicalType: integer": "logicalType: nmber"})
    )
    made.put("narrow.odcs.yaml", contract("orders", **NARROW))
    made.put("orders.csv", "day,id\n2026-05-10,x\n")
    made.put("lake/orders/day=2026-05-08/part-0.parquet", "")
    people(made)
    proof(made)
    made.dq("watch", "registry", "--as-of", BEGIN, "--since", "2026-05-08T00:00:00Z", "--channel", "console")
    made.dq("watch", "registry", "--as-of", MISSED, "--channel", "console")
    return made


ORDERS = "registry/orders.odcs.yaml"
LINES = [
    ("doctor",),
    ("rules",),
    ("explain", ORDERS),
    ("explain", "cron-invalid"),
    ("diff", ORDERS, "narrow.odcs.yaml"),
    ("sample", ORDERS, "orders.csv"),
    ("schedule next", "0 6 * * *", "--count", "2"),
    ("schedule next", "nonsense"),
    ("schedule explain", ORDERS),
    ("schedule convert", "30 2 * * *", "--tz", "Europe/Berlin"),
    ("schedule convert", "nonsense"),
    ("register", "registry"),
    ("register", "registry", "--apply"),
    ("repair", ORDERS),
    ("publish", ORDERS, "--partition", "day=2026-05-08", "--as-of", MISSED),
    ("publish", "--pending"),
    ("watch", "registry", "--as-of", "2026-05-12T07:00:00Z", "--channel", "console"),
    ("watch", "registry", "--as-of", BEGIN, "--channel", "console"),
    ("status", "registry", "--as-of", MISSED),
    ("tables", "registry"),
    ("discover", "lake", "--registry", "registry"),
    ("erasure find", *FIND, "hits"),
    ("erasure plan", "people", "--identity", "customer.email"),
    ("erasure prove", *PROVE),
    ("erasure verify", "proof.json"),
    ("erasure verify", "proof.json", "--identity", "customer.phone"),
    ("incidents list", "--as-of", MISSED),
    ("incidents ack", "orders", "--by", "ana", "--as-of", MISSED),
    ("incidents silence", "orders", "--for", "2h", "--reason", "known", "--as-of", MISSED),
    ("incidents silence", "--as-of", MISSED),
    ("outbox",),
    ("incidents test", "--channel", "console"),
    ("cycles exclude", ORDERS, "--due", "2026-05-10T06:00:00Z", "--by", "ana", "--reason", "holiday"),
    ("cycles replay",),
    ("cycles show", ORDERS, "--partition", "day=2026-05-08", "--as-of", MISSED),
    ("cycles audit", "registry"),
    ("subscriptions", "registry"),
    ("codeowners", "registry"),
    ("subscribe", "orders", "registry", "--team", "billing", "--purpose", "Invoices"),
    ("portal build", "site", "registry", "--as-of", MISSED),
    ("store upgrade",),
    ("store check",),
    ("store prune",),
    ("store export", "exported"),
    ("store copy", "sqlite:///.dq/store.db", "sqlite:///copy.db"),
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: " ".join(line)[:60])
def test_what_is_printed_has_the_form(place: Place, line: tuple[str, ...]) -> None:
    name, *rest = line
    if name == "publish":
        place.dq("register", "registry", "--apply")  # also where this test runs alone
    if name == "codeowners":
        git.Repo.init(place.folder).close()

    ran = place.dq(*name.split(), *rest, "--format", "json")

    validator = Draft202012Validator(closed(json_schema(name)))
    assert [f"{one.json_path}: {one.message}" for one in validator.iter_errors(ran.json)] == [], ran.err


def test_every_form_is_tried() -> None:
    assert set(OUTPUTS) - {line[0] for line in LINES} == {"backtest", "check", "propose", "reconcile"}


@pytest.mark.spark
def test_checks_have_their_form(tmp_path: Path, spark: Any) -> None:
    made = Place(tmp_path)
    there = {"path: lake/orders": f"path: {tmp_path}/lake/orders"}
    made.put("orders.odcs.yaml", contract("orders", **there))
    made.put("broken.odcs.yaml", contract("broken", **{"logicalType: integer": "logicalType: nmber"}))
    spark.sql("SELECT 1L AS id, DATE'2026-05-10' AS day").write.partitionBy("day").parquet(
        f"{tmp_path}/lake/orders"
    )

    for more in ((), ("--dry-run",)):
        ran = made.dq("check", ".", "--all", "--format", "json", *more)

        assert len(ran.json) == 2
        assert list(Draft202012Validator(closed(json_schema("check"))).iter_errors(ran.json)) == []


def test_the_store_of_these_tests_is_of_this_dq(place: Place) -> None:
    assert place.dq("store", "upgrade", "--format", "json").json["after"] == engine.head()

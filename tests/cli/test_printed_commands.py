"""Every command that a message tells its reader to run: it exists, and does what the message says."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer.main
import yaml
from fakes.command import BEGIN, MISSED, Place, Ran, contract

from dq.cli.main import application, names, with_default

ROOT = Path(__file__).parents[2]
PACKAGES = (
    *("alerts", "api", "cli", "contracts", "dataquality", "lake"),
    *("operations", "portal", "registry", "store", "validators"),
)
COMMAND = re.compile(r"\bdq((?: --?[a-z][a-z-]*| [a-z][a-z-]*\b(?!\.)|[ =]\{\}|[ =][A-Z.…]+)+)")
FLOW = contract("orders").partition("schema:")[0] + (
    "schema: [{name: orders, properties: [{name: id, logicalType: integer, physicalType: bigint}]}]\n"
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    for name in ("DQ_STORE_URL", "DQ_CONFIG", "SLACK_BOT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    place = Place(tmp_path)
    place.put("registry/orders.odcs.yaml", contract("orders"))
    table = tmp_path / "lake" / "orders" / "day=2026-05-09"
    table.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2, 3]}), table / "part-0.parquet")
    return place


def printed_command(ran: Ran, pattern: str) -> list[str]:
    """Arguments of the one command that matches in what a command printed."""
    (command,) = set(re.findall(pattern, ran.out + ran.err))
    return shlex.split(command)[1:]


# --- each names a command and options that exist


def texts(tree: ast.AST) -> Iterator[str]:
    """String literals that are no docstrings, with {} for what is filled in."""
    documented = (ast.Module, ast.FunctionDef, ast.ClassDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and id(node) not in docstrings | inner:
            yield node.value if isinstance(node.value, str) else ""


def mistake(words: list[str], root: Any) -> str:
    """What the command line would not know among these words, or an empty text."""
    command = root
    for word in words:
        if word.startswith("-"):
            known = {"--help", "--config", "--version"}.union(*(param.opts for param in command.params))
            if word not in known:
                return f"{command.name} has no {word}"
        elif hasattr(command, "commands"):
            if word not in command.commands:
                return f"no command {word}"
            command = command.commands[word]
    return ""


def test_every_command_in_a_message_is_one_of_dq_with_options_that_it_has() -> None:
    root: Any = typer.main.get_command(application(names()))
    seen, mistakes = 0, []
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            for text in texts(ast.parse(file.read_text())):
                for found in COMMAND.findall(text):
                    words = [word for word in re.split("[ =]", found) if re.fullmatch("-{0,2}[a-z-]+", word)]
                    if not words or (not found.startswith(" -") and words[0] not in root.commands):
                        continue
                    seen += 1
                    if wrong := mistake(with_default(words), root):
                        mistakes.append(f"{file.relative_to(ROOT)}: dq{found}: {wrong}")
    assert mistakes == []
    assert seen > 100
    assert (mistake(["watch", "--evry"], root), mistake(["wach"], root)) == (
        "watch has no --evry",
        "no command wach",
    )


# --- and each does what its message says, where it is printed


def test_a_new_contract_is_validated_as_told(place: Place) -> None:
    ran = place.dq("import", "parquet", "lake/orders", "--output", "new one.odcs.yaml")

    checked = place.dq(*printed_command(ran, "  (dq validate .*)"))

    assert (checked.code, "1 contract" in checked.out) == (0, True)


def test_a_folder_that_is_not_a_portal_gets_a_command_that_builds_one(place: Place) -> None:
    build = printed_command(place.dq("portal", "serve", "registry"), "(dq portal build .*)")

    built = place.dq(*build)

    assert built.code == 0, built.err
    assert (place.folder / build[-1] / "products" / "orders" / "index.html").exists()


@pytest.mark.spark
def test_a_json_contract_is_converted_as_told_before_it_takes_rules(place: Place) -> None:
    # A session that other tests have begun takes relative paths from another folder.
    place.put("flow.odcs.yaml", FLOW.replace("lake/orders", str(place.folder / "lake" / "orders")))
    assert place.dq("export", "odcs", "flow.odcs.yaml", "--output", "in.odcs.yaml").code == 0
    written = yaml.safe_load((place.folder / "in.odcs.yaml").read_text())
    place.put("my orders.odcs.json", json.dumps(written, default=str))
    ran = place.dq("propose", "my orders.odcs.json")

    converted = place.dq(*printed_command(ran, "(dq export odcs .*)"))

    assert (ran.code, converted.code) == (2, 0), ran.err + converted.err
    assert place.dq("validate", "NEW.odcs.yaml").code == 0


def test_an_unknown_delivery_is_known_after_the_command_that_is_named(place: Place) -> None:
    ran = place.dq("check", "registry", "--cycle", "2026-05-11T06:00:00Z")
    watch = printed_command(ran, "'(dq watch)'")

    for at in (BEGIN, MISSED):
        place.dq(*watch, "registry", "--as-of", at, "--channel", "console")

    again = place.dq("check", "registry", "--cycle", "2026-05-11T06:00:00Z")
    assert "is missing" in again.err, again.err


def test_what_is_not_in_the_catalog_is_registered_as_told(place: Place) -> None:
    publish = ("publish", "registry/orders.odcs.yaml", "--partition", "day=2026-05-09", "--rows", "3")
    ran = place.dq(*publish)

    register = place.dq(*printed_command(ran, "(dq register --apply)"), "registry")

    assert (ran.code, register.code, place.dq(*publish).code) == (3, 0, 0), ran.err


def test_a_rule_that_does_not_exist_is_looked_up_as_told(place: Place) -> None:
    rules = printed_command(place.dq("explain", "no-such-rule"), "'(dq rules)'")

    assert "missing-owner" in place.dq(*rules).out


SPECIFICATION = """\
dataContractSpecification: 1.1.0
id: flights
info: {title: Flights, version: 1.0.0}
models: {flights: {fields: {id: {type: long}}}}
"""
# A command line; then the commands that its answer names, what its reader adds to each, and what it prints.
ANSWERS: dict[str, tuple[str, list[tuple[str, str, str]]]] = {
    "a product that does not exist": (
        "status registry --product nosuch",
        [("dq status --by product", "", "orders "), ("dq status --by domain", "", "(none)")],
    ),
    "an incident that does not exist": (
        "ack nosuch --by ana",
        [("dq incidents", "", "orders is missing"), ("dq incidents --all", "", "orders is missing")],
    ),
    "a delivery that was never due": (
        "excuse registry --due 2026-05-11T07:00:00Z --by ana --reason x",
        [
            ("dq schedule explain", "registry/orders.odcs.yaml", "06:00 UTC"),
            ("dq status --format json", "", '"due_at": "2026-05-11T06:00:00+00:00"'),
        ],
    ),
    "a message that was not refused": (
        "outbox --dismiss nosuch --by ana",
        [("dq outbox", "", "No undelivered alerts")],
    ),
    "a rule that the contract does not have": (
        "check registry --rule nosuch",
        [("dq explain", "registry/orders.odcs.yaml", "additional_columns")],
    ),
    "a Data Contract Specification": (
        "validate flights.yaml",
        [("dq import dcs FILE --output NEW.odcs.yaml", "", "Wrote NEW.odcs.yaml")],
    ),
    "a folder without contracts": (
        "validate lake",
        [("dq init", "new --id a --domain b --owner c --channel d --schedule '0 6 * * *' --tz UTC", "Wrote")],
    ),
}


@pytest.mark.parametrize("situation", ANSWERS)
def test_the_commands_that_an_answer_names_show_what_it_promises(place: Place, situation: str) -> None:
    asked, commands = ANSWERS[situation]
    place.put("flights.yaml", SPECIFICATION)
    for at in (BEGIN, MISSED):
        place.dq("watch", "registry", "--as-of", at, "--channel", "console")

    answer = place.dq(*shlex.split(asked))

    assert answer.code != 0
    for named, added, expected in commands:
        assert f"'{named}'" in answer.out + answer.err
        ran = place.dq(*shlex.split(f"{named} {added}".replace("FILE", "flights.yaml"))[1:])
        assert (ran.code, expected in ran.out) == (0, True), (named, ran.out[-500:], ran.err)

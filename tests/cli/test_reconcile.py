"""`dq reconcile` on contracts, servers and paths of several formats."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.command import Place
from jsonschema import Draft202012Validator

import dq
from dq.operations.output_schemas import json_schema

pytestmark = pytest.mark.spark

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: eu, type: local, path: eu, format: parquet}
  - {server: us, type: local, path: us, format: parquet}
  - {server: gone, type: local, path: gone, format: parquet}
schema:
  - name: orders
    properties:
      - {name: day, logicalType: date, partitioned: true}
      - {name: order_id, logicalType: integer, physicalType: bigint, primaryKey: true}
      - {name: email, logicalType: string, classification: restricted}
      - {name: amount, logicalType: number, physicalType: "decimal(12,2)"}
"""
DAYS = ("2026-11-20", "2026-11-21", "2026-11-22")


def rows(change: Callable[[int], Decimal] = lambda number: Decimal(0)) -> pa.Table:
    ids = list(range(20))
    amounts = [Decimal(number) + Decimal("0.50") + change(number) for number in ids]
    return pa.table(
        {
            "order_id": ids,
            "email": [f"person{number}@example.com" for number in ids],
            "amount": pa.array(amounts, pa.decimal128(12, 2)),
        }
    )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Two copies: order 7 of the 21st differs, the 22nd is missing in the US."""
    place = Place(tmp_path)
    place.put("orders.odcs.yaml", CONTRACT)
    for server in ("eu", "us"):
        for day in DAYS:
            if (server, day) == ("us", "2026-11-22"):
                continue
            folder = tmp_path / server / f"day={day}"
            folder.mkdir(parents=True)
            is_changed = (server, day) == ("us", "2026-11-21")
            table = rows(lambda number, changed=is_changed: Decimal(changed and number == 7))  # type: ignore[misc]
            pq.write_table(table, folder / "part-0.parquet")
    return place


def test_servers_of_a_contract_by_its_primary_key(place: Place) -> None:
    ran = place.dq("reconcile", "orders.odcs.yaml", "--left-server", "eu", "--right-server", "us")

    assert ran.code == 1, ran.all
    assert ran.out.splitlines() == [
        "orders/orders on eu and orders/orders on us differ.",
        "3 partitions: 1 by one side, 1 by hashes, 1 by rows.",
        "Rows: 20 missing, 0 extra, 1 changed, 0 repeated.",
        "  day=2026-11-21: 1 changed (rows: 20 on the left, 20 on the right)",
        "  day=2026-11-22: 20 missing (rows: 20 on the left, 0 on the right)",
        "  amount (decimal(12,2)) differs in 1 row",
        "  changed  order_id=7: amount 7.5 -> 8.5",
    ]


def test_a_partition_and_a_start_limit_the_rows(place: Place) -> None:
    sides = ("reconcile", "orders.odcs.yaml", "--left-server", "eu", "--right-server", "us")
    same = place.dq(*sides, "--partition", "day=2026-11-20")
    since = place.dq(*sides, "--since", "2026-11-21", "--format", "json")

    assert (same.code, same.out.splitlines()[0]) == (0, "orders/orders on eu and orders/orders on us agree.")
    assert since.code == 1, since.all
    (document,) = since.json
    assert document["decided_by"] == {
        "same files": 0, "one side": 1, "statistics": 0, "hashes": 0, "rows": 1,
    }  # fmt: skip
    assert document["rows"] == {"missing": 20, "extra": 0, "changed": 1, "repeated": 0}


def test_a_summary_is_decided_by_statistics_and_compares_no_rows(place: Place) -> None:
    longer = pa.concat_tables([rows(), rows().slice(0, 1)])
    pq.write_table(longer, place.folder / "us/day=2026-11-20/part-0.parquet")
    ran = place.dq("reconcile", "eu", "us", "--key", "order_id", "--summary")

    assert ran.code == 1, ran.all
    assert ran.out.splitlines()[1:] == [
        "3 partitions: 1 by one side, 1 by statistics, 1 by hashes.",
        "  day=2026-11-20: 20 and 21 rows",
        "  day=2026-11-21: 1 of 20 groups of rows differ",
        "  day=2026-11-22: 20 missing (rows: 20 on the left, 0 on the right)",
    ]


def test_the_same_files_are_not_read(place: Place) -> None:
    file = place.folder / "eu/day=2026-11-21/part-0.parquet"
    content = bytearray(file.read_bytes())
    # Columns that cannot be read, and an intact footer.
    content[4:200] = b"x" * 196
    file.write_bytes(content)
    place.put("copy.odcs.yaml", CONTRACT.replace("id: orders", "id: copy"))
    ran = place.dq(
        "reconcile", "orders.odcs.yaml", "copy.odcs.yaml", "--left-server", "eu", "--right-server", "eu"
    )

    assert (ran.code, ran.out.splitlines()[1:]) == (0, ["Decided by same files."]), ran.all
    shutil.copytree(place.folder / "eu", place.folder / "other")
    assert place.dq("reconcile", "eu", "other", "--key", "order_id").code == 3


def test_another_spelling_of_a_partition_is_the_same_partition(place: Place) -> None:
    for side, hours in (("left", ("07", "9", "10")), ("right", ("7", "09", "10"))):
        for hour in hours:
            folder = place.folder / side / f"hour={hour}"
            folder.mkdir(parents=True)
            pq.write_table(rows(), folder / "part-0.parquet")
    for words in ((), ("--summary",), ("--since", "9"), ("--partition", "hour=7")):
        ran = place.dq("reconcile", "left", "right", "--key", "order_id", *words)
        assert (ran.code, ran.out.splitlines()[0]) == (0, "left and right agree."), ran.all


def test_a_side_without_contract_is_masked_by_the_contract_of_the_other(place: Place) -> None:
    table = rows().set_column(1, "email", pa.array(["secret@example.com"] * 20))
    pq.write_table(table, place.folder / "export.parquet")
    ran = place.dq(
        "reconcile", "orders.odcs.yaml", "export.parquet", "--left-server", "eu", "--ignore", "day",
        "--format", "json", "--write", "out",
    )  # fmt: skip

    assert ran.code == 1, ran.all
    assert "@example.com" not in ran.all
    written = pq.read_table(place.folder / "out/repeated").to_pylist()
    assert {row["right"]["email"] for row in written} == {"***"}


def test_the_same_files_differ_if_a_column_is_compared_with_another(place: Place) -> None:
    ran = place.dq(
        "reconcile", "eu", "eu", "--key", "order_id", "--columns", "order_id", "--rename", "order_id=amount"
    )
    assert (ran.code, "Rows: 60 missing, 60 extra" in ran.out) == (1, True), ran.all


@pytest.mark.parametrize("form", ["csv", "json"])
def test_text_files_get_the_types_of_the_other_side(place: Place, form: str) -> None:
    lines = ["order_id,email,amount"] if form == "csv" else []
    for row in rows().to_pylist():
        row["amount"] = row["amount"] if row["order_id"] != 5 else "five"
        texts = {name: str(value) for name, value in row.items()}
        lines.append(",".join(texts.values()) if form == "csv" else json.dumps(texts))
    place.put(f"export.{form}", "\n".join(lines) + "\n")
    ran = place.dq(
        "reconcile", "orders.odcs.yaml", f"export.{form}", "--left-server", "eu",
        "--partition", "day=2026-11-20", "--ignore", "day", "--format", "json",
    )  # fmt: skip
    # The export has no partitions.
    assert ran.code == 2, ran.all
    shutil.rmtree(place.folder / "us")
    pq.write_table(rows(), place.folder / "orders.parquet")
    ran = place.dq("reconcile", "orders.parquet", f"export.{form}", "--key", "order_id", "--format", "json")

    assert ran.code == 1, ran.all
    (document,) = ran.json
    assert document["rows"] == {"missing": 0, "extra": 0, "changed": 1, "repeated": 0}
    (difference,) = document["differences"]
    assert difference["key"] == {"order_id": 5}
    assert difference["right"] == {"amount": "five"}


def test_all_servers_compares_every_copy_and_says_which_cannot_be_read(place: Place) -> None:
    ran = place.dq("reconcile", "orders.odcs.yaml", "--all-servers", "--format", "json")
    outcome = dq.reconcile_servers(place.folder / "orders.odcs.yaml", folder=place.folder)

    assert ran.code == 3 == outcome.exit_code, ran.all
    assert ran.json == json.loads(json.dumps(outcome.as_list()))
    assert list(Draft202012Validator(json_schema("reconcile")).iter_errors(ran.json)) == []
    copy, gone = ran.json
    assert (copy["right"], copy["agrees"]) == ("orders/orders on us", False)
    assert gone["error"].startswith("eu and gone: ")


def test_differing_rows_are_written_masked(place: Place) -> None:
    sides = ("reconcile", "orders.odcs.yaml", "--left-server", "eu", "--right-server", "us")
    masked = place.dq(*sides, "--write", "masked")
    plain = place.dq(*sides, "--write", "plain", "--unmasked")

    assert (masked.code, plain.code) == (1, 1), masked.all
    assert f"The rows that differ are in {place.folder}/masked." in masked.out
    missing = pq.read_table(place.folder / "masked/missing").to_pylist()
    assert len(missing) == 20
    assert {row["email"] for row in missing} == {"***"}
    (changed,) = pq.read_table(place.folder / "plain/changed").to_pylist()
    assert (changed["left"]["amount"], changed["right"]["amount"]) == (Decimal("7.50"), Decimal("8.50"))
    assert changed["left"]["email"] == "person7@example.com"
    assert "person7@" not in masked.all


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("orders.odcs.yaml",), "has several servers: eu, us, gone"),
        (("orders.odcs.yaml", "--left-server", "eu", "--right-server", "eu"), "both sides are the same"),
        (("eu", "us", "--key", "order"), "unknown column 'order' on the left"),
        (("eu", "us", "--tolerance", "amount"), "invalid --tolerance 'amount': expected NAME=VALUE"),
        (
            ("eu", "us", "--key", "order_id", "--tolerance", "amount=x"),
            "the tolerance 'x' of 'amount' is not",
        ),
        (("eu", "us", "--left-server", "eu"), "is a path, which has no server"),
        (("eu", "us", "--summary", "--write", "out"), "--summary compares no rows to write"),
        (("eu", "us", "--all-servers"), "--all-servers takes one contract"),
    ],
)
def test_invalid_arguments_say_what_is_wrong(place: Place, words: tuple[str, ...], message: str) -> None:
    ran = place.dq("reconcile", *words)

    assert (ran.code, message in ran.err) == (2, True), ran.all


def test_paths_that_are_no_table_are_errors(place: Place) -> None:
    place.put("notes/a.txt", "x")
    for words, message in (
        (("eu", "nowhere"), "nowhere does not exist"),
        (("eu", "notes"), "notes has no file of a known format"),
    ):
        ran = place.dq("reconcile", *words)
        assert (ran.code, message in ran.err) == (3, True), ran.all


RULE = """\
    quality:
      - name: same everywhere
        type: custom
        engine: dq
        implementation: {check: agrees, arguments: {with: {server: us}}}
"""
LEDGER = """\
apiVersion: v3.2.0
kind: DataContract
id: ledger
version: 1.0.0
status: active
servers:
  - {server: eu, type: local, path: ledger, format: parquet}
schema:
  - name: bookings
    properties:
      - {name: booking, logicalType: integer}
      - {name: cents, logicalType: number}
"""


def agreement(place: Place, *options: str, server: str = "eu") -> dict[str, object]:
    """Result of the rule in one run of `dq check`."""
    command = ("check", ".", "--object", "orders", "--server", server, "--rule", "agrees", "--format", "json")
    ran = place.dq(*command, *options)
    (report,) = json.loads(ran.out)
    (result,) = report["results"]
    return {"status": result["status"], "value": result["measure"]["value"], "message": result["message"]}


def put_absolute(place: Place, file: str, text: str) -> None:
    """Put a contract with absolute paths: Spark resolves others in the folder where it was started."""
    place.put(file, text.replace("path: ", f"path: {place.folder}/"))


def open_incidents(place: Place) -> list[list[str]]:
    return [incident["open"] for incident in place.dq("incidents", "--format", "json").json["incidents"]]


def test_a_rule_opens_one_incident_and_the_next_agreement_resolves_it(place: Place) -> None:
    put_absolute(place, "orders.odcs.yaml", CONTRACT + RULE)
    day = ("--partition", "day=2026-11-21")

    assert agreement(place, *day) == {
        "status": "fail",
        "value": 1.0,
        "message": "orders: 1 row differs from orders on us: 1 changed (amount); allowed: exactly 0 rows",
    }
    assert agreement(place, *day)["status"] == "fail"
    assert agreement(place, "--partition", "day=2026-11-20")["status"] == "pass"
    assert open_incidents(place) == [["day=2026-11-21"]]
    assert agreement(place, *day, server="us") == {
        "status": "skipped",
        "value": None,
        "message": "orders: the data of this run is that of orders on us; check another server",
    }

    shutil.rmtree(place.folder / "us" / "day=2026-11-21")
    shutil.copytree(place.folder / "eu" / "day=2026-11-21", place.folder / "us" / "day=2026-11-21")
    assert agreement(place, *day)["status"] == "pass"
    assert open_incidents(place) == []


def test_a_rule_compares_with_another_contract_and_fails_for_a_column_that_it_cannot_compare(
    place: Place,
) -> None:
    other = (
        "{contract: ledger, object: bookings}, key: [order_id],"
        " rename: {order_id: booking, amount: cents}, ignore: [day]"
    )
    rule = RULE.replace("{server: us}", f"{other}, mustBeLessOrEqualTo: 50, unit: percent")
    put_absolute(place, "orders.odcs.yaml", CONTRACT + rule)
    put_absolute(place, "ledger.odcs.yaml", LEDGER)
    (place.folder / "ledger").mkdir()
    shutil.rmtree(place.folder / "eu" / "day=2026-11-21")
    shutil.rmtree(place.folder / "eu" / "day=2026-11-22")
    table = rows().rename_columns(["booking", "email", "cents"])
    pq.write_table(table.slice(2), place.folder / "ledger" / "part-0.parquet")

    assert agreement(place, "--all") == {
        "status": "pass",
        "value": 10.0,
        "message": "orders: 10 % (2 of 20 rows) differ from ledger/bookings: 2 missing there",
    }

    pq.write_table(table.drop_columns(["email"]), place.folder / "ledger" / "part-0.parquet")
    assert agreement(place, "--all") == {
        "status": "fail",
        "value": 0.0,
        "message": "orders: 0 % (0 of 20 rows) differ from ledger/bookings; not compared: email is only on"
        " the left (string); allowed: at most 50 percent of the rows",
    }

    (place.folder / "ledger.odcs.yaml").unlink()
    assert agreement(place, "--all")["status"] == "error"


def test_a_contract_with_errors_is_named_with_all_of_them(place: Place) -> None:
    broken = CONTRACT.replace("logicalType: date", "logicalTyp: date").replace("integer", "integr")
    place.put("broken.odcs.yaml", broken)
    ran = place.dq("reconcile", "broken.odcs.yaml", "--left-server", "eu", "--right-server", "us")

    assert ran.code == 3, ran.all
    lines = ran.err.splitlines()
    assert lines[0] == "dq: broken.odcs.yaml has 2 errors:"
    assert [line.split(": ")[0] for line in lines[1:3]] == [
        "    broken.odcs.yaml:13:21", "    broken.odcs.yaml:14:39",
    ]  # fmt: skip
    assert lines[3] == "    Fix them, then run 'dq validate'."

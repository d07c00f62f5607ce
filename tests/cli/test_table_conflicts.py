"""The gate of a pull request finds a second contract for another team's table, at the newcomer alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fragments.gate import Gated, Scene

from dq.cli.main import run

CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: {id}
version: {version}
status: active
domain: sales
servers:
  - {{server: lake, type: s3, location: '{location}', format: parquet}}
team: {{members: [{{username: ana@example.com, role: owner}}]}}
support:
  - {{channel: "#sales", tool: slack, scope: notifications}}
schema:
  - name: {table}
    description: One row per thing.
    properties:
      - {{name: id, logicalType: integer, physicalType: bigint, required: true, description: Number.}}
"""
PAYMENTS = "registry/pay/payments.odcs.yaml"


def contract(id_: str, location: str, table: str = "", version: str = "1.0.0") -> str:
    return CONTRACT.format(id=id_, location=location, table=table or id_, version=version)


def conflicts(gated: Gated) -> list[tuple[str, str]]:
    """The file and message of each conflict of tables."""
    assert gated.out, gated.err
    return [(one["file"], one["message"]) for one in gated.findings if one["rule"] == "table-conflict"]


@pytest.fixture
def shop(scene: Scene) -> Scene:
    """A registry whose base has the table `sales.payments` in `s3://lake/payments`, and others beside it."""
    scene.git("checkout", "-q", "main")
    scene.write(PAYMENTS, contract("payments", "s3://lake/payments"))
    scene.write("registry/pay/fees.odcs.yaml", contract("fees", "s3://lake/fees"))
    scene.commit("promise payments")
    scene.git("checkout", "-q", "-B", "change")
    return scene


def test_a_contract_for_a_table_that_the_base_has_is_told_and_the_incumbent_is_not(shop: Scene) -> None:
    shop.write("registry/a/new.odcs.yaml", contract("new", "s3://lake/new", "Payments"))
    shop.commit("promise it again")

    found = shop.gate()

    assert found.code == 1
    assert conflicts(found) == [
        (
            "a/new.odcs.yaml",
            "table sales.payments is also used by contract 'payments' (pay/payments.odcs.yaml).",
        )
    ]
    assert {one["line"] for one in found.findings if one["rule"] == "table-conflict"} == {13}


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("s3a://lake/payments/", "s3://lake/payments is also used by"),
        ("s3://lake/payments/eu", "s3://lake/payments/eu is inside s3://lake/payments, the folder of"),
        ("s3://lake/${SUB:-payments}/*", "s3://lake/payments is also used by"),
    ],
)
def test_a_folder_of_another_contract_is_told_however_it_is_spelt(
    shop: Scene, location: str, said: str
) -> None:
    shop.write("registry/a/new.odcs.yaml", contract("new", location))
    shop.commit("promise it again")

    assert conflicts(shop.gate()) == [
        ("a/new.odcs.yaml", f"the folder {said} contract 'payments' (pay/payments.odcs.yaml).")
    ]


def test_a_folder_around_those_of_the_base_is_told_once(shop: Scene) -> None:
    shop.write("registry/a/new.odcs.yaml", contract("new", "s3://lake"))

    assert conflicts(shop.gate()) == [
        (
            "a/new.odcs.yaml",
            "the folder s3://lake/ contains s3://lake/fees, the folder of contract 'fees' "
            "(pay/fees.odcs.yaml); it conflicts with 1 more contract.",
        )
    ]


SPELLINGS = {
    "in flow": "{server: lake, format: parquet, type: s3, location: s3://lake/payments}",
    "in quotes": "{server: lake, format: parquet, type: s3, 'location': \"s3a://lake/payments/\"}",
    "with an escape": '{server: lake, format: parquet, type: s3, location: "s3://lake/pay\\x6dents"}',
    "over lines": "server: lake\n    format: parquet\n    type: s3\n    location: >-\n      s3://lake/payments",
    "with a variable": "{server: lake, format: parquet, type: s3, location: 's3://${B:-lake}/payments'}",
    "of the object": "{server: lake, format: parquet, type: s3, location: 's3://lake/{object}'}",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_incumbent_is_found_however_its_file_spells_the_folder(shop: Scene, spelling: str) -> None:
    text = contract("payments", "x").replace(
        "{server: lake, type: s3, location: 'x', format: parquet}", SPELLINGS[spelling]
    )
    shop.git("checkout", "-q", "main")
    shop.write(PAYMENTS, text)
    shop.commit("spell it otherwise")
    shop.git("checkout", "-q", "-B", "change")
    shop.write("registry/a/new.odcs.yaml", contract("new", "s3://lake/payments"))

    assert [file for file, _ in conflicts(shop.gate())] == ["a/new.odcs.yaml"]


def test_what_the_base_gained_since_the_branch_left_counts(shop: Scene) -> None:
    shop.write("registry/a/new.odcs.yaml", contract("new", "s3://lake/new"))
    shop.commit("promise new")
    shop.git("checkout", "-q", "main")
    shop.write("registry/z/theirs.odcs.yaml", contract("theirs", "s3://lake/theirs", "new"))
    shop.commit("promise it first")
    shop.git("checkout", "-q", "change")

    assert conflicts(shop.gate()) == [
        ("a/new.odcs.yaml", "table sales.new is also used by contract 'theirs' (z/theirs.odcs.yaml).")
    ]


def test_two_newcomers_are_both_told(shop: Scene) -> None:
    shop.write("registry/a/one.odcs.yaml", contract("one", "s3://lake/one", "t"))
    shop.write("registry/a/two.odcs.yaml", contract("two", "s3://lake/two", "t"))

    assert [file for file, _ in conflicts(shop.gate())] == ["a/one.odcs.yaml", "a/two.odcs.yaml"]


def test_an_incumbent_that_changes_beside_the_newcomer_is_not_told(shop: Scene) -> None:
    shop.write(PAYMENTS, contract("payments", "s3://lake/payments2", version="1.0.1"))
    shop.write("registry/a/new.odcs.yaml", contract("new", "s3://lake/new", "payments"))

    assert [file for file, _ in conflicts(shop.gate())] == ["a/new.odcs.yaml"]


def test_what_stays_the_table_of_one_contract_is_no_conflict(shop: Scene) -> None:
    # Renamed, with another version.
    shop.git("mv", PAYMENTS, "registry/pay/renamed.odcs.yaml")
    shop.write("registry/pay/renamed.odcs.yaml", contract("payments", "s3://lake/payments", version="1.1.0"))
    shop.commit("rename it")
    assert conflicts(shop.gate()) == []

    # A new major beside the old one, which takes the table over.
    shop.git("reset", "-q", "--hard", "main")
    shop.write(
        "registry/pay/payments-2.odcs.yaml", contract("payments", "s3://lake/payments", version="2.0.0")
    )
    shop.commit("a new major")
    assert conflicts(shop.gate()) == []


def test_a_table_that_the_incumbent_gives_up_may_be_taken(shop: Scene) -> None:
    shop.write(PAYMENTS, contract("payments", "s3://lake/old", "old_payments", version="2.0.0"))
    shop.write("registry/a/new.odcs.yaml", contract("new", "s3://lake/payments", "payments"))
    shop.commit("hand it over")
    assert conflicts(shop.gate()) == []

    (shop.folder / PAYMENTS).unlink()
    shop.commit("away with it")
    assert conflicts(shop.gate()) == []


def test_a_conflict_that_the_base_has_already_stops_no_branch(shop: Scene) -> None:
    shop.git("checkout", "-q", "main")
    shop.write("registry/a/twin.odcs.yaml", contract("twin", "s3://lake/payments", "payments"))
    shop.commit("a conflict")
    shop.git("checkout", "-q", "-B", "change")
    shop.write(
        PAYMENTS,
        contract("payments", "s3://lake/payments", version="1.0.1").replace("Number.", "The number."),
    )
    assert conflicts(shop.gate()) == []

    shop.write("registry/a/third.odcs.yaml", contract("third", "s3://lake/third", "payments"))
    assert [file for file, _ in conflicts(shop.gate())] == ["a/third.odcs.yaml"]


def test_without_a_base_each_of_the_two_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, id_ in (("a", "payments"), ("b", "billing")):
        (tmp_path / folder).mkdir()
        text = contract(id_, f"s3://lake/{id_}", "payments")
        (tmp_path / folder / f"{id_}.odcs.yaml").write_text(text)

    code = run(["validate", ".", "--format", "json"])

    found = json.loads(capsys.readouterr().out)["findings"]
    assert code == 1
    assert [(one["rule"], one["file"], one["line"]) for one in found] == [
        ("table-conflict", "a/payments.odcs.yaml", 13),
        ("table-conflict", "b/billing.odcs.yaml", 13),
    ]

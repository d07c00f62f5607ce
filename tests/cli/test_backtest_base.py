"""dq backtest --base: only what a branch brings is tested, and said as a pull request shows it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dq.contracts.outcome import ReadError
from dq.dataquality.clauses.foreign_key import ContractSet
from dq.operations.backtest import new_rules
from dq.operations.check import select_objects
from dq.operations.registry_files import load

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: visits
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: '${DQ_LAKE}', format: csv}
schema:
  - name: visits
    quality:
      - {id: enough, metric: rowCount, mustBeGreaterThan: 1}
      - {id: paid, type: sql, query: 'SELECT COUNT(*) FROM {object} WHERE id > 90', mustBe: 0}
    properties:
      - {name: id, logicalType: integer, physicalType: bigint, required: true}
      - name: state
        logicalType: string
        quality:
          - {id: usual, type: custom, engine: dq, implementation: {check: distinctCount, mustBeLessThan: 9}}
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
"""
STATE = "        logicalType: string\n"
ENUM = f"{STATE}        enum: [{{value: open}}, {{value: '@paid|'}}]\n"


def _git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, timeout=300)


@pytest.fixture
def branch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of which HEAD is the base, with a registry and three days beside it."""
    # The session may have begun in another folder.
    monkeypatch.setenv("DQ_LAKE", str(folder / "lake"))
    monkeypatch.setenv("DQ_VARS", "DQ_LAKE")
    (folder / "orders.odcs.yaml").unlink(missing_ok=True)
    (folder / "registry").mkdir()
    (folder / "registry/visits.odcs.yaml").write_text(CONTRACT)
    (folder / "registry/same.odcs.yaml").write_text(CONTRACT.replace("id: visits", "id: same"))
    (folder / ".gitignore").write_text("lake\n")
    _git(folder, "init", "-q", "-b", "main")
    _git(folder, "add", "registry", ".gitignore")
    _git(folder, "commit", "-q", "-m", "base")
    for day, states in {"2026-11-19": "open @paid|", "2026-11-20": "open lost", "2026-11-21": "lost"}.items():
        place = folder / "lake" / f"day={day}"
        place.mkdir(parents=True)
        rows = [f"{at},{state}" for at, state in enumerate(states.split())]
        (place / "visits.csv").write_text("\n".join(["id,state", *rows, ""]))
    return folder


def _new(folder: Path, text: str, *words: str) -> list[str]:
    (folder / "registry/visits.odcs.yaml").write_text(text)
    loaded = load([folder / "registry"], lambda _: None)
    beside = ContractSet.from_contracts(loaded.contracts)
    found = new_rules([folder / "registry"], "main", select_objects(loaded, None), words, beside)
    assert "same" not in {pair[0].id for pair, _ in found}
    return [path for _, paths in found for path in paths]


ROWS, QUERY = CONTRACT.splitlines(keepends=True)[10:12]
MOVED = CONTRACT.replace(ROWS + QUERY, QUERY + ROWS)
MOVED = MOVED.replace("    properties:", "    description: Moved.\n    properties:")
USUAL = "schema[0].properties[1].quality[0]"


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        ("api", "# a comment\napi", []),
        (CONTRACT, MOVED, []),
        ("id: enough", "id: many", []),
        (STATE, ENUM, ["schema[0].properties[1].enum"]),
        ("GreaterThan: 1", "GreaterThan: 2", ["schema[0].quality[0]"]),
        ("mustBe: 0", "mustBe: 0, severity: warning", ["schema[0].quality[1]"]),
        ("id > 90", "id > 91", ["schema[0].quality[1]"]),
        ("mustBeLessThan: 9", "mustBeLessThan: 8", [USUAL]),
        ("check: distinctCount", "check: distinctCount, arguments: {by: id}", [USUAL]),
        ("version: 1.0.0", "version: 2.0.0", []),
    ],
    ids=["comment", "moved", "id", "key", "bound", "severity", "query", "measure", "groups", "major"],
)
def test_a_rule_is_new_where_the_base_does_not_say_the_same(
    branch: Path, before: str, after: str, new: list[str]
) -> None:
    assert _new(branch, CONTRACT.replace(before, after)) == new


def test_all_rules_of_a_new_contract_and_of_a_new_object_are_new(branch: Path) -> None:
    other = CONTRACT.replace("name: visits", "name: calls")

    assert len(_new(branch, CONTRACT.replace("id: visits", "id: calls"))) == len(_new(branch, other)) > 5
    assert _new(branch, other, "row_count") == ["schema[0].quality[0]"]


def test_a_base_that_is_none_is_no_empty_answer(branch: Path) -> None:
    loaded = load([branch / "registry"], lambda _: None)

    with pytest.raises(ReadError):
        new_rules(
            [branch / "registry"], "nowhere", select_objects(loaded, None), (), ContractSet.from_contracts([])
        )


def test_a_branch_without_a_new_rule_needs_no_spark(branch: Path, dq, monkeypatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")

    ran = dq("backtest", "registry", "--base", "main")
    marked = dq("backtest", "registry", "--base", "main", "--format", "markdown")

    assert (ran.code, ran.out) == (0, "No rules added or changed since main.\n")
    assert "no rules tested" in marked.out
    assert dq("backtest", "registry", "--base", "nowhere").code == 3
    assert dq("backtest", "registry", "--format", "githb").code == 2


@pytest.mark.spark
def test_a_pull_request_reads_what_its_rule_would_have_said(branch: Path, dq) -> None:
    (branch / "registry/visits.odcs.yaml").write_text(CONTRACT.replace(STATE, ENUM))
    (branch / "lake/day=2026-11-18").mkdir()
    (branch / "lake/day=2026-11-18/visits.csv").write_text('id,state\n1,"open\n')

    noted = dq("backtest", "registry", "--base", "main", "--format", "github")
    page = dq("backtest", "registry", "--base", "main", "--format", "markdown")

    assert noted.code == page.code == 1
    line, unread = sorted(one for one in noted.out.splitlines() if one.startswith("::"))
    assert "visits: day=2026-11-18 could not be tested: " in unread
    assert line.startswith("::error file=registry/visits.odcs.yaml,line=17,col=")
    assert "state enum: would have failed in 2 of the last 4 partitions: day=2026-11-21 (1 of 1 row)" in line
    assert page.out.startswith("<!-- dq backtest -->\n\n## Backtest: 1 of 1 rules would not have passed\n")
    assert "| ❌ | `registry/visits.odcs.yaml:17` | `state enum` | 2 of 4: day=2026-11-21" in page.out
    assert page.out.count("day=2026-11-18 could not be tested: ") == 1
    # What the contract says notifies nobody.
    assert "`'@paid|'`" in page.out or "@paid|" not in page.out
    assert "row_count" not in page.out + noted.out

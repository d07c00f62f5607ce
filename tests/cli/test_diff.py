"""`dq diff` at the public door: files and references, exit codes, text and JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fragments.compat import document, text
from fragments.registry import Registry

from dq.cli.main import run

BEFORE = text(document({"columns": ["a", "b"]}))
BROKEN = text(document({"columns": ["a"]}, version="2.0.0"))
FINE = text(document({"columns": ["a", "b", "c?"]}, version="1.1.0"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, data in {"before": BEFORE, "broken": BROKEN, "fine": FINE}.items():
        (tmp_path / f"{name}.odcs.yaml").write_bytes(data)
    (tmp_path / "nonsense.odcs.yaml").write_text("schema: [unfinished")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "registry")


def told(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("after", "code"),
    [("before", 0), ("fine", 0), ("broken", 1), ("nonsense", 3), ("absent", 3)],
)
def test_the_exit_code_says_how_it_went(folder: Path, after: str, code: int) -> None:
    assert run(["diff", "before.odcs.yaml", f"{after}.odcs.yaml", "--today", "2026-01-15"]) == code


def test_json_has_the_changes_the_verdict_and_the_version(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["diff", "before.odcs.yaml", "broken.odcs.yaml", "--today", "2026-01-15", "--format", "json"])

    found = told(capsys)

    assert (found["verdict"], found["required_version"]) == ("break", "2.0.0")
    first = found["changes"][0]
    assert (first["rule"], first["path"], first["affected"]) == ("column-removed", "orders.b", ["consumers"])


def test_the_mode_decides(folder: Path) -> None:
    assert run(["diff", "before.odcs.yaml", "broken.odcs.yaml", "--mode", "BACKWARD"]) == 0


def test_text_says_what_broke_whom_it_hits_and_what_to_do(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["diff", "before.odcs.yaml", "broken.odcs.yaml", "--today", "2026-01-15"])

    out = capsys.readouterr().out
    assert out.startswith(
        "orders 1.0.0 → 2.0.0\n"
        "  compatibility   break FORWARD: 1 break\n"
        "  version policy  ok    version 2.0.0 or higher is required\n"
    )
    assert "break column-removed  broken.odcs.yaml:" in out
    assert "Affected: consumers. It needs a major version: 2.0.0." in out
    assert "waivers:" in out


def test_a_version_may_be_read_from_git(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.commit({"orders.odcs.yaml": BEFORE})
    registry.write("orders.odcs.yaml", BROKEN)
    monkeypatch.chdir(registry.folder)

    code = run(["diff", "HEAD:orders.odcs.yaml", "orders.odcs.yaml", "--format", "json"])

    assert (code, told(capsys)["verdict"]) == (1, "break")


def test_a_reference_that_is_nowhere_is_no_answer(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.commit({"orders.odcs.yaml": BEFORE})
    monkeypatch.chdir(registry.folder)

    code = run(["diff", "origin/main:orders.odcs.yaml", "orders.odcs.yaml"])

    assert code == 3
    assert "git fetch origin main" in capsys.readouterr().err


def test_consumers_come_from_a_folder_of_subscriptions(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "subscriptions").mkdir()
    (folder / "subscriptions" / "billing.yaml").write_text(
        "contract: orders\nmajor: 1\nconsumer: {team: billing}\npurpose: Invoices.\nstartDate: 2020-01-01\n"
    )
    arguments = ["diff", "before.odcs.yaml", "broken.odcs.yaml", "--format", "json"]

    run([*arguments, "--subscriptions", "subscriptions"])

    assert "consumer billing" in told(capsys)["changes"][0]["affected"]


NULLABLE = text(document({"columns": ["a", "b"]}, version="2.0.0"))
REQUIRED = text(document({"columns": ["a", "b!"]}))


@pytest.mark.parametrize("policy", ["{}", "compatibility: {unneeded: warning}"])
@pytest.mark.parametrize("column", ["a", "b"])
def test_diff_and_the_gate_agree_on_changes_that_no_subscription_needs(
    registry: Registry,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    policy: str,
    column: str,
) -> None:
    subscription = (
        "contract: orders\nmajor: 1\nconsumer: {team: billing}\npurpose: Invoices.\n"
        f"columns: [orders.{column}]\nstartDate: 2020-01-01\n"
    )
    registry.commit(
        {
            "orders.odcs.yaml": REQUIRED,
            "dq-policy.yaml": policy,
            "subscriptions/billing.yaml": subscription,
        }
    )
    registry.branch("nullable")
    registry.commit({"orders.odcs.yaml": NULLABLE})
    monkeypatch.chdir(registry.folder)

    code = run(["diff", "main:orders.odcs.yaml", "orders.odcs.yaml", "--format", "json"])
    changes = {change["rule"]: change["verdict"] for change in told(capsys)["changes"]}
    run(["validate", ".", "--base", "main", "--format", "json"])
    findings = {finding["rule"]: finding["severity"] for finding in told(capsys)["findings"]}

    is_lowered = column == "a" and policy != "{}"
    assert changes["required-removed"] == ("warn" if is_lowered else "break")
    assert findings["required-removed"] == ("warning" if is_lowered else "error")
    assert code == (0 if is_lowered else 1)


def test_an_invalid_policy_is_a_mistake_of_usage(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "dq-policy.yaml").write_text("compatibility: {unneeded: sometimes}")
    (folder / "subscriptions").mkdir()
    (folder / "subscriptions" / "billing.yaml").write_text(
        "contract: orders\nmajor: 1\nconsumer: {team: billing}\npurpose: Invoices.\nstartDate: 2020-01-01\n"
    )

    assert run(["diff", "before.odcs.yaml", "fine.odcs.yaml"]) == 2
    assert "dq-policy.yaml:1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong", [["--mode", "SIDEWAYS"], ["--today", "soon"], ["--format", "poem"]], ids=lambda one: one[0]
)
def test_an_option_that_cannot_be_understood_is_a_mistake_of_usage(folder: Path, wrong: list[str]) -> None:
    assert run(["diff", "before.odcs.yaml", "fine.odcs.yaml", *wrong]) == 2


ADDED = text(document({"columns": ["a", "b", "c?"]}))
DRAFT = BEFORE.replace(b"status: active", b"status: draft")


def test_a_change_that_breaks_nobody_and_is_not_announced_is_two_verdicts(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "added.odcs.yaml").write_bytes(ADDED)

    assert run(["diff", "before.odcs.yaml", "added.odcs.yaml", "--format", "json"]) == 1
    found = told(capsys)

    assert (found["verdict"], found["compatibility"], found["version_policy"]) == ("break", "ok", "break")
    parts = {one["rule"]: one["concern"] for one in found["changes"]}
    assert parts["version-not-bumped"] == "version policy"
    assert set(parts.values()) == {"version policy", "compatibility"}


def test_a_change_of_a_draft_says_why_it_is_ok(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert b"status: draft" in DRAFT
    (folder / "draft.odcs.yaml").write_bytes(DRAFT)
    (folder / "after.odcs.yaml").write_bytes(BROKEN.replace(b"status: active", b"status: draft"))

    assert run(["diff", "draft.odcs.yaml", "after.odcs.yaml"]) == 0

    out = capsys.readouterr().out
    assert "Breaks no consumers: its status is draft, so it is not in force yet." in out
    assert "compatibility   ok    FORWARD: 1 ok" in out


def test_markdown_has_the_two_verdicts_apart(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "added.odcs.yaml").write_bytes(ADDED)

    run(["diff", "before.odcs.yaml", "added.odcs.yaml", "--format", "markdown"])

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "## `orders` 1.0.0 → 1.0.0"
    assert "### Compatibility: ok (FORWARD: 1 ok)" in lines
    assert "### Version policy: break (version 1.1.0 or higher is required: version-not-bumped)" in lines


def test_markdown_says_what_changed_as_it_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, limit in (("short", 10), ("long", 20)):
        made = document({"columns": [{"name": "a_b", "physicalType": f"varchar({limit})"}]})
        (folder / f"{name}.odcs.yaml").write_bytes(text(made))

    run(["diff", "short.odcs.yaml", "long.odcs.yaml", "--format", "markdown"])

    assert r"a\_b: maximum length increased" in capsys.readouterr().out


def test_a_small_change_beside_a_great_one_says_both_versions(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = text(document({"columns": [{"name": "a", "physicalType": "varchar(10)"}, "b"]}))
    after = text(document({"columns": [{"name": "a", "physicalType": "varchar(20)"}]}, version="2.0.0"))
    (folder / "one.odcs.yaml").write_bytes(before)
    (folder / "two.odcs.yaml").write_bytes(after)

    run(["diff", "one.odcs.yaml", "two.odcs.yaml"])

    out = capsys.readouterr().out
    assert "It needs a minor version, 1.1.0; all changes together need 2.0.0." in out
    assert "It needs a major version: 2.0.0." in out


TERMS = b"""\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - server: lake
    type: local
    path: lake
    format: csv
    customProperties: [{property: csv, vendor: dq, value: {@}}]
schema:
  - name: orders
    properties: [{name: id, logicalType: integer}]
"""


@pytest.mark.parametrize(
    ("terms", "code"), [(b"quote: '\"', header: true", 0), (b"delimiter: ;", 1), (b"quote: none", 1)]
)
def test_other_terms_of_csv_are_another_format_and_the_usual_ones_are_none(
    folder: Path, capsys: pytest.CaptureFixture[str], terms: bytes, code: int
) -> None:
    (folder / "one.odcs.yaml").write_bytes(TERMS.replace(b"@", b""))
    (folder / "two.odcs.yaml").write_bytes(TERMS.replace(b"@", terms))

    found = run(["diff", "one.odcs.yaml", "two.odcs.yaml"])

    assert (found, "server-format-changed" in capsys.readouterr().out) == (code, bool(code))

"""`dq register --catalog glue` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes.flights import FLIGHTS
from fakes.glue import GlueShim

from dq.cli.main import run

GOOD = {
    "version": "1.0.0",
    "description": "Every flight that left.",
    "format": "parquet",
    "id_type": "bigint",
    "comment": "The key.",
    "more": "",
    "server": "s3\n    location: s3://lake/air",
}


@pytest.fixture
def registry(glue: GlueShim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "contracts"
    folder.mkdir()
    (folder / "dq-policy.yaml").write_text("{}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DQ_LAKE_ROOTS", "s3://lake")
    return folder


def write(registry: Path, name: str = "air-flights", **parts: str) -> None:
    text = FLIGHTS.format(**GOOD | parts).replace("id: air-flights", f"id: {name}")
    (registry / f"{name}.odcs.yaml").write_text(text)


def test_a_contract_becomes_a_table_and_the_second_run_writes_nothing(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(registry)

    planned = run(["register", str(registry), "--catalog", "glue", "--check"])
    assert (planned, glue.writes()) == (1, [])
    applied = run(["register", str(registry), "--catalog", "glue", "--apply"])
    with glue.counted() as writes:
        again = run(["register", str(registry), "--catalog", "glue", "--apply", "--check"])

    assert (applied, again, writes) == (0, 0, [])
    assert "Applied 1 of 1 changes." in capsys.readouterr().out


def test_what_glue_would_not_take_is_that_contract_s_finding_and_stops_no_other(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(registry)
    write(registry, "second", id_type="variant", server="s3\n    location: s3://lake/two")

    code = run(["register", str(registry), "--catalog", "glue", "--apply", "--format", "json"])

    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert code == 3
    assert [action["outcome"] for action in said["actions"]] == ["done"]
    (finding,) = said["findings"]
    assert "neither Glue nor Athena supports variant" in json.dumps(finding)
    assert "second.odcs.yaml" in json.dumps(finding)


def test_a_place_that_athena_cannot_read_is_refused_at_the_contract_s_line(
    glue: GlueShim,
    registry: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("DQ_LAKE_ROOTS")
    write(registry, server="local\n    path: data/air\n    format: parquet")

    code = run(["register", str(registry), "--catalog", "glue", "--apply"])

    told = capsys.readouterr().err
    assert code == 3
    assert "air-flights.odcs.yaml:" in told
    assert "is not in S3" in told
    assert glue.writes() == []


def test_an_account_that_cannot_be_reached_is_one_sentence_and_three(
    registry: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(registry)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")

    code = run(["register", str(registry), "--catalog", "glue"])

    captured = capsys.readouterr()
    assert code == 3
    assert "AWS did not answer" in captured.err
    assert "Traceback" not in captured.err
    assert "test" not in captured.err.replace(str(registry.parent), "")


@pytest.mark.parametrize(
    ("name", "value"), [("AWS_ENDPOINT_URL", "glue.example"), ("AWS_METADATA_SERVICE_TIMEOUT", "soon")]
)
def test_a_setting_of_aws_that_is_none_is_a_mistake_and_no_bug(
    registry: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    write(registry)
    monkeypatch.setenv(name, value)

    code = run(["register", str(registry), "--catalog", "glue"])

    assert (code, value in capsys.readouterr().err) == (2, True)


def test_a_checkout_under_another_name_owns_the_same_tables(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (registry / "dq-policy.yaml").write_text("registry: air-contracts\n")
    write(registry)
    run(["register", str(registry), "--catalog", "glue", "--apply"])
    other = registry.rename(registry.parent / "work")

    with glue.counted() as writes:
        code = run(["register", str(other), "--catalog", "glue", "--apply"])

    assert (code, writes) == (0, [])


def test_a_plan_with_a_conflict_is_three(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(registry)
    run(["register", str(registry), "--catalog", "glue", "--apply"])
    (registry / "dq-policy.yaml").write_text("registry: another\n")

    planned = run(["register", str(registry), "--catalog", "glue"])
    checked = run(["register", str(registry), "--catalog", "glue", "--check"])

    assert (planned, checked) == (3, 3)
    assert "belongs to the registry 'contracts'" in capsys.readouterr().out

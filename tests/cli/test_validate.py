"""`dq validate` at the command line: formats, reports into files, and from where files are named."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dq.cli.main import run
from dq.validators import rule_page

BAD = rule_page.document("status: activ\nid: Orders!\n")[0]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Git repository with the registry, its policy and one bad contract in `data/contracts`."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    registry = tmp_path / "data" / "contracts"
    registry.mkdir(parents=True)
    (registry / "dq-policy.yaml").write_text("profile: strict\n")
    (registry / "orders.odcs.yaml").write_text(BAD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_terminal_names_files_from_the_working_folder(repository, capsys):
    assert run(["validate", "data/contracts"]) == 1

    assert capsys.readouterr().out.startswith("data/contracts/orders.odcs.yaml\n")


def test_a_pull_request_names_files_from_the_repository_wherever_one_stands(repository, monkeypatch, capsys):
    monkeypatch.chdir(repository / "data" / "contracts")

    assert run(["validate", "--format", "github"]) == 1

    assert capsys.readouterr().out.startswith("::error file=data/contracts/orders.odcs.yaml,line=")


def test_programs_get_files_from_the_registry(repository, capsys):
    assert run(["validate", "data/contracts", "--format", "json"]) == 1

    assert json.loads(capsys.readouterr().out)["findings"][0]["file"] == "orders.odcs.yaml"


def test_one_run_gives_a_screen_and_several_files(repository, capsys):
    reports = ["sarif=out/dq.sarif", "junit=out/dq.xml", "markdown=summary.md"]

    code = run(["validate", "data/contracts", *(word for one in reports for word in ("--report", one))])

    assert code == 1
    assert "error status-unknown: " in capsys.readouterr().out
    assert len(json.loads(Path("out/dq.sarif").read_text())["runs"][0]["results"]) == 2
    assert ElementTree.parse("out/dq.xml").getroot().get("failures") == "2"
    assert "2 errors in 1 contract" in Path("summary.md").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--format", "sarf"], "unknown report format 'sarf'.\n    Did you mean 'sarif'?"),
        (["--report", "sarif"], "--report sarif has no file.\n    Use --report sarif=FILE."),
        (["--report", "html=x"], "unknown report format 'html'.\n    Choose one of github, "),
        (["--report", "sarif=data"], "the report data cannot be written: Is a directory."),
    ],
)
def test_a_report_that_cannot_be_made_is_a_usage_error(repository, capsys, words, said):
    assert run(["validate", "data/contracts", *words]) == 2

    assert said in capsys.readouterr().err


def test_the_help_lists_the_formats(capsys):
    run(["validate", "--help"])

    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "Output format: github, json, junit, markdown, sarif, text." in shown


def test_the_policy_that_a_shell_names_with_the_contracts_is_the_policy(repository, capsys):
    folder = repository / "data" / "contracts"
    named = sorted(str(one) for one in folder.glob("*.yaml"))
    assert len(named) == 2

    assert run(["validate", *named, "--format", "json"]) == 1
    assert {one["file"] for one in json.loads(capsys.readouterr().out)["findings"]} == {"orders.odcs.yaml"}
    assert run(["validate", str(folder / "dq-policy.yaml")]) == 0
    assert "0 contracts" in capsys.readouterr().out
    (folder / "dq-policy.yaml").write_text("profile: [strict\n")
    assert run(["validate", str(folder / "dq-policy.yaml")]) == 2
    assert "dq-policy.yaml:" in capsys.readouterr().err

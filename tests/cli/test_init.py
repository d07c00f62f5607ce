"""`dq init` writes a contract that passes, whatever is answered, or says which answer cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dq.cli.main import run
from dq.contracts.yaml.formatting import Formatted, formatted
from dq.contracts.yaml.parse import parse

ANSWERS = {
    "--id": "orders", "--domain": "sales", "--owner": "ana@example.com", "--channel": "#sales",
    "--schedule": "0 6 * * *", "--tz": "UTC",
}  # fmt: skip


def init(folder: Path, **flags: str) -> int:
    given = ANSWERS | {f"--{name}": value for name, value in flags.items()}
    return run(["init", str(folder), *(word for pair in given.items() for word in pair)])


COMBINATIONS = {
    "a folder": {},
    "a folder by its object": {"location": "/data/lake/{object}"},
    "S3": {"location": "s3://lake/sales/{object}"},
    "Hadoop's name of S3": {"location": "s3a://lake/sales/{object}"},
    "Azure": {"location": "abfss://lake@sales.dfs.core.windows.net/{object}"},
    "every quarter of an hour": {"schedule": "*/15 * * * *"},
    "every hour on S3": {"schedule": "5 * * * *", "location": "s3://lake/{object}"},
    "twice a day": {"schedule": "0 6,18 * * *"},
    "on weekdays in Berlin": {"schedule": "30 7 * * 1-5", "tz": "Europe/Berlin"},
    "once a week": {"schedule": "0 6 * * 1"},
    "once a month on S3": {"schedule": "0 6 1 * *", "tz": "America/New_York", "location": "s3://lake/x"},
    "words that YAML reads as something else": {
        "id": "no", "domain": "yes", "owner": "1.10", "channel": "2026-01-01", "location": "null",
    },
    "text that means something in YAML": {
        "domain": "a: b # c", "owner": "{x}", "channel": "0x1F", "location": "- 'lake'/{object}",
    },
}  # fmt: skip


@pytest.mark.parametrize("flags", COMBINATIONS.values(), ids=COMBINATIONS)
def test_what_is_written_passes_and_is_in_canonical_form(tmp_path, capsys, flags):
    assert init(tmp_path, **flags) == 0
    written = tmp_path / f"{flags.get('id', 'orders')}.odcs.yaml"

    for profile in ("default", "strict"):
        (tmp_path / "dq-policy.yaml").write_text(f"profile: {profile}\n")
        capsys.readouterr()
        assert run(["validate", str(tmp_path)]) == 0
        assert capsys.readouterr().out == "1 contract, no findings.\n"
    made = formatted(written.read_bytes(), written.name)
    assert isinstance(made, Formatted)
    assert made.data == written.read_bytes()


def test_the_answers_are_in_the_contract(tmp_path):
    init(tmp_path, domain="a: b", owner="yes", channel="#x-y", location="s3://lake/{object}", tz="Asia/Tokyo")

    contract = parse((tmp_path / "orders.odcs.yaml").read_bytes(), "x").contract
    assert contract is not None
    assert (contract.domain, contract.members()[0].username) == ("a: b", "yes")
    assert contract.support[0].channel == "#x-y"
    assert (contract.servers[0].type, contract.servers[0].get("location")) == ("s3", "s3://lake/{object}")
    assert contract.sla_properties[0].schedule == "0 6 * * *"


def test_the_policy_that_is_there_is_not_overwritten(tmp_path):
    (tmp_path / "dq-policy.yaml").write_text("profile: strict\n")

    assert init(tmp_path) == 0

    assert (tmp_path / "dq-policy.yaml").read_text() == "profile: strict\n"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"id": "Orders"}, "invalid id 'Orders'."),
        ({"schedule": "0 30 * * *"}, "hour"),
        ({"tz": "Mars"}, "Mars"),
        ({"location": "gs://lake"}, "dq init does not support gs://."),
        ({"schedule": "30 2 * * *", "tz": "Europe/Berlin"}, "a contract with these answers is invalid"),
    ],
)
def test_an_answer_that_cannot_pass_is_refused_and_nothing_is_written(tmp_path, capsys, flags, said):
    assert init(tmp_path, **flags) == 2

    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_contract_that_is_there_is_not_overwritten(tmp_path, capsys):
    (tmp_path / "orders.odcs.yaml").write_text("mine")

    assert init(tmp_path) == 2

    assert (tmp_path / "orders.odcs.yaml").read_text() == "mine"


def test_what_the_flags_do_not_say_is_asked(tmp_path):
    dq = Path(sys.executable).with_name("dq")

    done = subprocess.run(
        [dq, "init", "registry", "--tz", "UTC"],
        cwd=tmp_path, input="visits\nweb\n\n#web\n0 7 * * *\n", capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    text = (tmp_path / "registry" / "visits.odcs.yaml").read_text()
    assert "domain: web\n" in text
    assert "username: you@example.com\n" in text
    assert 'schedule: "0 7 * * *"\n' in text


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout


def test_a_new_registry_is_a_repository_whose_main_a_branch_is_compared_with(tmp_path, capsys, monkeypatch):
    for name, value in {"GIT_AUTHOR_NAME": "Ana", "GIT_AUTHOR_EMAIL": "ana@example.com"}.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "new registry"

    assert run(["init", str(folder), "--git", *(word for pair in ANSWERS.items() for word in pair)]) == 0

    assert git(folder, "log", "--format=%an <%ae> %s", "main") == (
        "Ana <ana@example.com> registry: add the contract of orders\n"
    )
    assert git(folder, "ls-files").split() == ["dq-policy.yaml", "orders.odcs.yaml"]
    assert git(folder, "status", "--porcelain") == ""
    contract = folder / "orders.odcs.yaml"
    contract.write_text(contract.read_text().replace("version: 0.1.0", "version: 0.2.0"))
    capsys.readouterr()
    assert run(["validate", str(folder), "--base", "main"]) == 0
    assert "Version policy: ok" in capsys.readouterr().err


def test_no_repository_is_made_inside_of_another_or_elsewhere(tmp_path, capsys, monkeypatch):
    subprocess.run(["git", "init", "-q", str(tmp_path / "around")], check=True)
    words = ["--git", *(word for pair in ANSWERS.items() for word in pair)]

    assert run(["init", str(tmp_path / "around" / "registry"), *words]) == 2
    assert f"is already in the Git repository {tmp_path / 'around'}" in capsys.readouterr().err
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "around" / ".git"))
    assert run(["init", str(tmp_path / "registry"), *words]) == 2
    assert "Unset GIT_DIR" in capsys.readouterr().err
    assert not (tmp_path / "around" / "registry").exists()
    assert not (tmp_path / "registry").exists()


def test_a_hook_that_refuses_the_commit_is_told_in_a_sentence(tmp_path, capsys, monkeypatch):
    hook = tmp_path / "templates" / "hooks" / "pre-commit"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\necho 'sign your work' >&2\nexit 1\n")
    hook.chmod(0o755)
    setting = {"COUNT": "1", "KEY_0": "init.templateDir", "VALUE_0": str(tmp_path / "templates")}
    for name, value in setting.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    words = ["--git", *(word for pair in ANSWERS.items() for word in pair)]

    assert run(["init", str(tmp_path / "registry"), *words]) == 3

    told = capsys.readouterr().err
    assert "Git could not commit" in told
    assert "sign your work" in told
    assert "commit them yourself" in told
    assert (tmp_path / "registry" / "orders.odcs.yaml").exists()


def test_without_git_no_file_is_written_and_what_is_missing_is_said(tmp_path):
    words = ["init", "registry", "--git", *(word for pair in ANSWERS.items() for word in pair)]

    ran = subprocess.run(
        [Path(sys.executable).with_name("dq"), *words],
        cwd=tmp_path, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (ran.returncode, "Install Git" in ran.stderr, "Traceback" in ran.stderr) == (2, True, False), ran
    assert not (tmp_path / "registry").exists()

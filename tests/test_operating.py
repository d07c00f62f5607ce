"""The files to run dq by: every command in them is one of dq, and every name in them is there."""

from __future__ import annotations

import configparser
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from dq.cli.main import application

ROOT = Path(__file__).parent.parent
KIT = ROOT / "examples" / "operating"


def units() -> dict[str, configparser.ConfigParser]:
    made = {}
    for file in KIT.glob("dq-*"):
        made[file.name] = configparser.ConfigParser(interpolation=None, strict=True)
        made[file.name].optionxform = str  # type: ignore[method-assign]  # names of systemd have capitals
        made[file.name].read_string(file.read_text())
    return made


def commands() -> dict[str, list[str]]:
    """Each command line of dq in the kit, by where it stands."""
    found = {}
    for name, unit in units().items():
        if "Service" in unit:
            found[name] = shlex.split(unit["Service"]["ExecStart"])[1:]
    for line in (KIT / "crontab").read_text().splitlines():
        if not line.startswith("#"):
            inner = re.search(r"/opt/dq/bin/dq (.*?) >>", line)
            assert inner is not None, line
            found[f"crontab {inner[1]}"] = shlex.split(inner[1])
    compose = yaml.safe_load((KIT / "compose.yaml").read_text())
    found["compose"] = compose["services"]["watcher"]["command"]
    shell = job()["containers"][0]["command"]
    assert shell[:2] == ["sh", "-c"]
    found["cronjob"] = shlex.split(shell[2].partition("||")[0])[1:]
    return found


def job() -> dict[str, list[dict[str, list[str]]]]:
    made = yaml.safe_load((KIT / "cronjob.yaml").read_text())
    assert (made["apiVersion"], made["kind"]) == ("batch/v1", "CronJob")
    spec: dict[str, list[dict[str, list[str]]]] = made["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize(("where", "words"), commands().items(), ids=lambda one: str(one)[:40])
def test_every_command_is_one_that_dq_understands(where: str, words: list[str]) -> None:
    command: Any = typer.main.get_command(application([words[0]]))
    left = list(words)
    while hasattr(command, "commands"):
        command = command.commands[left.pop(0)]

    made = command.make_context("dq", left)

    assert made.args == [], where


def test_the_image_takes_extras_that_there_are_and_runs_as_nobody_special() -> None:
    text = (KIT / "Dockerfile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    [wanted] = re.findall(r"/src\[([a-z,]+)\]", text)
    assert set(wanted.split(",")) <= set(project["optional-dependencies"])
    assert re.search(r"^USER 10001$", text, re.MULTILINE)
    assert 'ENTRYPOINT ["dq"]' in text


def test_what_is_mounted_is_what_is_watched() -> None:
    [container] = job()["containers"]
    mounts = [one["mountPath"] for one in container["volumeMounts"]]

    assert mounts == ["/registry"]
    compose = yaml.safe_load((KIT / "compose.yaml").read_text())["services"]["watcher"]
    assert compose["command"][1] == compose["volumes"][0].rsplit(":", 2)[1]


def test_the_timer_begins_a_service_that_is_there() -> None:
    made = units()

    assert {name.replace(".timer", ".service") for name in made if name.endswith(".timer")} <= set(made)

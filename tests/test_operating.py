"""The files to run dq by: every command in them is one of dq, and every name in them is there."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from croniter import croniter
from fakes.command import contract
from fakes.image import Image, made

from dq.cli.main import application

ROOT = Path(__file__).parent.parent
KIT = ROOT / "examples" / "operating"


def units() -> dict[str, configparser.ConfigParser]:
    found = {}
    for file in KIT.glob("dq-*"):
        found[file.name] = configparser.ConfigParser(interpolation=None, strict=True)
        found[file.name].optionxform = str  # type: ignore[method-assign]  # names of systemd have capitals
        found[file.name].read_string(file.read_text())
    return found


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


def job() -> dict[str, list[dict[str, Any]]]:
    whole = yaml.safe_load((KIT / "cronjob.yaml").read_text())
    assert (whole["apiVersion"], whole["kind"]) == ("batch/v1", "CronJob")
    spec: dict[str, list[dict[str, Any]]] = whole["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize(("where", "words"), commands().items(), ids=lambda one: str(one)[:40])
def test_every_command_is_one_that_dq_understands(where: str, words: list[str]) -> None:
    command: Any = typer.main.get_command(application([words[0]]))
    left = list(words)
    while hasattr(command, "commands"):
        command = command.commands[left.pop(0)]

    context = command.make_context("dq", left)

    assert context.args == [], where


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
    names = units().keys()

    assert {name.replace(".timer", ".service") for name in names if name.endswith(".timer")} <= names


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return made(KIT / "Dockerfile", tmp_path_factory.mktemp("image"), Path(sys.executable))


def test_the_steps_of_the_image_lead_to_a_dq_that_runs(image: Image, tmp_path: Path) -> None:
    (tmp_path / "orders.odcs.yaml").write_text(contract("orders"))

    shown, watched = image.start(), image.start("watch", str(tmp_path))

    assert (shown.returncode, "Usage: dq" in shown.stdout) == (0, True), shown.stderr
    assert (watched.returncode, "SLOs: 1" in watched.stdout) == (0, True), watched.stderr
    assert (image.stage / "var/lib/dq/.dq/store.db").exists()


def test_the_image_holds_no_source_and_no_spark(image: Image) -> None:
    assert {one.name for one in image.stage.iterdir()} <= {"opt", "var", "etc"}
    [site] = image.stage.glob("opt/dq/lib/*/site-packages")
    there = {one.name for one in site.iterdir()}
    assert {"boto3", "fastavro", "psycopg", "pyiceberg", "slack_sdk"} <= there
    assert "pyspark" not in there
    assert (image.stages["build"] / "src" / "pyproject.toml").exists()
    assert not (image.stages["build"] / "src" / "tests").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="users are added by root")
def test_the_user_of_the_image_is_the_one_that_was_added(image: Image) -> None:
    lines = (image.stage / "etc" / "passwd").read_text().splitlines()
    [own] = [line.split(":") for line in lines if line.split(":")[2] == image.user]

    assert (own[0], own[5]) == ("dq", image.folder)


def test_systemd_finds_no_fault_in_its_units(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    folder = tmp_path / "etc" / "systemd" / "system"
    shutil.copytree(
        KIT, folder, ignore=lambda _, names: [name for name in names if not name.startswith("dq-")]
    )
    program = tmp_path / "opt" / "dq" / "bin" / "dq"
    program.parent.mkdir(parents=True)
    program.touch(0o755)

    def said(*names: str) -> str:
        words = [
            "systemd-analyze",
            "verify",
            f"--root={tmp_path}",
            "--man=no",
            "--recursive-errors=no",
            *names,
        ]
        return subprocess.run(words, capture_output=True, text=True, check=False).stderr

    assert said(*sorted(units())) == ""
    (folder / "dq-watch.service").write_text(
        (folder / "dq-watch.service").read_text().replace("Restart=", "Restrat=")
    )
    assert "Restrat" in said("dq-watch.service")


def test_cron_understands_each_time_and_no_line_breaks_at_a_percent_sign() -> None:
    lines = [line for line in (KIT / "crontab").read_text().splitlines() if not line.startswith("#")]

    assert len(lines) == 2
    assert [line for line in lines if not croniter.is_valid(" ".join(line.split()[:5]))] == []
    assert [line for line in lines if "%" in line] == []


def test_every_log_file_of_the_crontab_is_rotated() -> None:
    logs = re.findall(r">> (\S+\.log)", (KIT / "crontab").read_text())
    text = (KIT / "logrotate").read_text()
    [rotated] = re.findall(r"^(/.*) \{$", text, re.MULTILINE)

    assert rotated.split() == [f"/var/lib/dq/{log}" for log in logs]
    assert text.count("{") == text.count("}") == 1


def test_the_portal_warns_at_the_interval_of_its_timer() -> None:
    [minutes] = re.findall(r"OnCalendar=\*:0/(\d+)", (KIT / "dq-portal.timer").read_text())

    assert commands()["dq-portal.service"][-2:] == ["--tick", f"{minutes}m"]


# What kubernetes.io, "API reference", has of each kind in batch/v1 and v1, as far as ours may need it.
KEYS = {
    "": "apiVersion kind metadata spec",
    "spec": "schedule timeZone concurrencyPolicy startingDeadlineSeconds suspend successfulJobsHistoryLimit "
    "failedJobsHistoryLimit jobTemplate",
    "spec.jobTemplate": "metadata spec",
    "spec.jobTemplate.spec": "activeDeadlineSeconds backoffLimit template ttlSecondsAfterFinished",
    "spec.jobTemplate.spec.template": "metadata spec",
    "pod": "restartPolicy securityContext initContainers containers volumes serviceAccountName",
    "container": "name image args command env envFrom resources volumeMounts workingDir imagePullPolicy",
}


def test_the_cron_job_has_keys_that_kubernetes_knows() -> None:
    whole = yaml.safe_load((KIT / "cronjob.yaml").read_text())
    found: dict[str, set[str]] = {"": set(whole)}
    for path in ("spec", "spec.jobTemplate", "spec.jobTemplate.spec", "spec.jobTemplate.spec.template"):
        node = whole
        for key in path.split("."):
            node = node[key]
        found[path] = set(node)
    found["pod"] = set(job())
    found["container"] = {key for one in (*job()["initContainers"], *job()["containers"]) for key in one}

    unknown = {path: keys - set(KEYS[path].split()) for path, keys in found.items()}
    assert {path: keys for path, keys in unknown.items() if keys} == {}
    assert croniter.is_valid(whole["spec"]["schedule"])
    assert whole["spec"]["concurrencyPolicy"] in ("Allow", "Forbid", "Replace")
    assert job()["restartPolicy"] in ("Never", "OnFailure")
    [name] = {mount["name"] for one in job()["containers"] for mount in one["volumeMounts"]}
    assert [one["name"] for one in job()["volumes"]] == [name]

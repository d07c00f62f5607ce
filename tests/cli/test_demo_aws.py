"""dq demo --aws: the loop on moto is real, uses nothing of the caller's, and leaves no process."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fakes.command import Place
from fakes.quiet_server import Loopback

import dq
from dq.operations.demo_aws import DemoCommand

DQ = [sys.executable, "-P", "-m", "dq"]
SCHEMA = json.loads(
    (Path(__file__).parents[2] / "docs" / "reference" / "delivery-event.schema.json").read_text()
)
SECRET = "the-secret-of-the-caller"
CHAPTERS = 7


class Trapped(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass

    def answer(self) -> None:
        server: Any = self.server
        server.place.calls.append(self.requestline)
        self.send_error(500)

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = do_CONNECT = answer  # noqa: N815  # names of http.server


class Trap(Loopback):
    """A server that nobody may call, as the AWS, Slack and proxy of the caller."""

    def __init__(self) -> None:
        super().__init__(Trapped)
        self.calls = list[str]()


@dataclass(frozen=True)
class Played:
    """One run of the demo: what it printed, its folder, and the calls to the caller's servers."""

    code: int
    out: str
    err: str
    folder: Path
    calls: tuple[str, ...]

    def chapter(self, number: int) -> str:
        parts = re.split(r"^\d\. .*\n", self.out, flags=re.MULTILINE)
        return parts[number]


def hostile(home: Path, url: str) -> dict[str, str]:
    """The environment of a caller who has set up AWS, Slack, dq, Git and a proxy, by variables and files."""
    (home / ".aws").mkdir(parents=True)
    (home / ".aws/credentials").write_text(
        f"[default]\naws_access_key_id = AKIAREAL\naws_secret_access_key = {SECRET}\n"
    )
    (home / ".aws/config").write_text(
        f"[default]\nregion = us-east-1\nendpoint_url = {url}\n[profile prod]\nregion = us-east-1\n"
    )
    (home / ".gitconfig").write_text(
        "[user]\nname = Caller\n[core]\nhooksPath = /nowhere\n[commit]\ngpgsign = true\n"
    )
    return {
        "PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C",
        "AWS_PROFILE": "prod", "AWS_DEFAULT_PROFILE": "prod", "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "AKIAREAL", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": SECRET,
        "AWS_ENDPOINT_URL": url, "AWS_ENDPOINT_URL_S3": url, "AWS_ENDPOINT_URL_SNS": url,
        "AWS_ENDPOINT_URL_STS": url, "AWS_ROLE_ARN": "arn:aws:iam::210987654321:role/real",
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(home / "token"), "AWS_CONTAINER_CREDENTIALS_FULL_URI": url,
        "AWS_LAMBDA_FUNCTION_NAME": "real", "MOTO_ACCOUNT_ID": "210987654321",
        "HTTP_PROXY": url, "http_proxy": url, "HTTPS_PROXY": url, "ALL_PROXY": url,
        "SLACK_BOT_TOKEN": f"xoxb-{SECRET}", "DQ_SLACK_URL": f"{url}/api/",
        "DQ_STORE_URL": f"postgresql://dq:{SECRET}@127.0.0.1:1/dq",
        "DQ_TOPIC": "arn:aws:sns:us-east-1:210987654321:real",
        "DQ_PLATFORM_CHANNEL": "slack:#real", "DQ_LAKE_ROOTS": "s3://real", "DQ_HEARTBEAT_URL": url,
        "GIT_DIR": str(home / "real.git"), "GIT_AUTHOR_NAME": "Caller", "OPENLINEAGE_URL": url,
    }  # fmt: skip


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    working, home = tmp_path_factory.mktemp("demo"), tmp_path_factory.mktemp("caller") / "home"
    # In another repository, e.g. a checkout of dq.
    author = ("-c", "user.name=Caller", "-c", "user.email=caller@example.com")
    for command in (("init", "--quiet"), (*author, "commit", "--quiet", "--allow-empty", "--message", "x")):
        subprocess.run(["git", *command], cwd=working, check=True)
    with Trap() as trap:
        ran = subprocess.run(
            [*DQ, "demo", "--aws"],
            cwd=working,
            env=hostile(home, trap.origin),
            capture_output=True,
            encoding="utf-8",
            timeout=600,
            umask=0,
        )
    return Played(ran.returncode, ran.stdout, ran.stderr, working / "dq-demo", tuple(trap.calls))


def test_it_plays_from_the_merge_to_the_queue_of_the_consumer(played: Played) -> None:
    assert played.code == 0, played.out + played.err
    merge, register = played.chapter(2), played.chapter(3)
    assert "contract-added: orders: contract added." in merge
    assert "Merge made by the 'ort' strategy." in merge
    assert "+ create sales.orders (additive)" in register
    assert re.search(r"\+ schedule orders-orders-daily-\w+: cron\(\d+ \d+ \* \* \? \*\) in UTC", register)
    breach, delivery = played.chapter(4), played.chapter(5)
    assert '"status": "missing"' in breach
    assert "Slack #orders: message\n    ERROR: orders is missing: day=" in breach
    assert "Slack #billing: message\n    ERROR: orders is missing: day=" in breach
    assert ": partition, marker, receipt, notify." in delivery
    assert '"status": "late"' in delivery
    assert '"batchItemFailures": []' in delivery
    assert "Slack #orders: message changed\n    RESOLVED: orders came " in delivery
    assert "Slack #billing: reply in the thread\n    Resolved at " in delivery
    assert "orders/daily  ◐" in played.chapter(CHAPTERS)


def test_the_function_runs_the_programs_of_the_command(played: Played, tmp_path: Path) -> None:
    outcome = dq.demo_aws(tmp_path / "function")

    assert (played.code, outcome.exit_code) == (0, 0), played.out + played.err
    programs = [" ".join(step.line.split()[:3]) for step in outcome.steps if isinstance(step, DemoCommand)]
    assert programs == [
        " ".join(line.split()[1:4]) for line in played.out.splitlines() if line.startswith("$ ")
    ]
    assert outcome.folder == tmp_path / "function"
    assert (outcome.folder / ".git").is_dir()


def test_the_function_gets_what_the_schedule_and_s3_sent(played: Played) -> None:
    schedule = json.loads(played.chapter(4).partition("Target.Input}'\n")[2].partition("\n}\n")[0] + "}")
    payload = json.loads((played.folder / "schedule.json").read_text())
    events = json.loads((played.folder / "object-events.json").read_text())
    keys = [
        record["s3"]["object"]["key"]
        for message in events["Records"]
        for record in json.loads(message["body"]).get("Records", ())
    ]

    hour, minute = payload["scheduled_at"][11:13], payload["scheduled_at"][14:16]
    assert schedule["Expression"] == f"cron({int(minute)} {int(hour)} * * ? *)"
    assert json.loads(schedule["Input"]) == {**payload, "scheduled_at": "<aws.scheduler.scheduled-time>"}
    assert {key.rpartition("%2F")[2] for key in keys} == {"part-0.parquet", "_SUCCESS"}


def test_the_consumer_gets_the_delivery_event_of_the_reference(played: Played) -> None:
    event = json.loads(played.chapter(6).partition("json.tool\n")[2])

    jsonschema.validate(event, SCHEMA, format_checker=jsonschema.FormatChecker())
    assert (event["type"], event["data"]["rows"]) == ("dq.delivery.delivered", 912)
    assert f"billing has dq.delivery.delivered: {event['subject']}, 912 rows" in played.out


def test_nothing_of_the_caller_is_used(played: Played) -> None:
    texts = [file.read_bytes() for file in played.folder.rglob("*") if file.is_file()]

    assert played.code == 0, played.err
    assert played.calls == ()
    assert [text for text in texts if SECRET.encode() in text or b"210987654321" in text] == []
    assert SECRET not in played.out + played.err
    log = subprocess.run(
        ["git", "log", "--format=%an"],
        cwd=played.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(log.stdout.split("\n")) == {"Ana Reis", ""}


def test_its_servers_have_ended(played: Played) -> None:
    assert played.code == 0, played.err
    assert processes(played.folder) == []


def test_the_commands_at_its_end_run_without_its_servers(played: Played) -> None:
    commands = re.findall("^  ((?:cd|dq) .*)$", played.out.rpartition("Next steps:")[2], re.MULTILINE)
    ran = [Place(played.folder).dq(*shlex.split(command)[1:]) for command in commands[1:]]

    assert commands[0] == "cd dq-demo"
    assert [one.code for one in ran] == [0, 0, 0], [one.all for one in ran]
    assert "late" in ran[0].out
    assert re.search(r"orders came \d+ min late: day=", ran[1].out), ran[1].out
    assert "WatcherRole" in ran[2].json["Resources"]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_it_leaves_no_process_when_it_is_stopped(tmp_path: Path, stop: signal.Signals) -> None:
    process = subprocess.Popen(
        [*DQ, "demo", "--aws"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stdout is not None
    while "create-bucket" not in process.stdout.readline():
        assert process.poll() is None
    assert processes(tmp_path / "dq-demo") != []

    process.send_signal(stop)
    _, err = process.communicate(timeout=60)

    assert process.returncode != 0
    assert "Traceback" not in err
    until = time.monotonic() + 60
    while processes(tmp_path / "dq-demo") and time.monotonic() < until:
        time.sleep(0.1)
    assert processes(tmp_path / "dq-demo") == []


def test_a_command_that_fails_ends_it_with_its_servers(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").write_text("#!/bin/sh\necho fatal: broken >&2\nexit 128\n")
    (programs / "git").chmod(0o755)

    ran = subprocess.run(
        [*DQ, "demo", "--aws"], cwd=tmp_path, env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True, text=True,
    )  # fmt: skip

    assert ran.returncode == 3
    assert re.search(r"git init .* failed with exit code 128\.\n +fatal: broken\n", ran.stderr), ran.stderr
    assert processes(tmp_path / "dq-demo") == []


def test_without_moto_it_says_how_to_install_it(tmp_path: Path) -> None:
    hide = "import sys; sys.modules['moto'] = None; from dq.cli.main import main; main()"

    ran = subprocess.run(
        [sys.executable, "-c", hide, "demo", "--aws"], cwd=tmp_path, capture_output=True, text=True
    )

    assert (ran.returncode, ran.stdout) == (2, "")
    assert "dq demo --aws needs moto, which is not installed." in ran.stderr
    assert "[demo-aws]" in ran.stderr
    assert not (tmp_path / "dq-demo").exists()


def test_it_replaces_no_folder_of_another(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.put("dq-demo/mine", "mine")

    ran = place.dq("demo", "--aws")

    assert (ran.code, "already exists" in ran.err) == (2, True)
    assert (tmp_path / "dq-demo/mine").read_text() == "mine"
    assert place.dq("demo", "--aws", "--tables", "lake").code == 2


def processes(folder: Path) -> list[str]:
    """Command lines of the processes that run in a folder."""
    running = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve().is_relative_to(folder):
                running.append((process / "cmdline").read_text())
        except OSError:  # it has ended, or is another user's
            continue
    return [line for line in running if line]

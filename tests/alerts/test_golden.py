"""What people read, word for word, as the real watcher told it to Slack and to the console.

Each story is a folder of data, a clock, and the real command line. `make goldens` writes the files in golden/
anew; they are read there, and in the pictures of docs/, and never written by hand.
"""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import golden, jvm
from fakes.command import Ran
from fakes.desk import Desk
from fakes.hooks import Hooks
from fakes.slack import TOKEN, FakeSlack
from fakes.smtp import PASSWORD, USER, FakeSmtp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOLDEN = Path(__file__).parent / "golden"

ORDERS = """\
apiVersion: v3.2.0
kind: DataContract
id: {id}
name: {name}
version: 1.0.0
status: {status}
description:
  purpose: >-
    Every order of the web shop with its lines and payments, as the shop closed the day.
  usage: Finance closes the day with it.
team:
  members:
    - username: ana.reis@example.com
      role: owner
      customProperties: [{{property: slack, value: U012AB3CD}}]
support: [{{channel: "#orders-alerts", tool: slack, scope: notifications}}]
authoritativeDefinitions: [{{type: runbook, url: "https://wiki.example.com/runbooks/orders"}}]
servers: [{{server: lake, type: local, path: "lake/{{object}}", format: parquet}}]
schema:
  - name: {object}
    properties:
      - {{name: day, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 1}}
      - {{name: id, logicalType: integer, physicalType: bigint, required: true}}
      - {{name: email, logicalType: string, physicalType: string, classification: confidential}}
      - {{name: amount, logicalType: number, physicalType: double, logicalTypeOptions: {{minimum: 0}}}}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: {object}
    schedule: "0 6 * * *"
    customProperties:
      - property: delivery
        vendor: dq
        value:
          timezone: Europe/Berlin
          grace: 30m
          partition: {{day: "{{due - 1d:%F}}"}}
          evidence: [marker]
          giveUpAfter: 3d
          objective: 75%
          window: 30d
"""
REPORTS = """\
apiVersion: v3.2.0
kind: DataContract
id: {id}
version: 1.0.0
status: active
customProperties: [{{property: inputs, value: [{input}]}}]
schema: [{{name: report, properties: [{{name: id, logicalType: integer}}]}}]
"""


class Story:
    """A registry, a lake and a watcher whose clock is ours; `said` is what its console printed."""

    def __init__(self, desk: Desk, slack: FakeSlack) -> None:
        self.desk, self.slack, self.said = desk, slack, ""
        self.variables = {
            "SLACK_BOT_TOKEN": TOKEN,
            "DQ_SLACK_URL": slack.url,
            "DQ_PLATFORM_CHANNEL": "slack:#platform",
        }
        self.contract()
        self.desk.write("registry/revenue.odcs.yaml", REPORTS.format(id="revenue", input="orders/orders"))
        self.desk.write("registry/board.odcs.yaml", REPORTS.format(id="board-report", input="revenue"))
        (desk.folder / "lake").mkdir()

    def contract(
        self,
        id: str = "orders",
        object: str = "orders",
        status: str = "active",
        name: str = "Orders of the web shop",
    ) -> None:
        text = ORDERS.format(id=id, object=object, status=status, name=name)
        self.desk.write(f"registry/{id}.odcs.yaml", text)

    def put(self, day: str, at: str, *names: str, object: str = "orders") -> None:
        """Files of a day, as if they were written at an instant."""
        folder = self.desk.folder / "lake" / object / f"day={day}"
        folder.mkdir(parents=True, exist_ok=True)
        when = instant(at).timestamp()
        for name in names or ("part-0.parquet", "_SUCCESS"):
            (folder / name).write_bytes(b"x" * 1200 if name.startswith("part") else b"")
            os.utime(folder / name, (when, when))

    def watch(self, at: str, *more: str) -> None:
        ran = self.desk.dq("watch", "registry", "--as-of", at, *more, **self.variables)
        assert "Traceback" not in ran.err
        assert ran.code in (0, 1, 3), ran.all
        self.said += ran.out

    def weeks(self) -> None:
        """Twenty days that came from half an hour before six to five minutes after, one of them at ten."""
        for number in range(20):
            due = datetime(2026, 4, 21, 4, tzinfo=UTC) + timedelta(days=number)
            late = 4 * 60 if number == 13 else 5 * (number % 8) - 30
            day = (due - timedelta(days=1)).date()
            self.put(day.isoformat(), (due + timedelta(minutes=late)).isoformat())
        self.watch("2026-05-10T12:00:00Z", "--since", "2026-04-21T00:00:00Z")
        self.slack.messages.clear()
        self.said = ""


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def missing(story: Story) -> None:
    story.weeks()
    story.watch("2026-05-11T04:32:00Z")


def half(story: Story) -> None:
    story.weeks()
    story.put("2026-05-10", "2026-05-11T04:05:00Z", "part-0.parquet", "part-1.parquet", "part-2.parquet")
    story.watch("2026-05-11T04:32:00Z")


def late(story: Story) -> None:
    missing(story)
    story.put("2026-05-10", "2026-05-11T07:10:00Z")
    story.watch("2026-05-11T07:20:00Z")


def end(story: Story) -> None:
    """Five days in a row are missing; all come at last."""
    story.weeks()
    for day in range(11, 16):
        story.watch(f"2026-05-{day}T04:32:00Z")
        if day == 13:
            story.put("2026-05-10", "2026-05-13T07:10:00Z")
    for day in range(11, 15):
        story.put(f"2026-05-{day}", "2026-05-15T09:10:00Z")
    story.watch("2026-05-15T09:20:00Z")


def going_on(story: Story) -> None:
    story.weeks()
    for day in range(11, 15):
        story.watch(f"2026-05-{day}T04:32:00Z")


def given_up(story: Story) -> None:
    missing(story)
    story.put("2026-05-11", "2026-05-12T04:00:00Z")
    story.put("2026-05-12", "2026-05-13T04:00:00Z")
    story.put("2026-05-13", "2026-05-14T03:30:00Z")
    story.watch("2026-05-14T04:20:00Z")


def withdrawn(story: Story) -> None:
    missing(story)
    story.contract(status="retired")
    story.watch("2026-05-11T05:00:00Z")


def past(story: Story) -> None:
    """The watcher was away for two days; one delivery came late meanwhile."""
    story.weeks()
    story.put("2026-05-10", "2026-05-11T09:00:00Z")
    story.put("2026-05-11", "2026-05-12T03:50:00Z")
    story.watch("2026-05-12T12:00:00Z")


def blind(story: Story) -> None:
    story.weeks()
    shutil.move(story.desk.folder / "lake", story.desk.folder / "elsewhere")
    story.watch("2026-05-11T04:32:00Z")


def sight(story: Story) -> None:
    blind(story)
    shutil.move(story.desk.folder / "elsewhere", story.desk.folder / "lake")
    story.put("2026-05-10", "2026-05-11T03:50:00Z")
    story.watch("2026-05-11T05:00:00Z")


def mass_miss(story: Story) -> None:
    for name in ("baskets", "payments", "refunds", "returns", "visits"):
        story.contract(name, name, name=f"{name.title()} of the web shop")
    story.watch("2026-05-10T12:00:00Z")
    story.watch("2026-05-11T04:32:00Z")


def storm(story: Story) -> None:
    """All products of one channel are missing; their owners are told a quarter of an hour later, at once."""
    for number in range(1, 9):
        name = f"orders_{number:02}"
        story.contract(name, name, name=f"Orders of shop {number}")
    due = datetime(2026, 5, 10, 4, tzinfo=UTC)
    story.watch("2026-05-09T12:00:00Z")
    for number in range(1, 9):
        story.put("2026-05-09", (due - timedelta(minutes=5)).isoformat(), object=f"orders_{number:02}")
    story.put("2026-05-09", "2026-05-10T03:50:00Z")
    story.watch("2026-05-10T04:32:00Z")
    story.watch("2026-05-11T04:32:00Z")
    story.watch("2026-05-11T04:48:00Z")


STORIES: dict[str, Callable[[Story], None]] = {
    one.__name__: one
    for one in (
        missing,
        half,
        late,
        end,
        going_on,
        given_up,
        withdrawn,
        past,
        blind,
        sight,
        mass_miss,
        storm,
    )
}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, monkeypatch, capfd)


@pytest.fixture
def story(desk: Desk) -> Iterator[Story]:
    with FakeSlack() as slack:
        yield Story(desk, slack)


def compare(name: str, said: str) -> None:
    golden.compare(GOLDEN / name, said)


def heard(slack: FakeSlack) -> list[dict[str, object]]:
    """What stands in Slack at the end of a story, without what is another one each time."""
    keys = ("text", "blocks", "attachments")
    names = {
        value: name for name, value in {"#orders-alerts": "C0ORDERS01", "#platform": "C0PLATFORM"}.items()
    }
    return [
        {
            "in": names[message["channel"]],
            "is": "a reply" if "thread_ts" in message else "a message",
            **{key: message[key] for key in keys if message.get(key)},
        }
        for message in slack.messages.values()
    ]


@pytest.mark.parametrize("name", STORIES)
def test_slack_hears_what_is_agreed(name: str, story: Story) -> None:
    STORIES[name](story)

    compare(f"{name}.slack.json", json.dumps(heard(story.slack), indent=2, ensure_ascii=False) + "\n")


# A terminal has no threads that a storm could be folded into.
@pytest.mark.parametrize("name", [one for one in STORIES if one != "storm"])
def test_the_console_reads_as_agreed(name: str, story: Story) -> None:
    watch = story.watch
    story.watch = lambda at, *more: watch(at, *more, "--channel", "console")  # type: ignore[method-assign]
    STORIES[name](story)

    compare(f"{name}.txt", story.said)


def told_to(story: Story, channel: str, **variables: str) -> None:
    """The story of a delivery that came late, to one place of another channel."""
    watch = story.watch
    story.variables |= variables
    story.watch = lambda at, *more: watch(at, *more, "--channel", channel)  # type: ignore[method-assign]
    late(story)


def test_a_mailbox_hears_what_is_agreed(story: Story) -> None:
    with FakeSmtp() as server:
        told_to(
            story,
            "email:ana@acme.example",
            DQ_SMTP_HOST="127.0.0.1",
            DQ_SMTP_PORT=str(server.port),
            DQ_SMTP_USER=USER,
            DQ_SMTP_PASSWORD=PASSWORD,
            DQ_SMTP_FROM="dq@acme.example",
            DQ_EMAIL_DOMAINS="acme.example",
        )
        mails = [
            {"subject": one.message["Subject"], "text": _unix(one.text()), "html": _unix(one.text("html"))}
            for one in server.mails
        ]

    compare("late.email.json", json.dumps(mails, indent=2, ensure_ascii=False) + "\n")


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def test_teams_hears_what_is_agreed(story: Story) -> None:
    with Hooks() as hooks:
        told_to(story, "teams:sales-data", DQ_TEAMS_URL_SALES_DATA=hooks.url("teams"))
        cards = [post.body["attachments"][0]["content"] for post in hooks.posts["teams"]]

    compare("late.teams.json", json.dumps(cards, indent=2, ensure_ascii=False) + "\n")


SUBSCRIPTION = """\
contract: {product}
major: 1
consumer: {{team: billing, contact: "#billing"}}
purpose: The invoices of each month.
columns: [{product}.id, {product}.amount]
startDate: 2026-01-01
alerts: {{channel: billing, tool: console}}
needs: {{by: "07:30", timezone: Europe/Berlin}}
"""


def test_a_consumer_reads_what_is_agreed(story: Story) -> None:
    """One product is missing and comes; then two of one cause; the owners hear in Slack."""
    story.contract("lines", "lines", name="Lines of the orders")
    lines = story.desk.folder / "registry/lines.odcs.yaml"
    lines.write_text(lines.read_text() + "customProperties: [{property: inputs, value: [orders/orders]}]\n")
    story.desk.write("registry/dq-policy.yaml", "{}")
    for product in ("orders", "lines"):
        text = SUBSCRIPTION.format(product=product)
        story.desk.write(f"registry/subscriptions/billing-{product}.yaml", text)
    for number in range(21):
        due = datetime(2026, 4, 21, 4, tzinfo=UTC) + timedelta(days=number)
        day, at = (due - timedelta(days=1)).date(), due - timedelta(minutes=20)
        story.put(day.isoformat(), at.isoformat(), object="lines")
    story.weeks()
    story.watch("2026-05-11T04:32:00Z")
    story.put("2026-05-10", "2026-05-11T07:10:00Z")
    story.watch("2026-05-11T07:20:00Z")
    story.watch("2026-05-12T04:32:00Z")
    story.put("2026-05-11", "2026-05-12T05:10:00Z")
    story.put("2026-05-11", "2026-05-12T05:40:00Z", object="lines")
    story.watch("2026-05-12T05:50:00Z")

    compare("consumer.txt", story.said)


def commands_in(slack: FakeSlack) -> list[str]:
    """Each command that stands in Slack, as it is pasted from there."""
    found = dict.fromkeys(re.findall("```(.+?)```", json.dumps(heard(slack))))
    return [html.unescape(command) for command in found]


def pasted(story: Story) -> list[Ran]:
    """What each command in Slack gives: a shell in the watcher's folder runs the first of each form.

    The others differ from it in a number, and are run in this process.
    """
    home = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "LANG": "C.UTF-8"} | jvm.SETTINGS
    if "JAVA_HOME" in os.environ:
        home["JAVA_HOME"] = os.environ["JAVA_HOME"]
    done: list[Ran] = []
    forms: set[str] = set()
    for command in commands_in(story.slack):
        form = re.sub(r"\d+", "", command)
        if form in forms:
            program, *words = shlex.split(command)
            assert program == "dq"
            done.append(story.desk.dq(*words))
        else:
            ran = subprocess.run(
                ["sh", "-c", command],
                cwd=story.desk.folder,
                env=home,
                capture_output=True,
                text=True,
                check=False,
            )
            done.append(Ran(ran.returncode, ran.stdout, ran.stderr))
        forms.add(form)
    return done


@pytest.mark.parametrize("name", ["missing", "late", "storm", "end"])
def test_each_command_works_as_it_is_pasted(name: str, story: Story) -> None:
    STORIES[name](story)

    done = pasted(story)

    assert done
    assert [(ran.code, ran.err) for ran in done] == [(0, "")] * len(done)
    assert all("orders" in ran.out for ran in done)


@pytest.mark.spark
@pytest.mark.slow
def test_failed_checks_are_told_as_agreed(story: Story, spark: SparkSession) -> None:
    """Amounts below zero, and an order without a number; the addresses in it are confidential."""
    rows = [(1, "ann@example.com", 9.5), (2, "bob@example.com", -3.0), (None, "eve@example.com", -1.0)]
    columns = dict(zip(("id", "email", "amount"), map(list, zip(*rows, strict=True)), strict=True))
    folder = story.desk.folder / "lake" / "orders" / "day=2026-05-10"
    folder.mkdir(parents=True)
    # The session of the tests was started in another folder.
    contract = story.desk.folder / "registry" / "orders.odcs.yaml"
    contract.write_text(contract.read_text().replace('path: "lake', f'path: "{story.desk.folder}/lake'))
    pq.write_table(pa.table(columns), folder / "part-0.parquet")

    at = ("--as-of", "2026-05-11T04:40:00Z")
    told = ("check", "registry/orders.odcs.yaml", "--partition", "day=2026-05-10", *at)
    ran = story.desk.dq(*told, **story.variables)

    assert ran.code == 1, ran.all
    compare("quality.slack.json", json.dumps(heard(story.slack), indent=2, ensure_ascii=False) + "\n")
    (command,) = commands_in(story.slack)
    program, *words = shlex.split(command)
    again = story.desk.dq(*words, **story.variables)
    assert (program, again.code) == ("dq", 1), again.err
    assert "id required" in again.out
    assert "@example.com" not in (GOLDEN / "quality.slack.json").read_text().replace(
        "ana.reis@example.com", ""
    )

"""Breaches reach the consumers that they affect: each once, with its own consequence, and its end."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.command import BEGIN, MISSED, Place, contract
from fakes.slack import TOKEN, FakeSlack

import dq

CHANNELS = {"#raw": "C0RAW00001", "#mart": "C0MART0001", "#platform": "C0PLATFORM"} | {
    f"#{team}": f"C0TEAM{team.upper():0<6.6}" for team in ("billing", "audit", "search")
}
NAMES = {value: name for name, value in CHANNELS.items()}
LATER = "2026-05-11T07:33:00Z"


CHECKED = """\
      - {name: id, logicalType: integer, physicalType: bigint}
      - {name: amount, logicalType: number, physicalType: double, logicalTypeOptions: {minimum: 0}}
      - name: email
        logicalType: string
        physicalType: string
        required: true
        logicalTypeOptions: {maxLength: 3}
"""
ID = "      - {name: id, logicalType: integer, physicalType: bigint}\n"


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with FakeSlack(channels=CHANNELS) as workspace:
        yield workspace


class Registry(Place):
    """A registry with `raw`, `mart` that is made from it, and their lake."""

    def start(self) -> None:
        (self.folder / "lake").mkdir()
        self.put("registry/dq-policy.yaml", "{}")
        self.put("registry/raw.odcs.yaml", contract("raw"))
        made_from_raw = {
            "servers:": "customProperties: [{property: inputs, value: [raw]}]\nservers:",
        }
        self.put("registry/mart.odcs.yaml", contract("mart", **made_from_raw))

    def put_checked(self) -> None:
        """The contract of `raw` with clauses; Spark's session may have been started in another folder."""
        parts = {ID: CHECKED, "path: lake": f"path: {self.folder}/lake"}
        self.put("registry/raw.odcs.yaml", contract("raw", **parts))

    def subscribe(self, team: str, product: str = "raw", alerts: str = "", **keys: str) -> None:
        lines = {
            "contract": product,
            "major": "1",
            "consumer": f"{{team: {team}}}",
            "purpose": f"Reports of {team}.",
            "startDate": "2026-01-01",
            "alerts": alerts or f"{{channel: '#{team}', tool: slack}}",
            **keys,
        }
        text = "".join(f"{key}: {value}\n" for key, value in lines.items() if value != "-")
        self.put(f"registry/subscriptions/{team}-{product}.yaml", text)

    def came(self, name: str, at: str, day: str = "2026-05-10") -> None:
        marker = self.put(f"lake/{name}/day={day}/_SUCCESS", "")
        when = datetime.fromisoformat(at).timestamp()
        os.utime(marker, (when, when))

    def watch(self, at: str) -> str:
        ran = self.dq("watch", "registry", "--as-of", at)
        assert ran.code in (0, 1), ran.all
        return ran.all


@pytest.fixture
def registry(tmp_path: Path, url: str, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch) -> Registry:
    for name in os.environ:
        if name.startswith(("DQ_", "SLACK_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("DQ_STORE_URL", url)
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    monkeypatch.setenv("DQ_SLACK_URL", slack.url)
    monkeypatch.setenv("DQ_PLATFORM_CHANNEL", "slack:#platform")
    registry = Registry(tmp_path)
    registry.start()
    return registry


def titles(slack: FakeSlack, *channels: str) -> list[tuple[str, str]]:
    """Channel and headline of each message that is not in a thread."""
    rows = [(NAMES[post["channel"]], post["text"].split("\n")[0]) for post in slack.roots]
    return [row for row in rows if not channels or row[0] in channels]


def test_a_consumer_hears_once_of_all_products_of_one_cause(registry: Registry, slack: FakeSlack) -> None:
    registry.subscribe("billing", "raw")
    registry.subscribe("billing", "mart")
    registry.subscribe("audit", "mart")
    registry.watch(BEGIN)

    registry.watch(MISSED)
    registry.watch(LATER)

    assert sorted(titles(slack)) == [
        ("#audit", "ERROR: mart is missing: day=2026-05-10"),
        ("#billing", "ERROR: 2 breaches of data that billing uses"),
        ("#raw", "ERROR: raw is missing: day=2026-05-10"),
    ]
    for name in ("raw", "mart"):
        registry.came(name, "2026-05-11T08:00:00Z")
    registry.watch("2026-05-11T08:05:00Z")
    assert sorted(titles(slack)) == [
        ("#audit", "RESOLVED: mart came 2 h late: day=2026-05-10"),
        ("#billing", "RESOLVED: all 2 breaches of data that billing uses have ended"),
        ("#raw", "RESOLVED: raw came 2 h late: day=2026-05-10"),
    ]


def test_a_breach_that_joins_a_cause_later_joins_its_thread(registry: Registry, slack: FakeSlack) -> None:
    """`mart` is missing first; `raw`, whose grace is longer, turns out to be the cause."""
    registry.put("registry/raw.odcs.yaml", contract("raw", **{"grace: 30m": "grace: 50m"}))
    registry.subscribe("billing", "raw")
    registry.subscribe("billing", "mart")
    registry.watch(BEGIN)

    registry.watch("2026-05-11T06:35:00Z")
    first = titles(slack, "#billing")
    registry.watch(MISSED)

    assert first == [("#billing", "ERROR: mart is missing: day=2026-05-10")]
    assert titles(slack, "#billing") == [("#billing", "ERROR: 2 breaches of data that billing uses")]


@pytest.mark.parametrize(
    "keys",
    [
        {"startDate": "2026-06-01"},
        {"endDate": "2026-05-10"},
        {"approvers": "[stranger@example.com]"},
        {"major": "2"},
        {"alerts": "-"},
        {"alerts": "{channel: '#billing', tool: slack, severities: [warning]}"},
        {"alerts": "{channel: '#billing', tool: slak}"},
        {"alerts": "{channel: 'https://hooks.example.com/x?token=1', tool: webhook}"},
        {"alerts": "{channel: ana@stranger.example, tool: email}"},
        {"alerts": "{channel: ../../outside, tool: file}"},
        {"columns": "[raw.nothing]"},
    ],
    ids=str,
)
def test_only_valid_running_and_allowed_subscriptions_are_notified(
    registry: Registry, slack: FakeSlack, keys: dict[str, str]
) -> None:
    registry.subscribe("billing", "raw", **keys)
    registry.subscribe("audit", "raw")
    registry.watch(BEGIN)

    registry.watch(MISSED)

    assert sorted(channel for channel, _ in titles(slack)) == ["#audit", "#raw"]


def test_the_allow_list_of_channels_applies_to_consumers(
    registry: Registry, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DQ_CHANNELS", "slack:#raw,slack:#mart,slack:#audit")
    registry.subscribe("billing", "raw")
    registry.subscribe("audit", "raw")
    registry.watch(BEGIN)

    ran = registry.dq("watch", "registry", "--as-of", MISSED)

    assert sorted(channel for channel, _ in titles(slack)) == ["#audit", "#raw"]
    assert "billing-raw.yaml:6:19: alerts may not go to 'slack:#billing'" in ran.all
    assert ran.code == 1, "a consumer's mistake is not the watcher's"


def test_incidents_of_consumers_are_listed_by_team_and_cause(registry: Registry, slack: FakeSlack) -> None:
    registry.subscribe("billing", "raw")
    registry.subscribe("billing", "mart")
    registry.watch(BEGIN)
    registry.watch(MISSED)

    listed = registry.dq("incidents", "--as-of", LATER)
    (own,) = [
        row
        for row in registry.dq("incidents", "--format", "json", "--as-of", LATER).json["incidents"]
        if row["contract"] == "(subscription)"
    ]
    shown = registry.dq("incidents", own["id"], "--as-of", LATER)
    muted = registry.dq(
        *("incidents", "silence", own["id"], "--for", "1h", "--reason", "known", "--by", "bo"),
        *("--as-of", LATER),
    )
    acked = registry.dq("incidents", "ack", own["id"], "--by", "bo", "--as-of", LATER)

    label = "subscription of billing (slack:#billing), cause raw/raw"
    (line,) = [line for line in listed.out.splitlines() if "billing" in line]
    assert f"  {label}  " in line
    assert "raw is missing: day=2026-05-10" in line
    assert "mart is missing: day=2026-05-10" in line
    assert "(subscription)" not in listed.out
    assert (own["object"], own["group"]) == ("billing via slack:#billing", "raw/raw")
    files = "subscriptions/billing-mart.yaml, subscriptions/billing-raw.yaml"
    assert own["consumer"] == {
        "team": "billing", "channel": "slack:#billing", "cause": "raw/raw", "subscription": files,
    }  # fmt: skip
    rows = dict(re.findall(r"^  (\w+) +(.+)$", shown.out, re.MULTILINE))
    # The key is what a silence's pattern matches.
    assert rows["key"] == "(subscription)/billing via slack:#billing/raw/raw"
    assert {name: rows[name] for name in own["consumer"]} == own["consumer"]
    assert f"{label}: " in muted.out
    assert f"{label}: acknowledged by bo." in acked.out


def test_owners_see_the_consumers_in_their_message(registry: Registry, slack: FakeSlack) -> None:
    registry.subscribe("billing", "raw", alerts="-")
    registry.watch(BEGIN)

    registry.watch(MISSED)

    assert "billing (Reports of billing)" in str(slack.roots)


def test_a_single_channel_for_all_alerts_receives_each_incident_once(
    registry: Registry, slack: FakeSlack
) -> None:
    registry.subscribe("billing", "raw")
    registry.watch(BEGIN)

    ran = registry.dq("watch", "registry", "--as-of", MISSED, "--channel", "console")

    assert slack.roots == []
    assert ran.all.count("raw is missing") == 1


def test_a_silence_of_the_owners_does_not_silence_consumers_nor_the_reverse(
    registry: Registry, slack: FakeSlack
) -> None:
    registry.subscribe("billing", "raw")
    registry.subscribe("audit", "raw")
    registry.watch(BEGIN)
    for pattern in ("raw", "(subscription)/audit*"):
        silenced = registry.dq(
            *("incidents", "silence", pattern, "--for", "4h", "--reason", "known", "--by", "ana"),
            *("--as-of", "2026-05-11T06:00:00Z"),
        )
        assert silenced.code == 0, silenced.all

    registry.watch(MISSED)

    assert titles(slack, "#raw", "#billing", "#audit") == [
        ("#billing", "ERROR: raw is missing: day=2026-05-10")
    ]


def test_quiet_hours_and_escalation_are_the_consumers_own(registry: Registry, slack: FakeSlack) -> None:
    quiet = "{channel: '#billing', tool: slack, quiet: '06:00-09:00', quietSeverities: [error]}"
    registry.subscribe("billing", "raw", alerts=quiet)
    registry.subscribe("audit", "raw", alerts="{channel: '#audit', tool: slack, escalateAfter: 30m}")
    registry.watch(BEGIN)

    registry.watch(MISSED)
    at_once = titles(slack)
    registry.watch("2026-05-11T07:45:00Z")
    escalated = titles(slack)
    registry.watch("2026-05-11T09:01:00Z")

    assert at_once == [("#raw", "ERROR: raw is missing: day=2026-05-10")]
    assert escalated[1:] == [("#audit", "ERROR: raw is missing: day=2026-05-10")]
    assert titles(slack)[2:] == [("#billing", "ERROR: raw is missing: day=2026-05-10")]


def test_many_causes_at_once_are_a_digest_for_the_consumer(registry: Registry, slack: FakeSlack) -> None:
    for number in range(8):
        grown = contract(f"p{number}", **{f'"#p{number}"': '"#raw"'})
        registry.put(f"registry/p{number}.odcs.yaml", grown)
        registry.subscribe("billing", f"p{number}")
    registry.watch(BEGIN)

    registry.watch(MISSED)
    registry.watch("2026-05-11T07:28:00Z")

    (digest,) = titles(slack, "#billing")
    assert digest[1].endswith("8 incidents at once")
    (text,) = [str(post) for post in slack.roots if NAMES[post["channel"]] == "#billing"]
    assert "p0 is missing: day=2026-05-10; used for Reports of billing" in text
    assert "promise" not in text
    (of_owner,) = [str(post) for post in slack.roots if NAMES[post["channel"]] == "#raw"]
    assert "p0 is missing: day=2026-05-10" in of_owner
    assert "used for" not in of_owner


def test_consumers_hear_of_the_end_of_a_retired_contract(registry: Registry, slack: FakeSlack) -> None:
    registry.subscribe("billing", "raw")
    registry.watch(BEGIN)
    registry.watch(MISSED)

    registry.put("registry/raw.odcs.yaml", contract("raw", status="retired"))
    registry.watch(LATER)

    assert [text.split(":")[0] for _, text in titles(slack, "#billing")] == ["WITHDRAWN"]


@pytest.mark.spark
def test_a_consumer_hears_of_failed_checks_of_its_columns_only(registry: Registry, slack: FakeSlack) -> None:
    registry.put_checked()
    registry.subscribe("billing", "raw", columns="[raw.amount]")
    registry.subscribe("audit", "raw", columns="[raw.email]")
    registry.subscribe("search", "raw", columns="[raw.id]")

    def check(at: str, amount: float, *emails: str | None) -> None:
        folder = registry.folder / "lake/raw/day=2026-05-10"
        folder.mkdir(parents=True, exist_ok=True)
        columns = {"id": [1, 2], "amount": [amount, 5.0], "email": list(emails)}
        pq.write_table(pa.table(columns), folder / "part-0.parquet")
        ran = registry.dq("check", "registry/raw.odcs.yaml", "--partition", "day=2026-05-10", "--as-of", at)
        assert ran.code in (0, 1), ran.all

    check("2026-05-11T07:00:00Z", -7.0, "eve@secret.example", "ann")
    broken = titles(slack, "#billing", "#audit", "#search")
    of_billing = str([post for post in slack.roots if NAMES[post["channel"]] == "#billing"])
    check("2026-05-11T07:05:00Z", 7.0, "eve@secret.example", "ann")
    mended = titles(slack, "#billing", "#audit", "#search")
    check("2026-05-11T07:10:00Z", 7.0, "eve", "ann")

    failed = "ERROR: raw fails 1 data check: day=2026-05-10"
    assert sorted(broken) == [("#audit", failed), ("#billing", failed)]
    assert "amount bounds" in of_billing
    assert "email" not in of_billing
    assert "secret" not in of_billing
    own = "RESOLVED: raw passes the data checks of your columns again: day=2026-05-10"
    assert sorted(mended) == [("#audit", failed), ("#billing", own)]
    assert sorted(titles(slack, "#billing", "#audit", "#search")) == [
        ("#audit", "RESOLVED: raw passes its data checks again: day=2026-05-10"),
        ("#billing", own),
    ]


@pytest.mark.spark
def test_a_consumer_that_names_its_clauses_hears_of_these_only(registry: Registry, slack: FakeSlack) -> None:
    registry.put_checked()
    registry.subscribe("billing", "raw", needs="{quality: [raw.email.required]}")
    registry.subscribe("audit", "raw", needs="{quality: [raw.email.maxLength]}")
    folder = registry.folder / "lake/raw/day=2026-05-10"
    folder.mkdir(parents=True)
    columns = {"id": [1, 2], "amount": [1.0, 5.0], "email": ["eve", "anna"]}
    pq.write_table(pa.table(columns), folder / "part-0.parquet")

    ran = registry.dq("check", "registry/raw.odcs.yaml", "--partition", "day=2026-05-10", "--as-of", MISSED)

    assert ran.code == 1, ran.all
    assert titles(slack, "#billing", "#audit") == [
        ("#audit", "ERROR: raw fails 1 data check: day=2026-05-10")
    ]


def test_ten_products_of_one_cause_are_one_message(registry: Registry, slack: FakeSlack) -> None:
    names = [f"p{number}" for number in range(10)]
    for name in names:
        inputs = "customProperties: [{property: inputs, value: [raw]}]\nservers:"
        text = contract(name, **{f'"#{name}"': '"#mart"', "servers:": inputs})
        registry.put(f"registry/{name}.odcs.yaml", text)
        registry.subscribe("billing", name)
    registry.watch(BEGIN)

    registry.watch(MISSED)
    registry.watch("2026-05-11T07:28:00Z")

    assert titles(slack, "#billing") == [("#billing", "ERROR: 10 breaches of data that billing uses")]
    assert [post for post in slack.replies if NAMES[post["channel"]] == "#billing"] == []


@pytest.mark.parametrize(
    "change",
    [
        "removed",
        {"columns": "[raw.nothing]"},
        {"endDate": "2026-05-11"},
        {"alerts": "{channel: '#search', tool: slack}"},
        {"alerts": "-"},
    ],
    ids=str,
)
def test_the_end_reaches_the_channel_of_the_breach_whatever_became_of_the_subscription(
    registry: Registry, slack: FakeSlack, change: str | dict[str, str]
) -> None:
    registry.subscribe("billing")
    registry.watch(BEGIN)
    registry.watch(MISSED)

    if isinstance(change, str):
        (registry.folder / "registry/subscriptions/billing-raw.yaml").unlink()
    else:
        registry.subscribe("billing", **change)
    registry.watch(LATER)
    registry.came("raw", "2026-05-11T08:00:00Z")
    registry.watch("2026-05-11T08:05:00Z")

    assert titles(slack, "#billing", "#search") == [
        ("#billing", "RESOLVED: raw came 2 h late: day=2026-05-10")
    ]


def test_a_channel_that_does_not_exist_silences_nobody_else(registry: Registry, slack: FakeSlack) -> None:
    registry.subscribe("audit", alerts="{channel: '#nowhere', tool: slack}")
    registry.subscribe("billing")
    registry.watch(BEGIN)

    ran = registry.dq("watch", "registry", "--as-of", MISSED)

    expected = "ERROR: raw is missing: day=2026-05-10"
    assert sorted(titles(slack)) == [("#billing", expected), ("#platform", expected), ("#raw", expected)]
    assert ran.code == 4
    assert "slack:#nowhere" in ran.all
    assert "channel_not_found" in ran.all


def test_a_subscription_of_personal_data_without_a_binding_approval_is_not_notified(
    registry: Registry, slack: FakeSlack
) -> None:
    """A name in the file is no approval: the policy asks for one that Git proves."""
    personal = ID.replace("integer,", "integer, classification: pii,")
    team = "team: {name: sales, members: [{username: ana@example.com, role: owner}]}\nservers:"
    registry.put("registry/raw.odcs.yaml", contract("raw", **{ID: personal, "servers:": team}))
    registry.subscribe("billing", approvers="[ana@example.com]")
    registry.watch(BEGIN)

    unproven = registry.dq("watch", "registry", "--as-of", MISSED)

    assert titles(slack, "#billing") == []
    assert "billing-raw.yaml" in unproven.all
    assert "Its consumer is not notified." in unproven.all


def test_by_names_alone_a_subscription_is_notified_where_the_policy_allows_it(
    registry: Registry, slack: FakeSlack
) -> None:
    personal = ID.replace("integer,", "integer, classification: pii,")
    team = "team: {name: sales, members: [{username: ana@example.com, role: owner}]}\nservers:"
    registry.put("registry/raw.odcs.yaml", contract("raw", **{ID: personal, "servers:": team}))
    registry.put("registry/dq-policy.yaml", "rules: {subscription-without-approver: {proof: names}}")
    registry.subscribe("billing", approvers="[ana@example.com]")
    registry.subscribe("audit")
    registry.watch(BEGIN)

    registry.watch(MISSED)

    assert titles(slack, "#billing", "#audit") == [("#billing", "ERROR: raw is missing: day=2026-05-10")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("contract: raw\nconsumer: {team: billing\n", "this is not YAML"),
        (
            "contract: raw\nmajor: 1\nconsumer: {team: billing}\npurpose: Invoices.\n",
            "the subscription needs 'startDate'",
        ),
        ("{team: billing", "this is not YAML"),
    ],
)
def test_a_subscription_that_cannot_be_read_is_noted_once(
    registry: Registry, slack: FakeSlack, text: str, problem: str
) -> None:
    registry.put("registry/mart.odcs.yaml", contract("mart"))
    registry.put("registry/subscriptions/billing.yaml", text)
    registry.watch(BEGIN)

    printed = registry.watch(MISSED)

    (note,) = [line for line in printed.splitlines() if "Its consumer is not notified." in line]
    assert "subscriptions/billing.yaml:" in note
    assert problem in note


@pytest.mark.parametrize("policy", ["rules: 5", "a folder"])
def test_a_policy_that_cannot_be_read_silences_consumers_and_not_the_owners(
    registry: Registry, slack: FakeSlack, policy: str
) -> None:
    registry.subscribe("billing")
    registry.watch(BEGIN)
    file = registry.put("registry/dq-policy.yaml", policy)
    if policy == "a folder":
        file.unlink()
        file.mkdir()

    printed = registry.watch(MISSED)

    assert titles(slack) == [("#raw", "ERROR: raw is missing: day=2026-05-10")]
    assert "Consumers are not notified." in printed


_WATCHER = "import sys; from dq.cli.main import run; sys.exit(run(sys.argv[1:]))"


def watch_in_process(registry: Registry, at: str) -> subprocess.Popen[bytes]:
    """`dq watch` in a process of its own."""
    words = ["watch", "registry", "--as-of", at]
    return subprocess.Popen([sys.executable, "-c", _WATCHER, *words], cwd=registry.folder)


def test_two_watchers_at_once_notify_once(registry: Registry, slack: FakeSlack) -> None:
    for team in ("billing", "audit", "search"):
        registry.subscribe(team)
        registry.subscribe(team, "mart")
    registry.watch(BEGIN)

    watchers = [watch_in_process(registry, MISSED) for _ in range(2)]

    assert [watcher.wait(timeout=300) in (0, 1) for watcher in watchers] == [True, True]
    registry.watch(LATER)
    posted = [(NAMES[post["channel"]], post.get("thread_ts")) for post in slack.posts]
    assert sorted(row for row in posted if row[0] in ("#billing", "#audit", "#search")) == [
        ("#audit", None),
        ("#billing", None),
        ("#search", None),
    ]


@pytest.mark.parametrize("accept", [True, False], ids=["after", "before"])
def test_a_watcher_killed_at_the_answer_of_slack_neither_loses_nor_doubles(
    registry: Registry, slack: FakeSlack, accept: bool
) -> None:
    for team in ("billing", "audit", "search"):
        registry.subscribe(team)
    registry.watch(BEGIN)
    registry.watch(MISSED)
    registry.came("raw", "2026-05-11T08:00:00Z")

    watcher = watch_in_process(registry, "2026-05-11T08:05:00Z")
    slack.fault("chat.postMessage", "kill", pid=watcher.pid, accept=accept)

    assert watcher.wait(timeout=300) == -9
    for minute in ("07", "09", "11"):
        registry.watch(f"2026-05-11T08:{minute}:00Z")
    ends = [NAMES[post["channel"]] for post in slack.posts if "thread_ts" in post]
    assert sorted(ends) == ["#audit", "#billing", "#raw", "#search"]
    assert {text.split(":")[0] for _, text in titles(slack)} == {"RESOLVED"}


_GIT = """\
#!{python}
import os, sqlite3, sys
store = sqlite3.connect({store!r}, timeout=0)
try:
    store.execute("BEGIN IMMEDIATE")
    state = "free"
except sqlite3.OperationalError:
    state = "locked"
store.close()
with open({log!r}, "a") as log:
    log.write(state + "\\n")
os.execv({git!r}, [{git!r}, *sys.argv[1:]])
"""


@pytest.fixture
def git_log(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which each call of Git notes whether another writer of the store could begin.

    Git is called for the approval of a subscription to personal data.
    """
    store, log = registry.folder / "own.db", registry.folder / "git.log"
    monkeypatch.setenv("DQ_STORE_URL", f"sqlite:///{store}")
    personal = CHECKED.replace(
        "string\n        required", "string\n        classification: pii\n        required"
    )
    team = "team: {name: sales, members: [{username: ana@example.com, role: owner}]}\nservers:"
    parts = {ID: personal, "path: lake": f"path: {registry.folder}/lake", "servers:": team}
    registry.put("registry/raw.odcs.yaml", contract("raw", **parts, **{"90%": "50%"}))
    registry.subscribe("billing", approvers="[ana@example.com]")
    git = str(shutil.which("git"))
    subprocess.run([git, "init", "-q"], cwd=registry.folder / "registry", check=True)
    text = _GIT.format(python=sys.executable, store=str(store), log=str(log), git=git)
    program = registry.put("bin/git", text)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return log


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("command", ["watch", pytest.param("check", marks=pytest.mark.spark)])
def test_approvals_are_read_while_the_store_is_free_for_others(
    registry: Registry, git_log: Path, command: str
) -> None:
    registry.watch(BEGIN)
    partition = registry.folder / "lake/raw/day=2026-05-10"
    words = {"watch": ["registry"], "check": ["registry/raw.odcs.yaml", "--partition", partition.name]}
    if command == "check":
        partition.mkdir(parents=True)
        columns = {"id": [1], "amount": [-1.0], "email": ["eve"]}
        pq.write_table(pa.table(columns), partition / "part-0.parquet")

    ran = registry.dq(command, *words[command], "--as-of", MISSED)

    assert "Its consumer is not notified." in ran.all
    assert set(git_log.read_text().split()) == {"free"}


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_no_subscription_is_read_for_an_error_budget(registry: Registry, git_log: Path) -> None:
    registry.watch(BEGIN)
    for day in range(10, 14):
        registry.came("raw", f"2026-05-{day + 1}T08:00:00Z", f"2026-05-{day}")
    registry.watch("2026-05-14T08:05:00Z")
    git_log.unlink(missing_ok=True)
    now, since = datetime(2026, 5, 14, 9, tzinfo=UTC), datetime(2026, 5, 11, tzinfo=UTC)

    for undo in (False, True):
        dq.excuse(
            "registry", by="ana", reason="holiday", since=since, until=now, undo=undo,
            folder=registry.folder, now=now + timedelta(minutes=undo),
        )  # fmt: skip

    opened = registry.dq("incidents", "--format", "json", "--as-of", "2026-05-14T09:15:00Z").json
    assert "daily:budget" in str(opened), opened
    assert not git_log.exists()

"""Breaches reach the consumers that they affect: each once, with its own consequence, and its end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.command import BEGIN, MISSED, Place, contract
from fakes.slack import TOKEN, FakeSlack

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

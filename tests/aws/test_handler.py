"""`dq.aws.handler` under Lambda's own runtime interface client, with S3, a store and Slack over the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from fakes import postgres
from fakes.aws_lake import Lake, begin, object_created, payload, sqs, write_contract
from fakes.lambda_runtime import FunctionError, Killed, LambdaRuntime, environment
from fakes.slack import TOKEN, FakeSlack
from sqlalchemy import update

from dq.alerts.tables import outbox
from dq.cli.main import run
from dq.store.engine import open_store


@pytest.fixture(scope="module")
def lake() -> Iterator[Lake]:
    with Lake() as made:
        yield made


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with FakeSlack(channels={"#orders": "C0ORDERS01", "#lines": "C0LINES001"}) as made:
        yield made


@contextmanager
def function(
    folder: Path, lake: Lake, slack: FakeSlack | None = None, **variables: str
) -> Iterator[LambdaRuntime]:
    """The function with the registry of the folder, after a first tick an hour ago."""
    with postgres.new_store() as url:
        shared = {**lake.variables, "DQ_STORE_URL": url, **variables}
        if slack is not None:
            shared |= {"SLACK_BOT_TOKEN": TOKEN, "DQ_SLACK_URL": slack.url}
        begin(folder, shared)
        lake.requests.clear()
        with LambdaRuntime(environment(**shared), folder) as runtime:
            yield runtime


def due(ago: timedelta) -> datetime:
    """The due time of a delivery whose breach was so long ago."""
    return datetime.now(UTC).replace(microsecond=0) - ago - timedelta(minutes=1)


def key(at: datetime, name: str, table: str = "orders") -> str:
    return f"sales/{table}/day={at:%F}/{name}"


def test_a_schedule_finds_a_breach_and_alerts_once(tmp_path: Path, lake: Lake, slack: FakeSlack) -> None:
    write_contract(tmp_path, due(timedelta(minutes=5)))
    write_contract(tmp_path, due(timedelta(minutes=5)), "lines")
    with function(tmp_path, lake, slack) as watcher:
        first = watcher.invoke(payload())
        again = watcher.invoke(payload())

    (verdict,) = first["verdicts"]
    assert (verdict["contract"], verdict["slo"], verdict["status"]) == ("orders", "daily", "missing")
    assert again["verdicts"] == first["verdicts"]
    # The other contract is as late, and not this schedule's.
    assert len(slack.roots) == 1
    assert "orders is missing" in str(slack.roots[0])


def test_a_breach_that_is_a_minute_old_at_most_is_alerted_in_the_same_call(
    tmp_path: Path, lake: Lake, slack: FakeSlack
) -> None:
    with postgres.new_store() as url:
        shared = {
            **lake.variables,
            "DQ_STORE_URL": url,
            "SLACK_BOT_TOKEN": TOKEN,
            "DQ_SLACK_URL": slack.url,
        }
        write_contract(tmp_path, due(timedelta(seconds=40)))
        begin(tmp_path, shared)
        with LambdaRuntime(environment(**shared), tmp_path) as watcher:
            answer = watcher.invoke(payload())
        # Without the time to wait, the next tick alerts.
        with LambdaRuntime(environment(**shared), tmp_path, timeout_seconds=20) as watcher:
            hurried = watcher.invoke(payload())

    assert [tick["sent"] for tick in answer["ticks"]] in ([0, 1], [1])
    assert answer["verdicts"][0]["status"] == "missing"
    assert len(hurried["ticks"]) == 1


def test_object_events_deliver_without_a_list_and_what_is_no_delivery_does_not(
    tmp_path: Path, lake: Lake, slack: FakeSlack
) -> None:
    at = due(timedelta(minutes=5))
    write_contract(tmp_path, at)
    with function(tmp_path, lake, slack) as watcher:
        noise = [
            object_created(key(at, "_temporary/0/part-0.parquet"), at),
            object_created(key(at, ".part-0.parquet.crc"), at),
            object_created(key(at, "_SUCCESS", "orders_copy"), at),
        ]
        ignored = watcher.invoke(sqs([*noise, {"not": "an event"}]))
        delivered = watcher.invoke(object_created(key(at, "_SUCCESS"), at, size=0))
        evaluated = watcher.invoke(payload())

    assert (ignored["recorded"], ignored["ignored"], ignored["verdicts"]) == (0, 3, [])
    assert ignored["batchItemFailures"] == [{"itemIdentifier": "message-3"}]
    assert (delivered["recorded"], delivered["verdicts"]) == (1, [])
    (verdict,) = evaluated["verdicts"]
    assert (verdict["status"], verdict["source"]) == ("on_time", "event")
    assert lake.lists == []
    assert slack.roots == []


def test_events_of_more_contracts_than_fit_into_the_call_are_left_to_the_next_tick(
    tmp_path: Path, lake: Lake
) -> None:
    at = due(timedelta(minutes=5))
    names = ("orders", "lines")
    for name in names:
        write_contract(tmp_path, at, name)
    with postgres.new_store() as url:
        shared = {**lake.variables, "DQ_STORE_URL": url}
        begin(tmp_path, shared)
        events = [object_created(key(at, "_SUCCESS", name), at, size=0) for name in names]
        with LambdaRuntime(environment(**shared), tmp_path, timeout_seconds=60) as watcher:
            for name in names:
                watcher.invoke(payload(name))
        # Less is left than what a tick may take.
        with LambdaRuntime(environment(**shared), tmp_path, timeout_seconds=20) as watcher:
            hurried = watcher.invoke(sqs(events))
            tick = watcher.invoke({"tick": True})

    assert (hurried["recorded"], hurried["ticks"], hurried["batchItemFailures"]) == (2, [], []), hurried
    assert sorted(hurried["deferred"]) == ["lines", "orders"]
    assert [change["after"] for change in tick["ticks"][0]["changes"]] == ["on_time", "on_time"]


def test_a_late_object_ends_the_incident_with_its_event(tmp_path: Path, lake: Lake, slack: FakeSlack) -> None:
    at = due(timedelta(minutes=5))
    write_contract(tmp_path, at)
    with function(tmp_path, lake, slack) as watcher:
        watcher.invoke(payload())
        late = datetime.now(UTC).replace(microsecond=0)
        lake.requests.clear()
        answer = watcher.invoke(sqs([object_created(key(at, "_SUCCESS"), late, size=0)]))
        tick = watcher.invoke({"tick": True})

    (verdict,) = answer["verdicts"]
    assert (verdict["status"], verdict["delivered_at"]) == ("late", late.isoformat())
    assert answer["batchItemFailures"] == []
    assert lake.lists == []
    assert tick["ticks"][0]["slos"] == 1
    assert len(slack.roots) == 1


def test_the_role_of_the_stack_allows_what_the_function_requests(
    tmp_path: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_contract(tmp_path, due(timedelta(minutes=5)))
    with function(tmp_path, lake) as watcher:
        watcher.invoke(payload())
        watcher.invoke({"tick": True})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DQ_LAKE_ROOTS", "s3://lake")
    assert run(["register", "registry", "--emit-landing-zone", "--watcher"]) == 0
    role = json.loads(capsys.readouterr().out)["Resources"]["WatcherRole"]["Properties"]
    statements = [one for one in role["Policies"][0]["PolicyDocument"]["Statement"] if "Fn::If" not in one]
    files = [
        one["Fn::Sub"].partition(":::")[2]
        for statement in statements
        if statement["Action"] == ["s3:GetObject"]
        for one in statement["Resource"]
    ]
    (listed,) = [one for one in statements if one["Action"] == ["s3:ListBucket"]]
    prefixes = listed["Condition"]["StringLike"]["s3:prefix"]

    assert lake.requests
    for method, target in lake.requests:
        path, query = urlsplit(target).path.strip("/"), parse_qs(urlsplit(target).query)
        patterns, name = (prefixes, query["prefix"][0]) if "list-type" in query else (files, path)
        # Whether the bucket itself exists; and an object with the name of the table's folder.
        known = method == "HEAD" and path in ("lake", "lake/sales/orders")
        assert known or any(fnmatchcase(name, pattern) for pattern in patterns), (method, target)
        assert method in ("GET", "HEAD")


@pytest.mark.parametrize("accept", [True, False], ids=["after Slack took it", "before Slack took it"])
def test_a_function_that_is_killed_while_it_alerts_has_alerted_once_after_the_retry(
    tmp_path: Path, lake: Lake, slack: FakeSlack, accept: bool
) -> None:
    write_contract(tmp_path, due(timedelta(minutes=5)))
    with function(tmp_path, lake, slack) as watcher:
        process = watcher.start()
        slack.fault("chat.postMessage", "kill", pid=process.pid, accept=accept)
        with pytest.raises(Killed):
            watcher.invoke(payload())
        # As Lambda repeats an asynchronous call, at once and after the lease of the dead sender has ended.
        answer = watcher.invoke(payload())
        assert len(slack.roots) == int(accept)
        with open_store(watcher.variables["DQ_STORE_URL"]).write() as tx:
            tx.execute(update(outbox).values(lease_until=datetime.now(UTC)))
        for _ in range(2):
            watcher.invoke({"tick": True})

    assert answer["verdicts"][0]["status"] == "missing"
    assert len(slack.roots) == 1


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ({"hello": "world"}, "unknown event (hello)"),
        (payload("gone"), "contract 'gone' is not in the registry"),
    ],
)
def test_what_cannot_be_evaluated_fails_the_call_with_a_clear_error(
    tmp_path: Path, lake: Lake, event: dict[str, object], text: str
) -> None:
    write_contract(tmp_path, due(timedelta(minutes=5)))
    with (
        function(tmp_path, lake) as watcher,
        pytest.raises(FunctionError, match=text.replace("(", r"\(")[:-1]),
    ):
        watcher.invoke(event)


def test_a_store_that_dies_with_the_function_is_refused_without_its_secret(
    tmp_path: Path, lake: Lake
) -> None:
    write_contract(tmp_path, due(timedelta(minutes=5)))
    for url in ("", "sqlite:////tmp/secret.db"):
        with LambdaRuntime(environment(**lake.variables, DQ_STORE_URL=url), tmp_path) as watcher:
            with pytest.raises(FunctionError, match="needs a store that outlives the function") as error:
                watcher.invoke({"tick": True})
            assert "secret" not in str(error.value.report)

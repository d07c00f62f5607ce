"""Consumers who subscribe to a topic of SNS: what their queues hear, through moto's server over HTTP."""

from __future__ import annotations

import json
import re
import textwrap
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import boto3
import jsonschema
import pytest
from fakes import children
from fakes.flights import contract, flights
from fakes.glue import REGION, GlueShim
from fakes.quiet_server import QuietServer

from dq.contracts.outcome import DqError
from dq.registry import publications
from dq.registry.aws.sns import MessageRefused, _client, publish_to_topic
from dq.registry.publications import (
    ConsumerNotice,
    DeliveryEvent,
    TargetUnavailable,
    build_publication,
    send_notices,
)
from dq.store.engine import Store

SCHEMA = json.loads(
    (Path(__file__).parents[3] / "docs" / "reference" / "delivery-event.schema.json").read_text()
)
TOPIC = f"arn:aws:sns:{REGION}:123456789012:dq-air"


@dataclass
class Consumers:
    """Queues that are subscribed with filter policies, and what they hear."""

    sns: Any
    sqs: Any

    def subscribe(self, name: str, policy: dict[str, list[Any]]) -> Callable[[], list[dict[str, Any]]]:
        """A new queue with raw delivery; gives what it heard since it was asked last."""
        url = self.sqs.create_queue(QueueName=name)["QueueUrl"]
        arn = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        self.sns.subscribe(
            TopicArn=TOPIC,
            Protocol="sqs",
            Endpoint=arn["Attributes"]["QueueArn"],
            Attributes={"RawMessageDelivery": "true", "FilterPolicy": json.dumps(policy)},
        )

        def heard() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = []
            while messages := self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
                for message in messages:
                    found.append(json.loads(message["Body"]))
                    self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            return found

        return heard


@pytest.fixture
def consumers(glue: GlueShim) -> Consumers:
    _client.cache_clear()
    made = Consumers(*(boto3.client(name, region_name=REGION) for name in ("sns", "sqs")))
    assert made.sns.create_topic(Name="dq-air")["TopicArn"] == TOPIC
    return made


def event(number: int = 1, revision: int = 1, **changed: Any) -> DeliveryEvent:
    made = contract("/lake")
    one = build_publication(
        made,
        made.objects[0],
        flights("/lake"),
        server="lake",
        environment="prod",
        catalog="local",
        partition={"flight_date": "2026-11-20", "hour": str(number)},
        rows=number,
    )
    at = datetime(2026, 11, 20, 6, tzinfo=UTC)
    return DeliveryEvent(f"id-{number}-{revision}", replace(one, **changed), at, revision)


def noted(store: Store, *events: DeliveryEvent) -> None:
    with store.write() as tx:
        for one in events:
            publications.write(tx, one, [TOPIC], datetime.now(UTC))


def send(store: Store, **how: Any) -> int:
    return send_notices(store, {TOPIC: publish_to_topic}, lambda: datetime.now(UTC), **how)


def test_each_consumer_hears_what_the_filter_policy_asks_for(consumers: Consumers, store: Store) -> None:
    everything = consumers.subscribe("all", {})
    mine = consumers.subscribe("mine", {"contract": ["air-flights"], "major_version": ["1"]})
    again = consumers.subscribe("again", {"event": ["redelivered"]})
    trial = consumers.subscribe("trial", {"environment": ["trial"]})
    homeless = consumers.subscribe("none", {"domain": ["none"]})
    noted(
        store,
        event(1),
        event(1, revision=2),
        event(2, contract="other"),
        event(3, contract_version="2.0.0", environment="trial"),
        event(4, domain="", environment=""),
    )

    assert send(store) == 5
    ids = [sorted(one["id"] for one in heard()) for heard in (everything, mine, again, trial, homeless)]

    assert ids == [
        ["id-1-1", "id-1-2", "id-2-1", "id-3-1", "id-4-1"],
        ["id-1-1", "id-1-2", "id-4-1"],
        ["id-1-2"],
        ["id-3-1"],
        ["id-4-1"],
    ]


def test_what_is_heard_is_a_cloud_event_by_the_schema(consumers: Consumers, store: Store) -> None:
    heard = consumers.subscribe("all", {})
    cycle = datetime(2026, 11, 20, 6, tzinfo=UTC)
    noted(store, event(1), event(1, revision=2), event(2, rows=None, domain="", values=(), cycle=cycle))

    send(store)

    found = heard()
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for one in found:
        jsonschema.validate(one, SCHEMA, format_checker=jsonschema.FormatChecker())
    assert len(found) == 3
    assert found[0]["type"] in ("dq.delivery.delivered", "dq.delivery.redelivered")


def test_a_topic_that_is_down_keeps_what_waits_and_is_asked_once(
    consumers: Consumers, store: Store, glue: GlueShim, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = consumers.subscribe("all", {})
    noted(store, *(event(number) for number in range(3)))
    monkeypatch.setenv("AWS_ENDPOINT_URL_SNS", "http://127.0.0.1:9")
    _client.cache_clear()

    nothing = send(store)
    with store.read() as tx:
        (waiting,) = publications.pending_notices(tx)
    monkeypatch.delenv("AWS_ENDPOINT_URL_SNS")
    _client.cache_clear()
    done = send(store)

    assert (nothing, done) == (0, 3)
    assert (waiting.target, waiting.number) == (TOPIC, 3)
    assert "Consumers could not be notified: AWS did not answer" in waiting.problem
    assert sorted(one["id"] for one in heard()) == ["id-0-1", "id-1-1", "id-2-1"]


class Page(BaseHTTPRequestHandler):
    """What a proxy answers to everything, as `status` and `body` of its server say."""

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.server.status)  # type: ignore[attr-defined]
        self.end_headers()
        self.wfile.write(self.server.body)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"<!DOCTYPE html><title>Log in</title>", "received a web page, e.g. from a proxy"),
        (200, b"\n <HTML>Log in</HTML>", "received a web page, e.g. from a proxy"),
        (200, b"", "AWS did not answer"),
        (500, b"gateway is tired", "AWS did not answer"),
    ],
)
def test_what_is_no_answer_of_aws_leaves_the_notice_waiting(
    consumers: Consumers,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    body: bytes,
    said: str,
) -> None:
    server: Any = QuietServer(("127.0.0.1", 0), Page)
    server.status, server.body = status, body
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_SNS", f"http://127.0.0.1:{server.server_port}")
    _client.cache_clear()
    noted(store, event(1))

    sent = send(store)

    server.shutdown()
    server.server_close()
    with store.read() as tx:
        (waiting,) = publications.pending_notices(tx)
    assert (sent, said in waiting.problem) == (0, True), waiting.problem


def test_a_topic_that_does_not_exist_is_down_and_says_so(consumers: Consumers) -> None:
    notice = ConsumerNotice("id", TOPIC.replace("air", "sea"), "{}", (("event", "delivered"),))

    with pytest.raises(TargetUnavailable, match=r"AWS refused to publish to .*dq-sea"):
        publish_to_topic(notice)


@pytest.mark.parametrize(
    ("body", "attributes", "said"),
    [
        pytest.param("x" * 262_145, (("event", "delivered"),), "262165 bytes with its attributes", id="size"),
        pytest.param("{}", (("event", ""),), "MessageAttributes.event: empty", id="empty"),
        pytest.param("", (), "Message: empty", id="no body"),
        pytest.param("{}", (("AWS.x", "y"),), "'AWS.x' is not a valid attribute name", id="name"),
        pytest.param("{}", tuple((f"a{n}", "y") for n in range(11)), "a queue with raw delivery", id="many"),
    ],
)
def test_a_message_that_sns_would_not_take_is_refused_before_it_leaves_and_alone(
    consumers: Consumers, store: Store, body: str, attributes: tuple[tuple[str, str], ...], said: str
) -> None:
    heard = consumers.subscribe("all", {})

    with pytest.raises(MessageRefused, match=said):
        publish_to_topic(ConsumerNotice("id", TOPIC, body, attributes))

    assert heard() == []


def test_a_message_that_is_refused_holds_up_no_other(consumers: Consumers, store: Store) -> None:
    heard = consumers.subscribe("all", {})
    noted(store, event(1, folder="x" * 300_000), event(2))

    assert send(store) == 1

    with store.read() as tx:
        (waiting,) = publications.pending_notices(tx)
    assert "SNS would reject this message" in waiting.problem
    assert [one["id"] for one in heard()] == ["id-2-1"]


def test_a_message_that_was_sent_without_an_answer_is_sent_again_with_the_same_id(
    consumers: Consumers, store: Store
) -> None:
    """SNS is at least once: a lost answer cannot be told from a lost message."""
    heard = consumers.subscribe("all", {})
    noted(store, event(1))
    asked = 0

    def loses_the_answer(notice: ConsumerNotice) -> None:
        nonlocal asked
        publish_to_topic(notice)
        asked += 1
        if asked == 1:
            raise DqError("The answer was lost.")

    places = {TOPIC: loses_the_answer}
    sent = [send_notices(store, places, lambda: datetime.now(UTC)) for _ in range(3)]

    assert sent == [0, 1, 0]
    assert Counter(one["id"] for one in heard()) == {"id-1-1": 2}


# Sends what waits, and is killed just before or after the n-th commit: taken, sent.
CHILD = """
    import os, sys
    from datetime import UTC, datetime, timedelta
    from sqlalchemy import event
    from dq.registry.publications import send_notices
    from dq.registry.aws.sns import publish_to_topic
    from dq.store.engine import open_store

    for pair in sys.argv[5].split(";"):
        name, _, value = pair.partition("=")
        os.environ[name] = value
    store = open_store(sys.argv[1])
    commits = 0

    def die(connection):
        global commits
        if connection.get_execution_options().get("dq_write"):
            commits += 1
            if commits == int(sys.argv[4]):
                if sys.argv[3] == "after":
                    connection.connection.dbapi_connection.execute("COMMIT")
                os.kill(os.getpid(), 9)

    event.listen(store.engine, "commit", die)
    places = {sys.argv[2]: publish_to_topic}
    send_notices(store, places, lambda: datetime.now(UTC), lease=timedelta(seconds=1))
"""


@pytest.mark.parametrize(
    ("when", "count", "copies"),
    [("before", 1, 1), ("after", 1, 1), ("before", 2, 2), ("after", 2, 1)],
)
def test_a_kill_while_sending_loses_nothing_and_repeats_an_id_at_most(
    consumers: Consumers, store: Store, glue: GlueShim, when: str, count: int, copies: int
) -> None:
    heard = consumers.subscribe("all", {})
    noted(store, event(1))
    environment = ";".join(f"{name}={value}" for name, value in glue.environment.items())
    url = f"sqlite:///{store.engine.url.database}"

    ended, _ = children.run(textwrap.dedent(CHILD), url, TOPIC, when, count, environment)
    done = send(store, event_id="id-1-1", lease=timedelta(seconds=1))

    assert ended == -9
    assert done == (0 if (when, count) == ("after", 2) else 1)
    assert Counter(one["id"] for one in heard()) == {"id-1-1": copies}
    with store.read() as tx:
        assert publications.pending_notices(tx) == []


def test_the_page_for_consumers_subscribes_and_hears_as_it_says(
    consumers: Consumers, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "subscribe.md").read_text()
    programs = dict(re.findall(r"```python not-run (\w+)\n(.*?)```", page, re.DOTALL))
    shown = json.loads(re.search(r"```json\n(.*?)```", page, re.DOTALL)[1])  # type: ignore[index]
    consumers.sns.create_topic(Name="dq-sales")
    topic = TOPIC.replace("air", "sales")
    orders = event(1, contract="orders", environment="prod")
    with store.write() as tx:
        for one in (orders, event(2), event(3, contract="orders", environment="trial")):
            publications.write(tx, one, [topic], datetime.now(UTC))

    exec(programs["subscribe"], {})
    send_notices(store, {topic: publish_to_topic}, lambda: datetime.now(UTC))
    exec(programs["consume"], {})

    jsonschema.validate(shown, SCHEMA, format_checker=jsonschema.FormatChecker())
    said = "dq.delivery.delivered air_flights.flights {'flight_date': '2026-11-20', 'hour': '1'}\n"
    assert capsys.readouterr().out == said

"""What `dq metrics` gives is what stands in the store, and both parsers of Prometheus take it."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import stat
import subprocess
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from fakes.breaches import breach, recovery
from fakes.slack import TOKEN, FakeSlack
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_prometheus

from dq.alerts.channels import load
from dq.alerts.drain import drain
from dq.alerts.record import acknowledge, record
from dq.alerts.route import AlertRoute
from dq.contracts.incident import IncidentKey
from dq.contracts.outcome import Severity, UsageError
from dq.operations import metrics
from dq.operations.metrics import TABLE, MetricSample, MetricsServer, parse_address, render
from dq.store import open_store

MONITORING = Path(__file__).parents[2] / "examples" / "monitoring"
SLACK = (AlertRoute("slack", "#orders-alerts"),)


def families(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Every sample, by its name and the values of its labels, as the parser of Prometheus reads them."""
    return {
        name: {tuple(one.labels.values()): one.value for one in family.samples if one.name == name}
        for family in read_prometheus(text)
        for name in {one.name for one in family.samples}
    }


@pytest.fixture
def figures(dq, url, monkeypatch):
    """What the command gives for the store of this test, as of an instant."""
    monkeypatch.setenv("DQ_STORE_URL", url)

    def read(as_of: str = "2026-05-01T08:30:00Z") -> dict[str, dict[tuple[str, ...], float]]:
        ran = dq("metrics", "--as-of", as_of)
        assert ran.code == 0, ran.err
        return families(ran.out)

    return read


@pytest.fixture
def store(url):
    opened = open_store(url)
    yield opened
    opened.close()


def test_a_promise_is_counted_as_status_counts_it(folder, dq, url, monkeypatch):
    monkeypatch.setenv("DQ_STORE_URL", url)
    (folder / "lake").mkdir()
    dq("watch", "orders.odcs.yaml", "--channel", "console", "--as-of", "2026-05-01T00:00:00Z")
    for day in range(1, 21):
        if day not in (5, 6, 7):
            marker = folder / "lake" / f"day=2026-05-{day:02}" / "_SUCCESS"
            marker.parent.mkdir()
            marker.touch()
            os.utime(marker, (datetime(2026, 5, day + 1, 5, tzinfo=UTC).timestamp(),) * 2)
    dq("watch", "orders.odcs.yaml", "--channel", "console", "--as-of", "2026-05-21T12:00:00Z")

    shown = dq("status", "orders.odcs.yaml", "--format", "json", "--as-of", "2026-05-21T12:00:00Z")
    found = families(dq("metrics", "--as-of", "2026-05-21T12:05:00Z").out)

    (delivery,) = shown.json["deliveries"]
    label = ("orders", "orders", "orders", "daily")
    assert (delivery["bad"], delivery["allowed"]) == (4, 2), "three days never came, and one may yet"
    assert found["dq_slo_objective_ratio"] == {label: 0.9}
    assert found["dq_slo_attainment_ratio"] == {label: pytest.approx(delivery["attainment"])}
    assert found["dq_error_budget_allowed_cycles"] == {label: delivery["allowed"]}
    assert found["dq_error_budget_remaining_cycles"] == {label: delivery["allowed"] - delivery["bad"]}
    assert found["dq_open_cycles"] == {
        ("missing",): sum(one["status"] == "missing" for one in delivery["cycles"]),
        ("unknown",): 0,
    }
    assert found["dq_last_tick_age_seconds"] == {(): 300}
    assert found["dq_watched_slos"] == {(): 1}


def test_what_is_promised_no_more_is_shown_no_more(folder, dq, url, monkeypatch):
    monkeypatch.setenv("DQ_STORE_URL", url)
    (folder / "lake").mkdir()
    file = folder / "orders.odcs.yaml"
    dq("watch", file.name, "--channel", "console", "--as-of", "2026-05-01T00:00:00Z")
    before = families(dq("metrics", "--as-of", "2026-05-01T00:00:00Z").out)
    good = file.read_text()

    file.write_text(good.replace("objective: 90%", "objective: 900%"))
    dq("watch", file.name, "--channel", "console", "--as-of", "2026-05-01T00:01:00Z")
    not_understood = families(dq("metrics", "--as-of", "2026-05-01T00:01:00Z").out)
    file.write_text(good.replace("status: active", "status: retired"))
    dq("watch", file.name, "--channel", "console", "--as-of", "2026-05-01T00:02:00Z")
    retired = families(dq("metrics", "--as-of", "2026-05-01T00:02:00Z").out)

    assert [one["dq_watched_slos"][()] for one in (before, not_understood, retired)] == [1, 1, 0]
    assert "dq_slo_attainment_ratio" not in before, "nothing counted yet, which is no share"


def test_incidents_are_counted_by_severity_and_state(figures, store):
    now = datetime(2026, 5, 1, 8, 30, tzinfo=UTC)
    with store.write() as tx:
        for number, severity in enumerate([Severity.ERROR, Severity.ERROR, Severity.CRITICAL]):
            done = record(tx, breach(1, severity, IncidentKey("c", f"o{number}", "daily")), SLACK, now)
        acknowledge(tx, done, "ana", now)

    found = figures()["dq_open_incidents"]

    assert len(found) == 12
    assert {labels for labels, count in found.items() if count} == {("error", "open"), ("critical", "acked")}
    assert found["error", "open"] == 2


def test_the_outbox_has_a_depth_an_age_and_refusals(figures, store):
    now = datetime(2026, 5, 1, 8, 20, tzinfo=UTC)
    with store.write() as tx:
        record(tx, breach(1), SLACK, now)
    waiting = figures()

    with FakeSlack(now=now.timestamp) as slack:
        opened = load()["slack"].open({"token": TOKEN, "base_url": slack.url}, print)
        drain(store, {"slack": opened}, lambda: now + timedelta(seconds=90))
    sent = figures()

    assert waiting["dq_outbox_waiting_messages"] == {("slack",): 1}
    assert waiting["dq_outbox_oldest_age_seconds"] == {("slack",): 600}
    assert "dq_send_latency_seconds_count" not in waiting
    assert sent["dq_outbox_waiting_messages"] == {("slack",): 0}
    assert sent["dq_outbox_oldest_age_seconds"] == {("slack",): 0}
    assert sent["dq_outbox_refused_messages"] == {("slack",): 0}
    assert sent["dq_send_latency_seconds_sum"] == {("slack",): 90}
    buckets = sent["dq_send_latency_seconds_bucket"]
    assert (buckets["slack", "60.0"], buckets["slack", "120.0"], buckets["slack", "+Inf"]) == (0, 1, 1)


def test_what_followed_a_message_does_not_make_it_late(figures, store):
    now = datetime(2026, 5, 1, 8, 20, tzinfo=UTC)
    with FakeSlack(now=now.timestamp) as slack:
        opened = {"slack": load()["slack"].open({"token": TOKEN, "base_url": slack.url}, print)}
        for event, minutes in ((breach(1), 0), (recovery(1), 300)):
            at = now + timedelta(minutes=minutes)
            with store.write() as tx:
                record(tx, event, SLACK, at)
            drain(store, opened, lambda at=at: at)

    found = figures("2026-05-01T14:00:00Z")

    assert found["dq_send_latency_seconds_count"] == {("slack",): 1}
    assert found["dq_send_latency_seconds_sum"] == {("slack",): 0}


HOSTILE = 'a"b\\c\nd{x="1"} 7 \r\u2028é\ud800'


def test_what_a_contract_says_ends_no_label_and_no_line():
    labels = (HOSTILE, "c", "o", "s")
    samples = {"dq_slo_objective_ratio": [MetricSample(labels, 0.5)], "dq_store_up": [MetricSample((), 1)]}

    old = list(read_prometheus(render(samples).decode()))
    new = list(read_openmetrics(render(samples, openmetrics=True).decode()))

    for read in (old, new):
        assert [one.name for one in read] == ["dq_slo_objective_ratio", "dq_store_up"]
        assert read[0].samples[0].labels["product"] == HOSTILE.replace("\ud800", "?")


def every_metric() -> dict[str, list[MetricSample]]:
    return {
        row.name: [MetricSample(tuple("x" for _ in row.labels), [1.0, 5.5] if row.kind == "histogram" else 1)]
        for row in TABLE
    }


def test_openmetrics_holds_type_unit_and_help_of_every_row():
    text = render(every_metric(), openmetrics=True).decode()

    read = {one.name: one for one in read_openmetrics(text)}

    assert {name: (one.type, one.unit, one.documentation) for name, one in read.items()} == {
        row.name: (row.kind.value, row.unit, row.help) for row in TABLE
    }
    assert text.endswith("# EOF\n")


def test_the_older_format_holds_every_row_too():
    read = {one.name for one in read_prometheus(render(every_metric()).decode())}

    assert read == {f"{row.name}_info" if row.kind == "info" else row.name for row in TABLE}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_has_nothing_to_complain_of():
    text = render(every_metric())

    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)

    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_the_rules_fire_when_they_should():
    done = subprocess.run(
        ["promtool", "test", "rules", "dq-alerts.test.yml"],
        cwd=MONITORING,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_and_dashboard_name_metrics_that_there_are():
    rules = yaml.safe_load((MONITORING / "dq-alerts.yml").read_text())
    expressions = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    board = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    expressions += [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    tests = (MONITORING / "dq-alerts.test.yml").read_text()

    named = set(re.findall(r"\bdq_\w+", "\n".join([*expressions, tests])))

    there = {row.name for row in TABLE if row.kind != "histogram"}
    there |= {f"{row.name}_{part}" for row in TABLE for part in ("bucket", "sum", "count")}
    assert len(expressions) > 15
    assert named - there == set()


def test_a_file_is_replaced_all_at_once_and_readable_to_others(folder, dq, figures):
    open_store(os.environ["DQ_STORE_URL"]).close()
    (folder / "textfile").mkdir()
    file = folder / "textfile" / "dq.prom"
    file.write_text("before")
    held = file.open()

    ran = dq("metrics", "--output", str(file))

    assert (ran.code, ran.out) == (0, "")
    assert held.read() == "before", "who reads it now reads one of the two, and no mixture"
    held.close()
    assert families(file.read_text())["dq_store_up"] == {(): 1}
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert list(file.parent.iterdir()) == [file]


def test_without_a_store_nothing_is_made(folder, dq):
    ran = dq("metrics", "--output", "dq.prom")

    assert (ran.code, (folder / "dq.prom").exists(), (folder / ".dq").exists()) == (3, False, False)
    assert "Run 'dq watch' to create it" in ran.err


def test_an_older_schema_is_left_as_it_is(folder, dq, monkeypatch):
    import sqlite3

    monkeypatch.setenv("DQ_STORE_URL", "sqlite:///old.db")
    open_store("sqlite:///old.db").close()
    with sqlite3.connect("old.db") as old:
        old.execute("UPDATE alembic_version SET version_num = '0012'")

    ran = dq("metrics")

    with sqlite3.connect("old.db") as old:
        assert old.execute("SELECT version_num FROM alembic_version").fetchone() == ("0012",)
    assert (ran.code, ran.out) == (3, "")
    assert "schema 0012" in ran.err


@pytest.mark.parametrize("text", ["0.0.0.0:9464", "[::]:9464", "10.0.0.7:1", "example.com:1"])
def test_an_address_that_others_reach_is_refused_unless_it_is_asked_for(dq, text):
    ran = dq("metrics", "--listen", text)

    assert (ran.code, "--any-address" in ran.err) == (2, True)
    assert parse_address(text, anywhere=True).is_local is False


@pytest.mark.parametrize("text", ["", "9464", ":9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "::1:9464"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(UsageError, match="is not an address"):
        parse_address(text, anywhere=True)


@pytest.fixture
def endpoint():
    """A server of one figure that counts how often it is read."""
    reads = []

    def read():
        reads.append(1)
        return {"dq_store_up": [MetricSample((), 1)]}

    with MetricsServer(parse_address("127.0.0.1:0"), read) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", reads
        server.shutdown()


def ask(url: str, **headers: str):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def test_the_endpoint_speaks_the_format_that_is_asked_for(endpoint):
    url, reads = endpoint

    old = ask(f"{url}/metrics")
    new = ask(f"{url}/metrics", Accept="application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.4")

    assert (old[0], new[0]) == (
        "text/plain; version=0.0.4; charset=utf-8",
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
    )
    assert families(old[1])["dq_store_up"] == {(): 1}
    assert [one.name for one in read_openmetrics(new[1])] == ["dq_store_up"]
    assert len(reads) == 1, "what many ask for at once is read once"


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {}, 404),
        ("/metrics/../x", {}, 404),
        ("/metrics", {"Host": "evil.example"}, 403),
        ("/metrics", {"Host": "127.0.0.1.evil.example:9464"}, 403),
    ],
)
def test_the_endpoint_gives_nothing_else(endpoint, path, headers, status):
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(endpoint[0] + path, **headers)

    assert refused.value.code == status
    refused.value.close()


def test_a_method_that_changes_something_is_none_here(endpoint):
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(f"{endpoint[0]}/metrics", b"x", method="POST"))

    assert refused.value.code == 501
    refused.value.close()


def test_connections_that_say_nothing_hold_no_other_up_for_long():
    samples = {"dq_store_up": [MetricSample((), 1)]}
    with MetricsServer(parse_address("127.0.0.1:0"), lambda: samples, request_seconds=3) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        port = server.server_address[1]
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(metrics.MAX_CONCURRENT_REQUESTS)]
        with pytest.raises((urllib.error.URLError, ConnectionError)):
            ask(f"http://127.0.0.1:{port}/metrics")
        later, until = "", time.monotonic() + 300
        while not later and time.monotonic() < until:
            with suppress(urllib.error.URLError, ConnectionError):
                _, later = ask(f"http://127.0.0.1:{port}/metrics")
            time.sleep(0.1)
        for one in idle:
            one.close()
        server.shutdown()

    assert "dq_store_up 1" in later


def test_a_store_that_goes_away_is_a_figure_and_no_end(folder, dq, url, monkeypatch):
    from dq.operations.metrics import gather_or_down
    from dq.operations.runtime.context import runtime_context

    monkeypatch.setenv("DQ_STORE_URL", "sqlite:///gone.db")

    samples, error = gather_or_down(runtime_context())

    assert samples["dq_store_up"] == [MetricSample((), 0)]
    assert set(samples) == {"dq_store_up", "dq_build"}
    assert error is not None

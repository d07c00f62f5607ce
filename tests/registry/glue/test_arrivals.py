"""`dq propose --deliveries --catalog glue`: partitions arrived when Glue got them, though files are newer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import boto3
import pytest
from fakes import views
from fakes.command import DAY, HEAD, ID, SCHEMA, Place, written
from fakes.glue import Answer, Call, GlueShim

FILE = "registry/orders.odcs.yaml"
FIRST, DAYS = date(2026, 1, 1), 60
LAKE = "{server: lake, type: s3, location: 's3://lake/orders', format: parquet}"


def registered_at(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 6, 10, tzinfo=UTC) + timedelta(days=1, minutes=day.day % 7)


def partitions_of_the_past(call: Call, forward: Callable[[], Answer]) -> Answer:
    """Glue's answer as it is a year later: moto creates every partition now."""
    answer = json.loads(forward().body)
    for partition in answer["Partitions"]:
        partition["CreationTime"] = registered_at(date.fromisoformat(partition["Values"][0])).timestamp()
    return Answer(200, json.dumps(answer).encode())


@pytest.fixture
def place(glue: GlueShim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    views.buckets(glue, monkeypatch)
    place = Place(tmp_path)
    place.put("registry/dq-policy.yaml", "{}\n")
    head = re.sub(r"- \{\{server: lake, .*\}\}", f"- {{{LAKE}}}", HEAD)
    place.put(FILE, written(head + SCHEMA + DAY + ID, "orders"))
    s3 = boto3.client("s3", region_name="us-east-1")
    for number in range(DAYS):
        day = FIRST + timedelta(days=number)
        s3.put_object(Bucket="lake", Key=f"orders/day={day}/part-0.parquet", Body=b"rewritten today")
    registered = place.dq("register", "registry", "--catalog", "glue", "--apply")
    assert registered.code == 0, registered.all
    return place


def test_partitions_arrived_when_glue_got_them(glue: GlueShim, place: Place) -> None:
    repaired = place.dq("repair", FILE, "--catalog", "glue", "--apply")
    by_files = place.dq("propose", FILE, "--deliveries", "--format", "json")
    glue.faults["GetPartitions"] = [partitions_of_the_past] * 3
    by_catalog = place.dq("propose", FILE, "--deliveries", "--catalog", "glue", "--format", "json")

    assert repaired.code == 0, repaired.all
    [proposal] = json.loads(by_files.out)
    assert proposal["deliveries"] == []
    [proposal] = json.loads(by_catalog.out)
    assert (proposal["source"], proposal["arrivals"]) == ("catalog", DAYS)
    [delivery] = proposal["deliveries"]
    assert (delivery["schedule"], delivery["timezone"]) == ("10 6 * * *", "UTC")
    assert delivery["cycles"] == DAYS


def test_a_table_that_is_not_registered_and_a_catalog_without_times(glue: GlueShim, place: Place) -> None:
    local = place.dq("propose", FILE, "--deliveries", "--catalog", "local")
    boto3.client("glue").delete_table(DatabaseName="orders", Name="orders")
    missing = place.dq("propose", FILE, "--deliveries", "--catalog", "glue")
    alone = place.dq("propose", FILE, "--catalog", "glue")

    assert (local.code, missing.code, alone.code) == (3, 3, 2)
    assert "the catalog local has no table" in local.err
    assert "orders: the catalog glue has no table" in missing.err
    assert "Register it, or omit --catalog to use the times of the files." in missing.err
    assert "--catalog needs --deliveries." in alone.err

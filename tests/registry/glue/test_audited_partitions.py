"""Partitions that were audited and published where they were staged, with Glue as the catalog: every command
reads them there, and so does a reader that knows only the catalog.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import views
from fakes.command import Place
from fakes.glue import GlueShim
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

QUALITY = ("{id: enough, metric: rowCount, mustBeGreaterThan: 2}",)
# Rows of each partition: 03 lies below the table, 04 where it was staged.
ROWS = {("a", "03"): 3, ("d", "03"): 3, ("a", "04"): 4, ("d", "04"): 5}


@dataclass(frozen=True)
class Buckets:
    """Buckets of moto, and their objects in a local folder, from which Spark reads `s3://`."""

    mirror: Path

    def put(self, bucket: str, folder: str, rows: int) -> None:
        content = io.BytesIO()
        pq.write_table(pa.table({"id": pa.array(range(rows), pa.int64())}), content)
        file = self.mirror / bucket / folder / "part-0.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.getvalue())
        boto3.client("s3").put_object(Bucket=bucket, Key=f"{folder}/part-0.parquet", Body=content.getvalue())


@pytest.fixture
def buckets(
    glue: GlueShim, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Buckets]:
    views.buckets(glue, monkeypatch)
    mounts = {"lake": "views", "staging": "run-1"}
    settings = {
        "fs.s3a.impl": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme",
        "fs.s3a.impl.disable.cache": "true",
        "fs.viewfs.overload.scheme.target.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    }
    for bucket, folder in mounts.items():
        (tmp_path / "mirror" / bucket / folder).mkdir(parents=True)
        settings[f"fs.viewfs.mounttable.{bucket}.link./{folder}"] = (
            f"file://{tmp_path}/mirror/{bucket}/{folder}"
        )
    hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]
    before = {key: hadoop.get(key) for key in settings}
    for key, value in settings.items():
        hadoop.set(key, value)
    yield Buckets(tmp_path / "mirror")
    for key, value in before.items():
        hadoop.unset(key) if value is None else hadoop.set(key, value)


@pytest.mark.parametrize("name", views.LAYOUTS)
def test_every_command_reads_it_at_its_location_in_the_catalog(
    buckets: Buckets, tmp_path: Path, name: str
) -> None:
    template, folder = views.LAYOUTS[name]
    place = Place(tmp_path)
    place.put("registry/dq-policy.yaml", "{}\n")
    text = views.contract("a, d", template=template, quality=QUALITY, delivery="evidence: [receipt]")
    file = str(place.put("registry/views.odcs.yaml", text))
    locations = {
        (tenant, f"2026-11-20 {hour}:00:00"): (
            f"s3://lake/views/{folder.format(tenant, hour)}/"
            if hour == "03"
            else f"s3://staging/run-1/{folder.format(tenant, hour)}/"
        )
        for tenant, hour in ROWS
    }
    for tenant in ("a", "d"):
        buckets.put("lake", f"views/{folder.format(tenant, '03')}", ROWS[tenant, "03"])
        buckets.put("staging", f"run-1/{folder.format(tenant, '04')}", ROWS[tenant, "04"])
    assert place.dq("register", "registry", "--catalog", "glue", "--apply").code == 0
    assert place.dq("repair", file, "--catalog", "glue", "--apply").code == 0
    assert place.dq("watch", file, "--as-of", "2026-11-20T04:00:00Z").code == 0

    # A delivery that fails its check is not published.
    buckets.put("staging", f"run-1/{folder.format('b', '04')}", 1)
    hour = ("--partition", "hour=2026-11-20 04:00:00")
    audit = (*hour, "--catalog", "glue", "--audit", "s3://staging/run-1", "--as-of", "2026-11-20T05:10:00Z")
    refused = place.dq("publish", file, "--partition", "tenant=b", *audit)
    published = [place.dq("publish", file, "--partition", f"tenant={tenant}", *audit) for tenant in "ad"]

    assert refused.code == 1, refused.all
    assert [ran.code for ran in published] == [0, 0], published[0].all
    glue, s3 = boto3.client("glue"), boto3.client("s3")
    partitions = glue.get_partitions(DatabaseName="web", TableName="views")["Partitions"]
    listed = {tuple(row["Values"]): row["StorageDescriptor"]["Location"] for row in partitions}
    assert listed == locations
    assert {key: rows_at(s3, location) for key, location in listed.items()} == {
        (tenant, f"2026-11-20 {hour}:00:00"): rows for (tenant, hour), rows in ROWS.items()
    }

    def rows_of(*words: str) -> Any:
        ran = place.dq(*words, "--format", "json")
        assert ran.code == 0, ran.all
        return ran.json[0]["rows"]

    assert rows_of("check", file, "--partition", "tenant=d/hour=2026-11-20 04:00:00") == 5
    assert rows_of("check", file, *hour) == 9
    assert rows_of("check", file, "--all") == 15
    assert rows_of("tables", "registry") == 15
    watched = place.dq("watch", file, "--as-of", "2026-11-20T05:50:00Z", "--format", "json")
    after = {change["partitions"][0][:24]: change["after"] for change in watched.json["changes"]}
    assert after["hour=2026-11-20 04:00:00"] == "on_time", watched.all
    cycles = place.dq("status", file, "--format", "json").json["deliveries"][0]["cycles"]
    assert [evidence["rows"] for evidence in cycles[-1]["evidence"]] == [9]
    (backtest,) = place.dq("backtest", file, "--format", "json").json
    assert (backtest["present"], backtest["rules"][0]["counts"]["pass"]) == (4, 4)
    repaired = place.dq("repair", file, "--catalog", "glue", "--check")
    assert (repaired.code, repaired.out) == (0, "web.views: 0 missing, 0 gone, 0 elsewhere\n")
    assert place.dq("portal", "build", "site").code == 0
    reading = reading_of(tmp_path / "site")
    assert 'spark.table("web.views")' in reading
    assert (
        "2 partitions published outside of this location, e.g. hour=2026-11-20 04:00:00/tenant=d" in reading
    )
    assert ".load(" not in reading
    imported = place.dq("import", "glue", "web.views", "--output", str(tmp_path / "imported.odcs.yaml"))
    assert "2 partitions are outside the table's folder" in imported.all

    # The catalog loses one of each kind: they are added again at their locations.
    for values in (["a", "2026-11-20 03:00:00"], ["d", "2026-11-20 04:00:00"]):
        glue.delete_partition(DatabaseName="web", TableName="views", PartitionValues=values)
    assert "2 missing, 0 gone, 0 elsewhere" in place.dq("repair", file, "--catalog", "glue").out
    assert place.dq("repair", file, "--catalog", "glue", "--apply").code == 0
    partitions = glue.get_partitions(DatabaseName="web", TableName="views")["Partitions"]
    assert {tuple(row["Values"]): row["StorageDescriptor"]["Location"] for row in partitions} == locations

    # The next hour is missing, and is published elsewhere an hour later.
    def status_at(instant: str) -> str:
        ran = place.dq("watch", file, "--channel", "console", "--as-of", instant, "--format", "json")
        [status] = {change["after"] for change in ran.json["changes"]}
        return str(status)

    missing = status_at("2026-11-20T06:50:00Z")
    for tenant in ("a", "d"):
        buckets.put("staging", f"run-1/{folder.format(tenant, '05')}", 6)
        audit = (
            "--partition",
            "hour=2026-11-20 05:00:00",
            "--catalog",
            "glue",
            "--audit",
            "s3://staging/run-1",
        )
        at = ("--as-of", "2026-11-20T07:30:00Z")
        assert place.dq("publish", file, "--partition", f"tenant={tenant}", *audit, *at).code == 0
    assert (missing, status_at("2026-11-20T07:40:00Z")) == ("missing", "late")
    incidents = place.dq("incidents", "list", "--as-of", "2026-11-20T07:41:00Z", "--format", "json").json
    # Only the first hour is open: nobody published it.
    assert [incident["open"] for incident in incidents["incidents"]] == [["2026-11-20T04:15:00+00:00"]]
    assert rows_of("check", file, "--partition", "hour=2026-11-20 05:00:00") == 12


def rows_at(s3: Any, location: str) -> int:
    """The rows below a location, as a reader without dq counts them."""
    bucket, _, prefix = location.removeprefix("s3://").partition("/")
    keys = [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]]
    files = [s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys if key.endswith(".parquet")]
    return sum(pq.read_metadata(io.BytesIO(file)).num_rows for file in files)


def reading_of(site: Path) -> str:
    (page,) = (site / "products").glob("views*/index.html")
    text = " ".join(html.unescape(re.sub("<[^>]+>", " ", page.read_text())).split())
    return text.rpartition("How to read it")[2]

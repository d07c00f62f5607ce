"""Kept plans, environments and repairs on the catalogs of others, as a user runs them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from fakes.glue import GlueShim

from dq.cli.main import run

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: {id}
version: 1.0.0
status: active
domain: elsewhere
servers:
  - {{server: new, environment: prod, {prod}, format: parquet}}
  - {{server: test, environment: dev, {dev}, format: parquet}}
schema:
  - name: {id}
    properties:
      - {{name: day, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 1}}
      - {{name: id, logicalType: integer, physicalType: {type}, description: {comment}}}
"""


@dataclass(frozen=True)
class Shop:
    """A registry and its catalog. `lay` puts a file below the prod server's place; `take` takes it away."""

    catalog: str
    folder: Path
    lay: Callable[[str], None]
    take: Callable[[str], None]

    def write(self, id: str = "visits", type: str = "bigint", comment: str = "Theirs.") -> None:
        where = "type: s3, location: 's3://lake/{}'" if self.catalog == "glue" else "type: local, path: {}"
        text = CONTRACT.format(
            id=id, type=type, comment=comment, prod=where.format(f"prod/{id}"), dev=where.format(f"dev/{id}")
        )
        (self.folder / f"{id}.odcs.yaml").write_text(text)

    def __call__(self, *words: str) -> tuple[int, str]:
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run([words[0], str(self.folder), *words[1:], "--catalog", self.catalog])
        return code, out.getvalue() + err.getvalue()


@pytest.fixture(params=["glue", pytest.param("hive", marks=pytest.mark.spark)])
def shop(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DQ_STORE_URL", raising=False)
    folder = tmp_path / "registry"
    folder.mkdir()
    (folder / "dq-policy.yaml").write_text("registry: elsewhere\n")
    if request.param == "glue":
        shim: GlueShim = request.getfixturevalue("glue")
        import boto3

        # The shim speaks Glue; moto behind it is S3 too.
        url = f"http://127.0.0.1:{shim.backend}"
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", url)
        monkeypatch.setenv("DQ_LAKE_ROOTS", "s3://lake")
        s3 = boto3.client("s3", endpoint_url=url)
        s3.create_bucket(Bucket="lake", CreateBucketConfiguration={"LocationConstraint": s3.meta.region_name})
        yield Shop(
            "glue",
            folder,
            lambda key: s3.put_object(Bucket="lake", Key=f"prod/{key}", Body=b"PAR1"),
            lambda key: s3.delete_object(Bucket="lake", Key=f"prod/{key}"),
        )
        return
    spark: Any = request.getfixturevalue("spark")

    def lay(key: str) -> None:
        file = tmp_path / "prod" / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"PAR1")

    def take(key: str) -> None:
        file = tmp_path / "prod" / key
        file.unlink()
        file.parent.rmdir()

    yield Shop("hive", folder, lay, take)
    spark.sql("DROP DATABASE IF EXISTS elsewhere CASCADE")


def test_a_kept_plan_does_what_it_says_and_no_more(shop: Shop, tmp_path: Path) -> None:
    plan = str(tmp_path / "plan.json")
    shop.write()
    assert shop("register", "--env", "prod", "--out", plan)[0] == 0
    shop.write(id="more")

    code, said = shop("register", "--env", "prod", "--apply", "--plan", plan)

    assert code == 3
    assert "elsewhere.more: not in the plan; skipped." in said
    assert "Applied 1 of 1 changes." in said
    assert "create elsewhere.more" in shop("register", "--env", "prod")[1]


def test_a_kept_plan_is_stale_when_the_table_moved(shop: Shop, tmp_path: Path) -> None:
    plan = str(tmp_path / "plan.json")
    shop.write()
    assert shop("register", "--env", "prod", "--apply")[0] == 0
    shop.write(comment="Ours.")
    shop("register", "--env", "prod", "--out", plan)
    shop.write(comment="Another.")
    shop("register", "--env", "prod", "--apply")
    shop.write(comment="Ours.")

    code, said = shop("register", "--env", "prod", "--apply", "--plan", plan)

    assert (code, "elsewhere.visits: changed since the plan was saved; skipped." in said) == (3, True)
    assert "'Another.' -> 'Ours.'" in shop("register", "--env", "prod")[1]


def test_a_plan_of_another_catalog_is_refused(shop: Shop, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    shop.write()
    shop("register", "--env", "prod", "--out", str(plan))
    kept = json.loads(plan.read_text())
    plan.write_text(json.dumps(kept | {"catalog": "local"}))

    code, said = shop("register", "--env", "prod", "--apply", "--plan", str(plan))

    assert (code, "is a plan for the catalog 'local'" in said) == (2, True)


def test_an_environment_is_a_place_of_its_own(shop: Shop) -> None:
    shop.write()
    assert shop("register", "--env", "prod", "--apply")[0] == 0

    same, moved = shop("register", "--env", "prod", "--check"), shop("register", "--env", "dev", "--apply")
    unknown = shop("register", "--env", "test")

    assert same[0] == 0
    # One table at another place is another table: never without a word.
    assert (moved[0], "destructive changes need your approval (location)" in moved[1]) == (3, True)
    assert (unknown[0], "has no servers with 'environment: test'" in unknown[1]) == (3, True)


def test_partitions_of_the_lake_are_planned_added_once_and_told_when_gone(shop: Shop) -> None:
    shop.write()
    shop("register", "--env", "prod", "--apply")
    for day in ("2026-11-20", "2026-11-21"):
        shop.lay(f"visits/day={day}/a.parquet")
    shop.lay("visits/day=soon/a.parquet")

    planned = shop("repair", "--env", "prod", "--check")
    added = shop("repair", "--env", "prod", "--apply")
    again = shop("repair", "--env", "prod", "--check")
    shop.take("visits/day=2026-11-21/a.parquet")
    gone = shop("repair", "--env", "prod", "--apply", "--check")

    assert [code for code, _ in (planned, added, again, gone)] == [1, 0, 0, 1]
    assert "elsewhere.visits: 2 missing, 0 gone, 0 elsewhere" in planned[1]
    assert "elsewhere.visits: 2 added" in added[1]
    assert "elsewhere.visits: 0 missing, 0 gone" in again[1]
    assert "day=soon is not a partition" in again[1]
    assert "- day=2026-11-21" in gone[1]


def test_a_table_that_is_not_registered_is_not_repaired(shop: Shop) -> None:
    shop.write()

    code, said = shop("repair", "--env", "prod", "--apply")

    assert (code, "The catalog has no table elsewhere.visits." in said) == (3, True)

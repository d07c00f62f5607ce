"""`dq watch` over S3: asked side by side, and a bucket that never answers concerns nobody else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from fakes import views
from fakes.command import contract
from fakes.hung_mount import hung_mount
from fakes.late_s3 import LateS3, environment

from dq.contracts.outcome import ReadError
from dq.dataquality.delivery.probe_pool import ProbePool, ProbeTask
from dq.lake.storage import ArrowFiles, TimedFiles

# Long enough for a server that shares two cores with other tests.
LIMIT = 9
SCRIPT = Path(sys.executable).parent / "dq"
ROWS = "rows: 7"


@pytest.fixture(scope="module")
def server() -> Iterator[LateS3]:
    made = LateS3()
    made.put(["lake/fine/day=2026-05-10/_SUCCESS", "lake/fine/day=2026-05-10/part-0.parquet", "lake/gone/x"])
    yield made
    made.close()


def on_s3(name: str, bucket: str) -> str:
    place = f"{{server: lake, type: s3, location: 's3://{bucket}/{name}', format: parquet}}"
    return contract(name).replace(f"{{server: lake, type: local, path: lake/{name}, format: parquet}}", place)


def watch(folder: Path, server: LateS3, when: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: it must be able to end, too."""
    own = {"DQ_LAKE_ROOTS": "s3://lake,s3://silent", "DQ_STORAGE_SECONDS": str(LIMIT), **more}
    return subprocess.run(
        [SCRIPT, "watch", "registry", "--as-of", when, "--channel", "console", "--format", "json"],
        cwd=folder,
        env={**os.environ, **environment(server.url), **own},
        capture_output=True,
        text=True,
        # Twenty limits one after another would take longer.
        timeout=19 * LIMIT,
        check=False,
    )


def test_a_bucket_that_never_answers_is_unknown_and_nobody_else(tmp_path: Path, server: LateS3) -> None:
    (tmp_path / "registry").mkdir()
    products = {"fine": "lake", "gone": "lake", **{f"mute{number}": "silent" for number in range(40)}}
    for name, bucket in products.items():
        (tmp_path / "registry" / f"{name}.odcs.yaml").write_text(on_s3(name, bucket))
    # moto's clock is the real one: the schedule asks for a day of May.
    watch(tmp_path, server, "2026-05-10T12:00:00Z")

    ran = watch(tmp_path, server, "2026-05-11T07:00:00Z")

    done = json.loads(ran.stdout)
    assert {one["contract"] for one in done["unknown"]} >= {name for name in products if name[0] == "m"}
    assert {one["reason"] for one in done["unknown"] if one["contract"] == "mute7"} == {
        f"The marker could not be read: s3://silent did not answer within {LIMIT} s."
    }
    changed = {one["contract"]: one["after"] for one in done["changes"]}
    assert changed["gone"] == "missing", done["unknown"]


@pytest.mark.parametrize("roots", ["lakes/hung,lakes/fine", "lakes"])
def test_a_mount_that_hangs_is_unknown_and_nobody_else(tmp_path: Path, server: LateS3, roots: str) -> None:
    (tmp_path / "registry").mkdir()
    hung = [f"hung{number}" for number in range(20)]
    for name in ("fine0", "fine1", *hung):
        text = contract(name, **{f"path: lake/{name}": f"path: lakes/{name[:4]}/{name}"})
        (tmp_path / "registry" / f"{name}.odcs.yaml").write_text(text)
    (tmp_path / "lakes/fine/fine0/day=2026-05-10").mkdir(parents=True)
    marker = tmp_path / "lakes/fine/fine0/day=2026-05-10/_SUCCESS"
    marker.touch()
    os.utime(marker, (1_778_479_200, 1_778_479_200))
    (tmp_path / "lakes/hung").mkdir()
    own = {"DQ_LAKE_ROOTS": roots}
    assert watch(tmp_path, server, "2026-05-10T12:00:00Z", **own).returncode == 0
    with hung_mount(tmp_path / "lakes/hung"):
        ran = watch(tmp_path, server, "2026-05-11T07:00:00Z", **own)

    done = json.loads(ran.stdout)
    statuses = {one["contract"]: one["after"] for one in done["changes"]}
    assert {name: statuses[name] for name in ("fine0", "fine1")} == {"fine0": "on_time", "fine1": "missing"}
    assert {one["contract"] for one in done["unknown"]} == {*hung}
    assert f"did not answer within {LIMIT} s" in done["unknown"][0]["reason"]
    # When it answers again, what is missing there is told.
    after = json.loads(watch(tmp_path, server, "2026-05-11T07:05:00Z", **own).stdout)
    assert {one["after"] for one in after["changes"]} == {"missing"}


class ConcurrencyS3(LateS3):
    """The server with the largest number of requests that waited for it at the same time."""

    most = _answered = 0

    def _respond(self, method: str, target: str, headers: dict[str, str], body: bytes) -> bytes:
        self.most = max(self.most, self.asked - self._answered)
        self._answered += 1
        return super()._respond(method, target, headers, body)


def test_the_cycles_of_a_table_in_a_bucket_are_listed_concurrently(tmp_path: Path) -> None:
    server = ConcurrencyS3()
    hours = ("03", "04", "05", "06", "07", "08")
    folder = views.LAYOUTS["hive"][1]
    server.put([f"lake/views/{folder.format(tenant, hour)}/part-0.csv" for tenant in "ad" for hour in hours])
    (tmp_path / "registry").mkdir()
    (tmp_path / "registry" / "views.odcs.yaml").write_text(views.contract("a, d, gone"))
    watch(tmp_path, server, "2026-11-20T04:00:00Z")
    server.late, server.most = 0.1, 0

    ran = watch(tmp_path, server, "2026-11-20T09:50:00Z")

    server.close()
    changes = json.loads(ran.stdout)["changes"]
    assert [change["after"] for change in changes] == ["missing"] * len(hours)
    assert server.most > 1


def test_a_bucket_answers_while_another_one_is_silent(
    server: LateS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(server.url).items():
        monkeypatch.setenv(name, value)
    files, silent_is_asked, ended = ArrowFiles(LIMIT), threading.Event(), list[str]()

    def ask_silent(asked: TimedFiles) -> None:
        silent_is_asked.set()
        with suppress(ReadError):
            asked.stat("s3://silent/x")
        ended.append("silent")

    def ask_lake(asked: TimedFiles) -> None:
        silent_is_asked.wait(60)
        # By then its request is under way.
        time.sleep(0.5)
        assert asked.stat("s3://lake/gone/x") is not None
        ended.append("lake")

    ProbePool(LIMIT).run(
        [ProbeTask("s3://silent", files, ask_silent), ProbeTask("s3://lake", files, ask_lake)]
    )

    assert ended[0] == "lake"

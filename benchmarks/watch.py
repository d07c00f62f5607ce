"""Cost of a tick of `dq watch`: whole processes, in seconds of CPU, over registries of many SLOs.

Nothing due, everything due and delivered (on S3 too, in seconds on the wall), everything still missing, ten
times as many. Beside it, a process by hand reads the same contracts with PyYAML and looks for the marker of
each delivery, and a plain client asks S3 the same questions. No Java is on the path, and no Spark may be
loaded. What enumerating cycles costs is in schedule.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from types import MappingProxyType

from _cost import PACKAGES, cost
from _report import arguments, finish

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from fakes import late_s3

from dq.lake.storage import MAX_REQUESTS

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: p{number:05d}
version: 1.0.0
status: active
servers:
  - {{server: lake, type: local, path: lake/p{number:05d}, format: parquet}}
support:
  - {{channel: "#p{number:05d}", tool: slack, scope: notifications}}
schema:
  - name: events
    properties:
      - {{name: day, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 1}}
      - {{name: id, logicalType: integer, physicalType: bigint}}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: events
    schedule: "{minute} 6 * * *"
    customProperties:
      - property: delivery
        vendor: dq
        value: {{timezone: Europe/Berlin, grace: 30m, partition: {{day: "{{due - 1d:%F}}"}}, objective: 90%}}
"""
BEGIN, QUIET, DUE, LATER, LATEST = (
    f"2026-05-{moment}:00Z" for moment in ("10T12:00", "10T12:05", "11T07:00", "11T07:05", "11T07:10")
)
SILENT_SECONDS = 5
# Both run what the command runs; nothing of Spark may have been loaded for it.
RUN = """\
import sys
from dq.cli.main import run
code = run(sys.argv[1:])
assert not {"pyspark", "py4j", "boto3", "pandas"} & set(sys.modules), "the watcher needs no engine"
sys.exit(code)
"""


# It imports what every command does, so that a start is on both sides.
BY_HAND = f"""\
{PACKAGES}
import sys
from pathlib import Path
folder = Path(sys.argv[1])
for file in folder.glob("registry/*.odcs.yaml"):
    contract = yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader)
    for marker in folder.glob(f"lake/{{contract['id']}}/*/_SUCCESS"):
        marker.stat()
"""


class Registry:
    """A folder with the contracts of `count` products; `tick` gives CPU seconds and peak MB of a process."""

    def __init__(
        self, folder: Path, count: int, s3_settings: Mapping[str, str] = MappingProxyType({}), silent: int = 0
    ) -> None:
        self.folder, self.count, self.more = folder, count, s3_settings
        (folder / "registry").mkdir(parents=True)
        (folder / "lake").mkdir()
        (folder / "registry" / "dq-policy.yaml").write_text("{}\n")
        for number in range(count):
            text = CONTRACT.format(number=number, minute=number % 5)
            if s3_settings:
                bucket = "silent" if number < silent else "lake"
                text = text.replace("type: local, path: lake/", f"type: s3, location: s3://{bucket}/")
            (folder / "registry" / f"p{number:05d}.odcs.yaml").write_text(text)

    def deliver(self, day: str) -> None:
        for number in range(self.count):
            place = self.folder / "lake" / f"p{number:05d}" / f"day={day}"
            place.mkdir(parents=True)
            (place / "_SUCCESS").touch()
            os.utime(place / "_SUCCESS", (datetime(2026, 5, 11, 3, tzinfo=UTC).timestamp(),) * 2)

    def seconds_by_hand(self) -> float:
        """Processor seconds of a process that reads the contracts and looks for all markers."""
        return cost([sys.executable, "-c", BY_HAND, str(self.folder)]).cpu

    def tick(self, when: str, codes: Iterable[int] = (0,)) -> tuple[float, float]:
        command = [
            sys.executable,
            "-c",
            RUN,
            "watch",
            "registry",
            "--trust-clock",  # the future
            "--as-of",
            when,
            "--channel",
            "file:told.jsonl",
        ]
        # A machine without Java.
        without = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
        path = os.pathsep.join(
            folder
            for folder in without.get("PATH", "").split(os.pathsep)
            if not (Path(folder) / "java").exists()
        )
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=without | {"PATH": path, **self.more},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL if self.more else None,
        )
        _, status, used = os.wait4(process.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        process.returncode = code
        if code not in codes:
            raise SystemExit(f"the tick at {when} ended with {code}")
        return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


@contextmanager
def s3(folder: Path, count: int) -> Iterator[dict[str, str]]:
    """A delivery of each product on S3, whose answers take 50 ms more; gives what points a client there."""
    objects = folder / "objects"
    keys = [f"lake/p{number:05d}/day=2036-05-10/_SUCCESS" for number in range(count)]
    objects.write_text("\n".join(keys))
    server = subprocess.Popen(
        [sys.executable, late_s3.__file__, "0.05", objects],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    url = server.stdout.readline().decode().strip()
    roots = {"DQ_LAKE_ROOTS": "s3://lake,s3://silent", "DQ_STORAGE_SECONDS": f"{SILENT_SECONDS}"}
    yield late_s3.environment(url) | roots
    server.stdin.close()
    server.wait(30)


def seconds_of_plain_client(url: str, count: int) -> float:
    """Wall seconds of as many questions as the tick has, from a client that does nothing else.

    They are the same ones, and as many at once, so that this is what the server and this machine can do.
    """
    host = url.removeprefix("http://")

    def ask(numbers: Iterable[int]) -> None:
        connection = HTTPConnection(host)
        for number in numbers:
            prefix = f"p{number:05d}%2Fday%3D2036-05-10%2F"
            connection.request("GET", f"/lake?delimiter=%2F&list-type=2&max-keys=1000&prefix={prefix}")
            connection.getresponse().read()

    begun = time.monotonic()
    with ThreadPoolExecutor(MAX_REQUESTS) as pool:
        list(pool.map(ask, (range(first, count, MAX_REQUESTS) for first in range(MAX_REQUESTS))))
    return time.monotonic() - begun


def over_s3(home: Path, count: int) -> dict[str, float]:
    """Wall seconds of the tick in which all is due: as it is, and with a tenth in a bucket that is silent."""
    figures = {}
    with s3(home, count) as variables:
        # Once, so that moto has answered each of them.
        seconds_of_plain_client(variables["AWS_ENDPOINT_URL"], count)
        plain = seconds_of_plain_client(variables["AWS_ENDPOINT_URL"], count)
        figures["plain client, the same questions to S3, s"] = plain
        for name, silent in (("on S3, s", 0), ("on S3, a tenth silent for 5 s, s", count // 10)):
            registry = Registry(home / f"s3-{silent}", count, variables, silent)
            registry.tick("2036-05-10T12:00:00Z")
            begun = time.monotonic()
            used, _ = registry.tick("2036-05-11T07:00:00Z", (3,) if silent else (0,))
            figures[f"all due and delivered {name}"] = time.monotonic() - begun
            figures[f"its CPU: all due and delivered {name}"] = used
        delivered, silent_tenth = (
            figures[f"all due and delivered on S3{suffix}, s"] for suffix in ("", ", a tenth silent for 5 s")
        )
        single = Registry(home / "s3-1", 1, variables)
        single.tick("2036-05-10T12:00:00Z")
        begun = time.monotonic()
        single.tick("2036-05-10T12:05:00Z")
        beyond = delivered - (time.monotonic() - begun)
        figures["on S3, beyond 1 SLO / plain client"] = beyond / plain
        figures["on S3, waits of 5 s for a silent tenth"] = (silent_tenth - delivered) / SILENT_SECONDS
    return figures


def main() -> int:
    args = arguments(__doc__ or "")
    count = 200 if args.quick else 2_000
    metrics: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        metrics |= over_s3(home, count)
        single, many = Registry(home / "one", 1), Registry(home / "many", count)
        single.tick(BEGIN)
        metrics["first tick, s"], _ = many.tick(BEGIN)
        many.deliver("2026-05-10")
        by_hand = min(many.seconds_by_hand() for _ in range(3))
        metrics["by hand: contracts and markers, s"] = by_hand
        quiet_seconds = min(single.tick(QUIET)[0] for _ in range(3))
        metrics["1 SLO, nothing due, s"] = quiet_seconds
        metrics["nothing due, beyond 1 SLO, s"] = min(many.tick(QUIET)[0] for _ in range(3)) - quiet_seconds
        metrics["all due and delivered, s"], _ = many.tick(DUE)
        missing = Registry(home / "missing", count)
        missing.tick(BEGIN)
        metrics["all missing and told, s"], _ = missing.tick(DUE, (1,))
        metrics["all still missing, s"] = min(missing.tick(when)[0] for when in (LATER, LATEST))
        ten = Registry(home / "ten", 10 * count)
        ten.tick(BEGIN)
        quiet, megabytes = ten.tick(QUIET)
        metrics["10 times as many, nothing due, s"] = quiet
        metrics["10 times as many, peak MB"] = megabytes
        metrics["10 times as many, of linear"] = (quiet - quiet_seconds) / max(
            10 * metrics["nothing due, beyond 1 SLO, s"], by_hand
        )
        metrics["nothing due, beyond 1 SLO / by hand"] = metrics["nothing due, beyond 1 SLO, s"] / by_hand
        for name in ("all due and delivered", "all still missing"):
            metrics[f"{name}, beyond 1 SLO / by hand"] = (metrics[f"{name}, s"] - quiet_seconds) / by_hand
    goals = {
        # Of few contracts, starts and their differences are most of it.
        "on S3, beyond 1 SLO / plain client": ("<", 8.0 if args.quick else 2.5),
        "on S3, waits of 5 s for a silent tenth": ("<", 2.5),
        "nothing due, beyond 1 SLO / by hand": ("<", 1.4 if args.quick else 0.4),
        "all due and delivered, beyond 1 SLO / by hand": ("<", 6.0),
        "all still missing, beyond 1 SLO / by hand": ("<", 1.4 if args.quick else 0.8),
        "10 times as many, peak MB": ("<", 300.0),
        "10 times as many, of linear": ("<", 1.3),
    }
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())

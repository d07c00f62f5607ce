"""The watcher on AWS: each breach has an evaluation, object events cost no LIST, and what a start costs.

Breaches: random schedules and graces in six zones, over 90 days around each clock change of a year; the
starts of EventBridge are counted by a reading of cron of their own (`tests/fakes/aws_cron.py`). Objects: the
events of an hour, in batches of a queue, through `dq.aws.handler` under Lambda's runtime interface client,
with moto's S3 and a PostgreSQL of this machine; S3 counts its requests. One delivery waits for the marker
that comes last. Starts: the time from the start of the function's process to its first answer, and its
memory, in fresh processes. Demo: `dq demo --aws`, from the merge to the consumer's queue.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from _report import arguments, finish
from fakes import postgres
from fakes.aws_cron import AwsCron
from fakes.aws_lake import Lake, begin, object_created, payload, sqs, write_contract
from fakes.lambda_runtime import LambdaRuntime, environment

from dq.contracts.schedule.breach_starts import breach_starts
from dq.contracts.schedule.clock import Schedule, parse

YEAR = 2026
ZONES = {
    "Europe/Berlin": ("2026-03-29", "2026-10-25"),
    "America/New_York": ("2026-03-08", "2026-11-01"),
    "Australia/Lord_Howe": ("2026-04-05", "2026-10-04"),
    "America/Santiago": ("2026-04-05", "2026-09-06"),
    "Asia/Beirut": ("2026-03-29", "2026-10-25"),
    "Asia/Kolkata": ("2026-03-29", "2026-10-25"),
}
SCHEDULES, QUICK_SCHEDULES = 120, 8
OBJECTS, QUICK_OBJECTS, BATCH = 10_000, 1_000, 100
STARTS, QUICK_STARTS = 7, 2


def main() -> int:
    args = arguments(__doc__ or "", seed="of the random schedules")
    metrics = _breaches(random.Random(args.seed or 1), QUICK_SCHEDULES if args.quick else SCHEDULES)
    with tempfile.TemporaryDirectory() as folder, postgres.new_store() as url, Lake() as lake:
        metrics |= _function(
            Path(folder),
            lake,
            url,
            QUICK_OBJECTS if args.quick else OBJECTS,
            QUICK_STARTS if args.quick else STARTS,
        )
        metrics |= _demo(Path(folder))
    goals = {
        "dq demo --aws / three minutes": ("<", 1.0),
        "breaches without an evaluation in 60 seconds, number": ("<", 1.0),
        "LIST requests of object events": ("<", 1.0),
        "LIST requests of the evaluation": ("<", 1.0),
        "objects not recorded": ("<", 1.0),
        "deliveries not on time": ("<", 1.0),
    }
    return finish(metrics, goals, args)


def _breaches(chance: random.Random, count: int) -> dict[str, float]:
    breaches = lost_runs = starts = schedules = 0
    for zone, days in ZONES.items():
        for _ in range(count):
            schedule = parse(_cron(chance), timezone=zone)
            assert isinstance(schedule, Schedule)
            grace = timedelta(minutes=chance.choice((0, 5, 30, 60, 90, 360, 1_200, 4_320)))
            crons = [(AwsCron(text), name) for text, name in breach_starts(schedule, grace, YEAR)]
            schedules += len(crons)
            for day in days:
                middle = datetime.fromisoformat(f"{day}T00:00Z")
                begin_at, end_at = middle - timedelta(days=45), middle + timedelta(days=45)
                fires = sorted({at for cron, name in crons for at in cron.fires(name, begin_at, end_at)})
                starts += len(fires)
                for due in schedule.between(begin_at - grace, end_at - grace - timedelta(minutes=1)):
                    at = bisect_left(fires, due.at + grace)
                    breaches += 1
                    lost_runs += at == len(fires) or fires[at] - due.at - grace > timedelta(seconds=60)
    return {
        "breaches": float(breaches),
        "breaches without an evaluation in 60 seconds, number": float(lost_runs),
        "starts / breaches": starts / breaches,
        "EventBridge schedules per SLO": schedules / (count * len(ZONES)),
    }


def _cron(chance: random.Random) -> str:
    """A schedule as people write them: some minutes of some hours, on some days."""
    minute = chance.choice(("0", "30", "15,45", "*/20", str(chance.randrange(60))))
    hour = chance.choice(("*", "6", "22-23", "1,2,3", str(chance.randrange(24))))
    days = chance.choice(("* * *", "* * *", "1 * *", "L * *", "28-31 * *", "* * 1-5", "1 * 1", "* 3,10 *"))
    return f"{minute} {hour} {days}"


def _function(folder: Path, lake: Lake, url: str, objects: int, starts: int) -> dict[str, float]:
    at = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=6)
    write_contract(folder, at)
    variables = {**lake.variables, "DQ_STORE_URL": url}
    begin(folder, variables)
    key = f"sales/orders/day={at:%F}"
    events = [object_created(f"{key}/part-{number}.parquet", at) for number in range(objects - 1)]
    events.append(object_created(f"{key}/_SUCCESS", at, size=0))
    recorded, batches = 0, []
    with LambdaRuntime(environment(**variables), folder) as function:
        function.invoke(sqs(events[:1]))
        lake.requests.clear()
        for first in range(0, objects, BATCH):
            begun = time.monotonic()
            recorded += function.invoke(sqs(events[first : first + BATCH]))["recorded"]
            batches.append(time.monotonic() - begun)
        by_events = len(lake.lists)
        (verdict,) = function.invoke(payload())["verdicts"]
        by_evaluation = len(lake.lists) - by_events
    cold, warm, memory = [], [], []
    for _ in range(starts):
        with LambdaRuntime(environment(**variables), folder) as function:
            begun = time.monotonic()
            function.invoke(payload())
            cold.append(time.monotonic() - begun)
            begun = time.monotonic()
            function.invoke(payload())
            warm.append(time.monotonic() - begun)
            assert function.process is not None
            memory.append(_peak_mb(function.process.pid))
    return {
        "object events": float(objects),
        "objects not recorded": float(objects - recorded),
        "LIST requests of object events": float(by_events),
        "LIST requests of the evaluation": float(by_evaluation),
        "deliveries not on time": float(verdict["status"] != "on_time"),
        f"a batch of {BATCH} events, ms": 1_000 * statistics.median(batches),
        "cold start and first call, ms": 1_000 * statistics.median(cold),
        "warm call, ms": 1_000 * statistics.median(warm),
        "peak memory, MB": max(memory),
    }


def _demo(folder: Path) -> dict[str, float]:
    begun = time.monotonic()
    command = [sys.executable, "-P", "-m", "dq", "demo", "--aws"]
    subprocess.run(command, cwd=folder, env=environment(), stdout=subprocess.DEVNULL, check=True)
    seconds = time.monotonic() - begun
    return {
        "dq demo --aws, seconds": seconds,
        "dq demo --aws / three minutes": seconds / 180,
    }


def _peak_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    sys.exit(main())

"""dq on a cluster of machines: random contracts and tables on S3, checked with faults; nothing may differ.

Three workers of Spark's own cluster manager and a master run in network namespaces with files of their own;
the driver and an S3 server are on this machine. Then YARN gets the machines, in client and cluster mode, and
HDFS half of the tables. Results are compared with those of a local session, and with an evaluator that shares
no code with dq (benchmarks/referee.py). A fault may end in an error, but never in another verdict. Needs
Linux, unshare, Maven, and Python at /usr/bin/python3 of the driver's minor version.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from _report import arguments, finish

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import boto3  # after the path
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _cluster import (
    DRIVER,
    FOLDER,
    PYTHON,
    SPARK_HOME,
    Node,
    Standalone,
    build,
    enter_namespaces,
    is_in_namespaces,
    limited,
)
from _cluster_hadoop import HOME as HADOOP_HOME
from _cluster_hadoop import Hadoop
from _cluster_parts import Unbuildable, environment, hadoop_jars, make, python_versions, spark_home
from _moto import fill, moto
from _referee_tables import NOW, TYPES, RandomTable, contract, table
from _referee_truth import truth
from fakes import jvm

TABLES, QUICK_TABLES, FAULTY_TABLES, YARN_TABLES = 36, 1, 6, 4
PARTS = ("agreement", "faults", "scale", "yarn")
SCALED_ROWS, SCALED_FILES, PAIRS = 500_000, 12, 2
SHARE_OF_CORE = 0.3
GOALS = {
    "wrong verdicts": ("<", 1.0),
    "results other than local": ("<", 1.0),
    "tables without a reason for no Python tasks": ("<", 1.0),
    "workers with tasks": (">", 2.0),
    "two workers over one, by CPU of tasks": (">", 1.6),
    "two workers over one, by time": (">", 1.6),
    "YARN: wrong verdicts": ("<", 1.0),
    "YARN: results other than local": ("<", 1.0),
}
JOB = Path(__file__).with_name("_cluster_job.py")
EXECUTOR = "CoarseGrainedExecutorBackend"
Json = dict[str, Any]
During = Callable[["Cluster", "subprocess.Popen[str]"], None]


def main() -> int:
    args = arguments(
        __doc__ or "",
        tables=f"how many, by default {TABLES}",
        seed="of the first table, as it was printed",
        only={"choices": PARTS, "help": "one part instead of all"},
        fault={"choices": sorted(FAULTS), "help": "one fault instead of all"},
    )
    work = (Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "dq-bench" / "cluster").expanduser()
    if not is_in_namespaces():
        try:
            driver_version, executor_version = python_versions()
            make(work)
            if args.only == "yarn" or not (args.only or args.quick or args.fault):
                hadoop_jars(spark_home(work), work)
        except Unbuildable as error:
            raise SystemExit(str(error)) from error
        print(f"Python {driver_version} on the driver, {executor_version} on the executors", flush=True)
        raise SystemExit(f"This machine gives its users no namespaces: {enter_namespaces()}")
    count = args.tables or (QUICK_TABLES if args.quick else TABLES)
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(10**9)
    print(f"seed {seed}", flush=True)
    home, archive = spark_home(work), environment(work)
    parts = (args.only,) if args.only else ("faults",) if args.fault or args.quick else PARTS
    faults = (args.fault,) if args.fault else (QUICK_FAULT,) if args.quick else tuple(FAULTS)
    programs = {SPARK_HOME: home} | ({HADOOP_HOME: hadoop_jars(home, work)} if "yarn" in parts else {})
    nodes = build(("master", "worker1", "worker2", "worker3"), programs, _daemons())
    with moto(DRIVER) as url:
        settings = {name: text for name, text in os.environ.items() if name.startswith("AWS_")}
        for node in nodes.values():
            node.environment |= settings
        standalone = Standalone(nodes["master"], tuple(nodes.values())[1:])
        cluster = Cluster(standalone, home, archive, url, FOLDER)
        metrics: dict[str, float] = {}
        for bucket in ("lake", "yarn"):
            boto3.client("s3").create_bucket(Bucket=bucket)
        if parts != ("yarn",):
            standalone.start()
        if {"agreement", "faults"} & set(parts):
            titles = faults if "faults" in parts else ()
            metrics = _agreement(cluster, seed, count, titles, without_faults="agreement" in parts)
        if "scale" in parts:
            standalone.wait()
            metrics |= _scale(cluster)
        if "yarn" in parts:
            standalone.stop()
            metrics |= _yarn(cluster, seed, min(count, YARN_TABLES))
    goals = {name: goal for name, goal in GOALS.items() if name in metrics}
    if args.quick:
        # One table has too few tasks for all of them.
        goals.pop("workers with tasks", None)
    return finish(metrics, goals, args)


def _daemons() -> dict[str, str]:
    # A worker that is silent this long is lost; by default a minute.
    return {"SPARK_DAEMON_JAVA_OPTS": f"{jvm.SMALL} -Dspark.worker.timeout=20"}


@dataclass
class Cluster:
    """A running cluster, and what is submitted to it."""

    standalone: Standalone
    home: Path
    archive: Path
    url: str
    folder: Path
    log: str = field(default="", init=False)

    def check(
        self,
        contracts: dict[str, str],
        *options: str,
        readings: tuple[str, ...] = (),
        during: During | None = None,
    ) -> Json:
        """Check tables in client mode; return the job's output, or its error. `during` runs beside it."""
        output = self.folder / "output.json"
        output.unlink(missing_ok=True)
        words = ["--master", self.standalone.url, *_configured(self.settings() | _CLIENT), *options]
        self._submit(words, self._write(contracts), str(output), readings, during=during)
        return _read(output.read_bytes() if output.exists() else None, self.log)

    def check_on_yarn(self, contracts: dict[str, str], hadoop: Hadoop, mode: str) -> Json:
        """Check tables in client or cluster mode; contracts and output are on S3 in cluster mode."""
        account = {name: text for name, text in os.environ.items() if name.startswith("AWS_")}
        for_all = {f"{of}.{name}": text for of in _OF_CONTAINERS for name, text in account.items()}
        settings = self.settings() | for_all | {
            "spark.yarn.jars": f"local:{SPARK_HOME}/jars/*",
            "spark.yarn.am.memory": "300m",
            "spark.driver.memory": "600m",
            "spark.executor.instances": str(len(hadoop.workers)),
        }  # fmt: skip
        words = ["--master", "yarn", "--deploy-mode", mode]
        run = {"HADOOP_CONF_DIR": str(hadoop.configuration)}
        if mode == "client":
            output = self.folder / "output.json"
            output.unlink(missing_ok=True)
            words += [*_configured(settings | _CLIENT), *self.packed()]
            self._submit(words, self._write(contracts), str(output), (), run)
            return _read(output.read_bytes() if output.exists() else None, self.log)
        lake = boto3.client("s3")
        lake.put_object(Bucket="yarn", Key="contracts.json", Body=json.dumps(contracts).encode())
        words += [*_configured(settings), *self.packed()]
        self._submit(words, "s3://yarn/contracts.json", "s3://yarn/output.json", (), run)
        written = lake.list_objects_v2(Bucket="yarn", Prefix="output.json").get("KeyCount")
        body = lake.get_object(Bucket="yarn", Key="output.json")["Body"].read() if written else None
        return _read(body, hadoop.first_containers() if body is None else self.log)

    def _write(self, contracts: dict[str, str]) -> str:
        source = self.folder / "contracts.json"
        source.write_text(json.dumps(contracts), "utf-8")
        return str(source)

    def _submit(
        self,
        words: list[str],
        source: str,
        output: str,
        readings: tuple[str, ...],
        environment: Mapping[str, str] = MappingProxyType({}),
        during: During | None = None,
    ) -> None:
        command = [str(self.home / "bin" / "spark-submit"), *words, str(JOB), source, output, *readings]
        process = subprocess.Popen(
            command, env=_environment() | {"SPARK_HOME": str(self.home)} | dict(environment), cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        fault_thread = threading.Thread(target=during, args=(self, process)) if during is not None else None
        if fault_thread is not None:
            fault_thread.start()
        self.log = process.communicate()[0]
        if fault_thread is not None:
            fault_thread.join()

    def settings(self) -> dict[str, str]:
        """Settings of the session: S3, a small JVM, and tasks that run twice if they are slow."""
        return {
            "spark.hadoop.fs.s3a.endpoint": self.url,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": "test",
            "spark.hadoop.fs.s3a.secret.key": "test",
            "spark.driver.extraJavaOptions": jvm.SMALL,
            "spark.executor.extraJavaOptions": jvm.SMALL,
            "spark.executor.memory": "700m",
            "spark.sql.shuffle.partitions": "3",
            "spark.sql.session.timeZone": "UTC",
            "spark.ui.showConsoleProgress": "false",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.speculation": "true",
            "spark.speculation.quantile": "0.3",
            "spark.speculation.interval": "100ms",
            "spark.pyspark.python": PYTHON,
        }

    def packed(self) -> list[str]:
        """Options that bring an environment with dq to the executors, as on EMR."""
        python = "spark.pyspark.python=./environment/bin/python"
        return ["--archives", f"{self.archive}#environment", "--conf", python]


# Of a driver on this machine.
_CLIENT = {
    "spark.driver.host": DRIVER,
    "spark.driver.bindAddress": DRIVER,
    "spark.pyspark.driver.python": sys.executable,
}
_OF_CONTAINERS = ("spark.yarn.appMasterEnv", "spark.executorEnv")


def _configured(settings: Mapping[str, str]) -> list[str]:
    return [word for name, text in settings.items() for word in ("--conf", f"{name}={text}")]


def _read(output: bytes | None, log: str) -> Json:
    """Return what the job wrote, or its error."""
    if output is None:
        return {"error": log[-4_000:]}
    run: Json = json.loads(output)
    return run


def _environment() -> dict[str, str]:
    own = ("PYSPARK_", "SPARK_", "DQ_", "MASTER")
    environment = {name: text for name, text in os.environ.items() if not name.startswith(own)}
    return environment | {"SPARK_LAUNCHER_OPTS": jvm.SMALL, "SPARK_LOCAL_IP": DRIVER}


# Tables, and what is said of them.


@dataclass(frozen=True)
class Tables:
    """Contracts by table: on S3, on files of this machine; and each clause's status by the referee."""

    remote: dict[str, str]
    local: dict[str, str]
    expected: dict[str, dict[str, str]]

    def first(self, count: int) -> dict[str, str]:
        return dict(list(self.remote.items())[:count])


def _tables(cluster: Cluster, seed: int, count: int, bucket: str = "lake") -> Tables:
    tables = Tables({}, {}, {})
    for number in range(count):
        chance = random.Random(seed + number)
        random_table = table(chance, tuple(TYPES))
        document = contract(chance, random_table)
        name = f"t{number}"
        place = _write(cluster.folder / bucket / name, random_table)
        fill(cluster.url, place, bucket, name)
        servers = {"s3": {"location": f"s3://{bucket}/{name}"}, "local": {"path": str(place)}}
        for kind, texts in (("s3", tables.remote), ("local", tables.local)):
            server = {"server": "lake", "type": kind, "format": "parquet", **servers[kind]}
            texts[name] = json.dumps(_public({**document, "servers": [server]}), ensure_ascii=False)
        truths = truth(document, list(random_table.columns), random_table.rows, NOW)
        tables.expected[name] = {clause: status for clause, (status, _) in truths.items()}
    return tables


def _write(place: Path, random_table: RandomTable) -> Path:
    place.mkdir(parents=True)
    for number, rows in enumerate(random_table.files):
        pq.write_table(random_table.arrow(rows), place / f"part-{number}.parquet", row_group_size=1_000)
    return place


def _public(node: Any) -> Any:
    """Without what only the evaluator reads."""
    if isinstance(node, dict):
        return {key: _public(value) for key, value in node.items() if not key.startswith("_")}
    return [_public(item) for item in node] if isinstance(node, list) else node


@dataclass
class Tally:
    """Comparisons of runs with the local results and with the referee."""

    tables: Tables
    reference: Json
    comparisons: int = 0
    wrong: int = 0
    different: int = 0
    errors: int = 0

    def add(self, title: str, run: Json, *, faulty: bool = False) -> None:
        """Compare a run; in one with faults, a table's error does not count as a difference."""
        if "error" in run:
            print(f"{title}: no output\n{run['error']}")
            self.different += 1
            return
        before = self.wrong, self.different, self.errors
        for name, readings in run["tables"].items():
            for reading, answer in readings.items():
                self._compare(title, name, reading, answer, faulty=faulty)
        wrong, different, errors = (now - then for now, then in zip(
            (self.wrong, self.different, self.errors), before, strict=True))  # fmt: skip
        print(f"{title}: {wrong} wrong, {different} different, {errors} errors; {_shares(run)}", flush=True)

    def _compare(self, title: str, name: str, reading: str, answer: Json, *, faulty: bool) -> None:
        if "error" in answer:
            print(f"  {title}, {name}, {reading}: {answer['error'][:300]}")
            self.errors += 1
            self.different += not faulty
            return
        results = {clause: result for clause, *result in answer["results"]}
        local = {clause: result for clause, *result in self.reference["tables"][name]["scan"]["results"]}
        expected = self.tables.expected[name]
        for clause in local.keys() | results.keys() | expected.keys():
            result = results.get(clause, ["missing"])
            self.comparisons += 1
            if result[0] == "error" and faulty:
                self.errors += 1
            elif result[0] != expected.get(clause):
                self.wrong += 1
                print(f"  {title}, {name}, {reading}: {clause} is {result}, rows: {expected.get(clause)}")
            elif result != local.get(clause):
                self.different += 1
                print(f"  {title}, {name}, {reading}: {clause} is {result}, local: {local.get(clause)}")


def _shares(run: Json) -> str:
    executors = {name: executor for name, executor in run["executors"].items() if "driver" not in name}
    return ", ".join(
        f"{name}: {executor['tasks']:g} tasks, {executor['failed']:g} failed"
        for name, executor in sorted(executors.items())
    )


def _notes(run: Json) -> dict[str, list[str]]:
    """Return the notes of a run on tables that Python tasks could not answer, by table."""
    return {name: readings["all"].get("notes", []) for name, readings in run.get("tables", {}).items()}


def _agreement(
    cluster: Cluster, seed: int, count: int, faults: tuple[str, ...], *, without_faults: bool
) -> dict[str, float]:
    tables = _tables(cluster, seed, count)
    reference = _local(cluster, tables.local)
    tally = Tally(tables, reference)
    tally.add("local", reference)
    packed = cluster.packed()
    shares: Json = {}
    metrics = {"tables": float(count), "clauses": float(sum(map(len, tables.expected.values())))}
    cluster.standalone.wait()
    if without_faults:
        shares = cluster.check(tables.remote, *packed)
        tally.add("packed environment", shares)
        bare = cluster.check(tables.remote, readings=("all",))
        tally.add("executors without packages", bare)
        # Where tasks ran with the environment, the report has to say that they cannot.
        replaced = {name for name, notes in _notes(bare).items() if notes}
        print(f"  of {len(replaced)} tables, e.g.: {_notes(bare)[min(replaced)] if replaced else ''}")
        unexplained = sum(map(len, _notes(shares).values())) + (not replaced)
        metrics["tables without a reason for no Python tasks"] = float(unexplained)
    for title in faults:
        fault = FAULTS[title]
        run = cluster.check(
            tables.first(FAULTY_TABLES), *packed, *_configured(fault.settings), during=fault.during
        )
        tally.add(title, run, faulty=True)
        for note in sorted({note for notes in _notes(run).values() for note in notes}):
            print(f"  {note}")
        shares = shares or run
        _repair(cluster)
    workers = {
        name.partition(" ")[0] for name, executor in shares.get("executors", {}).items() if executor["tasks"]
    }
    # A machine may be lost before its first task.
    if without_faults or faults[0] != "a machine lost":
        metrics["workers with tasks"] = float(len(workers))
    return metrics | {
        "comparisons": float(tally.comparisons),
        "runs with a fault": float(len(faults)),
        "clear errors": float(tally.errors),
        "wrong verdicts": float(tally.wrong),
        "results other than local": float(tally.different),
    }


def _local(cluster: Cluster, contracts: dict[str, str]) -> Json:
    """Check the tables in a local session, on files of this machine."""
    source, output = cluster.folder / "local.json", cluster.folder / "local-output.json"
    source.write_text(json.dumps(contracts), "utf-8")
    environment = _environment() | {"MASTER": "local[2]", "PYSPARK_PYTHON": sys.executable}
    settings = {
        "spark.driver.extraJavaOptions": f"'{jvm.SMALL}'",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "3",
        "spark.ui.enabled": "false",
    }
    words = [*_configured(settings), "pyspark-shell"]
    command = [sys.executable, str(JOB), str(source), str(output)]
    done = subprocess.run(
        command,
        env=environment | {"PYSPARK_SUBMIT_ARGS": " ".join(words)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(done.stderr[-3_000:])
    run: Json = json.loads(output.read_bytes())
    return run


# Faults.


def _await_executors(cluster: Cluster, process: subprocess.Popen[str]) -> list[Node]:
    """Return the workers with an executor, once there are three."""
    while process.poll() is None:
        nodes = [node for node in cluster.standalone.workers if list(node.processes(EXECUTOR))]
        if len(nodes) == len(cluster.standalone.workers):
            return nodes
        time.sleep(0.2)
    return []


def _one_of(nodes: list[Node]) -> list[Node]:
    return random.sample(nodes, min(1, len(nodes)))


def _wait(process: subprocess.Popen[str], seconds: float) -> None:
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.1)


def _killed(cluster: Cluster, process: subprocess.Popen[str]) -> None:
    """Kill an executor at a random moment, and then another one."""
    for _ in range(2):
        for node in _one_of(_await_executors(cluster, process)):
            _wait(process, random.uniform(2, 12))
            print(f"  {node.name}: {node.signal(EXECUTOR, signal.SIGKILL)} executor killed", flush=True)


def _slow(cluster: Cluster, process: subprocess.Popen[str]) -> None:
    """Stop an executor for four fifths of the time."""
    for node in _await_executors(cluster, process)[:1]:
        while process.poll() is None:
            node.signal(EXECUTOR, signal.SIGSTOP)
            _wait(process, 0.8)
            node.signal(EXECUTOR, signal.SIGCONT)
            _wait(process, 0.2)


def _killed_and_slow(cluster: Cluster, process: subprocess.Popen[str]) -> None:
    nodes = _await_executors(cluster, process)
    slow = threading.Thread(target=_slow, args=(cluster, process))
    slow.start()
    _wait(process, random.uniform(2, 8))
    for node in nodes[1:2]:
        print(f"  {node.name}: {node.signal(EXECUTOR, signal.SIGKILL)} executor killed", flush=True)
    slow.join()


def _machine_lost(cluster: Cluster, process: subprocess.Popen[str]) -> None:
    """Cut a machine off the network at a random moment, without any message, as in a power failure."""
    for node in _one_of(_await_executors(cluster, process)):
        _wait(process, random.uniform(2, 12))
        node.cut()
        print(
            f"  {node.name}: cut off, {'after' if process.poll() is not None else 'in'} the run", flush=True
        )


def _python_killed(cluster: Cluster, process: subprocess.Popen[str]) -> None:
    """Kill the Python of tasks whenever there is one, so that no Python task ends."""
    killed = 0
    while process.poll() is None:
        killed += sum(node.signal("pyspark.daemon", signal.SIGKILL) for node in cluster.standalone.workers)
        _wait(process, 0.1)
    print(f"  {killed} processes of Python killed", flush=True)


@dataclass(frozen=True)
class Fault:
    """A fault during a run, and settings of its session."""

    during: During
    settings: Mapping[str, str] = field(default_factory=dict)


QUICK_FAULT = "an executor killed, another one slow"
FAULTS = {
    "executors killed": Fault(_killed),
    "a slow executor": Fault(_slow),
    # Instead of the two minutes after which Spark gives a silent machine up.
    "a machine lost": Fault(
        _machine_lost,
        {
            "spark.network.timeout": "20s",
            "spark.network.timeoutInterval": "5s",
            "spark.executor.heartbeatInterval": "2s",
        },
    ),
    "Python killed": Fault(_python_killed),
    QUICK_FAULT: Fault(_killed_and_slow),
}


def _repair(cluster: Cluster) -> None:
    """Start machines again that were cut off, or have no worker."""
    for node in cluster.standalone.workers:
        if node.is_cut:
            node.signal("", signal.SIGKILL)
            node.connect()
        if not list(node.processes("worker.Worker")):
            cluster.standalone.start_worker(node)
    cluster.standalone.wait()


# Two workers against one.


def _scale(cluster: Cluster) -> dict[str, float]:
    """Check one table on one worker and on two, in turn, each with the same share of a core of its own.

    The cores are left to the driver and the S3 server otherwise, which have the same work in both cases.
    """
    contracts = _large_table(cluster)
    wall: dict[int, float] = {}
    balance = []
    with limited(cluster.standalone.workers, SHARE_OF_CORE) as is_limited:
        if not is_limited:
            print("without control groups, workers, driver and S3 server compete: times are not compared")
        for pair in range(PAIRS):
            for workers in (1, 2) if pair % 2 else (2, 1):
                seconds, busy = _checked(cluster, contracts, workers)
                wall[workers] = min(seconds, wall.get(workers, seconds))
                if workers == 2:
                    balance.append(sum(busy) / max(busy))
                shares = ", ".join(f"{cpu:.1f}" for cpu in busy)
                print(f"{workers} workers: {seconds:.1f} s, CPU s of tasks {shares}", flush=True)
    ratios = {"two workers over one, by CPU of tasks": max(balance)}
    return ratios | ({"two workers over one, by time": wall[1] / wall[2]} if is_limited else {})


def _checked(cluster: Cluster, contracts: dict[str, str], workers: int) -> tuple[float, list[float]]:
    """Return the seconds of the large table's checks, and the CPU seconds of each executor's tasks."""
    # The third worker shares its core with the first one.
    options = ["--conf", f"spark.cores.max={workers}", "--conf", "spark.deploy.spreadOut=true"]
    output = cluster.check(contracts, *cluster.packed(), *options)
    if "error" in output:
        raise SystemExit(f"{workers} workers: {output['error']}")
    seconds = sum(reading["seconds"] for reading in output["tables"]["large"].values())
    return seconds, [executor["CPU s"] for executor in output["executors"].values()]


def _large_table(cluster: Cluster) -> dict[str, str]:
    """Return the contracts of a small table, which warms up each worker, and of one of millions of rows."""
    chance = np.random.default_rng(7)
    place = cluster.folder / "lake" / "large"
    place.mkdir(parents=True)
    # A file for each of two workers, or else the second one would start Python in the measured time.
    warm = cluster.folder / "lake" / "warm"
    warm.mkdir()
    for number in range(SCALED_FILES):
        ids = chance.permutation(SCALED_ROWS) + number * SCALED_ROWS
        names = np.char.add("k", chance.integers(0, 5_000, SCALED_ROWS).astype(str))
        columns = {"id": ids, "amount": chance.normal(100, 9, SCALED_ROWS), "name": names}
        file = place / f"part-{number}.parquet"
        pq.write_table(pa.table(columns), file)
        if number < 2:
            shutil.copy(file, warm)
    fill(cluster.url, place, "lake", "large")
    fill(cluster.url, warm, "lake", "warm")
    properties = [
        {"name": "id", "logicalType": "integer", "required": True, "unique": True},
        {"name": "amount", "logicalType": "number", "logicalTypeOptions": {"minimum": 0, "maximum": 120}},
        {
            "name": "name", "logicalType": "string",
            "logicalTypeOptions": {"pattern": "^k[0-9]+$", "maxLength": 5},
            "quality": [{"metric": "duplicateValues", "mustBeGreaterThan": 1}],
        },
    ]  # fmt: skip
    server = {"server": "lake", "type": "s3", "location": "s3://lake/large", "format": "parquet"}
    document = {
        "apiVersion": "v3.2.0", "kind": "DataContract", "id": "large", "version": "1.0.0", "status": "active",
        "servers": [server], "schema": [{"name": "large", "properties": properties}],
    }  # fmt: skip
    text = json.dumps(document)
    return {"warm up": text.replace("lake/large", "lake/warm"), "large": text}


# HDFS and YARN.


def _yarn(cluster: Cluster, seed: int, count: int) -> dict[str, float]:
    """Check tables on YARN in both modes, every other one on HDFS."""
    standalone = cluster.standalone
    hadoop = Hadoop(standalone.master, standalone.workers[:2], cluster.folder / "configuration")
    hadoop.start(jvm.SMALL)
    tables = _tables(cluster, seed, count, bucket="yarn")
    tally = Tally(tables, _local(cluster, tables.local))
    hadoop.wait()
    contracts = dict(tables.remote)
    for name in list(contracts)[::2]:
        hadoop.put(cluster.home, cluster.folder / "yarn" / name, f"{hadoop.url}/{name}")
        document = json.loads(contracts[name])
        document["servers"][0] |= {"type": "custom", "location": f"{hadoop.url}/{name}"}
        contracts[name] = json.dumps(document, ensure_ascii=False)
    for mode in ("client", "cluster"):
        run = cluster.check_on_yarn(contracts, hadoop, mode)
        tally.add(f"YARN, {mode} mode", run)
        print(f"  {_notes(run)}")
    return {
        "YARN: comparisons": float(tally.comparisons),
        "YARN: wrong verdicts": float(tally.wrong),
        "YARN: results other than local": float(tally.different),
    }


if __name__ == "__main__":
    sys.exit(main())

"""The wheel without extras in a bare environment, used as a newcomer would use it: `.ci/run` and the tests.

python tests/fakes/light.py [PYTHON ...]     by default the Pythons from 3.11 on that are at hand
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from fakes import pages, wheel

COMMANDS = sorted(
    file.stem.rstrip("_").replace("_", "-") for file in (wheel.ROOT / "cli/commands").glob("[a-z]*.py")
)


@dataclass(frozen=True)
class Light:
    """A bare environment with dq, and what it weighs: packages beside dq, megabytes on disk."""

    python: Path
    version: str
    packages: int
    megabytes: float

    @property
    def dq(self) -> Path:
        return self.python.with_name("dq")


@dataclass(frozen=True)
class Ran:
    """The exit code of a command, and what it printed on stdout and stderr."""

    code: int
    printed: str

    def line(self, word: str) -> str:
        """The first line that holds the word."""
        return next(line for line in self.printed.splitlines() if word in line)

    def hint(self, extra: str) -> str:
        """The command that `dq doctor` names for an extra."""
        return next(
            line[line.index("pip install") :]
            for line in self.printed.splitlines()
            if f"contracts[{extra}]" in line
        )


@dataclass(frozen=True)
class Command:
    """A command line, its exit code and something that it prints; `lines` when it is to be so many."""

    line: str
    code: int = 0
    says: str = ""
    lines: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    def holds(self, ran: Ran) -> bool:
        lines = len(ran.printed.splitlines())
        return ran.code == self.code and self.says in ran.printed and self.lines in (None, lines)


def install(built: Path, folder: Path, base: Path) -> Light:
    """Installs the wheel as it is, without extras, with what uv.lock has where its cache has that."""
    uv = wheel.uv()
    subprocess.run([uv, "--no-config", "venv", "--quiet", "--python", base, folder], check=True)
    python = folder / "bin" / "python"
    command = [uv, "--no-config", "pip", "install", "--quiet", "--python", python, built]
    locked = ["--constraint", wheel.ROOT / "requirements-gate.txt"]
    # A wheel of another Python may not be in the cache yet.
    if subprocess.run([*command, *locked, "--offline"], check=False, capture_output=True).returncode:
        subprocess.run([*command, *locked], check=True)
    listed = subprocess.run(
        [uv, "--no-config", "pip", "list", "--format", "json", "--python", python],
        check=True,
        capture_output=True,
    )
    (site,) = folder.glob("lib/python3*/site-packages")
    size = sum(file.lstat().st_size for file in site.rglob("*") if file.is_file())
    _share_byte_code(_FIRST.setdefault(base, site), site)
    return Light(python, _version(python), len(json.loads(listed.stdout)) - 1, size / 1e6)


# The packages of the first environment of each Python.
_FIRST: dict[Path, Path] = {}


def _share_byte_code(made: Path, site: Path) -> None:
    """What the first environment has compiled by now is as good in this one, whose files are the same."""
    for folder in list(made.rglob("__pycache__")) if made != site and made.exists() else ():
        place = site / folder.relative_to(made)
        if place.parent.is_dir():
            shutil.copytree(folder, place, copy_function=os.link, dirs_exist_ok=True)


@cache
def bases() -> tuple[Path, ...]:
    """Python 3.11 and newer that are at hand and work, one of each release; the running one first."""
    folders = [Path(part) for part in os.environ.get("PATH", "").split(os.pathsep)]
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders += sorted(home.glob("versions/*/bin"))
    found = {_version(Path(sys.executable)): Path(sys.executable)}
    for file in (file for folder in folders for file in sorted(folder.glob("python3.1[1-9]"))):
        version = _version(file)
        if version:
            found.setdefault(version, file)
    return tuple(found.values())


def _version(python: Path) -> str:
    """Such as 3.12; empty for what does not start, as a shim of pyenv for a version that is not chosen."""
    program = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    asked = subprocess.run([python, "-I", "-c", program], capture_output=True, text=True, check=False)
    return asked.stdout.strip() if asked.returncode == 0 else ""


def run(light: Light, folder: Path, line: str, **more: str) -> Ran:
    """One command as a process of its own, without any setting of this machine."""
    done = subprocess.run(
        [light.dq, *shlex.split(line)],
        cwd=folder,
        env=_environment(light) | more,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return Ran(done.returncode, done.stdout)


def run_all(light: Light, folder: Path, commands: Sequence[Command], *options: str) -> list[Ran]:
    """The commands in one process; `--without-posix` takes away what Windows does not have."""
    given = json.dumps([(shlex.split(one.line), one.settings) for one in commands])
    done = subprocess.run(
        [light.python, "-I", Path(__file__).with_name("in_one.py"), *options, given],
        cwd=folder,
        env=_environment(light),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Ran(**json.loads(line)) for line in done.stdout.splitlines()]


def install_more(light: Light, mend: str) -> None:
    """Runs a command that dq printed, by uv: a bare environment has no pip."""
    told = shlex.split(mend.partition("#")[0])
    assert told[:2] == ["pip", "install"], mend
    command = [wheel.uv(), "--no-config", "pip", "install", "--quiet", "--python", light.python, *told[2:]]
    if subprocess.run([*command, "--offline"], check=False, capture_output=True).returncode:
        subprocess.run(command, check=True)


def told_to_install(page: Path, built: Path) -> list[str]:
    """The commands by which a page installs dq, with this wheel in the place of the checkout."""
    told = [line for line in pages.commands(page) if line.startswith("pip install '.[")]
    return [line.replace("'.[", "'dq-contracts[").replace("]'", f"] @ {built.as_uri()}'") for line in told]


def seconds(light: Light, folder: Path) -> float:
    """How long the shortest command takes as a whole process; the best of five."""
    taken = []
    for _ in range(5):
        before = time.perf_counter()
        assert run(light, folder, "validate orders.odcs.yaml").code == 0
        taken.append(time.perf_counter() - before)
    return min(taken)


def _environment(light: Light) -> dict[str, str]:
    ours = ("DQ_", "SLACK_", "SPARK_", "PYSPARK_", "PYTHON", "GIT_", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {"PATH": f"{light.dq.parent}:{os.environ['PATH']}", "COLUMNS": "100", "NO_COLOR": "1"}


CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: lake, format: csv}
team: {members: [{username: ana@example.com, role: owner}]}
support:
  - {channel: "#sales", tool: slack, scope: notifications}
schema:
  - name: orders
    description: One row per order.
    properties:
      - {name: day, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 1}
      - {name: id, logicalType: integer, physicalType: bigint, required: true}
    quality:
      - {id: some, type: sql, query: "SELECT count(*) FROM {object}", mustBeGreaterThan: 0}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: orders
    schedule: "0 6 * * *"
    customProperties:
      - property: delivery
        vendor: dq
        value: {grace: 30m, partition: {day: "{due - 1d:%F}"}, objective: 90%}
"""


def _lacking(extra: str, words: str, **settings: str) -> Command:
    """One sentence, and the command that mends it; of a check, behind the line of the table that wants it."""
    return Command(words, 2, f"[{extra}]", 3 if words.startswith("check") else 2, settings)


PROCESSES = (
    Command("", 2, "Usage: dq"),
    Command("--version", 0, "dq "),
    Command("validat", 2, "Did you mean 'validate'?"),
    Command("validate orders.odcs.yaml", 0, "1 contract, no findings."),
    _lacking("spark", "check orders.odcs.yaml --all"),
)
# These run without POSIX, too.
GATE = (
    Command("--help", 0, "Usage: dq"),
    *(Command(f"{name} --help", 0, f"Usage: dq {name}") for name in COMMANDS),
    Command("validate orders.odcs.yaml", 0, "1 contract, no findings."),
    Command("validate broken.odcs.yaml", 1, "Did you mean 'number'?"),
    Command("validate orders.odcs.yaml --report sarif=out/dq.sarif"),
    Command("diff orders.odcs.yaml narrow.odcs.yaml", 1, "type-narrowed"),
    Command("explain cron-invalid", 0, "How to fix"),
    Command("explain orders.odcs.yaml", 0, "sql_rule"),
    Command("explain luhn", 0, "dq-contracts"),
)
INIT = "init new --id sales --domain sales --owner ana@b.c --channel '#a' --schedule '0 6 * * *' --tz UTC"
WATCH = "watch orders.odcs.yaml --as-of 2026-05-1"
LIGHT = (
    Command("validate nowhere", 3, "nowhere"),
    Command("fmt --check orders.odcs.yaml", 1, "orders.odcs.yaml"),
    Command(INIT, 0, "new"),
    Command("import csv orders.csv", 0, "all are dates"),
    Command("export sql orders.odcs.yaml", 0, "CREATE TABLE"),
    Command("schema contract", 0, "$schema"),
    Command("schema policy", 0, "$schema"),
    Command("schema findings", 0, "$schema"),
    Command("rules", 0, "cron-invalid"),
    Command("schedule next '0 6 * * *' --count 1", 0, "06:00"),
    Command("doctor --all", 0, "pip install"),
    Command("status orders.odcs.yaml --as-of 2026-05-11T07:00:00Z", 0, "orders/daily"),
    Command(f"{WATCH}0T18:00:00Z --channel console", 0, "SLOs: 1"),
    Command(f"{WATCH}1T07:00:00Z --channel file:alerts.jsonl", 1, "missing"),
    Command("register orders.odcs.yaml", 0, "No changes made"),
    _lacking("spark", "check orders.odcs.yaml --all --dry-run"),
    Command("sample orders.odcs.yaml orders.csv", 0, "pass"),
    _lacking("spark", "register orders.odcs.yaml --catalog hive"),
    _lacking("aws", "register orders.odcs.yaml --catalog glue"),
    _lacking("spark", "publish orders.odcs.yaml --partition day=2026-05-10 --catalog hive"),
    _lacking("spark,demo", "demo"),
    _lacking("sample,demo", "demo --tables lake"),
    _lacking("demo-aws", "demo --aws"),
    _lacking("s3", "import parquet lake"),
    _lacking("aws", "emr --application a --role r --entry e --environment e -- check x"),
    _lacking("slack", f"{WATCH}1T07:00:00Z --channel slack:#sales", SLACK_BOT_TOKEN="xoxb-1"),
    _lacking("postgres", "status orders.odcs.yaml", DQ_STORE_URL="postgresql://dq@127.0.0.1:1/dq"),
)


S3_TIMES = "--since 2026-05-10T00:00:00Z --as-of 2026-05-11T07:00:00Z"
# What works with one more extra, where the lake roots name a bucket `lake`.
WITH = {
    "s3": (
        Command("import parquet lake/orders.parquet", 0, "bigint"),
        Command("doctor", 0, "s3://lake is readable"),
        # What cannot be seen would be unknown, and exit code 3.
        Command(f"watch s3.odcs.yaml {S3_TIMES} --channel console", 1, "s3://lake/day=2026-05-"),
    ),
    "sample": (
        Command("sample orders.odcs.yaml orders.csv", 0, "pass"),
        Command("sample orders.odcs.yaml lake/orders.parquet", 0, "pass"),
    ),
}


def parquet(light: Light, file: Path) -> None:
    """A Parquet file of the rows that `furnish` writes, made in the bare environment itself."""
    file.parent.mkdir(exist_ok=True)
    program = (
        "import datetime, sys, pyarrow as pa, pyarrow.parquet as pq\n"
        "rows = pa.table({'day': [datetime.date(2026, 5, 10)], 'id': pa.array([1], pa.int64())})\n"
        "pq.write_table(rows, sys.argv[1])"
    )
    subprocess.run([light.python, "-I", "-c", program, file], check=True)


def furnish(folder: Path) -> Path:
    """A folder with what the commands above name."""
    (folder / "orders.odcs.yaml").write_text(CONTRACT)
    (folder / "broken.odcs.yaml").write_text(CONTRACT.replace("logicalType: integer", "logicalType: nmber"))
    (folder / "narrow.odcs.yaml").write_text(CONTRACT.replace("physicalType: bigint", "physicalType: int"))
    on_s3 = CONTRACT.replace("type: local, path: lake", "type: s3, location: 's3://lake'")
    (folder / "s3.odcs.yaml").write_text(on_s3)
    (folder / "orders.csv").write_text("day,id\n2026-05-10,1\n")
    return folder


def problems(light: Light, folder: Path) -> list[str]:
    """What is not as the tables above say, in words; `folder` is an empty one."""
    furnish(folder)
    rans = [
        *zip(PROCESSES, (run(light, folder, one.line, **one.settings) for one in PROCESSES), strict=True),
        *zip((*GATE, *LIGHT), run_all(light, folder, (*GATE, *LIGHT)), strict=True),
        *zip(GATE, run_all(light, folder, GATE, "--without-posix"), strict=True),
    ]
    return [f"{one}\n{ran.printed}\nexit code {ran.code}" for one, ran in rans if not one.holds(ran)]

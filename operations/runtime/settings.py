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

# What the value of a setting must be: how it is read from a variable and from TOML.

_TOPIC = r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:(?:[A-Za-z0-9_-]|\{domain\}){1,256}"


@dataclass(frozen=True, slots=True)
class Form:
    """What a setting's value must be. `of_text` reads a variable, `of_toml` what TOML gave.

    Both raise ValueError; `wanted` then says what was wanted, and `example` how it is written in TOML.
    `paths`: relative ones are of the folder of the file, or of the working folder.
    """

    wanted: str
    example: str
    of_text: Callable[[str], object]
    of_toml: Callable[[object], object]
    paths: bool = False


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one.strip() for one in value):
        raise ValueError(value)
    return tuple(one.strip() for one in value)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in re.split("[,\n]", text) if part.strip())


def _names(value: object) -> tuple[str, ...]:
    found = _listed(value) if isinstance(value, str) else _texts(value)
    if not all(re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", one) for one in found):
        raise ValueError(value)
    return found


def _count(value: object) -> int:
    whole = int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value.strip()) else value
    if not isinstance(whole, int) or isinstance(whole, bool) or whole < 0:
        raise ValueError(value)
    return whole


def _seconds(value: object) -> int:
    whole = _count(value)
    if whole < 1:
        raise ValueError(value)
    return whole


def _number(value: object) -> str:
    """A number as a text: the channel that takes it judges it."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else _text(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    return value.strip()


def _topic(value: object) -> str:
    if not re.fullmatch(_TOPIC, _text(value)):
        raise ValueError(value)
    return _text(value)


def _folder(value: object) -> str:
    return "" if value is False or value == "off" else _text(value)


def _mention(value: object) -> str:
    if value is not False and value not in ("off", *Severity):
        raise ValueError(value)
    return str(value or "off")


NAMES = Form("a list of names of variables", '["LAKE"]', _names, _names)
ROOTS = Form("a list of folders and URI prefixes", '["s3://lake", "/data"]', _listed, _texts, paths=True)
TEXTS = Form("a list of texts", '["…"]', _listed, _texts)
SECONDS = Form("a whole number of seconds from 1 up", "1800", _seconds, _seconds)
COUNT = Form("a whole number from 0 up", "10", _count, _count)
NUMBER = Form("a number", "10", _number, _number)
TOPIC = Form(
    "the ARN of a standard topic of SNS, in which {domain} may stand for the contract's domain",
    '"arn:aws:sns:eu-central-1:123456789012:dq-{domain}"',
    _topic,
    _topic,
)
TEXT = Form("a text", '"…"', _text, _text)
SEVERITY = Form('a severity, or "off"', '"error"', _mention, _mention)
TARGET = Form("a file or a URL", '"/var/log/dq/lineage.jsonl"', _text, _text, paths=True)
FOLDER = Form('a folder, or "off"', '"/var/lib/dq/alerts"', _folder, _folder, paths=True)


# What the operator decides: TABLE, read from `dq.toml` and from `DQ_…` variables, which win.
#
# The file is the one that `DQ_CONFIG` or `dq --config` names. It is never looked for: the working folder
# may be
# a stranger's checkout.

CONFIG = "DQ_CONFIG"
_MOST_BYTES = 64 * 1024


def _is(default: Any, form: Form, help: str, *, secret: bool = False) -> Any:
    return field(default=default, repr=not secret, metadata={"form": form, "help": help})


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting with its default; `file` is the dq.toml that was read, or None."""

    vars: tuple[str, ...] = _is((), NAMES, "Environment variables that the servers of contracts may name.")
    lake_roots: tuple[str, ...] | None = _is(
        None,
        ROOTS,
        "Where data may lie. By default the registry's folder and the working folder, without what is "
        "hidden there.",
    )
    hosts: tuple[str, ...] = _is(
        (),
        TEXTS,
        "Hosts of HDFS and Azure on which data may lie anywhere, such as `namenode:8020` and "
        "`*.dfs.core.windows.net`.",
    )
    channels: tuple[str, ...] | None = _is(
        None,
        TEXTS,
        "Where contracts may send alerts: patterns such as `slack:#team-*`. By default all but files.",
    )
    file_channels: str = _is(
        "", FOLDER, "The folder in which contracts may name files for their alerts. By default none."
    )
    platform_channel: str = _is(
        "console",
        TEXT,
        "Who is told when deliveries cannot be seen, such as `slack:#data-platform`. By default the console.",
    )
    mentions: str = _is(
        Severity.ERROR.value,
        SEVERITY,
        "From which severity on an alert in Slack calls whom the contract names, or `off`.",
    )
    storage_seconds: int = _is(
        10, SECONDS, "How long the watcher waits for one answer of a storage before it is taken for silent."
    )
    send_seconds: int = _is(
        30,
        SECONDS,
        "How long a tick may wait for channels that ask it to, before it leaves that to the next.",
    )
    rule_seconds: int = _is(1800, SECONDS, "How long one rule may run on Spark.")
    keep_keys: int = _is(
        0,
        COUNT,
        "How many keys of one rule dq keeps, so that repeated and different values of a table are told "
        "without reading all of it: 8 bytes a key in the store. By default none.",
    )
    store_url: str = _is(
        "", TEXT, "The state store. By default an SQLite file in `.dq` of the working folder."
    )
    topic: str = _is(
        "",
        TOPIC,
        "The topic of SNS on which consumers hear of deliveries; `{domain}` is the contract's domain. By "
        "default they read `.dq/published.jsonl`.",
    )
    slack_url: str = _is("", TEXT, "Another address of Slack's Web API, such as a gateway's.")
    slack_timeout_seconds: str = _is("", NUMBER, "Of a call to Slack, at most 30. By default 10.")
    heartbeat_url: str = _is(
        "",
        TEXT,
        "A URL that `dq watch` asks for after each tick that judged everything and left nothing unsent. It "
        "is a secret: `DQ_HEARTBEAT_URL_FILE` names a file that holds it.",
        secret=True,
    )
    lineage: str = _is(
        "",
        TARGET,
        "Where events of OpenLineage go: an http:// or https:// URL, a file to which lines are added, or a "
        "`.yml` of OpenLineage's own settings. By default nowhere.",
        secret=True,
    )
    lake_formation: tuple[str, ...] = _is(
        (),
        TEXTS,
        "What `dq register --catalog glue` keeps in AWS Lake Formation: `locations`, `tags`, `grants`. By "
        "default nothing.",
    )
    lake_formation_locations: tuple[str, ...] = _is(
        (), TEXTS, "S3 prefixes that Lake Formation is given, one for each domain, such as `s3://lake/sales`."
    )
    lake_formation_role: str = _is("", TEXT, "The ARN of the role with which Lake Formation reads them.")
    lake_formation_tag: str = _is(
        "classification", TEXT, "The key of the LF-tag that columns get from their `classification`."
    )
    schedule_target: str = _is(
        "",
        TEXT,
        "The ARN of what `dq register --catalog glue` has EventBridge Scheduler start when a delivery is "
        "due: a Lambda function, state machine, topic, event bus or queue. By default nothing.",
    )
    schedule_role: str = _is("", TEXT, "The ARN of the role with which EventBridge Scheduler starts it.")
    schedule_group: str = _is("dq", TEXT, "The schedule group, one for each environment.")
    schedule_dead_letters: str = _is(
        "", TEXT, "The ARN of the queue that keeps what could not be started. By default it is lost."
    )
    schedule_window_minutes: int = _is(
        10, COUNT, "Within how many minutes after the time it starts, so that not all start at once; or 0."
    )
    smtp_host: str = _is("", TEXT, "The mail server for alerts by email.")
    smtp_port: str = _is("", NUMBER, "Its port: 587 with STARTTLS, the default, or 465 with TLS.")
    smtp_user: str = _is("", TEXT, "Who logs in at the mail server. By default nobody.")
    smtp_from: str = _is("", TEXT, "Who writes alerts by email, such as `dq@acme.example`.")
    email_domains: tuple[str, ...] = _is(
        (), TEXTS, "Domains to which contracts may send email, such as `acme.example`. By default none."
    )
    webhook_hosts: tuple[str, ...] = _is(
        (), TEXTS, "Hosts whose https:// URLs contracts may name as webhooks. By default none."
    )
    pagerduty_url: str = _is(
        "",
        TEXT,
        "Another address of PagerDuty's Events API, such as the EU's. By default events.pagerduty.com.",
    )
    file: Path | None = None
    variables: Mapping[str, str] = field(init=False, repr=False, compare=False)
    """The settings of channels as the variables that their shelf knows."""

    def __post_init__(self) -> None:
        found = {row.variable: getattr(self, row.name) for row in TABLE}
        texts = {name: ",".join(each) for name, each in found.items() if isinstance(each, tuple)}
        plain = {name: each for name, each in found.items() if isinstance(each, str)}
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
    Row(one.name, f"DQ_{one.name.upper()}", one.metadata["form"], one.default, one.metadata["help"])
    for one in fields(Settings)
    if one.metadata
)


def read(environment: Mapping[str, str], folder: Path, named: str | None = None) -> Settings:
    """The settings of the operator; `named` is the file of `--config`, which wins over `DQ_CONFIG`.

    Raises UsageError for a file that cannot be read or that anybody may write, an unknown key, and a value
    of another form: with the line, and the nearest key.
    """
    given = named or environment.get(CONFIG)
    file = folder / given if given else None
    found: dict[str, Any] = _of_file(file) if file else {}
    for row in TABLE:
        text = environment.get(row.variable)
        # An empty variable is one that a script did not fill.
        if text:
            try:
                found[row.name] = _placed(row.form, row.form.of_text(text), folder)
            except ValueError:
                shown = "…" if row.name.endswith("_url") else repr(text)
                raise UsageError(
                    f"{row.variable}={shown} is not {row.form.wanted}.",
                    "Correct it, or unset it.",
                ) from None
    return Settings(**found, file=file)


def unknown(environment: Mapping[str, str], settings: Settings) -> list[tuple[str, str | None]]:
    """Variables that begin as ours and are none, each with the nearest of ours."""
    ours = {CONFIG, "DQ_HEARTBEAT_URL_FILE", *(row.variable for row in TABLE), *settings.vars}
    return [
        (name, nearest(name, ours))
        for name in sorted(environment)
        if name.startswith("DQ_") and name not in ours
    ]


def _of_file(file: Path) -> dict[str, Any]:
    # Most have no such file.
    import tomllib

    text = _trusted(file)
    try:
        written = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"line (\d+), column (\d+)", str(error))
        # Without a place, it is the end of the file.
        at = f":{place[1]}:{place[2]}" if place else f":{text.count(chr(10)) + 1}"
        said = str(error).partition(" (at ")[0]
        raise UsageError(f"{file}{at}: this is no TOML: {said}.", "Correct the line.") from None
    rows = {row.name: row for row in TABLE}
    found = {}
    for key, value in written.items():
        at = f"{file}:{_line(text, key)}"
        if key not in rows:
            mend = suggestion(key, rows, f"There are {', '.join(rows)}.")
            raise UsageError(f"{at}: dq has no setting {key!r}.", mend)
        form = rows[key].form
        try:
            found[key] = _placed(form, form.of_toml(value), file.parent)
        except ValueError:
            raise UsageError(
                f"{at}: {key} must be {form.wanted}.", f"Write {key} = {form.example}."
            ) from None
    return found


def _line(text: str, key: str) -> int:
    match = re.search(rf"^[ \t]*\[?[ \t]*[\"']?{re.escape(key)}[\"']?[ \t]*[=.\]]", text, re.MULTILINE)
    return text.count("\n", 0, match.start()) + 1 if match else 1


def _trusted(file: Path) -> str:
    """The text of a file that only its owner and their group may write.

    A link is followed: an operator names the file, and Kubernetes mounts each of its files as one.
    """
    mend = f"Correct {CONFIG} or --config, which name it."
    try:
        # Without O_NONBLOCK, a FIFO would keep us waiting for ever.
        with os.fdopen(os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise UsageError(f"{file} is no file of settings.", mend)
            if os.name == "posix" and status.st_mode & stat.S_IWOTH:
                raise UsageError(f"{file}: everybody on this machine may change it.", f"chmod o-w {file}")
            data = opened.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise UsageError(f"{file} is larger than {_MOST_BYTES // 1024} KiB.", mend)
        return data.decode()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.", mend) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8.", "Write it in UTF-8.") from error


def _placed(form: Form, value: object, folder: Path) -> object:
    """The value with relative paths made whole."""
    if not form.paths or not value:
        return value
    if isinstance(value, tuple):
        return tuple(_whole(one, folder) for one in value)
    return _whole(str(value), folder)


def _whole(text: str, folder: Path) -> str:
    return text if is_uri(text) else str(folder / text)

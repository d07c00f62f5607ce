"""Location of an object's data, and the format of its text files."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dq.contracts import extension
from dq.contracts.access.access_policy import LocationPolicy, parse_location
from dq.contracts.extension import DatasetTerms, csv, dataset
from dq.contracts.layout import HIVE, Layout
from dq.contracts.model import Contract, SchemaObject, Server
from dq.contracts.outcome import UsageError, ValueProblem, nearest

# Location of an object's data: the server's location with its variables and placeholders replaced.

# Keys with the location of the data, by server type; the first one that is set is used.
_PATH_KEYS: dict[str, tuple[str, ...]] = {
    "local": ("path",),
    "s3": ("location",),
    "azure": ("location",),
    "glue": ("location",),
    "hive": (),
    "iceberg": (),
    "custom": ("location", "path"),
}
SERVERS = {
    "": ("local", "path"),
    "s3": ("s3", "location"),
    "s3a": ("s3", "location"),
    "abfss": ("azure", "location"),
}
"""Scheme of a location, "" for a path -> type of its server, and the server's key for the location."""
# Servers with tables that are found by name; the catalog knows the locations of their files.
CATALOGS = frozenset({"glue", "hive", "iceberg"})

# Format by server type, and the default format.
_FORMATS = {"iceberg": "iceberg"}
_DEFAULT_FORMAT = "parquet"

_PLACEHOLDERS = ("object", "model")
# Allowed names of an object as a folder, and of tables and databases: a dot or a back quote would refer to
# another database, a slash to files.
_FOLDER_NAME = re.compile(r"[^\x00-\x1f/\\:*?\[\]{}#%~]+")
_TABLE = re.compile(r"\w[\w $-]*")
_PLACEHOLDER = re.compile(
    r"\$\{(?P<variable>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}|\{(?P<word>\w+)\}"
)


@dataclass(frozen=True, slots=True)
class DataLocation:
    """Location and format of one object's data, validated by an AccessPolicy.

    `path` is a folder, a file or a pattern as the server writes it, without a trailing slash, or "" if only a
    catalog knows the location. `database` is the server's, or "". `format` is lower case. `layout` is that of
    the partitions' folders.
    """

    server: str
    type: str
    path: str
    format: str
    database: str = ""
    layout: Layout = HIVE


def is_lake(server: Server) -> bool:
    """Return True if dq can locate data of this server, unlike that of databases and streams."""
    return server.type in _PATH_KEYS


def select_server(contract: Contract, name: str | None) -> Server:
    """Return the server of this name, or the only one. Raises UsageError if there is none or it is
    ambiguous.
    """
    names = [server.server for server in contract.servers]
    if not names:
        raise UsageError(
            f"contract {contract.id!r} has no server for its data.",
            "Add an entry to 'servers', e.g. {server: production, type: s3, location: s3://bucket/prefix}.",
            at=contract.locate("servers"),
        )
    if name is None and len(names) == 1:
        return contract.servers[0]
    if name is None:
        raise UsageError(
            f"contract {contract.id!r} has several servers.",
            f"Choose one with --server: {', '.join(names)}.",
            at=contract.locate("servers"),
        )
    for server in contract.servers:
        if server.server == name:
            return server
    hint = nearest(name, names) or ", ".join(names)
    raise UsageError(
        f"contract {contract.id!r} has no server {name!r}.",
        f"Did you mean {hint}?",
        at=contract.locate("servers"),
    )


def other_servers(contract: Contract, name: str | None) -> frozenset[str]:
    """Return the names of the contract's other servers; empty if `name` is None."""
    return frozenset(server.server for server in contract.servers if name not in (None, server.server))


def server_for_environment(contract: Contract, environment: str, chosen_servers: Mapping[str, str]) -> str:
    """Return the contract's server in an environment: from `chosen_servers` by contract id, else the only
    one.

    Raises UsageError if there is none or it is ambiguous.
    """
    if contract.id in chosen_servers:
        return select_server(contract, chosen_servers[contract.id]).server
    names = [
        server.server for server in contract.servers if server.environment == environment and is_lake(server)
    ]
    if len(names) == 1:
        return names[0]
    environments = sorted({server.environment for server in contract.servers if server.environment})
    raise UsageError(
        f"contract {contract.id!r} has {len(names) or 'no'} servers with 'environment: {environment}'"
        + (f", only with {', '.join(environments)}." if environments and not names else "."),
        f"Choose one in dq-policy.yaml: servers: {{{environment}: {{{contract.id}: "
        f"{names[0] if names else 'NAME'}}}}}.",
        at=contract.locate("servers"),
    )


def matching_server(contract: Contract, name: str | None, other: Contract) -> str:
    """Return the server of another contract that matches a server of this one (None: its only one).

    This is the one with the same name, else with the same environment; else the only one of the other
    contract if this contract has only one too and their environments do not differ. Raises UsageError if
    there is none, and like `select_server`.
    """
    own_server = select_server(contract, name)
    candidates = other.servers
    matching = [server for server in candidates if server.server == own_server.server]
    matching = matching or [
        server
        for server in candidates
        if own_server.environment and server.environment == own_server.environment
    ]
    is_other_environment = (
        own_server.environment
        and candidates
        and candidates[0].environment not in (None, own_server.environment)
    )
    if not matching and len(candidates) == 1 and len(contract.servers) == 1 and not is_other_environment:
        matching = list(candidates)
    if len(matching) == 1:
        return matching[0].server
    names = ", ".join(server.server for server in candidates) or "none"
    belongs = f"belongs to {own_server.server!r} of {contract.id!r}"
    raise UsageError(
        f"contract {other.id!r} has no server that {belongs}; it has: {names}.",
        "Give both servers the same name or the same 'environment'.",
        at=other.locate("servers"),
    )


def location_problems(server: Server) -> Iterator[tuple[str, ValueProblem]]:
    """Yield problems of the server's location by key, without replacing placeholders or checking the
    policy.
    """
    for key, text in _location_keys(server):
        filled = _PLACEHOLDER.sub(lambda match: match["default"] or "x", text)
        address = parse_location(filled) if filled else None
        if isinstance(address, ValueProblem):
            yield key, address


# `{date}`, `{due:%Y/%m/%d}`, but not the alternatives of a pattern, `{a,b}`.
_OTHER_PLACEHOLDER = re.compile(r"\{[^{},]*\}")
_DATE = re.compile(
    r"%[YymdHMSjF](?![0-9A-Fa-f])|(?<![a-z])yyyy([-_/]?mm([-_/]?dd)?)?(?![a-z])", re.IGNORECASE
)
_PATTERN = re.compile(r"[*\[{]")


def pattern_in(path: str) -> str | None:
    """Return the placeholder, date or pattern in a path of `location_templates`, or None for a folder."""
    matches = (pattern.search(path) for pattern in (_OTHER_PLACEHOLDER, _DATE, _PATTERN))
    return next((match[0] for match in matches if match), None)


def unlisted_problem(contract: Contract) -> ValueProblem | None:
    """Return why new data of the contract cannot be found: no server has a folder that dq can list."""
    lakes = [server for server in contract.servers if is_lake(server)]
    paths = [path for server in lakes for _, path in location_templates(server) if path]
    hint = "Add a server with the folder of the table, e.g. {type: s3, location: s3://bucket/orders}."
    if not lakes:
        types = ", ".join(sorted({server.type for server in contract.servers}))
        message = f"dq cannot list data of {types}" if types else "the contract has no server"
        return ValueProblem("LOCATION", f"{message}.", hint)
    if not paths:
        return ValueProblem("LOCATION", "no server has the location of the data.", hint)
    patterns = [pattern_in(path) for path in paths]
    if all(patterns):
        return ValueProblem("LOCATION", f"the location has {patterns[0]!r}, so it is not one folder.", hint)
    return None


def location_templates(server: Server) -> Iterator[tuple[str, str]]:
    """Yield the keys of the server's location, with `${NAME}` and `{object}` replaced by plain text.

    Remaining braces are placeholders that `resolve` rejects, or uses literally.
    """

    def fill(match: re.Match[str]) -> str:
        unknown = match["word"] and match["word"] not in _PLACEHOLDERS
        return match[0] if unknown else match["default"] or "x"

    for key, text in _location_keys(server):
        yield key, _PLACEHOLDER.sub(fill, text)


def with_defaults(text: str) -> tuple[str, dict[str, str]]:
    """Return a server's text with the defaults of its variables, and these defaults by variable.

    A variable without a default is replaced by its name, `<NAME>`, and has the default "". Values of the
    environment are not used.
    """
    defaults: dict[str, str] = {}

    def fill(match: re.Match[str]) -> str:
        if match["variable"] is None:
            return match[0]
        defaults[match["variable"]] = match["default"] or ""
        return match["default"] or f"<{match['variable']}>"

    return _PLACEHOLDER.sub(fill, text), defaults


def _location_keys(server: Server) -> Iterator[tuple[str, str]]:
    """Yield the keys of the server's location, as written."""
    for key in _PATH_KEYS.get(server.type, ()):
        if (text := server.get(key)) is not None:
            yield key, text


def resolve(
    contract: Contract, schema_object: SchemaObject, server: str | None, policy: LocationPolicy
) -> DataLocation:
    """Return the location of the object's data on the server of this name (None: the contract's only one).

    `${NAME}` and `${NAME:-default}` are variables of `policy`, `{object}` and `{model}` are the object's
    physical name, else its name. Without a placeholder, a single object is at the path itself, and each of
    several is in a subfolder of its name. The format is that of the object's `dataset` terms, else the
    server's, else parquet. A relative local path stays relative.

    Raises UsageError for a location or variable that the policy does not allow, an unknown placeholder or
    server, and a server type that is not a lake.
    """
    selected = select_server(contract, server)
    if not is_lake(selected):
        raise UsageError(
            f"server {selected.server!r} has type {selected.type!r}, which dq cannot read.",
            f"Choose a server of type {', '.join(_PATH_KEYS)} with --server.",
            at=selected.locate("type"),
        )
    placeholders = _Placeholders(contract, schema_object, selected, policy)
    database = placeholders.fill("database")[0]
    terms, findings = dataset(schema_object)
    for finding in findings:
        # With the default instead, other data could be read or written.
        raise UsageError(f"contract {contract.id!r}: {finding.message}", finding.hint, at=finding.at)
    path = _path(placeholders)
    if selected.type in CATALOGS or not path:
        _validate_names(placeholders, database)
    layout = server_layout(selected)
    return DataLocation(selected.server, selected.type, path, _format(terms, selected), database, layout)


def server_layout(server: Server) -> Layout:
    """Return the layout of the folders on a server. Raises UsageError for an invalid one."""
    layout, findings = extension.layout(server)
    for finding in findings:
        # With Hive's instead, nothing would be found.
        raise UsageError(f"server {server.server!r}: {finding.message}", finding.hint, at=finding.at)
    return layout


def data_formats(contract: Contract, schema_object: SchemaObject) -> frozenset[str]:
    """Return the formats, in lower case, of the object's data on the servers that dq can read."""
    terms, _ = dataset(schema_object)
    return frozenset(_format(terms, server) for server in contract.servers if is_lake(server))


def _format(terms: DatasetTerms, server: Server) -> str:
    text = terms.format or server.get("format") or _FORMATS.get(server.type) or _DEFAULT_FORMAT
    return str(text).lower()


def _path(placeholders: _Placeholders) -> str:
    server, schema_object = placeholders.server, placeholders.object
    for key in _PATH_KEYS[server.type]:
        path, names_object = placeholders.fill(key)
        if path:
            needs_subfolder = not names_object and len(placeholders.contract.objects) > 1
            if needs_subfolder and "*" in path:
                raise UsageError(
                    f"{key} {server.get(key)!r} is one pattern for "
                    f"{len(placeholders.contract.objects)} objects.",
                    "Write {object} in place of the object's name in the path.",
                    at=server.locate(key),
                )
            if (names_object or needs_subfolder) and (
                not _FOLDER_NAME.fullmatch(schema_object.column) or schema_object.column.strip(". ") == ""
            ):
                raise UsageError(
                    f"{schema_object.column!r} is not a valid folder name.",
                    "Use only letters, digits and underscores in 'physicalName'.",
                    at=schema_object.locate("physicalName"),
                )
            location = placeholders.policy.validate(
                f"{path.rstrip('/')}/{schema_object.column}" if needs_subfolder else path
            )
            return placeholders.require(key, location)
    if server.type in CATALOGS or server.get("database"):
        return ""
    keys = " or ".join(repr(key) for key in _PATH_KEYS[server.type])
    raise UsageError(
        f"server {server.server!r} has no location for its data.", f"Add {keys}.", at=server.locate()
    )


def _validate_names(placeholders: _Placeholders, database: str) -> None:
    """Raise UsageError for names that would make Spark read something other than a table."""
    names = [("database", part) for part in database.split(".") if database]
    for key, name in (*names, ("physicalName", placeholders.object.column)):
        if not _TABLE.fullmatch(name):
            location = (
                placeholders.server.locate(key) if key == "database" else placeholders.object.locate(key)
            )
            raise UsageError(
                f"{name!r} is not a valid {'database' if key == 'database' else 'table'} name.",
                f"Use only letters, digits and underscores in '{key}'.",
                at=location,
            )


@dataclass(frozen=True, slots=True)
class _Placeholders:
    """Replaces the placeholders in the keys of a server."""

    contract: Contract
    object: SchemaObject
    server: Server
    policy: LocationPolicy

    def fill(self, key: str) -> tuple[str, bool]:
        """Return the key's text with placeholders replaced, and whether it names the object; ("", False) if
        absent.
        """
        text = self.server.get(key)
        if text is None:
            return "", False
        names_object = False

        def replacement(match: re.Match[str]) -> str:
            nonlocal names_object
            variable, word = match["variable"], match["word"]
            if variable is not None:
                return self.require(key, self.policy.value(variable, match["default"]))
            if word not in _PLACEHOLDERS:
                raise UsageError(
                    f"{key} has the unknown placeholder {{{word}}}.",
                    "Write {object} for the object's name, or ${NAME} for a variable.",
                    at=self.server.locate(key),
                )
            names_object = True
            return self.object.column

        return _PLACEHOLDER.sub(replacement, text), names_object

    def require(self, key: str, result: str | ValueProblem) -> str:
        """Return the policy's result, or raise its problem. The message has the text as written, without
        values.
        """
        if isinstance(result, str):
            return result
        message = f"contract {self.contract.id!r}: {key} {self.server.get(key)!r} {result.message}."
        raise UsageError(message, result.hint, at=self.server.locate(key))


# Format of a server's text files, used by Spark, samples and catalogs.


@dataclass(frozen=True, slots=True)
class TextFormat:
    """CSV format as in RFC 4180, with deviations; for JSON only the encoding applies.

    A quote in quotes is written after `escape`, which is the quote itself by default; both are "" if values
    are not quoted. An empty unquoted value is NULL, an empty quoted value is the empty text; a value equal to
    `null_text` is NULL, quoted or not. A line break in quotes is part of the value. A row has as many values
    as the file has columns.
    """

    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    header: bool = True
    encoding: str = "utf-8"
    null_text: str = ""

    @property
    def charset(self) -> str:
        """Java's name of the encoding, or the encoding as written if Java has none."""
        python_name = codecs.lookup(self.encoding).name
        return _CHARSETS.get(python_name, self.encoding)


RFC_4180 = TextFormat()
_NO_QUOTE = "none"
# Python's name of an encoding -> Java's. Spark 4 supports no others.
_CHARSETS = {
    "utf-8": "utf-8",
    "ascii": "us-ascii",
    "iso8859-1": "iso-8859-1",
    "utf-16": "utf-16",
    "utf-16-be": "utf-16be",
    "utf-16-le": "utf-16le",
    "utf-32": "utf-32",
}
CHARSETS = frozenset(_CHARSETS.values())


def text_format(server: Server) -> TextFormat:
    """Return the text format of a server: its `csv` terms, its own keys, else RFC 4180 in UTF-8.

    Raises UsageError for invalid terms, because files would be misread.
    """
    terms, findings = csv(server)
    for finding in findings:
        raise UsageError(f"server {server.server!r}: {finding.message}", finding.hint, at=finding.at)
    delimiter = terms.delimiter or server.get("delimiter") or RFC_4180.delimiter
    delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter.lower(), delimiter)
    encoding = terms.encoding or server.get("encoding") or RFC_4180.encoding
    quote = "" if terms.quote == _NO_QUOTE else terms.quote
    if terms.escape and not quote:
        raise UsageError(
            f"server {server.server!r}: 'escape' has no effect without a 'quote' character.",
            "Remove 'escape' from its 'csv' terms, or set 'quote'.",
            at=server.locate(),
        )
    description = TextFormat(
        delimiter,
        quote,
        terms.escape or quote,
        terms.header,
        encoding,
        terms.null_text or RFC_4180.null_text,
    )
    reason = _text_format_problem(description)
    if reason is not None:
        raise UsageError(
            f"server {server.server!r}: {reason}.", "Correct its keys or its 'csv' terms.", at=server.locate()
        )
    return description


def _text_format_problem(description: TextFormat) -> str | None:
    if len(description.delimiter) != 1:
        return f"the delimiter {description.delimiter!r} is not one character"
    signs = [description.delimiter, "\n", "\r", *description.quote]
    if len(set(signs)) < len(signs) or description.escape in (description.delimiter, "\n", "\r"):
        return "its delimiter, quote, escape and line break must differ"
    try:
        codecs.lookup(description.encoding)
    except (LookupError, ValueError):
        return f"unknown encoding {description.encoding!r}"
    return None

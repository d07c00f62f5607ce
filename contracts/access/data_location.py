"""Where the data of an object lies, and how its text files are written."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dq.contracts.access.access_policy import PlaceTerms, parse
from dq.contracts.extension import DatasetTerms, csv, dataset
from dq.contracts.model import Contract, SchemaObject, Server
from dq.contracts.outcome import TextFault, UsageError, nearest

# Where the data of an object lies: the server's location with its variables and placeholders filled in.

# Which of its keys says where the data lies, by server type; the first that is written counts.
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
"""The scheme of a place, "" for a path -> the type of a server there, and its key that names the place."""
# Servers whose tables are found by name; where their files lie, the catalog knows.
CATALOGS = frozenset({"glue", "hive", "iceberg"})

# A format that follows from the server's type, and the one that the lake writes when nobody says.
_FORMATS = {"iceberg": "iceberg"}
_USUAL_FORMAT = "parquet"

_PLACEHOLDERS = ("object", "model")
# What an object's name must be where it is a step of a path, and where it or a database names a table: a dot
# or a back quote in it would lead to another database, a slash to files.
_STEP = re.compile(r"[^\x00-\x1f/\\:*?\[\]{}#%~]+")
_TABLE = re.compile(r"\w[\w $-]*")
_HOLE = re.compile(r"\$\{(?P<variable>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}|\{(?P<word>\w+)\}")


@dataclass(frozen=True, slots=True)
class DataPlace:
    """Where and how one object's data lies, as a Reach has vouched for.

    `path` is a folder, a file or a pattern, as the server writes it, without a slash at its end; it is ""
    where only a catalog knows the place. `database` is the server's, or "". `format` is lower case.
    """

    server: str
    type: str
    path: str
    format: str
    database: str = ""


def is_lake(server: Server) -> bool:
    """Whether data of this server can be found by dq: that of databases and streams cannot."""
    return server.type in _PATH_KEYS


def server_of(contract: Contract, name: str | None) -> Server:
    """The server of this name, or the only one. Raises UsageError for none, and where the choice is open."""
    names = [server.server for server in contract.servers]
    if not names:
        raise UsageError(
            f"contract {contract.id!r} names no server that holds its data.",
            "Add an entry to 'servers', such as {server: production, type: s3, location: s3://bucket/prefix}.",
            at=contract.at("servers"),
        )
    if name is None and len(names) == 1:
        return contract.servers[0]
    if name is None:
        raise UsageError(
            f"contract {contract.id!r} has several servers.",
            f"Choose one with --server: {', '.join(names)}.",
            at=contract.at("servers"),
        )
    for server in contract.servers:
        if server.server == name:
            return server
    hint = nearest(name, names) or ", ".join(names)
    raise UsageError(
        f"contract {contract.id!r} has no server {name!r}.",
        f"Did you mean {hint}?",
        at=contract.at("servers"),
    )


def other_servers(contract: Contract, name: str | None) -> frozenset[str]:
    """The names of the contract's servers but this one; none where no choice was made."""
    return frozenset(one.server for one in contract.servers if name not in (None, one.server))


def server_in(contract: Contract, environment: str, named: Mapping[str, str]) -> str:
    """The name of the contract's server in an environment: what `named` says of its id, else the only one.

    Raises UsageError where there is none, or where the choice is open.
    """
    if contract.id in named:
        return server_of(contract, named[contract.id]).server
    found = [one.server for one in contract.servers if one.environment == environment and is_lake(one)]
    if len(found) == 1:
        return found[0]
    here = sorted({one.environment for one in contract.servers if one.environment})
    raise UsageError(
        f"contract {contract.id!r} has {len(found) or 'no'} servers with 'environment: {environment}'"
        + (f", and such with {', '.join(here)}." if here and not found else "."),
        f"Say which one in dq-policy.yaml: servers: {{{environment}: {{{contract.id}: "
        f"{found[0] if found else 'NAME'}}}}}.",
        at=contract.at("servers"),
    )


def server_beside(contract: Contract, name: str | None, other: Contract) -> str:
    """The server of another contract that belongs to a server of this one (None: its only one).

    The one of the same name, else of the same environment; else the only one of the other contract, where
    this one has no choice either and no environment speaks against it. Data of two environments does not
    belong together. Raises UsageError where none is, and as `server_of`.
    """
    own = server_of(contract, name)
    known = other.servers
    same = [one for one in known if one.server == own.server]
    same = same or [one for one in known if own.environment and one.environment == own.environment]
    apart = own.environment and known and known[0].environment not in (None, own.environment)
    if not same and len(known) == 1 and len(contract.servers) == 1 and not apart:
        same = list(known)
    if len(same) == 1:
        return same[0].server
    names = ", ".join(one.server for one in known) or "none"
    belongs = f"belongs to {own.server!r} of {contract.id!r}"
    raise UsageError(
        f"contract {other.id!r} has no server that {belongs}; it has: {names}.",
        "Call both servers alike, or give them the same 'environment'.",
        at=other.at("servers"),
    )


def form_faults(server: Server) -> Iterator[tuple[str, TextFault]]:
    """What is wrong with the server's place whoever allows it, by key; what fills its holes is not known."""
    for key, text in _places(server):
        plain = _HOLE.sub(lambda match: match["default"] or "x", text)
        address = parse(plain) if plain else None
        if isinstance(address, TextFault):
            yield key, address


def paths(server: Server) -> Iterator[tuple[str, str]]:
    """Yield the keys that name the server's place, with `${NAME}` and `{object}` replaced by plain text.

    What remains in braces is a placeholder that `resolve` refuses, or reads literally.
    """

    def fill(match: re.Match[str]) -> str:
        unknown = match["word"] and match["word"] not in _PLACEHOLDERS
        return match[0] if unknown else match["default"] or "x"

    for key, text in _places(server):
        yield key, _HOLE.sub(fill, text)


def _places(server: Server) -> Iterator[tuple[str, str]]:
    """The keys that name the server's place, as they are written."""
    for key in _PATH_KEYS.get(server.type, ()):
        if (text := server.get(key)) is not None:
            yield key, text


def resolve(contract: Contract, one: SchemaObject, server: str | None, reach: PlaceTerms) -> DataPlace:
    """Where the object's data lies on the server of this name (None: the contract's only one).

    `${NAME}` and `${NAME:-default}` are the variables of `reach`, `{object}` and `{model}` are the object's
    physical name, else its name. Without a placeholder the one object of a contract lies at the path
    itself, and each of several in a folder of its name below. The format is that of the object's `dataset`
    terms, else the server's, else parquet. A relative local path stays relative.

    Raises UsageError for a place or a variable that the reach does not allow, an unknown placeholder or
    server, and a server type whose data is not a lake's.
    """
    chosen = server_of(contract, server)
    if not is_lake(chosen):
        raise UsageError(
            f"server {chosen.server!r} has type {chosen.type!r}, which dq cannot read.",
            f"Choose a server of type {', '.join(_PATH_KEYS)} with --server.",
            at=chosen.at("type"),
        )
    hole = _Holes(contract, one, chosen, reach)
    database = hole.filled("database")[0]
    terms, wrong = dataset(one)
    for finding in wrong:
        # Else the default would stand for it, and something else be read or written.
        raise UsageError(f"contract {contract.id!r}: {finding.message}", finding.mend, at=finding.at)
    path = _path(hole)
    if chosen.type in CATALOGS or not path:
        _refuse_names(hole, database)
    return DataPlace(chosen.server, chosen.type, path, _format(terms, chosen), database)


def formats(contract: Contract, one: SchemaObject) -> frozenset[str]:
    """The formats, in lower case, that the object's data has on the servers that dq can read."""
    terms, _ = dataset(one)
    return frozenset(_format(terms, server) for server in contract.servers if is_lake(server))


def _format(terms: DatasetTerms, server: Server) -> str:
    written = terms.format or server.get("format") or _FORMATS.get(server.type) or _USUAL_FORMAT
    return str(written).lower()


def _path(hole: _Holes) -> str:
    server, one = hole.server, hole.object
    for key in _PATH_KEYS[server.type]:
        path, named = hole.filled(key)
        if path:
            several = not named and len(hole.contract.objects) > 1
            if several and "*" in path:
                raise UsageError(
                    f"{key} {server.get(key)!r} is one pattern for {len(hole.contract.objects)} objects.",
                    "Put {object} where the object's name stands in the path.",
                    at=server.at(key),
                )
            if (named or several) and (not _STEP.fullmatch(one.column) or one.column.strip(". ") == ""):
                raise UsageError(
                    f"{one.column!r} is no name of a folder.",
                    "Write letters, digits and underscores in 'physicalName'.",
                    at=one.at("physicalName"),
                )
            vouched = hole.reach.vouch(f"{path.rstrip('/')}/{one.column}" if several else path)
            return hole.allowed(key, vouched)
    if server.type in CATALOGS or server.get("database"):
        return ""
    keys = " or ".join(repr(key) for key in _PATH_KEYS[server.type])
    raise UsageError(
        f"server {server.server!r} does not say where its data lies.", f"Add {keys}.", at=server.at()
    )


def _refuse_names(hole: _Holes, database: str) -> None:
    """Raises UsageError for names that would make Spark read something else than a table."""
    names = [("database", part) for part in database.split(".") if database]
    for key, name in (*names, ("physicalName", hole.object.column)):
        if not _TABLE.fullmatch(name):
            at = hole.server.at(key) if key == "database" else hole.object.at(key)
            raise UsageError(
                f"{name!r} is no name of a {'database' if key == 'database' else 'table'}.",
                f"Write letters, digits and underscores in '{key}'.",
                at=at,
            )


@dataclass(frozen=True, slots=True)
class _Holes:
    """The keys of a server with what is to be filled into them."""

    contract: Contract
    object: SchemaObject
    server: Server
    reach: PlaceTerms

    def filled(self, key: str) -> tuple[str, bool]:
        """The key's text with its holes filled, and whether it names the object. ("", False) when absent."""
        text = self.server.get(key)
        if text is None:
            return "", False
        named = False

        def fill(match: re.Match[str]) -> str:
            nonlocal named
            variable, word = match["variable"], match["word"]
            if variable is not None:
                return self.allowed(key, self.reach.value(variable, match["default"]))
            if word not in _PLACEHOLDERS:
                raise UsageError(
                    f"{key} has the unknown placeholder {{{word}}}.",
                    "Write {object} for the object's name, or ${NAME} for a variable.",
                    at=self.server.at(key),
                )
            named = True
            return self.object.column

        return _HOLE.sub(fill, text), named

    def allowed(self, key: str, given: str | TextFault) -> str:
        """What the reach gave, or its fault raised. It shows what is written, not what was filled in."""
        if isinstance(given, str):
            return given
        message = f"contract {self.contract.id!r}: {key} {self.server.get(key)!r} {given.message}."
        raise UsageError(message, given.mend, at=self.server.at(key))


# How the text files of a server are written: what Spark, the sample and a catalog all read them by.


@dataclass(frozen=True, slots=True)
class TextFormat:
    """A description of CSV by RFC 4180, with what differs from it; JSON follows its encoding alone.

    Quotes in quotes are written after `escape`, which is the quote itself by default; both are "" where no
    value is in quotes, and a quote is a sign like any other. Nothing between two delimiters is NULL, nothing
    between quotes the empty text; a value that is `null_text` is NULL, in quotes or not. A line break in
    quotes is part of its value. A row has as many values as the file has columns.
    """

    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    header: bool = True
    encoding: str = "utf-8"
    null_text: str = ""

    @property
    def charset(self) -> str:
        """The encoding by the name that Java's engines take; as it is written, where they have none."""
        known = codecs.lookup(self.encoding).name
        return _CHARSETS.get(known, self.encoding)


RFC_4180 = TextFormat()
_NO_QUOTE = "none"
# Python's name of an encoding -> Java's. Spark 4 knows no others.
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
    """The description that a server gives: its `csv` terms, its own keys, else RFC 4180 in UTF-8.

    Raises UsageError for terms that cannot be understood: other files would be read than were written.
    """
    terms, wrong = csv(server)
    for finding in wrong:
        raise UsageError(f"server {server.server!r}: {finding.message}", finding.mend, at=finding.at)
    delimiter = terms.delimiter or server.get("delimiter") or RFC_4180.delimiter
    delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter.lower(), delimiter)
    encoding = terms.encoding or server.get("encoding") or RFC_4180.encoding
    quote = "" if terms.quote == _NO_QUOTE else terms.quote
    if terms.escape and not quote:
        raise UsageError(
            f"server {server.server!r}: without quotes there is nothing to escape.",
            "Leave 'escape' out of its 'csv' terms, or say which sign is the 'quote'.",
            at=server.at(),
        )
    made = TextFormat(
        delimiter,
        quote,
        terms.escape or quote,
        terms.header,
        encoding,
        terms.null_text or RFC_4180.null_text,
    )
    reason = _unusable(made)
    if reason is not None:
        raise UsageError(
            f"server {server.server!r}: {reason}.", "Correct its keys or its 'csv' terms.", at=server.at()
        )
    return made


def _unusable(form: TextFormat) -> str | None:
    if len(form.delimiter) != 1:
        return f"the delimiter {form.delimiter!r} is not one character"
    signs = [form.delimiter, "\n", "\r", *form.quote]
    if len(set(signs)) < len(signs) or form.escape in (form.delimiter, "\n", "\r"):
        return "its delimiter, quote, escape and line break are not different"
    try:
        codecs.lookup(form.encoding)
    except (LookupError, ValueError):
        return f"the encoding {form.encoding!r} is not known"
    return None

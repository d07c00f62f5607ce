"""Where the data of an object lies: the server's location with its variables and placeholders filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dq.contracts.errors import UsageError
from dq.contracts.extension import dataset
from dq.contracts.form import nearest
from dq.contracts.model import Contract, SchemaObject, Server

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
# Servers whose tables are found by name; where their files lie, the catalog knows.
CATALOGS = frozenset({"glue", "hive", "iceberg"})

# A format that follows from the server's type, and the one that the lake writes when nobody says.
_FORMATS = {"iceberg": "iceberg"}
_USUAL_FORMAT = "parquet"

_PLACEHOLDERS = ("object", "model")
_HOLE = re.compile(r"\$\{(?P<variable>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}|\{(?P<word>\w+)\}")


@dataclass(frozen=True, slots=True)
class DataPlace:
    """Where and how one object's data lies.

    `path` is a folder, a file or a pattern, as the server writes it, without a slash at its end; it is ""
    where only a catalog knows the place. `database` is the server's, or "". `format` is lower case.
    """

    server: str
    type: str
    path: str
    format: str
    database: str = ""


def server_of(contract: Contract, name: str | None) -> Server:
    """The server of this name, or the only one. Raises UsageError for none, and where the choice is open."""
    names = [server.server for server in contract.servers]
    if not names:
        raise UsageError(
            f"{contract.file}: contract {contract.id!r} names no server that holds its data.",
            "Add an entry to 'servers', such as {server: production, type: s3, location: s3://bucket/prefix}.",
        )
    if name is None and len(names) == 1:
        return contract.servers[0]
    if name is None:
        raise UsageError(
            f"{contract.file}: contract {contract.id!r} has several servers.",
            f"Choose one with --server: {', '.join(names)}.",
        )
    for server in contract.servers:
        if server.server == name:
            return server
    hint = nearest(name, names) or ", ".join(names)
    raise UsageError(
        f"{contract.file}: contract {contract.id!r} has no server {name!r}.", f"Did you mean {hint}?"
    )


def resolve(
    contract: Contract, one: SchemaObject, server: str | None, variables: Mapping[str, str]
) -> DataPlace:
    """Where the object's data lies on the server of this name (None: the contract's only one).

    `${NAME}` and `${NAME:-default}` are taken from `variables`, `{object}` and `{model}` are the object's
    physical name, else its name. Without a placeholder the one object of a contract lies at the path
    itself, and each of several in a folder of its name below. The format is that of the object's `dataset`
    terms, else the server's, else parquet. A relative local path stays relative.

    Raises UsageError for a variable without value, an unknown placeholder or server, and a server type
    whose data is not a lake's.
    """
    chosen = server_of(contract, server)
    if chosen.type not in _PATH_KEYS:
        raise UsageError(
            f"{chosen.at('type')}: server {chosen.server!r} has type {chosen.type!r}, which dq cannot read.",
            f"Choose a server of type {', '.join(_PATH_KEYS)} with --server.",
        )
    database = _filled(chosen, "database", one, variables)[0]
    terms = dataset(one)[0]
    format_ = terms.format or chosen.get("format") or _FORMATS.get(chosen.type) or _USUAL_FORMAT
    path = _path(contract, one, chosen, variables)
    return DataPlace(chosen.server, chosen.type, path, format_.lower(), database)


def _path(contract: Contract, one: SchemaObject, server: Server, variables: Mapping[str, str]) -> str:
    for key in _PATH_KEYS[server.type]:
        path, named = _filled(server, key, one, variables)
        if path:
            path = path.rstrip("/") or "/"
            if named or len(contract.objects) == 1:
                return path
            if "*" in path or "?" in path:
                raise UsageError(
                    f"{server.at(key)}: {key} {path!r} is one pattern for {len(contract.objects)} objects.",
                    "Put {object} where the object's name stands in the path.",
                )
            return f"{path.rstrip('/')}/{one.column}"
    if server.type in CATALOGS or server.get("database"):
        return ""
    keys = " or ".join(repr(key) for key in _PATH_KEYS[server.type])
    raise UsageError(
        f"{server.at()}: server {server.server!r} does not say where its data lies.", f"Add {keys}."
    )


def _filled(server: Server, key: str, one: SchemaObject, variables: Mapping[str, str]) -> tuple[str, bool]:
    """The key's text with its holes filled, and whether it names the object. ("", False) when absent."""
    text = server.get(key)
    if text is None:
        return "", False
    named = False

    def fill(match: re.Match[str]) -> str:
        nonlocal named
        variable, word = match["variable"], match["word"]
        if variable is None:
            if word not in _PLACEHOLDERS:
                raise UsageError(
                    f"{server.at(key)}: {key} has the unknown placeholder {{{word}}}.",
                    "Write {object} for the object's name, or ${NAME} for a variable.",
                )
            named = True
            return one.column
        # As in a shell, `:-` also stands in for a variable that is set and empty.
        value = variables.get(variable) or match["default"]
        if value is None:
            raise UsageError(
                f"{server.at(key)}: {key} needs the variable {variable}, which is not set.",
                f"Set it ({variable}=… dq …), or write ${{{variable}:-default}}.",
            )
        return value

    return _HOLE.sub(fill, text), named

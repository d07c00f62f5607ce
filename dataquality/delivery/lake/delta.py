"""Commits of a Delta table, from the JSON files of its log.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Actions".
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from dq.contracts.access.hive_path import unescaped
from dq.contracts.shared.errors import Unreadable
from dq.dataquality.delivery.lake import delta_names
from dq.dataquality.delivery.lake.commit import (
    NOT_UNDERSTOOD,
    Brought,
    Commit,
    Pairs,
    TableLog,
    summed,
    taken,
)
from dq.dataquality.delivery.lake.files import Files, Seen

_COMMIT = re.compile(r"\d{20}\.json")
_FIRST = f"{0:020}.json"

# They write files anew, and bring nothing that was not there before. The log's own sign of it, dataChange,
# is true for those that take rows away.
_BRINGS_NOTHING = frozenset({"DELETE", "UPDATE", "OPTIMIZE", "REORG", "RESTORE"})
# A write of no rows has no entry of a file.
_WRITES = frozenset({"WRITE", "CREATE TABLE AS SELECT", "CREATE OR REPLACE TABLE AS SELECT"})


def read(files: Files, place: str, known: Collection[str], since: datetime) -> TableLog:
    """The table's log; its commit times are those that it holds itself, else the files' own."""
    log = f"{place}/_delta_log"
    inside = files.inside(log)
    seen = commits(inside)
    new = [
        _commit(one, files.read(f"{log}/{one.name}"))
        for one in seen
        if one.modified_at >= since and _ident(one) not in known
    ]
    touched = [pairs for one in new for pairs in (*(part.partition for part in one.brought), *one.took)]
    if delta_names.mapped({name for pairs in touched for name, _ in pairs}):
        new = _renamed(new, delta_names.names(files, log, inside, seen))
    begins = None if not seen or seen[0].name == _FIRST else seen[0].modified_at
    return TableLog(tuple(new), tuple(_ident(one) for one in seen), begins)


def commits(inside: Iterable[Seen]) -> list[Seen]:
    """The files of commits in the folder of a log, in their order."""
    return sorted((one for one in inside if _COMMIT.fullmatch(one.name)), key=lambda one: one.name)


def actions_of(content: bytes) -> list[Any]:
    """The actions of a commit. Raises ValueError for what is no JSON."""
    return [json.loads(line) for line in content.splitlines() if line.strip()]


def _renamed(done: list[Commit], names: Mapping[str, str]) -> list[Commit]:
    def columns(pairs: Pairs) -> Pairs:
        return tuple((names.get(name, name), value) for name, value in pairs)

    return [
        replace(
            commit,
            brought=tuple(one._replace(partition=columns(one.partition)) for one in commit.brought),
            took=tuple(map(columns, commit.took)),
        )
        for commit in done
    ]


def _ident(file: Seen) -> str:
    # A table that was made anew at the same place counts from zero again.
    return f"{int(file.name[:20])}@{file.modified_at:%Y%m%dT%H%M%S.%f}"


def _commit(file: Seen, content: bytes) -> Commit:
    try:
        actions = actions_of(content)
        info: dict[str, Any] = next((one["commitInfo"] for one in actions if "commitInfo" in one), {})
        told = info.get("inCommitTimestamp")
        at = file.modified_at if told is None else datetime.fromtimestamp(told / 1000, UTC)
        brought = _brought(actions, str(info.get("operation", "")).upper())
        lost = [one["remove"] for one in actions if "remove" in one and one["remove"].get("dataChange", True)]
        kept = [one["add"] for one in actions if "add" in one]
        return Commit(_ident(file), at, brought, taken(map(partition, lost), map(partition, kept)))
    except (*NOT_UNDERSTOOD, OSError) as error:
        raise Unreadable(f"Delta's log has no commit in {file.name}.", "Look at this file.") from error


def _brought(actions: list[dict[str, Any]], operation: str) -> tuple[Brought, ...]:
    if operation.partition(" ")[0] in _BRINGS_NOTHING:
        return ()
    removed = {one["remove"]["path"] for one in actions if "remove" in one}
    brought = summed(_added(actions, removed))
    return brought or ((Brought((), 0),) if operation in _WRITES else ())


def _added(
    actions: list[dict[str, Any]], removed: Collection[str]
) -> Iterator[tuple[Mapping[str, str], int | None]]:
    for one in actions:
        # With a deletion vector, a file that was there before is removed and added in one commit.
        if "add" in one and one["add"].get("dataChange", True) and one["add"]["path"] not in removed:
            stats = json.loads(one["add"].get("stats") or "{}")
            yield partition(one["add"]), stats.get("numRecords")


def partition(file: Mapping[str, Any]) -> dict[str, str]:
    """The columns and values of a file's partition: those of its entry, else of its path."""
    values = file.get("partitionValues")
    if values is None:
        parts = [part.partition("=") for part in unquote(str(file["path"])).split("/")[:-1]]
        values = {unescaped(name): unescaped(value) for name, sign, value in parts if sign}
    return {str(name): str(value) for name, value in dict(values).items() if value is not None}

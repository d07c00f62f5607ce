"""Results of `dq validate` per file, in a folder of the user, for the next run.

A result is reused for the same bytes under the same name, in a run with the same facts: code, policy, date
where a rule reads it. All results of a run are in one file, which begins with a checksum keyed by the facts.
It is JSON, so that reading it runs nothing, and it is ignored if anything about it is unexpected.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

from dq.contracts.access import files
from dq.contracts.access.files import FileRef, FileRejected
from dq.contracts.lineage import PromisedTable, TableFolder
from dq.contracts.outcome import Finding, Location, Severity
from dq.validators.context import ContractEntry, CrossReference
from dq.validators.lint import CascadeFilter, FileResult, quiet_collector

MAX_BYTES = 128_000_000
"""Limit of one file; a contract takes 2 kB."""
MAX_TOTAL = 256_000_000
"""Limit of all files in the folder; the oldest are deleted."""

_FORMAT = b"dq results 1\n"

Row = list[Any]


class FolderCache:
    """The cache of one registry in a folder, see `ResultCache`.

    `facts` are all facts besides a file's bytes and name on which its result depends. `today` is the date of
    the run in UTC.
    """

    def __init__(self, folder: Path, name: str, facts: bytes, today: date) -> None:
        self._folder = folder
        self._name = name
        self._key = sha256(facts).digest()
        self._today = today.isoformat()
        self._reused: dict[str, str] = {}

    def find(self, contract_files: Sequence[tuple[str, FileRef]]) -> dict[str, FileResult]:
        """Return the results of the files that have not changed, by name; the files are read for that."""
        refs = dict(contract_files)
        results: dict[str, FileResult] = {}
        with quiet_collector():
            for line in self._read():
                # A file that cannot be read, or a line that is none of ours, is evaluated as without a cache.
                with suppress(FileRejected, ValueError, TypeError, LookupError, RecursionError):
                    file, digest, day, *row = json.loads(line)
                    data = files.read(refs[file]) if day in ("", self._today) else b""
                    if digest == sha256(data).hexdigest():
                        results[file] = _result(file, digest, day, data, row)
                        self._reused[file] = line
        return results

    def save(self, results: Sequence[FileResult]) -> None:
        """Save the results of all files for the next run; does nothing if that is impossible."""
        with quiet_collector():
            lines = [
                line
                for result in results
                if (line := self._reused.get(result.file) or _line(result)) is not None
            ]
        if len(lines) > len(self._reused):
            self._write("\n".join(lines).encode())

    def _read(self) -> list[str]:
        try:
            with files.open_private(self._folder) as folder:
                data = files.read_private(folder, self._name, MAX_BYTES)
            head = len(_FORMAT) + blake2b.MAX_DIGEST_SIZE
            body = data[head:]
            return body.decode().split("\n") if data[:head] == self._head(body) else []
        except (OSError, FileRejected, UnicodeDecodeError):
            return []

    def _write(self, body: bytes) -> None:
        data = self._head(body) + body
        # Without a folder that can be written, the next run evaluates all files again.
        if len(data) <= MAX_BYTES:
            with suppress(OSError), files.open_private(self._folder) as folder:
                files.write_private(folder, self._name, data, MAX_TOTAL)

    def _head(self, body: bytes) -> bytes:
        return _FORMAT + blake2b(body, key=self._key).digest()


# A result as one line of JSON: a list of its fields, in which locations have no file, since it is the same.


class _NotPlain(Exception):
    """A result that cannot be restored exactly."""


def _line(result: FileResult) -> str | None:
    """Return the line of a result, or None if it may only be used once, or could not be restored exactly."""
    if not result.digest:
        return None
    file, entry, cascade = result.file, result.entry, result.cascade
    try:
        line = json.dumps(
            [
                file,
                result.digest,
                result.day,
                [_finding_row(file, finding) for finding in result.findings],
                result.data is not None,
                result.domain,
                None if entry is None else _entry_row(file, entry),
                None if cascade is None else _cascade_row(cascade),
            ],
            ensure_ascii=False,
            separators=(",", ":"),
        )
        # Half a surrogate pair cannot be encoded, and two halves would be read as one character.
        line.encode()
    except (_NotPlain, UnicodeEncodeError):
        return None
    return line


def _cascade_row(cascade: CascadeFilter) -> Row:
    form = [[finding.rule, finding.severity, finding.path] for finding in cascade.form]
    return [list(cascade.removed_paths), form]


def _result(file: str, digest: str, day: str, data: bytes, row: Row) -> FileResult:
    findings, has_data, domain, entry, cascade = row
    return FileResult(
        file,
        [
            Finding(rule, Severity(severity), message, hint, Location(file, line, column), path, contract)
            for rule, severity, message, hint, line, column, path, contract in findings
        ],
        data if has_data else None,
        None if entry is None else _entry(file, entry),
        domain,
        None if cascade is None else _cascade(file, *cascade),
        digest,
        day,
    )


def _cascade(file: str, removed_paths: list[str], form: list[list[str]]) -> CascadeFilter:
    place = Location(file)
    findings = [Finding(rule, Severity(severity), "", "", place, path) for rule, severity, path in form]
    return CascadeFilter(removed_paths, findings)


def _finding_row(file: str, finding: Finding) -> Row:
    return [
        finding.rule,
        finding.severity,
        finding.message,
        finding.hint,
        *_spot(file, finding.at),
        finding.path,
        finding.contract,
    ]


def _entry_row(file: str, entry: ContractEntry) -> Row:
    if entry.file != file:
        raise _NotPlain
    return [
        *entry.identity,
        *_spot(file, entry.location),
        entry.objects,
        entry.names,
        list(entry.repeated),
        list(entry.ids),
        [
            [item.key, item.text, *_spot(file, item.location), item.path, item.needs, item.contract]
            for item in entry.references
        ],
        [
            [
                table.name,
                table.folder,
                table.environment,
                table.account,
                *_spot(file, table.location),
                table.path,
                *_spot(file, table.folder_location),
                table.folder_path,
            ]
            for table in entry.tables
        ],
    ]


def _entry(file: str, row: Row) -> ContractEntry:
    id_, major, line, column, objects, names, repeated, ids, references, tables = row
    return ContractEntry(
        file,
        (id_, major),
        Location(file, line, column),
        tuple(objects),
        names,
        frozenset(repeated),
        frozenset(ids),
        tuple(
            CrossReference(key, text, Location(file, line, column), path, tuple(needs), contract)
            for key, text, line, column, path, needs, contract in references
        ),
        tuple(_table(file, *table) for table in tables),
    )


def _table(
    file: str,
    name: str,
    folder: list[Any] | None,
    environment: str,
    account: str,
    line: int,
    column: int,
    path: str,
    folder_line: int,
    folder_column: int,
    folder_path: str,
) -> PromisedTable:
    return PromisedTable(
        name,
        None if folder is None else TableFolder(folder[0], tuple(folder[1])),
        environment,
        account,
        Location(file, line, column),
        path,
        Location(file, folder_line, folder_column),
        folder_path,
    )


def _spot(file: str, location: Location) -> tuple[int, int]:
    if location.file != file:
        raise _NotPlain
    return location.line, location.column

"""Certificates that no file of a lake has rows of the keys of people: their form, signature and verification.

A certificate is a JSON document. Its canonical form has sorted keys, no white space, and UTF-8 instead of
escapes (RFC 8785 for the values that occur). The Ed25519 signature is of the canonical form without the
member `signature`.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import json
import unicodedata
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

from dq.contracts.install import require_extras
from dq.contracts.outcome import ReadError, UsageError, one_line, pluralize
from dq.dataquality.erasure.model import FileResult, Gap, Means, PhysicalFile, Role, SearchOutcome

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

FORMAT = "dq-erasure-certificate/1"
ALGORITHM = "Ed25519"
SECRET_BYTES = SALT_BYTES = 32
MAX_BYTES = 1024 * 1024 * 1024
"""Limit of a certificate; a million files need a third of it."""
NOT_COVERED = (
    "backups, and copies or exports that no contract of the registry describes",
    "earlier versions of objects in buckets with versioning",
    "logs of engines, catalogs and storages",
    "rows written after the search",
)
_MAX_INTEGER = 2**53 - 1  # of JSON numbers that every reader reads exactly
_MAX_LINES = 20

Document = dict[str, Any]


class Verdict(enum.StrEnum):
    """The conclusion from a search."""

    PROVEN = "proven"
    HITS = "found"
    NOT_PROVEN = "not proven"


@dataclass(frozen=True, slots=True)
class TableState:
    """State of a table at the time of the search.

    `snapshot` is the id of the current snapshot or commit in the table's log, "" for a table without a log.
    """

    location: str
    format: str
    snapshot: str = ""


def verdict_of(hits: bool, gaps: bool) -> Verdict:
    """Return the verdict of a search. Hits are certain even if something could not be searched."""
    return Verdict.HITS if hits else Verdict.NOT_PROVEN if gaps else Verdict.PROVEN


# The document.


def key_digests(keys: Iterable[str], secret: bytes, salt: bytes) -> list[str]:
    """Return the digest of each key: HMAC-SHA256 of its text in NFC without outer white space.

    The key of the HMAC is derived from a secret that is not in the certificate, because phone numbers and
    most addresses can be guessed from a digest whose salt is public. The salt makes the digests of each
    certificate different.
    """
    derived = hmac.digest(secret, salt, "sha256")
    texts = (unicodedata.normalize("NFC", key.strip()) for key in keys)
    return [hmac.digest(derived, text.encode("utf-8", "surrogatepass"), "sha256").hex() for text in texts]


def build(
    outcome: SearchOutcome,
    *,
    keys: Sequence[str],
    secret: bytes,
    salt: bytes,
    before: datetime,
    issued_at: datetime,
    release: str,
    states: Mapping[str, TableState],
) -> Document:
    """Return the certificate of a search, unsigned.

    Args:
        keys: The keys of the search, in the order to which its hits refer.
        states: State of each table during the search. A table without one is a gap.
        before: Rows that existed before this instant are covered.
    """
    digests = key_digests(keys, secret, salt)
    gaps = [*outcome.gaps, *_own_gaps(outcome, digests, states)]
    files_by_table: dict[str, list[FileResult]] = {name: [] for name in outcome.tables}
    for result in outcome.files:
        files_by_table.setdefault(result.file.table, []).append(result)
    tables = [
        _table(name, outcome.tables.get(name, ()), states.get(name), files, digests)
        for name, files in sorted(files_by_table.items())
    ]
    return {
        "format": FORMAT,
        "dq": release,
        "issued_at": _instant(issued_at),
        "search": {"started_at": _instant(outcome.started), "finished_at": _instant(outcome.finished)},
        "before": _instant(before),
        "identity": outcome.identity,
        "verdict": verdict_of(any(result.hits for result in outcome.files), bool(gaps)).value,
        "keys": {"salt": salt.hex(), "digests": sorted(set(digests))},
        "tables": tables,
        "gaps": [{"table": gap.table, "subject": _text(gap.what), "reason": _text(gap.why)} for gap in gaps],
        "not_covered": list(NOT_COVERED),
    }


def _own_gaps(
    outcome: SearchOutcome, digests: Sequence[str], states: Mapping[str, TableState]
) -> Iterator[Gap]:
    if not outcome.tables:
        yield Gap("", "tables", f"no table with the identity {outcome.identity} was searched")
    if not digests or outcome.keys != len(digests):
        yield Gap("", "keys", f"the search was for {outcome.keys:,} keys, and the file has {len(digests):,}")
    for name in outcome.tables:
        if name not in states:
            yield Gap(name, "snapshot", "the state of the table is unknown")
    began = outcome.started.replace(microsecond=0)
    for result in outcome.files:
        modified = None if result.file.checksum else result.file.modified
        # Storages of objects have times in seconds.
        if modified is not None and modified.microsecond == 0 and modified >= began:
            why = (
                "it was written in the second in which the search began, and a later change in this second "
                "could not be seen"
            )
            yield Gap(result.file.table, _text(result.file.path), why)
        if not _is_unicode(result.file.path):
            yield Gap(result.file.table, _text(result.file.path), "its name is not Unicode")


def _table(
    name: str,
    columns: Sequence[str],
    state: TableState | None,
    results: Iterable[FileResult],
    digests: Sequence[str],
) -> Document:
    files = sorted((_file(result, digests) for result in results), key=lambda file: str(file["path"]))
    return {
        "table": name,
        "columns": sorted(columns),
        "location": _text(state.location) if state else "",
        "format": state.format if state else "",
        "snapshot": (state.snapshot if state else "") or None,
        "listing": listing_digest(files),
        "files": files,
    }


def _file(result: FileResult, digests: Sequence[str]) -> Document:
    file = result.file
    # A key that occurs twice in the file of keys is one in the certificate.
    hits = {(digests[hit.key], hit.column): hit.rows for hit in result.hits}
    return {
        "path": _text(file.path),
        "size": file.size,
        "checksum": file.checksum or None,
        "modified_at": _instant(file.modified) if file.modified else None,
        "snapshot": file.snapshot or None,
        "role": file.role.value,
        "means": result.means.value,
        "bytes_read": result.bytes_read,
        "hits": [{"key": key, "column": column, "rows": rows} for (key, column), rows in hits.items()],
    }


def listing_digest(files: Iterable[Mapping[str, Any]]) -> str:
    """Return the digest of a table's files: paths, sizes, checksums and times, sorted by path."""
    rows = [[file["path"], file["size"], file["checksum"], file["modified_at"]] for file in files]
    return f"sha256:{hashlib.sha256(canonical(rows)).hexdigest()}"


def canonical(value: object) -> bytes:
    """Return the canonical form of a JSON value without fractions."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def _instant(value: datetime) -> str:
    return value.astimezone(UTC).isoformat()


def _is_unicode(text: str) -> bool:
    return text.isascii() or text.encode("utf-8", "surrogatepass") == text.encode("utf-8", "replace")


def _text(text: str) -> str:
    """Return the text with escapes for bytes that are not Unicode, which have no canonical form."""
    return text if _is_unicode(text) else text.encode("utf-8", "backslashreplace").decode()


# Summary.


@dataclass(frozen=True, slots=True)
class FileHits:
    """A file with rows of the keys, its role in the table, and their number."""

    path: str
    role: str
    rows: int


@dataclass(frozen=True, slots=True)
class CertificateSummary:
    """The statements of a certificate: verdict, request, numbers, files with rows, and gaps."""

    verdict: Verdict
    identity: str
    before: str
    issued_at: str
    key_count: int
    table_count: int
    file_count: int
    hits: tuple[FileHits, ...]
    gaps: tuple[Gap, ...]
    is_signed: bool


def summary(document: Document) -> CertificateSummary:
    """Return the summary of a certificate of the right form."""
    files = [file for table in document["tables"] for file in table["files"]]
    return CertificateSummary(
        verdict=Verdict(document["verdict"]),
        identity=document["identity"],
        before=document["before"],
        issued_at=document["issued_at"],
        key_count=len(document["keys"]["digests"]),
        table_count=len(document["tables"]),
        file_count=len(files),
        hits=tuple(
            FileHits(file["path"], file["role"], sum(hit["rows"] for hit in file["hits"]))
            for file in files
            if file["hits"]
        ),
        gaps=tuple(Gap(gap["table"], gap["subject"], gap["reason"]) for gap in document["gaps"]),
        is_signed="signature" in document,
    )


# Signatures.


def sign(document: Document, private_key: bytes, path: str) -> Document:
    """Return the certificate with an Ed25519 signature by a private key in PEM form, read from `path`.

    Raises UsageError for another key, MissingTool without cryptography.
    """
    with require_extras("Signing needs cryptography", "erasure"):
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    try:
        key = load_pem_private_key(private_key, None)
    except TypeError:
        raise UsageError(
            f"The private key {path} has a passphrase.",
            f"Decrypt it first: openssl pkey -in {path} -out KEY.",
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(
            f"{path} is not an Ed25519 private key in PEM form.",
            f"Create one: openssl genpkey -algorithm ed25519 -out {path}",
        )
    unsigned = {name: value for name, value in document.items() if name != "signature"}
    signature = {
        "algorithm": ALGORITHM,
        "key": _fingerprint(key.public_key()),
        "value": b64encode(key.sign(canonical(unsigned))).decode(),
    }
    return {**unsigned, "signature": signature}


def signature_problem(document: Document, public_key: bytes, path: str) -> str:
    """Return why the certificate is not signed by the public key in PEM form, read from `path`, or "".

    Raises UsageError for another key, MissingTool without cryptography.
    """
    with require_extras("Verifying a signature needs cryptography", "erasure"):
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    try:
        key = load_pem_public_key(public_key)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise UsageError(
            f"{path} is not an Ed25519 public key in PEM form.",
            "Get it from the private key: openssl pkey -in KEY -pubout",
        )
    signature = document.get("signature")
    if not isinstance(signature, dict) or signature.get("algorithm") != ALGORITHM:
        return "it is not signed"
    unsigned = {name: value for name, value in document.items() if name != "signature"}
    try:
        key.verify(b64decode(str(signature.get("value")), validate=True), canonical(unsigned))
    except (InvalidSignature, ValueError):
        if signature.get("key") != _fingerprint(key):
            return f"it is not signed by this key, but by {one_line(str(signature.get('key')))}"
        return "it was changed after it was signed: the signature does not match"
    return ""


def _fingerprint(key: Ed25519PublicKey) -> str:
    return f"SHA256:{b64encode(hashlib.sha256(key.public_bytes_raw()).digest()).decode().rstrip('=')}"


# Verification.


_OUTPUT_HINT = "Pass the output of 'dq erasure prove'."


def read(content: bytes, path: str) -> Document:
    """Return the document of a certificate. Raises ReadError for anything but one JSON object.

    JSON that two readers could read differently is refused: repeated names, fractions and large numbers.
    """
    try:
        document = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_unique_members,
            parse_float=_refuse_number,
            parse_constant=_refuse_number,
            parse_int=_integer,
        )
        canonical(document)
    except (ValueError, RecursionError) as error:
        if isinstance(error, RecursionError):
            why = "it is nested too deep"
        elif isinstance(error, json.JSONDecodeError):
            why = f"it is not JSON in line {error.lineno}"
        else:
            why = one_line(str(error))
        raise ReadError(
            f"{path} is not a certificate: {why}.", "Pass the output of 'dq erasure prove'."
        ) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ReadError(f"{path} is not a certificate of the format {FORMAT}.", _OUTPUT_HINT)
    return document


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name occurs twice in an object")
    return members


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"{text[:20]} is not a whole number")


def _integer(text: str) -> int:
    if len(text) > 17 or abs(int(text)) > _MAX_INTEGER:
        raise ValueError(f"{text[:20]} is too large")
    return int(text)


class _Malformed(Exception):
    pass


_NONE = type(None)
_FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "format": str, "dq": str, "issued_at": str, "search": dict, "before": str, "identity": str,
    "verdict": str, "keys": dict, "tables": list, "gaps": list, "not_covered": list,
}  # fmt: skip
_TABLE_FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "table": str, "columns": list, "location": str, "format": str, "snapshot": (str, _NONE), "listing": str,
    "files": list,
}  # fmt: skip
_FILE_FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "path": str, "size": int, "checksum": (str, _NONE), "modified_at": (str, _NONE), "snapshot": (str, _NONE),
    "role": str, "means": str, "bytes_read": int, "hits": list,
}  # fmt: skip
_HIT_FIELDS: Mapping[str, type | tuple[type, ...]] = {"key": str, "column": str, "rows": int}
_GAP_FIELDS: Mapping[str, type | tuple[type, ...]] = {"table": str, "subject": str, "reason": str}
_ROLES, _MEANS, _VERDICTS = frozenset(Role), frozenset(Means), frozenset(Verdict)


def form_problems(document: Document) -> list[str]:
    """Return in which way the certificate is malformed or contradicts itself; empty if it does not."""
    try:
        return list(_contradictions(document))
    except _Malformed as error:
        return [str(error)]


def _contradictions(document: Document) -> Iterator[str]:
    _require(document, _FIELDS, "the certificate")
    _require(document["search"], {"started_at": str, "finished_at": str}, "its search")
    _require(document["keys"], {"salt": str, "digests": list}, "its keys")
    digests = document["keys"]["digests"]
    if not digests or not _is_ascending(digests):
        yield "its keys are empty, repeated or not sorted"
    instants = [
        _parse_instant(text)
        for text in (
            document["before"],
            document["search"]["started_at"],
            document["search"]["finished_at"],
            document["issued_at"],
        )
    ]
    if instants != sorted(instants):
        yield "its times contradict each other: 'before', start and end of the search, and issue"
    names = [_require(table, _TABLE_FIELDS, "a table")["table"] for table in document["tables"]]
    if not (names or document["gaps"]) or not _is_ascending(names):
        yield "its tables are empty, repeated or not sorted"
    has_hits = False
    for table in document["tables"]:
        where = f"table {one_line(table['table'])}"
        for file in table["files"]:
            _require(file, _FILE_FIELDS, f"a file of {where}")
            if file["role"] not in _ROLES or file["means"] not in _MEANS or file["size"] < 0:
                raise _Malformed(f"{where}: role, means or size of {one_line(file['path'])} is invalid")
            for hit in file["hits"]:
                _require(hit, _HIT_FIELDS, f"a hit of {where}")
                has_hits = True
            if file["hits"] and file["means"] != Means.SCAN:
                yield f"{where}: {one_line(file['path'])} has hits, and was not scanned"
        if not _is_ascending([file["path"] for file in table["files"]]):
            yield f"{where}: its files are repeated or not sorted"
        if listing_digest(table["files"]) != table["listing"]:
            yield f"{where}: its files are not those of its listing; one is missing, added or changed"
    for gap in document["gaps"]:
        _require(gap, _GAP_FIELDS, "a gap")
    expected = verdict_of(has_hits, bool(document["gaps"]))
    if document["verdict"] != expected:
        verdict = one_line(document["verdict"])
        yield f"its verdict is {verdict!r}, but by its files and gaps it is {expected.value!r}"


def _require(value: object, fields: Mapping[str, type | tuple[type, ...]], what: str) -> Document:
    if not isinstance(value, dict):
        raise _Malformed(f"{what} is not an object")
    for name, kind in fields.items():
        if name not in value:
            raise _Malformed(f"{what} has no {name!r}")
        if not isinstance(value[name], kind) or isinstance(value[name], bool):
            raise _Malformed(f"{name!r} of {what} is of another type")
    return value


def _is_ascending(texts: Sequence[object]) -> bool:
    if not all(isinstance(text, str) for text in texts):
        raise _Malformed("a list of texts has other values")
    return all(first < second for first, second in pairwise(texts))  # type: ignore[operator]


def _parse_instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise _Malformed(f"{one_line(text)[:40]!r} is not an instant")
    return instant


def replay_problems(
    document: Document, *, identity: str = "", before: datetime | None = None
) -> Iterator[str]:
    """Yield why a well-formed certificate is for another request: another identity, or an earlier time."""
    if identity and document["identity"] != identity:
        yield f"it is for the identity {one_line(document['identity'])}, not for {identity}"
    if before is not None and _parse_instant(document["before"]) < before:
        yield (
            f"it covers rows that existed before {document['before']}, not those until "
            f"{_instant(before)}: it was issued for an earlier request"
        )


def key_problem(document: Document, keys: Collection[str], secret: bytes) -> str:
    """Return how many keys the well-formed certificate does not cover, or "" if it covers all."""
    try:
        salt = bytes.fromhex(document["keys"]["salt"])
    except ValueError:
        return "the salt of its keys is invalid"
    missing = set(key_digests(keys, secret, salt)) - set(document["keys"]["digests"])
    if not keys:
        return "the file of keys is empty"
    if not missing:
        return ""
    return (
        f"it does not cover {len(missing):,} of {pluralize(len(keys), 'key')}: it is for other keys, or the "
        "secret is another one"
    )


def lake_problems(
    document: Document, files: Iterable[PhysicalFile], states: Mapping[str, TableState]
) -> Iterator[str]:
    """Yield the differences between a well-formed certificate and the lake as it is now.

    `files` are all physical files of the tables with the identity, `states` the state of these tables.
    """
    files_by_table: dict[str, dict[str, PhysicalFile]] = {name: {} for name in states}
    for file in files:
        files_by_table.setdefault(file.table, {})[_text(file.path)] = file
    tables = {table["table"]: table for table in document["tables"]}
    for name in sorted(files_by_table.keys() - tables.keys()):
        yield f"table {name} is in the lake, and not in the certificate"
    for name, table in tables.items():
        if not table["location"]:
            continue  # dq's own results, which are no files
        where = f"table {one_line(name)}"
        if name not in files_by_table:
            yield f"{where} is in the certificate, and not in the lake"
            continue
        snapshot = states[name].snapshot or None if name in states else table["snapshot"]
        if snapshot != table["snapshot"]:
            yield (
                f"{where}: its current snapshot is {snapshot}, and the certificate is for "
                f"{one_line(str(table['snapshot']))}"
            )
        differences = list(_file_differences(table["files"], files_by_table[name]))
        yield from (f"{where}: {difference}" for difference in differences[:_MAX_LINES])
        if len(differences) > _MAX_LINES:
            yield f"{where}: and {len(differences) - _MAX_LINES:,} more files differ"


def _file_differences(certified: Sequence[Document], files: Mapping[str, PhysicalFile]) -> Iterator[str]:
    paths = {entry["path"] for entry in certified}
    for path in sorted(files.keys() - paths):
        yield f"{one_line(path)} is in the lake, and not in the certificate"
    for entry in certified:
        path, file = one_line(entry["path"]), files.get(entry["path"])
        if file is None:
            yield f"{path} is in the certificate, and no longer in the lake"
        elif not _is_same(entry, file):
            yield f"{path} was changed after the search"


def _is_same(entry: Document, file: PhysicalFile) -> bool:
    if entry["size"] != file.size:
        return False
    if entry["checksum"] and file.checksum and not _differs_in_kind(entry["checksum"], file.checksum):
        return bool(entry["checksum"] == file.checksum)
    if entry["path"].endswith("/"):
        return True  # an empty folder, whose name is searched
    # Without a checksum of the storage, a file is identified by size and time.
    return file.modified is not None and entry["modified_at"] == _instant(file.modified)


def _differs_in_kind(first: str, second: str) -> bool:
    return first.partition(":")[0] != second.partition(":")[0]

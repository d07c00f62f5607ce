"""Verify a certificate of `dq erasure prove`, without dq.

    python verify.py certificate.json --key issuer.pub [--keys keys.csv] [--secret keys.csv.secret]
        [--identity customer.email] [--before 2026-11-24] [--offline]

It checks the signature, that the certificate does not contradict itself, that it is for this request
(identity, time, keys), and, unless --offline is passed, every file below the location of each table: none
may be missing, added or changed, and the table's current snapshot must be that of the certificate. Tables in
object storages are not compared (--offline).

It shares no code with dq; it needs Python 3.11 and the package `cryptography`. Exit codes: 0 the certificate
is valid and proves the erasure, 1 it is refused or proves nothing, 2 invalid arguments.
"""

from __future__ import annotations

import argparse
import base64
import csv
import gzip
import hashlib
import hmac
import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

FORMAT = "dq-erasure-certificate/1"
LOGS = {"delta": "_delta_log", "iceberg": "metadata", "hudi": ".hoodie"}
ESCAPED = re.compile(r'[\x00-\x1f"\\]')
HUDI_COMMIT = re.compile(r"\d{14,17}(_\d{17})?\.(commit|deltacommit|replacecommit)")


class Refused(Exception):
    """The certificate proves nothing; the message says why."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Verify a certificate of 'dq erasure prove'.")
    parser.add_argument("certificate", type=Path)
    parser.add_argument("--key", type=Path, required=True, help="public key of the issuer, in PEM form")
    parser.add_argument("--keys", type=Path, help="file of keys that must be covered")
    parser.add_argument("--secret", type=Path, help="file of the secret (default: KEYS.secret)")
    parser.add_argument("--identity", help="identity that must be covered")
    parser.add_argument("--before", help="time until which rows must be covered, e.g. 2026-11-24")
    parser.add_argument("--offline", action="store_true", help="do not compare with the files")
    options = parser.parse_args()
    try:
        document = read(options.certificate.read_bytes())
        check_signature(document, options.key.read_bytes())
        check_form(document)
        check_request(document, options.identity, options.before)
        if options.keys:
            secret = options.secret or options.keys.with_name(f"{options.keys.name}.secret")
            check_keys(document, read_keys(options.keys), bytes.fromhex(secret.read_text().strip()))
        if not options.offline:
            for table in filter(itemgetter("location"), document["tables"]):
                check_table(table)
    except (Refused, OSError, ValueError, RecursionError) as error:
        print(f"refused: {error}")
        return 1
    tables, keys = document["tables"], document["keys"]["digests"]
    files = sum(len(table["files"]) for table in tables)
    print(f"valid: {document['verdict']}, {files:,} files of {len(tables):,} tables, {len(keys):,} keys of")
    print(f"{document['identity']}, rows that existed before {document['before']}")
    return 0 if document["verdict"] == "proven" else 1


# The document


def read(content: bytes) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) != len(pairs):
            raise Refused("a name occurs twice in an object of the certificate")
        return dict(pairs)

    def fraction(text: str) -> Any:
        raise Refused(f"the certificate has a number that is not whole: {text[:20]}")

    try:
        document = json.loads(
            content.decode("utf-8"), object_pairs_hook=unique, parse_float=fraction, parse_constant=fraction
        )
    except (ValueError, RecursionError) as error:
        raise Refused(f"the certificate is not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise Refused(f"the certificate is not of the format {FORMAT}")
    return document


def canonical(value: Any) -> str:
    """Return the canonical form: RFC 8785 for objects, arrays, texts, whole numbers, true, false and null."""
    match value:
        case dict():
            members = (f"{canonical(name)}:{canonical(value[name])}" for name in sorted(value))
            return f"{{{','.join(members)}}}"
        case list():
            return f"[{','.join(map(canonical, value))}]"
        case str():
            return '"' + ESCAPED.sub(escape, value) + '"'
        case None | True | False:
            return {None: "null", True: "true", False: "false"}[value]
        case _:
            return str(value)


def escape(match: re.Match[str]) -> str:
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return short.get(match[0], f"\\u{ord(match[0]):04x}")


def check_signature(document: dict[str, Any], pem: bytes) -> None:
    key = load_pem_public_key(pem)
    if not isinstance(key, Ed25519PublicKey):
        raise Refused("the public key is not an Ed25519 key")
    signature = document.get("signature")
    if not isinstance(signature, dict) or signature.get("algorithm") != "Ed25519":
        raise Refused("the certificate is not signed")
    signed = {name: value for name, value in document.items() if name != "signature"}
    try:
        key.verify(base64.b64decode(str(signature.get("value")), validate=True), canonical(signed).encode())
    except (InvalidSignature, ValueError) as error:
        raise Refused("the certificate was changed, or is signed by another key") from error


def check_form(document: dict[str, Any]) -> None:
    """Refuse a certificate that contradicts itself, even with a valid signature."""
    try:
        search = document["search"]
        times = [document["before"], search["started_at"], search["finished_at"], document["issued_at"]]
        if (instants := [instant(text) for text in times]) != sorted(instants):
            raise Refused("its times contradict each other")
        ascending("keys", document["keys"]["digests"])
        if document["tables"] or not document["gaps"]:
            ascending("tables", [table["table"] for table in document["tables"]])
        has_hits = False
        for table in document["tables"]:
            table["columns"], table["location"], table["format"], table["snapshot"]
            paths = [file["path"] for file in table["files"]]
            if paths:
                ascending(f"files of {table['table']}", paths)
            members = ("path", "size", "checksum", "modified_at")
            rows = [[file[member] for member in members] for file in table["files"]]
            if table["listing"] != f"sha256:{hashlib.sha256(canonical(rows).encode()).hexdigest()}":
                raise Refused(f"table {table['table']}: a file is left out, added or changed in its listing")
            has_hits = has_hits or any(file["hits"] for file in table["files"])
        expected = "found" if has_hits else "not proven" if document["gaps"] else "proven"
        if document["verdict"] != expected:
            raise Refused(f"its verdict is {document['verdict']!r}, but its content says {expected!r}")
    except (KeyError, TypeError, ValueError, AttributeError, UnicodeEncodeError) as error:
        raise Refused(f"the certificate is incomplete: {type(error).__name__} {error}") from error


def ascending(what: str, texts: list[str]) -> None:
    if not texts or sorted(set(texts)) != texts:
        raise Refused(f"its {what} are empty, repeated or not sorted")


def instant(text: str) -> datetime:
    """Return the instant of a text; a date means its start in UTC."""
    value = datetime.fromisoformat(text)
    return value if value.tzinfo else value.replace(tzinfo=UTC)


# The request


def check_request(document: dict[str, Any], identity: str | None, before: str | None) -> None:
    if identity and document["identity"] != identity:
        raise Refused(f"it is for the identity {document['identity']}, not for {identity}")
    if before and instant(document["before"]) < instant(before):
        raise Refused(f"it covers rows until {document['before']}, and not until {before}")


def read_keys(path: Path) -> list[str]:
    """Return the keys of a CSV file whose header names the identity, or of a file with a key on each line."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [row[0] for row in csv.reader(file) if row and row[0].strip()]


def check_keys(document: dict[str, Any], keys: list[str], secret: bytes) -> None:
    if keys and keys[0].strip() == document["identity"]:
        keys = keys[1:]
    if not keys:
        raise Refused("the file of keys is empty")
    derived = hmac.digest(secret, bytes.fromhex(document["keys"]["salt"]), "sha256")
    covered = set(document["keys"]["digests"])
    texts = [unicodedata.normalize("NFC", key.strip()) for key in keys]
    missing = sum(hmac.digest(derived, text.encode(), "sha256").hex() not in covered for text in texts)
    if missing:
        raise Refused(f"it does not cover {missing:,} of {len(keys):,} keys, or the secret is another one")


# The lake


def check_table(table: dict[str, Any]) -> None:
    """Refuse a table whose files or current snapshot are not those of the certificate."""
    where, location = f"table {table['table']}", table["location"].removeprefix("file://")
    if "://" in location:
        raise Refused(f"{where}: {location} is not on this machine; pass --offline")
    current = current_snapshot(table["format"], Path(location))
    if current != table["snapshot"]:
        raise Refused(f"{where}: its current snapshot is {current}, and not {table['snapshot']}")
    # A path that ends in / is an empty folder, whose name was searched.
    certified = {
        Path(file["path"].removeprefix("file://")): file
        for file in table["files"]
        if not file["path"].endswith("/")
    }
    for path in files_below(Path(location)):
        if path not in certified:
            raise Refused(f"{where}: {path} is in the lake, and left out of the certificate")
    for path, file in certified.items():
        try:
            status = path.stat()
        except FileNotFoundError:
            raise Refused(f"{where}: {path} is no longer in the lake") from None
        written = datetime.fromtimestamp(status.st_mtime, UTC).isoformat()
        if status.st_size != file["size"] or file["modified_at"] not in (None, written):
            raise Refused(f"{where}: {path} was changed after the search")
        if (file["checksum"] or "").startswith("sha256:") and file["checksum"] != f"sha256:{sha256(path)}":
            raise Refused(f"{where}: the content of {path} was changed after the search")


def files_below(location: Path) -> Iterator[Path]:
    """Yield all files below a location, hidden ones and those of the table's log too."""
    if location.is_file():
        yield location

    def fail(error: OSError) -> None:
        raise error

    for folder, folders, names in os.walk(location, onerror=fail):
        for path in (Path(folder, name) for name in (*folders, *names)):
            if path.is_symlink():
                raise Refused(f"{path} is a link, and what it leads to is not compared")
        yield from (Path(folder, name) for name in names)


def current_snapshot(form: str, location: Path) -> str | None:
    """Return the id of the current snapshot or commit in the table's log, or None without one."""
    if form not in LOGS:
        return None
    log = location / LOGS[form]
    names = [path.name for path in log.iterdir()]
    if form == "delta":
        return str(int(max(name for name in names if re.fullmatch(r"\d{20}\.json", name))[:20]))
    if form == "hudi":
        names += [path.name for path in log.glob("timeline/*")]
        return max(filter(HUDI_COMMIT.fullmatch, names), default=None)
    contents = [(log / name).read_bytes() for name in names if ".metadata.json" in name and name[0] != "."]
    tables = [json.loads(gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text) for text in contents]
    number = max(tables, key=lambda table: int(table["last-updated-ms"])).get("current-snapshot-id")
    return None if number in (None, -1) else str(number)


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())

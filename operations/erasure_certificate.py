"""`dq.prove_erasure` and `dq.verify_erasure`: certificates that no file of a lake has rows of people."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from dq.contracts.access import files
from dq.contracts.install import release
from dq.contracts.outcome import DqError, ReadError, UsageError
from dq.dataquality.delivery.evidence import READERS
from dq.dataquality.erasure import certificate
from dq.dataquality.erasure.certificate import Document, TableState, Verdict
from dq.dataquality.erasure.files import SearchedTable, list_table
from dq.dataquality.erasure.model import Gap, PhysicalFile
from dq.lake.storage import Storages
from dq.operations.erasure import load_identified, read_keys, search_registry, searched_tables
from dq.operations.registry_files import LoadedContracts, load
from dq.operations.runtime.context import RuntimeContext, call_context, parse_instant

# Tables of the search that are folders passed by the user.
_ALSO = "--also "
_NO_COMMITS = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ProveErasureOutcome:
    """A certificate, signed if a key was passed, and the file with the secret of its keys."""

    certificate: Document
    secret: str
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Verdict of the certificate."""
        return Verdict(self.certificate["verdict"])

    @property
    def exit_code(self) -> int:
        """Exit code of `dq erasure prove`: 0 proven, 1 rows were found, 3 not proven."""
        return {Verdict.PROVEN: 0, Verdict.HITS: 1}.get(self.verdict, ReadError.exit_code)

    def as_dict(self) -> Document:
        """Return the output of `dq erasure prove`, the certificate, as JSON values."""
        return self.certificate


@dataclass(frozen=True, slots=True)
class VerifyErasureOutcome:
    """Reasons to refuse a certificate (empty: none), and what was not checked without an option."""

    certificate: Document
    problems: tuple[str, ...]
    unchecked: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_signature_checked(self) -> bool:
        """True if the signature was compared with a public key."""
        return not any(text.startswith(_SIGNATURE) for text in self.unchecked)

    @property
    def exit_code(self) -> int:
        """Exit code of `dq erasure verify`: 0 valid and proven, 1 refused or rows were found, 3 the issuer is
        unknown, or the certificate itself says that nothing is proven.
        """
        verdict = str(self.certificate.get("verdict"))
        if self.problems or verdict == Verdict.HITS:
            return 1
        return 0 if self.is_signature_checked and verdict == Verdict.PROVEN else ReadError.exit_code

    def as_dict(self) -> dict[str, object]:
        """Return the output of `dq erasure verify --format json` as JSON values."""
        stated = certificate.summary(self.certificate) if not self.problems else None
        return {
            "valid": stated is not None and self.is_signature_checked,
            "verdict": stated and stated.verdict.value,
            "identity": stated and stated.identity,
            "before": stated and stated.before,
            "issued_at": stated and stated.issued_at,
            "tables": stated and stated.table_count,
            "files": stated and stated.file_count,
            "problems": list(self.problems),
            "unchecked": list(self.unchecked),
        }


_SIGNATURE = "the signature"


def prove_erasure(
    paths: Path | str | Sequence[Path | str] = ".",
    *,
    keys: Path | str,
    identity: str,
    before: datetime | str | None = None,
    sign: Path | str | None = None,
    secret: Path | str | None = None,
    also: Sequence[str] = (),
    folder: Path | str | None = None,
) -> ProveErasureOutcome:
    """Search every physical file of the tables of a registry for keys, and return a certificate.

    As `dq erasure prove` does.

    Args:
        paths: Contract files or folders.
        keys: File of keys, as for `find_erasure`.
        identity: Name of the identity that the keys are, e.g. `customer.email`.
        before: Rows that existed before this instant are covered; an aware datetime, an instant with an
            offset, or a date, which means its start in UTC. The default is the start of the search.
        sign: File of the Ed25519 private key in PEM form; the certificate is unsigned without it.
        secret: File of the secret that hides the keys in the certificate, created if it does not exist; the
            default is the file of keys with the suffix `.secret`.
        also: Further folders to search, e.g. of quarantined rows.
        folder: Replaces the working folder, which has settings and store, and is the base of relative paths.

    Raises UsageError for invalid arguments, MissingTool for a signature without cryptography, and ReadError
    for a path without contracts or an unreadable key. Whatever cannot be searched is a gap.
    """
    context, places = call_context(paths, folder)
    now = context.now()
    covered_before = _instant(before) or now
    if covered_before > now:
        raise UsageError("--before is in the future.", "Pass the time until which rows were deleted.")
    private_key = None if sign is None else files.read_own(context.folder / sign)
    if private_key is not None:
        certificate.sign({}, private_key, str(sign))  # before a search that may take hours
    loaded = load_identified(context, places, identity)
    tables, _ = searched_tables(context, loaded.contracts, identity, also)
    key_set = read_keys(context.folder / keys, identity)
    secret_path, secret_bytes = _secret(context.folder, keys, secret, create=True)
    outcome, _ = search_registry(context, loaded.contracts, key_set, identity, also=also)
    gaps = (*outcome.gaps, *_unread(loaded))
    states, state_gaps = _states(context, tables)
    document = certificate.build(
        replace(outcome, gaps=(*gaps, *state_gaps)),
        keys=key_set.values,
        secret=secret_bytes,
        salt=secrets.token_bytes(certificate.SALT_BYTES),
        before=covered_before,
        issued_at=context.now(),
        release=release(),
        states=states,
    )
    if private_key is not None:
        document = certificate.sign(document, private_key, str(sign))
    return ProveErasureOutcome(document, str(secret_path), tuple(context.messages.notes))


def verify_erasure(
    path: Path | str,
    *,
    key: Path | str | None = None,
    keys: Path | str | None = None,
    secret: Path | str | None = None,
    identity: str = "",
    before: datetime | str | None = None,
    registry: Path | str | Sequence[Path | str] | None = None,
    folder: Path | str | None = None,
) -> VerifyErasureOutcome:
    """Verify a certificate of `prove_erasure`, as `dq erasure verify` does.

    Args:
        path: File of the certificate.
        key: File of the issuer's public key in PEM form. Without it, the issuer is unknown.
        keys: File of keys that it must cover.
        secret: File of the secret of its keys; the default is the file of keys with the suffix `.secret`.
        identity: Identity that it must be for.
        before: Instant until which it must cover rows, as for `prove_erasure`.
        registry: Contract files or folders; their tables, as they are now, must be those of the certificate.
        folder: Replaces the working folder, which has settings and store, and is the base of relative paths.

    Raises ReadError for a file that is not a certificate, UsageError for invalid arguments, and MissingTool
    without cryptography.
    """
    context, places = call_context(registry, folder)
    document = certificate.read(files.read(context.folder / path, limit=certificate.MAX_BYTES), str(path))
    unchecked: list[str] = []
    problems: list[str] = []
    if key is None:
        unchecked.append(f"{_SIGNATURE}: pass --key with the public key of the issuer")
    else:
        public_key = files.read_own(context.folder / key)
        problems += filter(None, [certificate.signature_problem(document, public_key, str(key))])
    problems += certificate.form_problems(document)
    if problems:
        return VerifyErasureOutcome(document, tuple(problems), tuple(unchecked))
    problems += certificate.replay_problems(document, identity=identity, before=_instant(before))
    if keys is None:
        unchecked.append("the keys: pass --keys")
    else:
        key_set = read_keys(context.folder / keys, document["identity"])
        _, secret_bytes = _secret(context.folder, keys, secret, create=False)
        problems += filter(None, [certificate.key_problem(document, key_set.values, secret_bytes)])
    if registry is None:
        unchecked.append("the lake: pass --registry")
    else:
        problems += _lake_problems(context, load(places, context.note), document)
    return VerifyErasureOutcome(document, tuple(problems), tuple(unchecked), tuple(context.messages.notes))


def _instant(value: datetime | str | None) -> datetime | None:
    """Return the instant of an aware datetime, a text with an offset, or a date, which begins in UTC."""
    if isinstance(value, str):
        return parse_instant(f"{value}T00:00:00Z" if len(value) == len("2026-11-24") else value)
    if value is not None and value.tzinfo is None:
        raise UsageError(f"before={value!r} has no time zone.", "Pass an aware datetime.")
    return value


def _secret(folder: Path, keys: Path | str, secret: Path | str | None, *, create: bool) -> tuple[Path, bytes]:
    """Return the file of the secret next to the file of keys, or that of the user, and its content.

    Readers of the keys may know the secret: it only hides them from readers of the certificate.
    """
    path = folder / (secret if secret is not None else f"{keys}.secret")
    if create and not os.path.lexists(path):
        content = secrets.token_hex(certificate.SECRET_BYTES)
        try:
            files.create_private(path, f"{content}\n".encode())
        except OSError as error:
            raise UsageError(
                f"The secret {path} cannot be written: {error.strerror}.", "Pass another file with --secret."
            ) from error
    try:
        content = files.read_own(path).decode("ascii").strip()
        value = bytes.fromhex(content)
    except ValueError:
        value = b""
    if len(value) != certificate.SECRET_BYTES:
        raise UsageError(f"{path} is not a secret of dq.", "Pass the file that 'dq erasure prove' wrote.")
    return path, value


def _unread(loaded: LoadedContracts) -> Iterator[Gap]:
    """Yield a gap for each contract that could not be read: it may have the identity."""
    for finding in loaded.findings:
        yield Gap("", f"{finding.at}", f"the contract cannot be read: {finding.message}")


def _states(
    context: RuntimeContext, tables: Iterable[SearchedTable]
) -> tuple[dict[str, TableState], list[Gap]]:
    """Return the state of each table; a log that cannot be read is a gap."""
    storages = Storages(context.reach)
    states: dict[str, TableState] = {}
    gaps: list[Gap] = []
    for table in tables:
        snapshot = ""
        reader = READERS.get(table.format)
        try:
            if reader is not None:
                location = table.location.rstrip("/")
                commits = reader(storages.of(location), location, (), _NO_COMMITS).commit_ids
                snapshot = _snapshot(table.format, commits)
        except DqError as error:
            gaps.append(Gap(table.name, f"log of {table.location}", error.message))
        states[table.name] = TableState(table.location, table.format, snapshot)
    return states, gaps


def _snapshot(form: str, commits: Sequence[str]) -> str:
    """Return the id of the current snapshot, as the log itself names it."""
    if not commits:
        return ""
    # Delta's commits are named by version and time.
    return max(commits) if form == "hudi" else commits[-1].partition("@")[0]


def _lake_problems(context: RuntimeContext, loaded: LoadedContracts, document: Document) -> Iterator[str]:
    """Yield the differences between a certificate and the tables of a registry as they are now."""
    names = [table["table"] for table in document["tables"]]
    also = [name.removeprefix(_ALSO) for name in names if name.startswith(_ALSO)]
    tables, gaps = searched_tables(context, loaded.contracts, document["identity"], also)
    storages = Storages(context.reach)
    physical: list[PhysicalFile] = []
    for table in tables:
        listing = list_table(storages.of(table.location), table)
        physical += [listed.file for listed in listing.files]
        gaps += listing.gaps
    states, state_gaps = _states(context, tables)
    for gap in (*gaps, *state_gaps, *_unread(loaded)):
        yield f"{gap.table or 'the registry'}: {gap.what} cannot be compared: {gap.why}"
    yield from certificate.lake_problems(document, physical, states)

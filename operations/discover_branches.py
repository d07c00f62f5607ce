"""Contracts of discovered tables as branches of a registry: imported, with proposed rules, in draft."""

from __future__ import annotations

import hashlib
import posixpath
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.access.files import FileMissing, FileRef, printable_path, read
from dq.contracts.outcome import DqError, MissingTool, UsageError, pluralize
from dq.contracts.yaml.parse import parse_valid
from dq.contracts.yaml.portable import commented
from dq.dataquality.propose import LAST
from dq.dataquality.propose import propose as learn_rules
from dq.dataquality.request import Request
from dq.operations.data_places import located_data
from dq.operations.discovered_table import DiscoveredTable
from dq.operations.import_ import ImportRequest, build_contract, read_tables
from dq.operations.runtime.context import RuntimeContext, processors, registry_root
from dq.operations.runtime.spark import default_parallelism, label, run_concurrently, session
from dq.registry.importing import ImportedTable, kinds
from dq.registry.importing.contract_text import identifier
from dq.registry.table import VIEW
from dq.validators.git.approvals import CODEOWNERS_FILES, codeowners_of
from dq.validators.git.repository import WrittenBranch, find_repository, write_branch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class BranchBy(StrEnum):
    """Contents of a branch: one table, or all tables of a domain."""

    TABLE = "table"
    DOMAIN = "domain"


@dataclass(frozen=True, slots=True)
class DraftBranch:
    """A branch with draft contracts: their tables and files, and what became of it."""

    branch: WrittenBranch
    tables: tuple[str, ...]
    files: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "branch": self.branch.name,
            "state": str(self.branch.state),
            "commit": self.branch.commit or None,
            "reason": self.branch.reason or None,
            "tables": list(self.tables),
            "files": list(self.files),
        }


@dataclass(frozen=True, slots=True)
class _Draft:
    """A contract in draft: its file below the registry's root, its text, and why it has no rules, or ""."""

    table: DiscoveredTable
    file: str
    data: bytes
    problem: str = ""


def open_branches(
    context: RuntimeContext, tables: Sequence[DiscoveredTable], registry: Path, by: BranchBy, limit: int
) -> list[DraftBranch]:
    """Write a branch for each of the first tables without a contract, or for each of their domains.

    Likely copies are left out. Tables that cannot be imported are noted. Rules are proposed where Spark can
    read the data; otherwise the contract has only what the import knows.

    Raises UsageError outside of a Git repository, MissingTool without Spark or Java, ReadError if Git fails.
    """
    root = registry_root(registry)
    repo = find_repository(root)
    if repo is None:
        raise UsageError(f"{registry} is not in a Git repository.", "Pass a clone of the registry.")
    prefix = Path(relpath(root, repo.top)).as_posix()
    candidates = [table for table in tables if table.contracted is None and table.copy is None]
    chosen = [table for table in candidates if _is_importable(table)][:limit]
    ids = _ids(chosen, tables)
    owners = _codeowners(repo.top)
    if not chosen:
        return []
    spark = _session(context, {table.format for table in chosen})
    progress = context.messages.progress(len(chosen), "proposing rules of")

    def draft(table: DiscoveredTable) -> _Draft:
        file = posixpath.join("" if prefix == "." else prefix, _file(table, ids[table.title]))
        with progress.step(table.title):
            return _draft(context, spark, table, file, ids[table.title], table.owner or owners(file))

    threads = default_parallelism(processors())
    results = run_concurrently(lambda: spark, chosen, draft, threads)
    progress.close()
    for table, result in zip(chosen, results, strict=True):
        if isinstance(result, Exception):
            reason = result.message if isinstance(result, DqError) else type(result).__name__
            context.note(f"{table.title}: no contract: {reason}")
        elif result.problem:
            context.note(f"{table.title}: no rules were proposed: {result.problem}")
    drafts = [result for result in results if isinstance(result, _Draft)]
    return [
        _write(repo.top, name, title, group) for (name, title), group in _group_by_branch(drafts, by).items()
    ]


def _session(context: RuntimeContext, formats: set[str]) -> SparkSession:
    """Return a session that reads these formats, or without their jars if these cannot be had."""
    try:
        return session(context, formats=formats)
    except MissingTool:
        raise
    except DqError as error:
        context.note(f"No rules for tables of lakehouse formats: {error.message}")
        return session(context)


def _is_importable(table: DiscoveredTable) -> bool:
    """Return True for a readable table at one location; not for views and patterns of names."""
    if table.problem or table.table is None or not table.location or table.format == VIEW:
        return False
    kind = kinds.load().get(table.format)
    return "*" not in posixpath.basename(table.location) and (table.spec is not None or kind is not None)


def _ids(chosen: Iterable[DiscoveredTable], tables: Iterable[DiscoveredTable]) -> dict[str, str]:
    """Return the id of each contract by the table's title: its name, with a hash if several have it."""
    names = Counter(_name(table) for table in tables if table.contracted is None)
    taken = {table.contracted.contract.id for table in tables if table.contracted is not None}
    return {
        table.title: name if names[name] == 1 and name not in taken else f"{name}_{_hash(table)}"
        for table in chosen
        for name in (_name(table),)
    }


def _name(table: DiscoveredTable) -> str:
    last = table.spec.name if table.spec else posixpath.basename(table.location.rstrip("/"))
    return identifier(last.partition(".")[0] if table.spec is None else last)


def _hash(table: DiscoveredTable) -> str:
    return hashlib.sha256(table.title.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def _file(table: DiscoveredTable, name: str) -> str:
    folder = identifier(table.domain) if table.domain else ""
    return posixpath.join(folder, f"{name}.odcs.yaml")


def _codeowners(top: Path) -> Callable[[str], str]:
    """Return a function for the owner of a file by CODEOWNERS, "" for none."""
    text = ""
    for name in CODEOWNERS_FILES:
        try:
            text = text or read(FileRef(top, name)).decode("utf-8", "replace")
        except FileMissing:
            continue
    return lambda file: next(iter(codeowners_of(text, file) or ()), "").removeprefix("@")


def _draft(
    context: RuntimeContext, spark: SparkSession, table: DiscoveredTable, file: str, name: str, owner: str
) -> _Draft:
    request = ImportRequest(
        table.format, table.location, id=name, domain=table.domain, owner=owner, layout=_template(table)
    )
    imported = [_from_catalog(table)] if table.spec else read_tables(context, request)
    outcome = build_contract(
        request, [replace(imported[0], name=name) if table.spec is None else imported[0]]
    )
    first, _, body = outcome.text.partition("\n")
    lines = (f"# {commented(line)}" for line in _evidence(table, owner))
    data = "\n".join((first, *lines, body)).encode("utf-8", "replace")
    try:
        return _Draft(table, file, _with_rules(context, spark, data, table))
    except DqError as error:
        return _Draft(table, file, data, error.message)


def _template(table: DiscoveredTable) -> str:
    return table.layout if "{" in table.layout else ""


def _from_catalog(table: DiscoveredTable) -> ImportedTable:
    assert table.table is not None
    return replace(table.table, location=table.location, layout=_template(table))


def _evidence(table: DiscoveredTable, owner: str) -> Iterator[str]:
    """Yield comments on what was seen of the table."""
    newest = f", newest write {table.newest:%Y-%m-%d %H:%M} UTC" if table.newest else ""
    yield f"{pluralize(table.files, 'file')}, {table.bytes:,} bytes{newest}."
    if table.names:
        yield f"In catalogs: {', '.join(table.names)}."
    if table.reads is not None:
        yield f"Read {table.reads.count:,} times by {pluralize(len(table.reads.readers), 'reader')}."
    if owner and owner == table.owner:
        yield "The owner is that of the catalog."
    elif owner:
        yield "The owner is that of CODEOWNERS."
    else:
        yield "No owner was found: add the team."


def _with_rules(context: RuntimeContext, spark: SparkSession, data: bytes, table: DiscoveredTable) -> bytes:
    contract = parse_valid(data, f"{table.title}.odcs.yaml")
    [schema_object] = contract.objects
    dataset = located_data(context, contract, schema_object, None)
    label(spark, "dq discover", f"dq discover {contract.id}")
    request = Request(
        contract,
        dataset,
        schema_object.name,
        spark=spark,
        start_session=lambda: spark,
        now=context.now(),
        limit_seconds=context.settings.rule_seconds,
    )
    return learn_rules(request, data, LAST)[0]


def _group_by_branch(drafts: Iterable[_Draft], by: BranchBy) -> dict[tuple[str, str], list[_Draft]]:
    """Return the drafts by branch and the title of its commit."""
    groups: dict[tuple[str, str], list[_Draft]] = defaultdict(list)
    for draft in drafts:
        if by is BranchBy.DOMAIN:
            domain = identifier(draft.table.domain) if draft.table.domain else "no_domain"
            groups[f"discover/domain-{domain}", f"contracts of {domain}"].append(draft)
        else:
            name = f"{_name(draft.table)[:60]}-{_hash(draft.table)}"
            groups[f"discover/{name}", f"contract of {_name(draft.table)}"].append(draft)
    return groups


def _write(top: Path, name: str, title: str, drafts: Sequence[_Draft]) -> DraftBranch:
    files = {draft.file: draft.data for draft in drafts}
    message = f"discover: {title[:60]}\n\nDrafts by 'dq discover --open'. Review the rules and the owner."
    branch = write_branch(top, name, files, message, _is_same)
    return DraftBranch(
        branch, tuple(printable_path(draft.table.title) for draft in drafts), tuple(sorted(files))
    )


def _is_same(first: bytes, second: bytes) -> bool:
    """Return True if two texts differ in comments only, which have counts that change with every delivery."""
    return _without_comments(first) == _without_comments(second)


def _without_comments(data: bytes) -> list[str]:
    lines = (line.split("  #")[0].rstrip() for line in data.decode("utf-8", "replace").splitlines())
    return [line for line in lines if line and not line.lstrip().startswith("#")]

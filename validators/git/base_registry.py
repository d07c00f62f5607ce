"""The subscriptions and the tables of a registry at the base of a pull request."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from posixpath import normpath

from dq.contracts.access.discovery import SUBSCRIPTIONS, called_contract
from dq.contracts.lineage import PromisedTable, promised_tables
from dq.contracts.model import Contract, Identity
from dq.contracts.odcs import is_contract
from dq.contracts.subscriptions import Subscription, read
from dq.contracts.yaml.parse import parse
from dq.validators.git.base import Base, Changed, Content, is_same_content
from dq.validators.git.objects import TreeEntry, entry_contents
from dq.validators.registry import TableHolder, TablesAtBase, alike

# The subscriptions of a registry at the base of a pull request, and which of them a branch changes.


def at_base(found: Base) -> tuple[list[Subscription], list[str]]:
    """Who consumes what, as the base says, and the files there that do not tell.

    The latter stop nobody: a change is judged alike whoever subscribed.
    """
    every: list[Subscription] = []
    unclear: list[str] = []
    for file, data in entry_contents(found.repo, _files(found)):
        made, wrong = read(data or b"", file)
        if made is None or any(one.severity.blocks for one in wrong):
            unclear.append(file)
        else:
            every.append(made)
    return every, unclear


def changed(found: Base, present: Mapping[str, Content]) -> frozenset[str]:
    """Which of these files of the work tree are not as they were at the base."""
    then = _files(found)
    return frozenset(file for file, data in present.items() if not is_same_content(data, then.get(file)))


def contracts_at_base(found: Base, ids: Collection[str]) -> dict[Identity, Contract]:
    """Return the contracts with one of the ids as the base has them; only they are parsed."""
    wanted = [id_.encode("utf-8", "surrogatepass") for id_ in ids]
    contracts: dict[Identity, Contract] = {}
    for file, data in entry_contents(found.repo, found.below("") if wanted else {}):
        if data is None or not any(id_ in data for id_ in wanted):
            continue
        contract = parse(data, file).contract
        if contract is not None and contract.id in ids and contract.version:
            contracts.setdefault(contract.identity, contract)
    return contracts


def _files(found: Base) -> dict[str, TreeEntry]:
    return {file: one for file, one in found.below(SUBSCRIPTIONS).items() if not called_contract(file)}


# The tables of a registry at the base of a branch, as far as the changed contracts share them.
#
# Of thousands of contracts few share a table with the changed ones. Their text is searched for its name and
# its folder, and only what may have them is parsed.

_WORD = re.compile(r"[a-z0-9]+")
_ESCAPE = re.compile(rb"\\[xuU]")
_DEFAULT = re.compile(rb"\$\{\w+:-([^}]*)\}")
# Two patterns, because a search for a plain word at the start of one takes a tenth of the time.
_PLACES = tuple(
    re.compile(key + rb"""["']?[ \t]*:[ \t]*["']?([^"'\r\n]*)""") for key in (b"location", b"path")
)
_SCHEME = re.compile(r"^([a-z][a-z0-9+.-]+:)?/*")
# Behind these a place goes on with what is not known here, or is over.
_OPEN = re.compile(r"[*?\[{$,}\s#\\]")
# A text that begins so is written elsewhere: in the lines below, or at an anchor.
_ELSEWHERE = (">", "|", "*", "&", "!")


def tables_at_base(found: Base, changed: Changed) -> TablesAtBase:
    """Return what the base says of the tables that the changed contracts promise.

    Contracts that the branch leaves alone are those at the tip of the reference: it may have moved on.
    """
    base = TablesAtBase((), _by_id(changed.before))
    new = [
        table
        for contract in changed.after
        for table in promised_tables(contract)
        if not base.has(alike(contract.id), table)
    ]
    if not new:
        return base
    others = list(_unchanged(found, changed, new))
    unchanged = tuple(
        TableHolder(alike(one.id), one.file, promised_tables(one), unchanged=True) for one in others
    )
    return TablesAtBase(unchanged, _by_id([*changed.before, *others]))


def _by_id(contracts: Iterable[Contract]) -> dict[str, tuple[PromisedTable, ...]]:
    tables: dict[str, tuple[PromisedTable, ...]] = {}
    for contract in contracts:
        id_ = alike(contract.id)
        tables[id_] = (*tables.get(id_, ()), *promised_tables(contract))
    return tables


def _unchanged(found: Base, changed: Changed, tables: list[PromisedTable]) -> Iterator[Contract]:
    """Yield the contracts at the tip that the branch leaves alone and that may have one of the tables."""
    touched = {*changed.contents, *changed.invalid, *(contract.file for contract in changed.before)}
    search = _Search(tables)
    files = {file: one for file, one in found.at_tip().items() if file not in touched}
    for file, data in entry_contents(found.repo, files):
        if data is None or not search.may_share(data) or not (called_contract(file) or is_contract(data)):
            continue
        contract = parse(data, file).contract
        if contract is not None and contract.id:
            yield contract


class _Search:
    """What to look for in the text of a contract, so that those which have no such table need no parser."""

    def __init__(self, tables: Iterable[PromisedTable]) -> None:
        distinct = list(tables)
        self._names = {
            tuple(word.encode() for word in sorted({*_WORD.findall(table.name)}, key=len, reverse=True))
            for table in distinct
            if table.name
        }
        self._folders = {_plain(str(table.folder)) for table in distinct if table.folder is not None}

    def may_share(self, data: bytes) -> bool:
        """Whether a contract with this text may have one of the tables, or a folder with one of theirs."""
        if _ESCAPE.search(data):
            return True
        lower = data.lower()
        return any(all(word in lower for word in words) for words in self._names) or self._may_overlap(lower)

    def _may_overlap(self, lower: bytes) -> bool:
        if not self._folders:
            return False
        plain = _DEFAULT.sub(rb"\1", lower)
        for place in (place for places in _PLACES for place in places.findall(plain)):
            text = place.decode("utf-8", "replace")
            if not text or text.startswith(_ELSEWHERE):
                return True
            end = _OPEN.search(text)
            begin = _plain(text[: end.start()] if end else text)
            if any(_overlap(folder, begin) for folder in self._folders):
                return True
        return False


def _plain(place: str) -> str:
    """A place without its scheme, in lower case: what is the same here need not be the same place."""
    path = normpath(_SCHEME.sub("", place.lower()))
    return "" if path == "." else path


def _overlap(folder: str, begin: str) -> bool:
    """Whether a place that begins so may be the folder, or one may lie in the other."""
    return folder.startswith(begin) or begin.startswith(folder)

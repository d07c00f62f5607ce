"""Whom a broken product blocks, also where the contracts of those were not read in this tick."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from dq.contracts.access.files import FileRefused, named, read
from dq.contracts.lineage import DataObject, consumers, inputs
from dq.contracts.model import Contract
from dq.contracts.shared.wording import first_of
from dq.contracts.yaml.parse import parse

_NAMED = 4
# So many contracts are read for it in one run, which tells of what is broken and must not wait for long.
_MOST_READ = 200


class Blocking:
    """The contracts of a run, and the files of those that were not read; they are read where it matters."""

    def __init__(self, contracts: Iterable[Contract], resting: Mapping[str, str]) -> None:
        self._known = list(contracts)
        self._files = list(resting)
        self._texts: dict[str, bytes] | None = None
        self._declared: dict[DataObject, frozenset[DataObject]] | None = None
        self._asked: set[str] = set()
        self._left = _MOST_READ

    def line(self, contract: Contract, one: str) -> str:
        """Who is made from an object, the nearest first; empty for nobody that is known."""
        me = (contract.key, one)
        names = _names(contract)
        while self._read(names):
            # Who is made from those that were just read may rest as well.
            names = [name for known in self._known for name in _names(known) if self._uses(known, me)]
        found = consumers(self._inputs(), me)
        own = {other.key: other for other in self._known}
        by_key: dict[str, list[str]] = {}
        for key, user in found:
            by_key.setdefault(key, []).append(user)
        said = [
            f"{key}/{users[0]}" if len(own[key].objects) > 1 and len(users) == 1 else key
            for key, users in by_key.items()
        ]
        return first_of(said, _NAMED)

    def _inputs(self) -> Mapping[DataObject, frozenset[DataObject]]:
        if self._declared is None:
            self._declared = inputs(self._known)
        return self._declared

    def _uses(self, known: Contract, me: DataObject) -> bool:
        return any(key == known.key for key, _ in consumers(self._inputs(), me))

    def _read(self, names: Iterable[str]) -> bool:
        """Reads the files that rest and hold one of the names; whether any of them was read."""
        new = {name for name in names if name not in self._asked}
        self._asked |= new
        if not new or not self._files or self._left < 1:
            return False
        if self._texts is None:
            self._texts = {file: text for file in self._files if (text := _text(file))}
        wanted = re.compile(b"|".join(re.escape(name.encode()) for name in sorted(new)))
        candidates = [file for file, text in self._texts.items() if wanted.search(text)][: self._left]
        self._left -= len(candidates)
        read = [parse(self._texts.pop(file), file).contract for file in candidates]
        self._known += [contract for contract in read if contract is not None]
        self._declared = None
        return bool(candidates)


def _names(contract: Contract) -> list[str]:
    """By what others may name a contract or one of its objects."""
    own = [contract.id, Path(contract.file).name]
    return own + [name for one in contract.objects for name in (one.name, one.id, one.physical_name) if name]


def _text(file: str) -> bytes:
    try:
        return read(named(Path(file)))
    except FileRefused:
        return b""

"""The features of ODCS as small contracts, and contracts that are wrong in one way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

CASES = Path(__file__).parents[1] / "cases"
FILE = "orders.odcs.yaml"
_HEAD = {
    "apiVersion": "apiVersion: {api}",
    "kind": "kind: DataContract",
    "id": "id: orders",
    "version": "version: 1.0.0",
    "status": "status: active",
}


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature of the standard; `of` is the path of the clause that it makes, if it makes one."""

    key: str
    yaml: str
    since: str = "3.0.0"
    until: str = "9.9.9"
    without: str = ""
    warns: tuple[str, ...] = ()
    of: str = ""

    def is_of(self, version: str) -> bool:
        """Whether a contract of this version, such as `3.1.0`, may have it."""
        return _parts(self.since) <= _parts(version) <= _parts(self.until)

    def contract(self, version: str) -> bytes:
        """The contract as bytes: a header of five keys, and the feature."""
        return document(self.yaml, f"v{version}", self.without)


def document(fragment: str, api: str, without: str = "") -> bytes:
    """A fragment below the keys that every contract has; its own keys take their place."""
    own = {line.partition(":")[0] for line in fragment.splitlines() if line[:1].isalpha()} | {without}
    head = [line.format(api=api) for key, line in _HEAD.items() if key not in own]
    return ("\n".join([*head, fragment]) + "\n").encode()


def features() -> Iterator[Feature]:
    """Every feature, in the order of the file."""
    for one in yaml.load((CASES / "odcs-features.yaml").read_text("utf-8"), yaml.CSafeLoader):
        yield Feature(**{**one, "warns": tuple(one.get("warns", ()))})


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


@dataclass(frozen=True, slots=True)
class Mistake:
    """A contract that is wrong in one way: the rule of its one finding, and the line and column."""

    rule: str
    contract: bytes
    at: tuple[int, int]


def mistakes() -> Iterator[Mistake]:
    """Every mistake, in the order of the file."""
    for one in yaml.load((CASES / "odcs-mistakes.yaml").read_text("utf-8"), yaml.CSafeLoader):
        marked = document(one["yaml"], one.get("api", "v3.2.0"), one.get("without", "")).decode()
        line, column = (int(part) for part in one["at"].split(":")) if "at" in one else _mark(marked)
        if "column_of" in one:
            column = marked.splitlines()[line - 1].index(one["column_of"]) + 1
        yield Mistake(one["rule"], marked.replace("«", "").encode(), (line, column))


def _mark(text: str) -> tuple[int, int]:
    before = text.partition("«")[0]
    return before.count("\n") + 1, len(before) - before.rfind("\n")

"""What a build is asked for, what it says it has done, and what the last one knew."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from dq.contracts.shared.outcome import Finding
from dq.contracts.subscriptions import Subscription
from dq.portal.data import contract_summary, product
from dq.portal.data.contract_summary import Card, Problem
from dq.portal.data.product import Summary
from dq.portal.generation.output_folder import Site
from dq.portal.views.lists import NotedChange
from dq.store.engine import Store

# What a build is asked for, and what it says it has done.


@dataclass(frozen=True, slots=True)
class WaiverEnd:
    """A waiver that ends soon; `expires` is a date, as text."""

    what: str
    expires: str
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class PortalRequest:
    """The contracts at `paths` and what `store` knows of them, as of `now`, as a site in the folder `out`.

    `tick` is how often the watcher is meant to run. `settle` gives the findings against files, by name, whose
    key another file holds. `waivers` are those that end soon, None where they are not known. `workers` is how
    many processes may write; `as_of` is `now` where it is a past instant. `progress` hears how much of how
    much is done.
    """

    out: Path
    paths: tuple[Path, ...]
    store: Store
    store_url: str
    now: datetime
    tick: timedelta
    settle: Callable[[Mapping[str, str]], Sequence[Finding]]
    subscriptions: Sequence[Subscription] = ()
    waivers: Sequence[WaiverEnd] | None = ()
    workers: int = 1
    as_of: datetime | None = None
    progress: Callable[[str, int, int], None] = lambda _what, _done, _all: None


@dataclass(frozen=True, slots=True)
class PortalSummary:
    """What a build did: how many products there are, how many pages were made anew, and what of the site's
    files was written, left as it was and removed. `problems` are why contracts could not be read, and
    `unjudged` why Git cannot tell what versions broke, with mends."""

    out: Path
    products: int
    rendered: int
    written: int
    same: int
    removed: int
    stale: bool
    states: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    unjudged: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "out": str(self.out),
            "products": self.products,
            "rendered": self.rendered,
            "written": self.written,
            "same": self.same,
            "removed": self.removed,
            "stale": self.stale,
            "states": dict(self.states),
            "problems": [asdict(one) for one in self.problems],
            "unjudged": list(self.unjudged),
        }


# What the last build knew: the cards and rows of all products, its files, and what changed of contracts.
#
# It is one JSON object a line, below their hash, beside the site's lock. A state that is damaged, or that
# another dq wrote, is none: then everything is written again, and what lies where pages do and is none
# goes.

_NAME, _FORM = "state.jsonl", 4
_CHANGES = 200


@dataclass(slots=True)
class KeptContract:
    """One contract of the last build; `inputs` is the hash of all that its page was made from beside the
    store, `look` what the system said of its file, and `line` all of this as it stands in the state."""

    card: Card
    summary: Summary
    inputs: str = ""
    look: str = ""
    line: str = ""


@dataclass(slots=True)
class SiteState:
    """`made_by` is the hash of what pages were made with, `marks` are where the store's tables ended, and
    `pages` the hashes of what other pages than those of products were made from, by their paths."""

    made_by: str = ""
    built: str = ""
    marks: dict[str, Any] = field(default_factory=dict)
    contracts: dict[str, KeptContract] = field(default_factory=dict)
    pages: dict[str, str] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)
    changes: list[NotedChange] = field(default_factory=list)
    seen: dict[str, list[str]] = field(default_factory=dict)
    """The version and the digest of each contract as it could last be read, by its key."""


def load(site: Site) -> SiteState:
    """The state of the last build. Where there is none, all that may be of an earlier build counts as its."""
    digest, _, kept = site.kept(_NAME).partition(b"\n")
    try:
        if digest == _digest(kept) and (found := _read(kept.decode().splitlines())) is not None:
            return found
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        pass
    return SiteState(paths=site.pages())


def _digest(kept: bytes) -> bytes:
    return sha256(kept).hexdigest().encode()


def _read(lines: list[str]) -> SiteState | None:
    head = json.loads(lines[0])
    if head["form"] != _FORM:
        return None
    found = SiteState(
        head["made_by"],
        head["built"],
        head["marks"],
        pages=head["pages"],
        paths=head["paths"],
        changes=[NotedChange(**one) for one in head["changes"]],
        seen=head["seen"],
    )
    for line in lines[1:]:
        row = json.loads(line)
        kept = KeptContract(
            contract_summary.loaded_card(row[0]), product.loaded_row(row[1]), row[2], row[3], line
        )
        found.contracts[kept.card.file] = kept
    return found


def save(site: Site, state: SiteState) -> None:
    """Keeps the state for the next build."""
    kept = "\n".join(_lines(state)).encode()
    site.keep_for_next(_NAME, _digest(kept) + b"\n" + kept)


def _lines(state: SiteState) -> Iterator[str]:
    yield json.dumps(
        {
            "form": _FORM,
            "made_by": state.made_by,
            "built": state.built,
            "marks": state.marks,
            "pages": state.pages,
            "paths": state.paths,
            "changes": [asdict(one) for one in state.changes[:_CHANGES]],
            "seen": state.seen,
        }
    )
    for one in state.contracts.values():
        yield one.line or json.dumps([one.card.dumped(), one.summary.dumped(), one.inputs, one.look])


def changed(before: SiteState, cards: Sequence[Card], at: str) -> list[NotedChange]:
    """What changed of contracts since the last build, then what was noted before; newest first.

    The first build of all notes nothing: everything would be new.
    """
    if not before.seen:
        return before.changes
    new = [
        NotedChange(at, one.key, one.title, one.slug, before.seen.get(one.key, [""])[0], one.version)
        for one in cards
        if one.readable and before.seen.get(one.key, ["", ""])[1] != one.digest
    ]
    return [*new, *before.changes][:_CHANGES]


def seen(before: SiteState, cards: Sequence[Card]) -> dict[str, list[str]]:
    """How each contract could last be read."""
    return {**before.seen, **{one.key: [one.version, one.digest] for one in cards if one.readable}}

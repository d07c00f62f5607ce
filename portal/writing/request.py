"""What a build is asked for, and what it says it has done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from dq.contracts.shared.outcome import Finding
from dq.contracts.subscriptions import Subscription
from dq.portal.facts.card import Problem
from dq.store.engine import Store


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

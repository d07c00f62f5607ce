"""The report of a domain: how its promises are kept, how fast it mends, how much it promises."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from dq.contracts.shared.wording import counted
from dq.portal.facts.names import domain_page
from dq.portal.facts.product import ProductState
from dq.portal.facts.watcher import Watcher
from dq.portal.views.lists import ProductRow, row
from dq.portal.views.words import Values, instant, length

_WORST = 5


def by_domain(rows: Iterable[ProductRow]) -> dict[str, list[ProductRow]]:
    """The products by their domain, in order; what names none is of the empty one."""
    found: dict[str, list[ProductRow]] = defaultdict(list)
    for one in rows:
        found[one.card.domain].append(one)
    return dict(sorted(found.items()))


def domain(name: str, rows: Sequence[ProductRow], watcher: Watcher) -> Values:
    """The report of a domain: how its promises are kept, how fast it mends, how much it promises."""
    summaries = [one.summary for one in rows]
    good, bad = sum(one.good for one in summaries), sum(one.bad for one in summaries)
    acknowledged = [minutes for one in summaries for minutes in one.acknowledged]
    resolved = [minutes for one in summaries for minutes in one.resolved]
    clauses, enforced = sum(one.clauses for one in summaries), sum(one.enforced for one in summaries)
    in_time = f"{int(1000 * good / (good + bad)) / 10:.1f}%" if good + bad else "-"
    covered = f"{int(1000 * enforced / clauses) / 10:.1f}%" if clauses else "-"
    worst = sorted((one for one in rows if one.state in _MATTERS or one.summary.bad), key=_badness)
    return {
        "title": name or "Products of no domain",
        "as_of": instant(watcher.now),
        "figures": [
            ("Products", f"{len(rows):,}", ""),
            ("In time", in_time, f"{good:,} of {good + bad:,} deliveries in their windows"),
            ("Budgets exhausted", f"{sum(one.exhausted for one in summaries):,}", ""),
            ("To acknowledge", *_median(acknowledged, "acknowledged")),
            ("To resolve", *_median(resolved, "resolved")),
            ("Enforced", covered, f"{enforced:,} of {counted(clauses, 'clause')} on schema and data"),
        ],
        "worst": [row(one) for one in worst[:_WORST]],
    }  # fmt: skip


def _median(minutes: Sequence[float], done: str) -> tuple[str, str]:
    if not minutes:
        return "-", f"no incident was {done}"
    return length(median(minutes)), f"median of {counted(len(minutes), 'incident')}"


_MATTERS = (ProductState.UNREADABLE, ProductState.BROKEN, ProductState.LATE, ProductState.UNKNOWN)


def _badness(one: ProductRow) -> tuple[Any, ...]:
    counted_cycles = one.summary.good + one.summary.bad
    return (
        list(ProductState).index(one.state),
        -(one.summary.bad / counted_cycles if counted_cycles else 0),
        one.card.title,
    )


def line(name: str, rows: Sequence[ProductRow]) -> Values:
    """A domain in the list of all."""
    good, bad = sum(one.summary.good for one in rows), sum(one.summary.bad for one in rows)
    matters = (ProductState.BROKEN, ProductState.LATE)
    unknown = (ProductState.UNKNOWN, ProductState.UNREADABLE)
    return {
        "name": name or "(none)",
        "page": domain_page(name),
        "products": len(rows),
        "in_time": f"{int(1000 * good / (good + bad)) / 10:.1f}%" if good + bad else "-",
        "bad": sum(one.state in matters for one in rows),
        "unknown": sum(one.state in unknown for one in rows),
    }

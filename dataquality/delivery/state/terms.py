"""What each watched promise is counted by, kept so that whoever reads the store needs no contract for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from sqlalchemy import Connection, delete, insert, select

from dq.contracts.slo import Slo
from dq.dataquality.delivery.state.keys import KEY, Key, is_of, parts
from dq.dataquality.delivery.state.tables import slo_terms

Terms = dict[Key, tuple[str, str, int]]


def of(slos: Iterable[Slo]) -> Terms:
    """From an SLO's key to its product (the contract's key where none is named), objective and window."""
    return {
        slo.key: (
            slo.contract.data_product or slo.contract.key,
            str(slo.objective),
            round(slo.window.total_seconds()),
        )
        for slo in slos
    }


def known(tx: Connection, contracts: Collection[str]) -> Terms:
    """What is kept of these contracts."""
    found: Terms = {}
    for some in parts(sorted(contracts)):
        for row in tx.execute(select(slo_terms).where(slo_terms.c.contract.in_(some))):
            found[row.contract, row.object, row.slo] = (row.product, row.objective, row.window_seconds)
    return found


def changed(kept: Terms, wanted: Terms, ended: Callable[[Key], str | None]) -> Terms:
    """What has to be written: new terms, and of what is promised no more, none, shown as an empty product.

    What is neither wanted nor `ended` stays: its contract could not be understood today.
    """
    news = {key: terms for key, terms in wanted.items() if kept.get(key) != terms}
    return news | {key: ("", "", 0) for key in kept if key not in wanted and ended(key) is not None}


def write(tx: Connection, news: Terms) -> None:
    """Writes what `changed` gave."""
    for key in news:
        tx.execute(delete(slo_terms).where(is_of(slo_terms, key)))
    names = (*KEY, "product", "objective", "window_seconds")
    rows = [dict(zip(names, (*key, *terms), strict=True)) for key, terms in news.items() if terms[0]]
    if rows:
        tx.execute(insert(slo_terms), rows)

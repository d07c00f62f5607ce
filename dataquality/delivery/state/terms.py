"""What each watched promise is counted by, kept so that whoever reads the store needs no contract for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from sqlalchemy import Connection, and_, delete, insert, select

from dq.contracts.slo import Slo
from dq.dataquality.delivery.state.receipts import AT_ONCE
from dq.dataquality.delivery.state.tables import slo_terms

Key = tuple[str, str, str]
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
    names = sorted(contracts)
    for start in range(0, len(names), AT_ONCE):
        here = slo_terms.c.contract.in_(names[start : start + AT_ONCE])
        for row in tx.execute(select(slo_terms).where(here)):
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
    columns = slo_terms.c
    for contract, one, slo in news:
        same = and_(columns.contract == contract, columns.object == one, columns.slo == slo)
        tx.execute(delete(slo_terms).where(same))
    rows = [
        {"contract": key[0], "object": key[1], "slo": key[2]}
        | {"product": terms[0], "objective": terms[1], "window_seconds": terms[2]}
        for key, terms in news.items()
        if terms[0]
    ]
    if rows:
        tx.execute(insert(slo_terms), rows)

"""The screen of the search: what can be filtered by, and all domains for who has no script."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dq.portal.facts.names import domain_page
from dq.portal.facts.product import ProductState
from dq.portal.views.domains import by_domain
from dq.portal.views.lists import ProductRow, row
from dq.portal.views.words import STATES, Values, cut

# A longer list is none to choose from, and the page would grow with it.
_OPTIONS = 300
# So few can be looked through without a search.
_FEW = 50


def find(rows: Sequence[ProductRow], shelf: Callable[[str, str], str]) -> Values:
    """The page of the search: what can be filtered by, and the domains for who has no script.

    `shelf` names the file that holds the products of one value of one filter.
    """
    domains = by_domain(rows)
    owners = sorted({owner for one in rows for owner in one.card.owners[:3]})
    kinds = sorted({kind for one in rows for kind in one.card.classifications})
    states = [state for state in ProductState if any(one.state is state for one in rows)]
    return {
        "total": len(rows),
        "filters": [
            _filter("domain", "Domain", [(shelf("domain", name), name) for name in domains if name]),
            _filter("owner", "Owner", [(shelf("owner", name), name) for name in owners]),
            _filter("status", "Status", [(shelf("status", one.value), STATES[one].text) for one in states]),
            _filter("classification", "Classification", [(shelf("classification", x), x) for x in kinds]),
        ],
        "few": [row(one) for one in sorted(rows, key=_title)] if len(rows) <= _FEW else [],
        "domains": [(name or "(none)", domain_page(name), len(those)) for name, those in domains.items()],
    }  # fmt: skip


def _title(one: ProductRow) -> str:
    return one.card.title.lower()


def _filter(name: str, label: str, options: Sequence[tuple[str, str]]) -> Values:
    shown = [(file, cut(text, 80)) for file, text in options[:_OPTIONS]]
    return {"name": name, "label": label, "options": shown}

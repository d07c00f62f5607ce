"""The part of a product's screen about one object: its schema, its clauses, its rows."""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.model import Property, SchemaObject
from dq.contracts.shared.outcome import Status
from dq.contracts.shared.wording import counted
from dq.contracts.types import catalog_type
from dq.dataquality.results.check_runs import Line
from dq.portal.facts.clauses import Fate
from dq.portal.facts.product import ObjectFacts
from dq.portal.views.strip import row_line
from dq.portal.views.words import Values, cut, instant

_COLUMNS, _CLAUSES, _FAILS = 400, 60, 50
_DEEPEST = 12
# In the order of the page.
_TITLES = {
    Fate.BROKEN: "checked, and broken",
    Fate.UNTOLD: "of which nobody can tell",
    Fate.UNCHECKED: "of which nobody can tell",
    Fate.PROVEN: "proven by statistics, and kept",
    Fate.SCANNED: "scanned, and kept",
    Fate.COUNTED: "scanned where files are new, and kept",
    Fate.SCHEMA: "read off the schema, and kept",
    Fate.KEPT: "checked, and kept; how is not recorded",
    Fate.WATCHED: "watched with the deliveries",
    Fate.DOCUMENTED: "not enforced",
}


def object_values(facts: ObjectFacts) -> Values:
    one, quality = facts.object, facts.quality
    rows = list(_columns(one))
    groups = _clauses(facts)
    return {
        "name": one.name,
        "said": cut(one.description),
        "grain": cut(one.data_granularity_description, 300),
        "columns": rows[:_COLUMNS],
        "left_out": max(len(rows) - _COLUMNS, 0),
        "keys": [prop.column for prop in one.primary_key()],
        "partitions": [prop.column for prop in one.partition_keys()],
        "groups": groups,
        "clauses": len(facts.clauses),
        "rows": row_line(quality.rows) if quality.rows else None,
        "checked": instant(quality.at) if quality.at else None,
        "scope": quality.newest[0].scope if quality.newest else "",
        "failed": [_failed(line) for line in quality.lines if line.status in (Status.FAIL, Status.ERROR)][
            :_FAILS
        ],
    }


def _failed(line: Line) -> Values:
    return {
        "scope": line.scope,
        "what": f"{line.property} {line.check}".strip(),
        "status": "fails" if line.status is Status.FAIL else "could not be told",
        "kind": "broken" if line.status is Status.FAIL else "unknown",
        "observed": cut(line.observed, 300),
        "allowed": cut(line.allowed, 300),
        "severity": line.severity,
    }


def _clauses(facts: ObjectFacts) -> list[Values]:
    """The clauses by what is known of them, as they stand in the scope that was checked last."""
    sorted_out: dict[str, list[tuple[str, str, str]]] = {title: [] for title in _TITLES.values()}
    for one in facts.clauses:
        account = one.account
        row = (account.property or account.object, cut(account.clause, 200), cut(one.how, 300))
        sorted_out[_TITLES[one.fate]].append(row)
    return [
        {
            "open": title == _TITLES[Fate.BROKEN],
            "title": f"{counted(len(found), 'clause')} {title}",
            "rows": found[:_CLAUSES],
            "left_out": max(len(found) - _CLAUSES, 0),
        }
        for title, found in sorted_out.items()
        if found
    ]


def _columns(one: SchemaObject) -> Iterator[Values]:
    stack = [(prop, 0) for prop in reversed(one.properties)]
    while stack:
        prop, depth = stack.pop()
        marks = (
            ("primary key", prop.primary_key),
            ("partition", prop.partitioned),
            ("never empty", prop.required),
            ("unique", prop.unique),
        )
        yield {
            "name": cut(prop.column or prop.name, 200),
            "depth": min(depth, _DEEPEST),
            "type": cut(_type(prop), 120),
            "marks": [name for name, holds in marks if holds],
            "classification": cut(prop.classification, 80),
            "said": cut(prop.description, 500),
        }
        stack += [(inner, depth + 1) for inner in reversed(list(prop.children()))]


def _type(prop: Property) -> str:
    if prop.properties or prop.items is not None or prop.map is not None:
        return prop.logical_type or "object"
    return str(catalog_type(prop))

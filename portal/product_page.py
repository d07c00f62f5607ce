"""The screen of one product: what it promises, how it keeps that, how to read it, and what programs read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from dq.alerts.incident import incident_as_row
from dq.contracts.escaping import is_plain_name, python
from dq.contracts.model import Contract, Property, SchemaObject, Server, identity
from dq.contracts.outcome import Status, counted, iso
from dq.contracts.slo import Slo
from dq.contracts.types import catalog_type
from dq.dataquality.delivery.budget import Budget
from dq.dataquality.delivery.compliance import Standing, percent, promise_as_dict
from dq.dataquality.delivery.cycle import Kept
from dq.dataquality.delivery.notify import local_time, span
from dq.dataquality.results import Line
from dq.portal import formatting
from dq.portal.contracts import Broke, VersionChange, domain_page
from dq.portal.product import Fate, ObjectFacts, ProductFacts, ProductState

# The part of a product's screen about one object: its schema, its clauses, its rows.

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


def object_values(facts: ObjectFacts) -> formatting.Values:
    one, quality = facts.object, facts.quality
    rows = list(_columns(one))
    groups = _clauses(facts)
    return {
        "name": one.name,
        "said": formatting.cut(one.description),
        "grain": formatting.cut(one.data_granularity_description, 300),
        "columns": rows[:_COLUMNS],
        "left_out": max(len(rows) - _COLUMNS, 0),
        "keys": [prop.column for prop in one.primary_key()],
        "partitions": [prop.column for prop in one.partition_keys()],
        "groups": groups,
        "clauses": len(facts.clauses),
        "rows": formatting.row_line(quality.rows) if quality.rows else None,
        "checked": formatting.instant(quality.at) if quality.at else None,
        "scope": quality.newest[0].scope if quality.newest else "",
        "failed": [_failed(line) for line in quality.lines if line.status in (Status.FAIL, Status.ERROR)][
            :_FAILS
        ],
    }


def _failed(line: Line) -> formatting.Values:
    return {
        "scope": line.scope,
        "what": f"{line.property} {line.check}".strip(),
        "status": "fails" if line.status is Status.FAIL else "could not be told",
        "kind": "broken" if line.status is Status.FAIL else "unknown",
        "observed": formatting.cut(line.observed, 300),
        "allowed": formatting.cut(line.allowed, 300),
        "severity": line.severity,
    }


def _clauses(facts: ObjectFacts) -> list[formatting.Values]:
    """The clauses by what is known of them, as they stand in the scope that was checked last."""
    sorted_out: dict[str, list[tuple[str, str, str]]] = {title: [] for title in _TITLES.values()}
    for one in facts.clauses:
        account = one.account
        row = (
            account.property or account.object,
            formatting.cut(account.clause, 200),
            formatting.cut(one.how, 300),
        )
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


def _columns(one: SchemaObject) -> Iterator[formatting.Values]:
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
            "name": formatting.cut(prop.column or prop.name, 200),
            "depth": min(depth, _DEEPEST),
            "type": formatting.cut(_type(prop), 120),
            "marks": [name for name, holds in marks if holds],
            "classification": formatting.cut(prop.classification, 80),
            "said": formatting.cut(prop.description, 500),
        }
        stack += [(inner, depth + 1) for inner in reversed(list(prop.children()))]


def _type(prop: Property) -> str:
    if prop.properties or prop.items is not None or prop.map is not None:
        return prop.logical_type or "object"
    return str(catalog_type(prop))


# What a change of a contract broke, as a row of a product's versions or of the changes of all.

_ROWS = 10
_WORDS = {
    Broke.BREAK: formatting.Word("broken", "broke a promise"),
    Broke.WARN: formatting.Word("late", "may break readers"),
    Broke.NOTHING: formatting.Word("fine", "broke nothing"),
    Broke.FIRST: formatting.Word("resting", "the first"),
    Broke.UNKNOWN: formatting.Word("unknown", "what it broke is not known"),
}


def change_values(one: VersionChange) -> formatting.Values:
    """One change: from which version to which, what it broke, and when."""
    return {
        "title": title(one.before, one.after),
        "state": _WORDS[one.broke],
        "at": formatting.instant_of(one.at),
        "loose": not one.at,
        "told": [(rule, formatting.cut(text, 300)) for rule, text in one.told],
        "more": one.more,
        "unannounced": one.unannounced,
        "reason": one.reason,
        "major": is_major(one.before, one.after),
    }


def title(before: str, after: str) -> str:
    """Both versions, as far as they are known."""
    if before and before == after:
        return f"within {formatting.cut(after, 60)}"
    return (
        " → ".join(formatting.cut(one, 60) for one in (before, after) if one)
        or "a version that cannot be read"
    )


def is_major(before: str, after: str) -> bool:
    """Whether another major came in the place of one."""
    return bool(before and after) and identity("", before) != identity("", after)


def says_nothing(one: VersionChange) -> bool:
    """Whether it is a matter of the file alone: comments, the order of keys."""
    return one.silent and one.before == one.after


def versions(facts: ProductFacts) -> formatting.Values:
    """The versions of a product, the newest first, with what each broke and when its data was first
    checked. What Git does not tell is listed as such, as far as checks have seen it."""
    checked = _checked(facts)
    every = [one for one in facts.versions.changes if not says_nothing(one)]
    rows, now = [], facts.contract.version
    for one in every[:_ROWS]:
        first = checked.pop(one.after, None) if one.after != one.before else None
        rows.append(
            {
                **change_values(one),
                "checked": formatting.instant(first) if first else None,
                "now": one.after == now,
            }
        )
        now = "" if one.after == now else now
    if len(every) > _ROWS:
        for one in every[_ROWS:]:
            checked.pop(one.after, None)
            now = "" if one.after == now else now
    rows = [*_others(checked, now), *rows]
    return {
        "rows": rows,
        "older": facts.versions.older or len(every) > _ROWS,
        "unknown": facts.versions.unknown,
        "status": "in force" if facts.in_force else facts.contract.status,
    }


def _checked(facts: ProductFacts) -> dict[str, datetime]:
    """When each version was first checked, as far as the results that stand tell."""
    found: dict[str, datetime] = {}
    for one in facts.objects:
        for line in one.quality.lines:
            found[line.version] = min(line.at, found.get(line.version, line.at))
    return found


def _others(checked: dict[str, datetime], now: str) -> Iterator[formatting.Values]:
    """Versions that no change led to: the one in the file, and those that were checked."""
    names = dict.fromkeys(
        ([now] if now else []) + sorted(checked, key=lambda name: checked[name], reverse=True)
    )
    for name in names:
        at = checked.get(name)
        made = change_values(VersionChange("", name, Broke.UNKNOWN))
        yield {**made, "loose": False, "checked": formatting.instant(at) if at else None, "now": name == now}


# The screen of one product: what it promises, how it keeps that, how to read it, whom to ask.

PAST_INCIDENTS = 20
_EDGES = 100
_LONGEST_LINE = 500
Link = Callable[[str], str | None]
"""The page of a contract by its key; None where the registry has none."""


def product_page(facts: ProductFacts, page_of: Link) -> formatting.Values:
    """All values of the page."""
    contract = facts.contract
    said = contract.description
    return {
        "title": formatting.cut(facts.card.title, 200),
        "key": facts.card.key,
        "version": contract.version,
        "contract_status": contract.status,
        "state": formatting.STATES[facts.state],
        "as_of": formatting.instant(facts.now),
        "file": contract.file,
        "domain": (contract.domain, domain_page(contract.domain)) if contract.domain else None,
        "data_product": contract.data_product if contract.data_product != facts.card.key else None,
        "owners": list(_owners(contract)),
        "support": [
            {
                "tool": one.tool,
                "channel": formatting.cut(one.channel, 200),
                "link": formatting.link(one.url),
                "said": formatting.cut(one.description, 300),
            }
            for one in contract.support
        ],
        "about": [
            (name, formatting.cut(text))
            for name, text in (
                ("Purpose", said.purpose if said else None),
                ("Usage", said.usage if said else None),
                ("Limitations", said.limitations if said else None),
            )
            if text
        ],
        "links": [
            {
                "type": formatting.cut(one.type, 80),
                "url": formatting.cut(one.url, 500),
                "link": formatting.link(one.url),
            }
            for one in contract.authoritative_definitions
        ],
        "tags": contract.tags[:30],
        "in_force": facts.in_force,
        "promises": [_promise(one, facts) for one in facts.promises],
        "wrong": facts.wrong,
        "other_levels": list(_levels(contract, facts)),
        "objects": [object_values(one) for one in facts.objects],
        "reading": [_reading(contract, server) for server in contract.servers],
        "consumers": [
            {
                "team": one.consumer.team,
                "purpose": formatting.cut(one.purpose, 300),
                "since": str(one.start_date),
                "until": str(one.end_date) if one.end_date else None,
                "contact": one.consumer.contact,
                "link": formatting.link(one.consumer.contact),
            }
            for one in facts.consumers
        ],
        "made_from": [_edge(one, page_of) for one in facts.made_from[:_EDGES]],
        "used_by": [_edge(one, page_of) for one in facts.used_by[:_EDGES]],
        "versions": versions(facts),
        "open_incidents": [incident_row(one) for one in facts.open_incidents],
        "past_incidents": [
            incident_row(one) for one in facts.incidents if one.incident.state.closed
        ][:PAST_INCIDENTS],
    }  # fmt: skip


def incident_row(facts: Any) -> formatting.Values:
    """An incident in a list."""
    one = facts.incident
    return {
        "id": one.id,
        "title": formatting.cut(one.title, 300),
        "severity": one.severity.value,
        "state": formatting.said_state(one.state),
        "closed": one.state.closed,
        "opened": formatting.instant(one.opened_at),
        "resolved": formatting.instant(one.resolved_at) if one.resolved_at else None,
        "by": one.acked_by,
        "contract": one.key.contract,
    }


def _owners(contract: Contract) -> Iterator[formatting.Values]:
    name = getattr(contract.team, "name", None)
    if name:
        yield {"name": formatting.cut(name, 200), "role": "team", "link": None}
    for one in contract.members():
        if one.date_out is None:
            mail = f"mailto:{one.username}" if "@" in one.username else None
            yield {
                "name": formatting.cut(one.name or one.username, 200),
                "role": formatting.cut(one.role, 80),
                "link": formatting.link(mail),
            }


def _promise(one: Standing, facts: ProductFacts) -> formatting.Values:
    slo, budget = one.slo, one.budget
    following = next(iter(slo.schedule.after(facts.now)), None)
    last = next((kept for kept in reversed(one.cycles) if kept.delivered_at is not None), None)
    figures = [
        ("In time", percent(budget.attainment), f"promised {slo.delivery.objective} over {span(slo.window)}"),
        ("Misses used", f"{budget.bad} of {budget.allowed}", budget.line()),
    ]
    if one.usual is not None:
        early = one.usual.total_seconds() < 0
        figures.append(("Usual arrival", f"{span(one.usual)} {'before' if early else 'after'}", "it is due"))
    if one.present is not None:
        figures.append(("There", percent(one.present), "of the time, the newest delivery that was due"))
    return {
        "id": slo.id,
        "object": slo.object.name,
        "words": _words(slo),
        "strip": formatting.strip(slo, one.cycles),
        "figures": figures,
        "next": local_time(slo, following.at) if following else None,
        "returns": formatting.instant(budget.next_returns_at) if budget.next_returns_at else None,
        "last": (local_time(slo, last.delivered_at), last.source) if last and last.delivered_at else None,
        "spent": _spent(budget),
        "burning": list(budget.burning),
    }


def _spent(budget: Budget) -> tuple[str, str] | None:
    """What is to be said of a budget beside its promise, with its kind in the style sheet."""
    if budget.exhausted:
        return "broken", "budget exhausted"
    if budget.bad and budget.bad == budget.allowed:
        return "late", "no miss left"
    return ("late", "half of the budget used") if budget.half_used else None


def _words(slo: Slo) -> str:
    grace = f", with {span(slo.grace)} of grace" if slo.grace else ""
    brings = ", ".join(slo.partition)
    what = f"a delivery of {slo.object.name}" + (f" (partition {brings})" if brings else "")
    return (
        f"Promised is {what}: {formatting.in_words(slo.schedule)}{grace}; "
        f"{slo.delivery.objective} of the deliveries of {span(slo.window)} are in time."
    )


def _levels(contract: Contract, facts: ProductFacts) -> Iterator[tuple[str, str]]:
    watched = {id(one.slo.sla) for one in facts.promises}
    for one in contract.sla_properties:
        if id(one) not in watched:
            value = "" if one.value is None else f"{one.value} {one.unit or ''}".strip()
            yield (
                formatting.cut(one.property, 80),
                formatting.cut(value, 200) + (f" ({formatting.cut(one.element, 80)})" if one.element else ""),
            )


def _reading(contract: Contract, server: Server) -> formatting.Values:
    """How to read it there: what the server says, and a line of SQL and of Spark where a table is named."""
    database = server.get("database") or server.get("schema")
    catalog = server.get("catalog")
    tables = [
        ".".join(part for part in (catalog, database, one.physical_name or one.name) if part)
        for one in contract.objects
    ]
    place = server.get("location") or server.get("path")
    form = server.get("format") or "parquet"
    lines = []
    if database:
        # How a name is quoted depends on the server's dialect; a plain one needs no quotes in any.
        plain = [name for name in tables if all(map(is_plain_name, name.split(".")))][:3]
        lines += [f"SELECT * FROM {name}" for name in plain]  # noqa: S608
        lines += [f"spark.table({python(name)})" for name in plain]
    elif place:
        paths = [place.replace("{object}", one.name) for one in contract.objects][:3]
        lines += [f"spark.read.format({python(form)}).load({python(path)})" for path in dict.fromkeys(paths)]
    keys = [
        (name, formatting.cut(value, 500))
        for name, value in (server.model_extra or {}).items()
        if isinstance(value, str)
    ]
    return {
        "name": server.server,
        "type": server.type,
        "environment": server.environment,
        "said": formatting.cut(server.description, 300),
        "places": [(name, value, formatting.link(value)) for name, value in keys],
        # A part of a line would do something else when it is pasted.
        "lines": [line for line in lines if len(line) <= _LONGEST_LINE],
    }


def _edge(edge: tuple[str, str, str], page_of: Link) -> formatting.Values:
    own, other, theirs = edge
    return {"own": own, "contract": other, "object": theirs, "page": page_of(other)}


# What programs read of a product: `status.json`, and a badge for other people's pages.

# Grounds on which white text has a contrast of 4.5 and more.
_GROUNDS = {
    ProductState.UNREADABLE: "#8a1f17",
    ProductState.BROKEN: "#a3231a",
    ProductState.LATE: "#8f4a00",
    ProductState.UNKNOWN: "#5b4a8a",
    ProductState.SPENT: "#8f4a00",
    ProductState.UNCHECKED: "#4d5561",
    ProductState.FINE: "#1a6b3a",
    ProductState.RESTING: "#4d5561",
}
_LETTER = 7


def status_json(facts: ProductFacts) -> dict[str, Any]:
    """The same as `dq status --format json` says of the contract, with the last cycles of each promise.

    Rows of the data that broke a check are left out: they are for those who may read the data.
    """
    return {
        "contract": facts.card.key,
        "version": facts.contract.version,
        "state": facts.state.value,
        "as_of": formatting.instant(facts.now).iso,
        "deliveries": [
            {**promise_as_dict(one), "cycles": [_cycle(kept) for kept in one.cycles[-formatting.DRAWN :]]}
            for one in facts.promises
        ],
        "checks": [
            {name: value for name, value in line.as_dict().items() if name != "samples"}
            for one in facts.objects
            for line in one.quality.lines
        ],
        "incidents": [incident_as_row(one.incident) for one in reversed(facts.open_incidents)],
    }


def _cycle(kept: Kept) -> dict[str, Any]:
    """What most ask of a cycle; `dq status --format json` has all of it."""
    return {
        "due_at": kept.cycle.due_at.isoformat(),
        "status": kept.status,
        "delivered_at": iso(kept.delivered_at),
        "source": kept.source,
    }


def badge(state: ProductState) -> dict[str, Any]:
    """The values of a badge: `data | late`."""
    text = formatting.STATES[state].text
    width = len(text) * _LETTER + 16
    return {"text": text, "ground": _GROUNDS[state], "width": width, "whole": 44 + width}

"""The screen of one product: what it promises, how it keeps that, how to read it, whom to ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dq.contracts.escaping import is_plain_name, python
from dq.contracts.model import Contract, Server
from dq.contracts.slo import Slo
from dq.dataquality.delivery.budget import Budget
from dq.dataquality.delivery.history.compliance import Standing, percent
from dq.dataquality.delivery.notify import local_time, span
from dq.portal.facts.names import domain_page
from dq.portal.facts.product import ProductFacts
from dq.portal.views.objects import object_values
from dq.portal.views.schedules import in_words
from dq.portal.views.strip import strip
from dq.portal.views.versions import versions
from dq.portal.views.words import STATES, Values, cut, instant, link, said_state

PAST_INCIDENTS = 20
_EDGES = 100
_LONGEST_LINE = 500
Link = Callable[[str], str | None]
"""The page of a contract by its key; None where the registry has none."""


def product(facts: ProductFacts, page_of: Link) -> Values:
    """All values of the page."""
    contract = facts.contract
    said = contract.description
    return {
        "title": cut(facts.card.title, 200),
        "key": facts.card.key,
        "version": contract.version,
        "contract_status": contract.status,
        "state": STATES[facts.state],
        "as_of": instant(facts.now),
        "file": contract.file,
        "domain": (contract.domain, domain_page(contract.domain)) if contract.domain else None,
        "data_product": contract.data_product if contract.data_product != facts.card.key else None,
        "owners": list(_owners(contract)),
        "support": [
            {
                "tool": one.tool,
                "channel": cut(one.channel, 200),
                "link": link(one.url),
                "said": cut(one.description, 300),
            }
            for one in contract.support
        ],
        "about": [
            (name, cut(text))
            for name, text in (
                ("Purpose", said.purpose if said else None),
                ("Usage", said.usage if said else None),
                ("Limitations", said.limitations if said else None),
            )
            if text
        ],
        "links": [
            {"type": cut(one.type, 80), "url": cut(one.url, 500), "link": link(one.url)}
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
                "purpose": cut(one.purpose, 300),
                "since": str(one.start_date),
                "until": str(one.end_date) if one.end_date else None,
                "contact": one.consumer.contact,
                "link": link(one.consumer.contact),
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


def incident_row(facts: Any) -> Values:
    """An incident in a list."""
    one = facts.incident
    return {
        "id": one.id,
        "title": cut(one.title, 300),
        "severity": one.severity.value,
        "state": said_state(one.state),
        "closed": one.state.closed,
        "opened": instant(one.opened_at),
        "resolved": instant(one.resolved_at) if one.resolved_at else None,
        "by": one.acked_by,
        "contract": one.key.contract,
    }


def _owners(contract: Contract) -> Iterator[Values]:
    name = getattr(contract.team, "name", None)
    if name:
        yield {"name": cut(name, 200), "role": "team", "link": None}
    for one in contract.members():
        if one.date_out is None:
            mail = f"mailto:{one.username}" if "@" in one.username else None
            yield {"name": cut(one.name or one.username, 200), "role": cut(one.role, 80), "link": link(mail)}


def _promise(one: Standing, facts: ProductFacts) -> Values:
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
        "strip": strip(slo, one.cycles),
        "figures": figures,
        "next": local_time(slo, following.at) if following else None,
        "returns": instant(budget.next_returns_at) if budget.next_returns_at else None,
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
        f"Promised is {what}: {in_words(slo.schedule)}{grace}; "
        f"{slo.delivery.objective} of the deliveries of {span(slo.window)} are in time."
    )


def _levels(contract: Contract, facts: ProductFacts) -> Iterator[tuple[str, str]]:
    watched = {id(one.slo.sla) for one in facts.promises}
    for one in contract.sla_properties:
        if id(one) not in watched:
            value = "" if one.value is None else f"{one.value} {one.unit or ''}".strip()
            yield (
                cut(one.property, 80),
                cut(value, 200) + (f" ({cut(one.element, 80)})" if one.element else ""),
            )


def _reading(contract: Contract, server: Server) -> Values:
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
        (name, cut(value, 500))
        for name, value in (server.model_extra or {}).items()
        if isinstance(value, str)
    ]
    return {
        "name": server.server,
        "type": server.type,
        "environment": server.environment,
        "said": cut(server.description, 300),
        "places": [(name, value, link(value)) for name, value in keys],
        # A part of a line would do something else when it is pasted.
        "lines": [line for line in lines if len(line) <= _LONGEST_LINE],
    }


def _edge(edge: tuple[str, str, str], page_of: Link) -> Values:
    own, other, theirs = edge
    return {"own": own, "contract": other, "object": theirs, "page": page_of(other)}

"""The pages of products: asked and written by the batch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from sqlalchemy import Connection

from dq.contracts.access.files import Found
from dq.contracts.model import Contract
from dq.contracts.shared.wording import in_json
from dq.contracts.subscriptions import Subscription
from dq.dataquality.clauses.foreign_key import Neighbours
from dq.dataquality.delivery.history.replay import rewound
from dq.portal.facts import registry
from dq.portal.facts.card import Card, Problem
from dq.portal.facts.deliveries import histories
from dq.portal.facts.incidents import IncidentFacts
from dq.portal.facts.names import slug
from dq.portal.facts.product import Edge, Known, ProductFacts, ProductState, product
from dq.portal.facts.quality import quality
from dq.portal.facts.summary import Summary, summary
from dq.portal.facts.versions import NOT_ASKED, VersionHistory
from dq.portal.views import incident, machines
from dq.portal.views import product as screen
from dq.portal.views.product import incident_row
from dq.portal.views.words import STATES, cut, instant
from dq.portal.writing.crew import Crew
from dq.portal.writing.site import Site
from dq.portal.writing.templates import render
from dq.store.engine import open_as_it_is

_BATCH = 100
_UP = "../../"


@dataclass(frozen=True, slots=True)
class PageJob:
    """One product whose pages are to be written; `beside` are the files that its references may lead into."""

    card: Card
    file: Found
    edges: tuple[tuple[Edge, ...], tuple[Edge, ...]] = ((), ())
    beside: tuple[tuple[Found, str], ...] = ()
    consumers: tuple[Subscription, ...] = ()
    incidents: tuple[IncidentFacts, ...] = ()
    linked: Mapping[str, str] = field(default_factory=dict)
    versions: VersionHistory = NOT_ASKED


@dataclass(frozen=True, slots=True)
class Made:
    """What came of a batch: the rows of its products by file, and what was written. `changed` has, by the
    same files, what was written again while the portal was built, so that the product is not known."""

    rows: Mapping[str, Summary]
    changed: Mapping[str, Problem]
    paths: frozenset[str]
    written: int
    same: int


def paths_of(card: Card) -> tuple[str, ...]:
    """The files of a product."""
    names = ("index.html", "status.json", "badge.svg", "incidents.xml")
    return tuple(f"products/{card.slug}/{name}" for name in names)


def write(
    site: Site,
    jobs: Sequence[PageJob],
    store_url: str,
    now: datetime,
    as_of: datetime | None,
    tick: timedelta,
    crew: Crew,
) -> Iterator[Made]:
    """Writes the pages of these products; gives what came of some of them at a time."""
    batches = [jobs[start : start + _BATCH] for start in range(0, len(jobs), _BATCH)]
    for made in crew.each(partial(_batch, site.root, store_url, now, as_of, tick), batches):
        site.paths |= made.paths
        site.written += made.written
        site.same += made.same
        yield made


def _batch(
    root: Path,
    store_url: str,
    now: datetime,
    as_of: datetime | None,
    tick: timedelta,
    jobs: Sequence[PageJob],
) -> Made:
    site, rows, changed = Site(root), {}, {}
    store = open_as_it_is(store_url)
    try:
        with store.read() as tx:
            known = _known(tx, jobs, now, as_of)
    finally:
        store.close()
    for one in jobs:
        contract, beside, job = _read(one)
        if contract is None:
            rows[job.card.file] = _unreadable(site, job, now)
        else:
            others = (other for other in beside if other.file != contract.file)
            near = Neighbours.of([contract, *others])
            facts = product(
                job.card, contract, known, now, near, job.edges, job.consumers, job.versions, tick
            )
            _write(site, job, facts)
            rows[job.card.file] = summary(facts)
        if one is not job:
            changed[job.card.file] = job.card.problems[-1]
    return Made(rows, changed, frozenset(site.paths), site.written, site.same)


def _read(job: PageJob) -> tuple[Contract | None, list[Contract], PageJob]:
    """The contracts that the page is made of; none where the job's own cannot be used.

    One that is not what the build began with comes as a problem of the job: half of a page would speak of
    another contract than the lists and the search do.
    """
    card = job.card
    if not card.readable:
        return None, [], job
    given = [(job.file, card.digest), *job.beside]
    read = [registry.contract(file, digest) for file, digest in given]
    found = [contract for contract in read if contract is not None]
    if len(found) == len(given):
        return found[0], found[1:], job
    file = str(given[read.index(None)][0])
    said = "The file changed while the portal was built."
    problem = Problem(file, "changed-meanwhile", said, "Build the portal again.")
    return None, [], replace(job, card=card.refused(problem))


def _known(tx: Connection, jobs: Sequence[PageJob], now: datetime, as_of: datetime | None) -> Known:
    keys = [job.card.key for job in jobs if job.card.readable]
    mine = {job.card.key: job.incidents for job in jobs}
    cycles = {key: rewound(tx, found, as_of) for key, found in histories(tx, keys).items()}
    return Known(cycles, quality(tx, keys, now, as_of), mine)


def _write(site: Site, job: PageJob, facts: ProductFacts) -> None:
    page, status, badge, feed = paths_of(job.card)
    site.put(page, render("product.html", _UP, **screen.product(facts, job.linked.get)))
    site.put(status, _json(machines.status(facts)))
    site.put(badge, render("badge.svg", _UP, **machines.badge(facts.state)))
    site.put(feed, _feed(job))


def _feed(job: PageJob) -> bytes:
    title = f"Incidents of {cut(job.card.title, 120)}"
    return render(
        "feed.xml", _UP, **incident.feed(title, slug(job.card.key or job.card.file), list(job.incidents), _UP)
    )


def _unreadable(site: Site, job: PageJob, now: datetime) -> Summary:
    """The page of a contract that cannot be used, which says why."""
    card, problems = job.card, job.card.problems
    page, status, badge, feed = paths_of(card)
    still = [incident_row(one) for one in job.incidents if not one.incident.state.closed]
    values = {
        "title": cut(card.title, 200),
        "state": STATES[ProductState.UNREADABLE],
        "file": card.file,
        "problems": problems[:50],
        "open_incidents": still,
        "as_of": instant(now),
    }
    site.put(page, render("unreadable.html", _UP, **values))
    said = {
        "contract": card.key,
        "version": None,
        "state": ProductState.UNREADABLE.value,
        "as_of": instant(now).iso,
        "problems": [{"at": one.at, "rule": one.rule, "message": one.message} for one in problems[:50]],
    }
    site.put(status, _json(said))
    site.put(badge, render("badge.svg", _UP, **machines.badge(ProductState.UNREADABLE)))
    site.put(feed, _feed(job))
    return Summary(
        ProductState.UNREADABLE.value, f"{problems[0].at}: {problems[0].message}", open_incidents=len(still)
    )


def _json(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str, separators=(",", ":"))
    return (in_json(text) + "\n").encode("utf-8", "backslashreplace")

"""Builds the site: reads the registry and the store, writes what has changed, removes what is no more."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta

from dq.portal.data import store_queries
from dq.portal.data import store_queries as incident_facts
from dq.portal.data import store_queries as watching
from dq.portal.data.contract_summary import Card, Problem
from dq.portal.generation import output_folder, pages, state, templates
from dq.portal.generation.histories import histories
from dq.portal.generation.output_folder import Site
from dq.portal.generation.pages import Screens
from dq.portal.generation.plan import SitePlan, plan, read_cards
from dq.portal.generation.state import KeptContract, PortalRequest, PortalSummary, SiteState
from dq.portal.generation.worker_pool import Crew
from dq.portal.views.lists import ProductRow

KEPT_FOR = timedelta(days=90)
"""Ended incidents have pages for so long."""


def build(request: PortalRequest) -> PortalSummary:
    """Writes the site, and says what it did. Raises UsageError for a folder that is no portal's."""
    templates.require_templates()
    with output_folder.opened(request.out) as held, Crew(request.workers) as crew:
        return _build(held, crew, request)


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Where facts of all products are held: they are no cycles, and to look for some among a hundred thousand
    of them takes longer than to make them."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _build(held: Site, crew: Crew, request: PortalRequest) -> PortalSummary:
    with _nothing_collected():
        before, unfinished = state.load(held), held.planned()
        made_by = f"{templates.templates_digest()} {request.tick}"
        if before.made_by != made_by:
            # Pages are made otherwise now; what was there is known, so that it can be removed.
            before = SiteState(paths=before.paths, changes=before.changes, seen=before.seen)
        read = read_cards(request, before, crew)
        told = histories(held, request, read.files, read.cards, crew)
        with request.store.read() as tx:
            watcher = watching.watcher(tx, request.now, request.tick, request.as_of)
            incidents = incident_facts.stored_incidents(tx, request.now - KEPT_FOR, request.as_of)
            marks = store_queries.watermarks(tx)
            moved = store_queries.changed_since(tx, before.marks, marks)
        made = plan(held, read, incidents, moved, before, request, told.of)
    held.plan([*made.kept_paths, *(path for job in made.jobs for path in pages.paths_of(job.card))])
    rows = _written(held, crew, made, read.cards, request)
    with _nothing_collected():
        cards = [row.card for row in rows]
        noted = state.changed(before, cards, request.now.isoformat())
        shown = Screens(held, rows, incidents, watcher, before)
        waivers = None if request.waivers is None else [asdict(one) for one in request.waivers]
        shown.write(noted, told.of, waivers)
        held.clear([*before.paths, *unfinished])
        after = SiteState(
            made_by,
            request.now.isoformat(),
            marks,
            {row.card.file: _kept(row, made, before, read.looks[row.card.file]) for row in rows},
            shown.hashes,
            sorted(held.paths),
            noted,
            state.seen(before, cards),
        )
        state.save(held, after)
    return PortalSummary(
        request.out,
        len(rows),
        len(made.jobs),
        held.written,
        held.same,
        held.removed,
        watcher.stale,
        Counter(one.summary.state for one in rows),
        tuple(problem for one in rows for problem in one.card.problems),
        tuple(f"{one.message} {one.mend}" for one in told.problems),
    )


def _written(
    held: Site, crew: Crew, made: SitePlan, cards: Sequence[Card], request: PortalRequest
) -> list[ProductRow]:
    """The rows of all products, once the pages of those that changed are there."""
    held.keep(made.kept_paths)
    summaries, changed = dict(made.kept), dict[str, Problem]()
    for some in pages.write(
        held, made.jobs, request.store_url, request.now, request.as_of, request.tick, crew
    ):
        summaries |= some.rows
        changed |= some.changed
        request.progress("pages of products", len(summaries) - len(made.kept), len(made.jobs))
    given = (one.refused(changed[one.file]) if one.file in changed else one for one in cards)
    return [ProductRow(card, summaries[card.file]) for card in given]


def _kept(row: ProductRow, made: SitePlan, before: SiteState, look: str) -> KeptContract:
    file = row.card.file
    old = before.contracts.get(file)
    if old is not None and file in made.kept and old.card == row.card and old.look == look:
        return old
    return KeptContract(row.card, row.summary, made.inputs[file], look)

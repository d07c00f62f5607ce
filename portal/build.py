"""Builds the site: reads the registry and the store, writes what has changed, removes what is no more."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta

from dq.contracts.access.files import Found
from dq.contracts.identity import Identity, identity
from dq.contracts.subscriptions.subscription import Subscription
from dq.portal.facts import graph as lineage
from dq.portal.facts import incidents as incident_facts
from dq.portal.facts import registry
from dq.portal.facts import watcher as watching
from dq.portal.facts.card import Card, Problem
from dq.portal.facts.incidents import IncidentFacts
from dq.portal.request import PortalRequest, PortalSummary
from dq.portal.views.changes import NotedChange
from dq.portal.views.lists import ProductRow
from dq.portal.views.words import instant
from dq.portal.writing import products, screens, site, state, templates
from dq.portal.writing.products import PageJob
from dq.portal.writing.site import Site
from dq.portal.writing.state import KeptContract, SiteState

KEPT_FOR = timedelta(days=90)
"""Ended incidents have pages for so long."""


def build(request: PortalRequest) -> PortalSummary:
    """Writes the site, and says what it did. Raises UsageError for a folder that is no portal's."""
    with site.opened(request.out) as held:
        return _build(held, request)


def _build(held: Site, request: PortalRequest) -> PortalSummary:
    before = state.load(held)
    files = registry.files(request.paths)
    cards = _cards(files, before, request)
    with request.store.read() as tx:
        watcher = watching.watcher(tx, request.now, request.tick)
        incidents = incident_facts.incidents(tx, request.now - KEPT_FOR)
    jobs = _jobs(cards, files, incidents, request)
    held.plan(path for job in jobs for path in products.paths_of(job.card))
    done = 0

    def tick(more: int) -> None:
        nonlocal done
        done += more
        request.progress("pages of products", done, len(jobs))

    made = products.write(held, jobs, request.store_url, request.now, request.workers, tick)
    rows = [ProductRow(card, made[card.file]) for card in cards]
    noted = state.changed(before, cards, request.now.isoformat())
    pages = screens.pages_by_key(rows)
    screens.incidents(held, incidents, pages.get, watcher)
    screens.overview(held, rows, incidents, noted, [asdict(one) for one in request.waivers], watcher)
    screens.states(held, rows, watcher)
    screens.reports(held, rows, watcher)
    screens.searching(held, rows, None, before.paths)
    screens.shared(held, watcher)
    held.clear([*before.paths, *held.planned()])
    state.save(held, _after(rows, noted, held, request.now))
    problems = tuple(problem for card in cards for problem in card.problems)
    return PortalSummary(
        request.out,
        len(rows),
        len(jobs),
        held.written,
        held.same,
        held.removed,
        watcher.stale,
        Counter(one.summary.state for one in rows),
        problems,
    )


def _cards(files: Sequence[Found], before: SiteState, request: PortalRequest) -> list[Card]:
    """The cards of all files. Of several that are one contract, only one may be it."""
    kept = {name: one.card for name, one in before.contracts.items() if before.made_by == templates.digest()}
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        request.progress("contracts", done, len(files))

    # What the settling found wrong last time is found anew.
    plain = {name: one for name, one in kept.items() if one.readable}
    found = registry.cards(files, plain, tick)
    refused: dict[str, list[Problem]] = defaultdict(list)
    for finding in request.settle({one.file: one.key for one in found if one.readable}):
        refused[finding.at.file].append(Problem.of(finding))
    settled = []
    for one in found:
        for problem in refused.get(one.file, ()):
            one = one.refused(problem)
        # Its page would take the place of the one that holds the key.
        settled.append(one if one.file not in refused else _apart(one))
    return _with_own_pages(settled)


def _apart(card: Card) -> Card:
    return replace(card, key="", title=card.title or card.file)


def _with_own_pages(cards: Iterable[Card]) -> list[Card]:
    """Of cards that would share a page, the readable one has it; the others are called by their files."""
    taken: set[str] = set()
    found: dict[str, Card] = {}
    ordered = list(cards)
    for one in sorted(ordered, key=lambda each: not each.readable):
        if one.slug in taken:
            one = _apart(one)
        taken.add(one.slug)
        found[one.file] = one
    return [found[one.file] for one in ordered]


def _jobs(
    cards: Sequence[Card], files: Sequence[Found], incidents: Sequence[IncidentFacts], request: PortalRequest
) -> list[PageJob]:
    edges = lineage.graph(cards)
    by_file = {str(file): file for file in files}
    by_key: dict[str, list[IncidentFacts]] = defaultdict(list)
    for one in incidents:
        by_key[one.incident.key.contract].append(one)
    subscribed: dict[Identity, list[Subscription]] = defaultdict(list)
    today = request.now.date()
    for subscription in request.subscriptions:
        if not subscription.over(today):
            subscribed[subscription.identity].append(subscription)
    pages = {card.key: card.slug for card in cards if card.key}
    objects = _objects(cards)
    jobs = []
    for card in cards:
        around = edges.around(card.key) if card.readable else ((), ())
        linked = {other: pages[other] for side in around for _, other, _ in side if other in pages}
        jobs.append(
            PageJob(
                card,
                by_file[card.file],
                around,
                tuple((by_file[other.file], other.digest) for other in _beside(card, objects)),
                tuple(subscribed.get(identity(card.id, card.version), ())),
                tuple(by_key.get(card.key, ())) if card.key else (),
                linked,
            )
        )
    return jobs


def _objects(cards: Iterable[Card]) -> Mapping[str, list[Card]]:
    found: dict[str, list[Card]] = defaultdict(list)
    for card in cards:
        if card.readable and card.outline is not None:
            for name in {name for called, _ in card.outline.objects for name in called}:
                found[name].append(card)
    return found


def _beside(card: Card, objects: Mapping[str, list[Card]]) -> list[Card]:
    """The other contracts that its references may lead into: those with an object of a name in them."""
    names = {part for text in card.references for part in _parts(text)}
    found = {
        other.file: other for name in names for other in objects.get(name, ()) if other.file != card.file
    }
    return list(found.values())


def _parts(text: str) -> Iterable[str]:
    inside = text.rpartition("#")[2]
    steps = inside.split(".")
    yield from (".".join(steps[:size]) for size in range(1, len(steps) + 1))
    yield from inside.split("/")


def _after(rows: Sequence[ProductRow], noted: Sequence[NotedChange], held: Site, now: datetime) -> SiteState:
    return SiteState(
        templates.digest(),
        instant(now).iso,
        contracts={one.card.file: KeptContract(one.card, one.summary) for one in rows},
        paths=sorted(held.paths),
        changes=list(noted),
    )

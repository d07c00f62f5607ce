"""What of the site has to be written anew, and what may stay as the last build left it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256

from dq.contracts.access.files import Found
from dq.contracts.model import Identity, identity
from dq.contracts.subscriptions import Subscription
from dq.portal.data import contract_summary
from dq.portal.data import contract_summary as lineage
from dq.portal.data.contract_summary import Card, Graph, Problem
from dq.portal.data.product import Summary
from dq.portal.data.store_queries import IncidentFacts
from dq.portal.data.versions import NOT_ASKED, VersionHistory
from dq.portal.generation.output_folder import Site
from dq.portal.generation.pages import PageJob, paths_of
from dq.portal.generation.state import PortalRequest, SiteState
from dq.portal.generation.worker_pool import Crew

_BATCH = 250


@dataclass(frozen=True, slots=True)
class SitePlan:
    """The products whose pages are made anew, and of the others the rows and paths that stay. `inputs` are
    the hashes of what pages are made from, by file."""

    jobs: Sequence[PageJob]
    kept: Mapping[str, Summary]
    kept_paths: Sequence[str]
    inputs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Read:
    """The contract files by name, what the system says of each, and their cards in the same order."""

    files: Mapping[str, Found]
    looks: Mapping[str, str]
    cards: Sequence[Card]


def read_cards(request: PortalRequest, before: SiteState, crew: Crew) -> Read:
    """The contracts, each with a card; of several that are one contract, one may be it.

    What was read for the last build is read again only where the system says that the file was written.
    """
    files = {str(file): file for file in contract_summary.contract_files(request.paths)}
    looks = dict(zip(files, contract_summary.identities(list(files.values())), strict=True))
    kept = {
        name: one.card
        for name, one in before.contracts.items()
        if name in files
        and one.card.readable
        and (
            (one.look and one.look == looks[name])
            or one.card.digest == contract_summary.file_digest(files[name])
        )
    }
    new = [file for name, file in files.items() if name not in kept]
    made: dict[str, Card] = {}
    for some in crew.each(
        contract_summary.contract_cards, [new[start : start + _BATCH] for start in range(0, len(new), _BATCH)]
    ):
        made |= {one.file: one for one in some}
        request.progress("contracts", len(made), len(new))
    cards = [kept.get(name) or made[name] for name in files]
    return Read(files, looks, _with_own_pages(_settled(cards, request)))


def _settled(cards: Sequence[Card], request: PortalRequest) -> Iterator[Card]:
    refused: dict[str, list[Problem]] = defaultdict(list)
    for finding in request.settle({one.file: one.key for one in cards if one.readable}):
        refused[finding.at.file].append(Problem.of(finding))
    for one in cards:
        if one.file not in refused:
            yield one
            continue
        # Its page would take the place of the one that holds the key.
        yield replace(one.apart(), problems=(*one.problems, *refused[one.file]))


def _with_own_pages(cards: Iterable[Card]) -> list[Card]:
    """Of cards that would share a page, the readable one has it; the others are called by their files."""
    ordered, taken = list(cards), set()
    found: dict[str, Card] = {}
    for one in sorted(ordered, key=lambda each: not each.readable):
        own = one.apart() if one.slug in taken else one
        taken.add(own.slug)
        found[one.file] = own
    return [found[one.file] for one in ordered]


def plan(
    held: Site,
    read: Read,
    incidents: Sequence[IncidentFacts],
    moved: set[str] | None,
    before: SiteState,
    request: PortalRequest,
    versions: Mapping[str, VersionHistory],
) -> SitePlan:
    """What to do. `moved` are the keys of which the store may know something new, None for all."""
    jobs: list[PageJob] = []
    kept: dict[str, Summary] = {}
    paths: list[str] = []
    inputs: dict[str, str] = {}
    for job in _jobs(read.cards, read.files, incidents, request, versions):
        name = job.card.file
        inputs[name] = _hash(job)
        old = before.contracts.get(name)
        pages = paths_of(job.card)
        still = (
            old is not None
            and moved is not None
            and old.inputs == inputs[name]
            and job.card.key not in moved
            and _right(old.summary, before.built, request.now)
            and all(map(held.has, pages))
        )
        if old is not None and still:
            kept[name] = old.summary
            paths += pages
        else:
            jobs.append(job)
    return SitePlan(jobs, kept, paths, inputs)


def _right(summary: Summary, built: str, now: datetime) -> bool:
    """Whether a page says now what it would say if it were made anew."""
    if not summary.right_until:
        return True
    return datetime.fromisoformat(built) <= now < datetime.fromisoformat(summary.right_until)


def _hash(job: PageJob) -> str:
    beside = [(str(file), digest) for file, digest in job.beside]
    incidents = [(one.incident.id, one.incident.revision, one.messages) for one in job.incidents]
    consumers = [one.model_dump_json() for one in job.consumers]
    said = (
        job.card.digest,
        job.card.key,
        job.card.problems,
        job.edges,
        beside,
        incidents,
        consumers,
        job.versions,
    )
    return sha256(repr((said, sorted(job.linked.items()))).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _jobs(
    cards: Sequence[Card],
    files: Mapping[str, Found],
    incidents: Sequence[IncidentFacts],
    request: PortalRequest,
    versions: Mapping[str, VersionHistory],
) -> Iterator[PageJob]:
    edges: Graph = lineage.product_graph(cards)
    by_key: dict[str, list[IncidentFacts]] = defaultdict(list)
    for one in incidents:
        by_key[one.incident.key.contract].append(one)
    subscribed: dict[Identity, list[Subscription]] = defaultdict(list)
    today = request.now.date()
    for subscription in request.subscriptions:
        if not subscription.over(today):
            subscribed[subscription.identity].append(subscription)
    pages = {card.key: card.slug for card in cards if card.key}
    objects = _objects(cards) if any(card.references for card in cards) else {}
    for card in cards:
        around = edges.around(card.key) if card.readable else ((), ())
        yield PageJob(
            card,
            files[card.file],
            around,
            tuple((files[other.file], other.digest) for other in _beside(card, objects)),
            tuple(subscribed[identity(card.id, card.version)]) if card.readable and subscribed else (),
            tuple(by_key.get(card.key, ())) if card.key else (),
            {other: pages[other] for side in around for _, other, _ in side if other in pages},
            versions.get(card.file, NOT_ASKED),
        )


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

"""Incremental build of the site: plans, writes changed pages and removes obsolete ones."""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256

from dq.contracts.access.files import FileRef, file_stamps
from dq.contracts.model import Identity, identity
from dq.dataquality.alarms import alarm_counts, total_counts
from dq.portal import contracts, output, pages, store_queries
from dq.portal.contracts import NO_EDGES, NOT_ASKED, ContractCard, Edges, Problem, VersionHistory
from dq.portal.histories import histories
from dq.portal.lists import ProductRow
from dq.portal.output import CachedContract, PortalRequest, PortalSummary, Site, SiteState, WorkerPool
from dq.portal.pages import IndexPages, PageJob
from dq.portal.product import ConsumerFacts, ProductSummary
from dq.portal.reports import RecentAlarms
from dq.portal.store_queries import IncidentFacts
from dq.registry.table_coverage import last_runs

# The plan: which pages to render, and which to keep from the last build.

_BATCH = 250


@dataclass(frozen=True, slots=True)
class SitePlan:
    """The products to render, and the list rows of unchanged ones. `inputs` are hashes of the page inputs by
    file.
    """

    jobs: Sequence[PageJob]
    unchanged: Mapping[str, ProductSummary]
    inputs: Mapping[str, str]


def read_cards(
    request: PortalRequest,
    files: Mapping[str, FileRef],
    stamps: Mapping[str, str],
    previous: SiteState,
    pool: WorkerPool,
) -> Sequence[ContractCard]:
    """Return a card for each contract file, in order. Duplicates of a contract get a problem.

    A file keeps its card of the last build if it has the same stamp, or else the same content.
    """
    cached = [
        contract for name, contract in previous.contracts.items() if name in files and contract.card.readable
    ]
    unchanged = {
        contract.card.file: contract.card
        for contract in cached
        if contract.stamp and contract.stamp == stamps[contract.card.file]
    }
    uncertain = [contract.card for contract in cached if contract.card.file not in unchanged]
    digests = contracts.file_digests(files[card.file] for card in uncertain)
    unchanged |= {
        card.file: card for card, digest in zip(uncertain, digests, strict=True) if card.digest == digest
    }
    new = [file for name, file in files.items() if name not in unchanged]
    new_cards: dict[str, ContractCard] = {}
    for batch in pool.run(
        contracts.cards_from_files, [new[start : start + _BATCH] for start in range(0, len(new), _BATCH)]
    ):
        new_cards |= {card.file: card for card in batch}
        request.progress("contracts", len(new_cards), len(new))
    cards = [unchanged.get(name) or new_cards[name] for name in files]
    return _with_own_pages(_with_key_problems(cards, request))


def _with_key_problems(cards: Sequence[ContractCard], request: PortalRequest) -> Iterator[ContractCard]:
    problems_by_file: dict[str, list[Problem]] = defaultdict(list)
    for finding in request.settle({card.file: card.key for card in cards if card.readable}):
        problems_by_file[finding.at.file].append(Problem.from_finding(finding))
    for card in cards:
        if card.file not in problems_by_file:
            yield card
            continue
        # Its page would replace that of the file that owns the key.
        yield replace(card.with_file_page(), problems=(*card.problems, *problems_by_file[card.file]))


def _with_own_pages(cards: Iterable[ContractCard]) -> list[ContractCard]:
    """Resolve page conflicts: a readable card keeps the page, the others get a page named after their
    file.
    """
    ordered, taken = list(cards), set[str]()
    if len({card.slug for card in ordered}) == len(ordered):
        return ordered
    by_file: dict[str, ContractCard] = {}
    for card in sorted(ordered, key=lambda candidate: not candidate.readable):
        own = card.with_file_page() if card.slug in taken else card
        taken.add(own.slug)
        by_file[card.file] = own
    return [by_file[card.file] for card in ordered]


def plan(
    site: Site,
    files: Mapping[str, FileRef],
    cards: Sequence[ContractCard],
    incidents: Sequence[IncidentFacts],
    changed_keys: set[str] | None,
    before: SiteState,
    request: PortalRequest,
    versions: Mapping[str, VersionHistory],
) -> SitePlan:
    """Plan the build. `changed_keys` are contracts with new data in the store, or None for all of them."""
    jobs: list[PageJob] = []
    unchanged: dict[str, ProductSummary] = {}
    inputs: dict[str, str] = {}
    graph = contracts.product_graph(cards)
    adjacent = contracts.adjacent_products(graph)
    readable = {card.key: card for card in cards if card.readable}
    nodes = contracts.lineage_nodes(adjacent, readable)
    for job in _jobs(cards, files, incidents, request, versions, graph):
        name, key = job.card.file, job.card.key
        inputs[name] = _hash(job, contracts.lineage_inputs(key, adjacent, nodes) if job.card.readable else ())
        old = before.contracts.get(name)
        is_unchanged = (
            old is not None
            and changed_keys is not None
            and old.inputs == inputs[name]
            and key not in changed_keys
            and not (old.summary.names_inputs and _has_changed_input(job, changed_keys))
            and _is_current(old.summary, before.built, request.now)
            and all(map(site.has, pages.paths_of(job.card)))
        )
        if old is not None and is_unchanged:
            unchanged[name] = old.summary
        elif job.card.readable:
            jobs.append(replace(job, lineage=contracts.lineage(key, adjacent, readable)))
        else:
            jobs.append(job)
    return SitePlan(jobs, unchanged, inputs)


def _has_changed_input(job: PageJob, changed_keys: set[str]) -> bool:
    return not changed_keys.isdisjoint(other for _, other, _ in job.edges[0])


def _is_current(summary: ProductSummary, built: str, now: datetime) -> bool:
    """Return True if a page rendered by the last build is still correct at `now`."""
    if not summary.valid_until:
        return True
    return datetime.fromisoformat(built) <= now < datetime.fromisoformat(summary.valid_until)


def _hash(job: PageJob, lineage_inputs: Sequence[str]) -> str:
    neighbours = [(str(file), digest) for file, digest in job.neighbours]
    incidents = [(facts.incident.id, facts.incident.revision, facts.messages) for facts in job.incidents]
    consumers = [(consumer.subscription.model_dump_json(), consumer.approval) for consumer in job.consumers]
    card = (job.card.digest, job.card.key, job.card.slug, job.card.problems)
    linked = sorted(job.linked.items())
    inputs = (
        card, job.edges, neighbours, incidents, consumers, job.versions, linked, job.registry_url,
        lineage_inputs,
    )  # fmt: skip
    return sha256(repr(inputs).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _jobs(
    cards: Sequence[ContractCard],
    files: Mapping[str, FileRef],
    incidents: Sequence[IncidentFacts],
    request: PortalRequest,
    versions: Mapping[str, VersionHistory],
    graph: Mapping[str, Edges],
) -> Iterator[PageJob]:
    """Yield the jobs of all products, without their lineage graphs."""
    by_key: dict[str, list[IncidentFacts]] = defaultdict(list)
    for facts in incidents:
        by_key[facts.incident.key.contract].append(facts)
    subscribed: dict[Identity, list[ConsumerFacts]] = defaultdict(list)
    today = request.now.date()
    for consumer in request.consumers:
        if not consumer.subscription.is_expired(today):
            subscribed[consumer.subscription.identity].append(consumer)
    pages = {card.key: card.slug for card in cards if card.key}
    objects = _objects(cards) if any(card.references for card in cards) else {}
    for card in cards:
        around = graph.get(card.key, NO_EDGES) if card.readable else NO_EDGES
        yield PageJob(
            card,
            files[card.file],
            around,
            tuple((files[other.file], other.digest) for other in _neighbours(card, objects)),
            tuple(subscribed[identity(card.id, card.version)]) if card.readable and subscribed else (),
            tuple(by_key.get(card.key, ())) if card.key else (),
            {other: pages[other] for side in around for _, other, _ in side if other in pages},
            versions.get(card.file, NOT_ASKED),
            request.registry_url,
        )


def _objects(cards: Iterable[ContractCard]) -> Mapping[str, list[ContractCard]]:
    by_name: dict[str, list[ContractCard]] = defaultdict(list)
    for card in cards:
        if card.readable and card.outline is not None:
            for name in {name for called, _ in card.outline.objects for name in called}:
                by_name[name].append(card)
    return by_name


def _neighbours(card: ContractCard, objects: Mapping[str, list[ContractCard]]) -> list[ContractCard]:
    """Return the other contracts that its references may point to, by the names of their objects."""
    names = {part for text in card.references for part in _parts(text)}
    by_file = {
        other.file: other for name in names for other in objects.get(name, ()) if other.file != card.file
    }
    return list(by_file.values())


def _parts(text: str) -> Iterable[str]:
    inside = text.rpartition("#")[2]
    steps = inside.split(".")
    yield from (".".join(steps[:size]) for size in range(1, len(steps) + 1))
    yield from inside.split("/")


# The build: reads the registry and the store, writes changed pages, removes obsolete ones.

_MAX_DISCOVERIES = 30
"""Number of runs of `dq discover` whose coverage is drawn."""

_ALARM_DAYS = timedelta(days=30)
INCIDENT_RETENTION = timedelta(days=90)
"""How long resolved incidents keep their pages."""


def build(request: PortalRequest) -> PortalSummary:
    """Write the site and return a summary. Raises UsageError if the folder is not a portal's."""
    pages.require_templates()
    with output.open_site(request.out) as site, WorkerPool(request.workers) as pool:
        return _build(site, pool, request)


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """Pause the garbage collector while data of all products is in memory.

    The data has no reference cycles, and scanning a hundred thousand objects takes longer than creating them.
    """
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _build(site: Site, pool: WorkerPool, request: PortalRequest) -> PortalSummary:
    with _garbage_collection_paused():
        before = output.load(site)
        made_by, inputs = f"{pages.templates_digest()} {request.tick}", output.take_inputs(site)
        if before.made_by != made_by:
            # Templates or settings changed: all pages are rendered again.
            inputs = {}
            before = SiteState(
                files=before.files, changes=before.changes, readable_versions=before.readable_versions
            )
        files = {str(file): file for file in contracts.contract_files(request.paths)}
        stamps = dict(zip(files, file_stamps(files.values()), strict=True))
        cards = read_cards(request, files, stamps, before, pool)
        version_histories = histories(site, request, files, cards, pool)
        with request.store.read() as tx:
            watcher = store_queries.watcher(tx, request.now, request.tick, request.as_of)
            incidents = store_queries.stored_incidents(tx, request.now - INCIDENT_RETENTION, request.as_of)
            discoveries = last_runs(tx, request.now, _MAX_DISCOVERIES)
            since = request.now - _ALARM_DAYS
            alarms = RecentAlarms(
                total_counts(alarm_counts(tx, request.as_of).values()),
                total_counts(alarm_counts(tx, request.as_of, since=since).values()),
                request.accepted_alarms,
            )
            marks = store_queries.watermarks(tx)
            moved = store_queries.changed_since(tx, before.marks, marks)
        site_plan = plan(site, files, cards, incidents, moved, before, request, version_histories.by_file)
        _forget_replaced_pages(site, before, site_plan)
    rows = _write_products(site, pool, site_plan, cards, request)
    with _garbage_collection_paused():
        final_cards = [row.card for row in rows]
        contract_changes = output.update_changes(before, final_cards, request.now.isoformat())
        index_pages = IndexPages(site, rows, incidents, watcher, discoveries, alarms, inputs, before.files)
        waivers = None if request.waivers is None else [asdict(waiver) for waiver in request.waivers]
        index_pages.write(contract_changes, version_histories.by_file, waivers)
        site.clear(before.files)
        after = SiteState(
            made_by,
            request.now.isoformat(),
            marks,
            # A contract that changed meanwhile is rendered again, even if it is changed back.
            {
                card.file: _cached(row, site_plan, before, stamps[card.file])
                for row, card in zip(rows, cards, strict=True)
                if row.card is card
            },
            sorted(site.paths),
            contract_changes,
            output.seen_versions(before, final_cards),
        )
        output.save(site, after)
        output.save_inputs(site, index_pages.inputs)
    return PortalSummary(
        request.out,
        len(rows),
        len(site_plan.jobs),
        site.files_written,
        site.same,
        site.removed,
        watcher.stale,
        Counter(row.summary.state for row in rows),
        tuple(problem for row in rows for problem in row.card.problems),
        tuple(f"{problem.message} {problem.hint}" for problem in version_histories.problems),
    )


def _cached(row: ProductRow, site_plan: SitePlan, before: SiteState, stamp: str) -> CachedContract:
    """Return a product for the state: as the last build wrote it, if nothing of it changed."""
    file = row.card.file
    old = before.contracts.get(file)
    if old is not None and file in site_plan.unchanged and old.card is row.card and old.stamp == stamp:
        return old
    return CachedContract(row.card, row.summary, site_plan.inputs[file], stamp)


def _forget_replaced_pages(site: Site, before: SiteState, site_plan: SitePlan) -> None:
    """Forget the pages that this build is about to replace: if it is killed, the next one renders them."""
    for job in site_plan.jobs:
        before.contracts.pop(job.card.file, None)
        before.files += pages.paths_of(job.card)
    if site_plan.jobs:
        output.save(site, before)


def _write_products(
    site: Site, pool: WorkerPool, site_plan: SitePlan, cards: Sequence[ContractCard], request: PortalRequest
) -> list[ProductRow]:
    """Write the pages of changed products and return the rows of all products."""
    site.paths.update(
        path for card in cards if card.file in site_plan.unchanged for path in pages.paths_of(card)
    )
    summaries, changed = dict(site_plan.unchanged), dict[str, Problem]()
    for batch in pages.write(
        site, site_plan.jobs, request.store_url, request.now, request.as_of, request.tick, pool
    ):
        summaries |= batch.rows
        changed |= batch.changed
        request.progress("pages of products", len(summaries) - len(site_plan.unchanged), len(site_plan.jobs))
    current_cards = (
        card.with_problem(changed[card.file]) if card.file in changed else card for card in cards
    )
    return [ProductRow(card, summaries[card.file]) for card in current_cards]

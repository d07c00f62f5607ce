"""Renders and writes the pages, from templates in which every value is escaped."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from dq.contracts.access.files import FileRef
from dq.contracts.install import release, require_extras
from dq.contracts.model import Contract
from dq.contracts.outcome import escape_block, escape_json_document, escape_xml_text
from dq.dataquality.clauses.foreign_key import ContractSet
from dq.dataquality.complete_through import complete_through_of
from dq.dataquality.delivery.cycle import CycleRecord
from dq.dataquality.delivery.cycle_store import watched_slos
from dq.dataquality.delivery.early_warning import warning_standings
from dq.dataquality.results import agreement_standings
from dq.portal import contracts, lists, product_page, reports
from dq.portal.contracts import (
    NO_EDGES,
    NO_LINEAGE,
    NOT_ASKED,
    ContractCard,
    Edges,
    Lineage,
    Problem,
    VersionHistory,
    domain_page,
    slug,
)
from dq.portal.daily import is_recent_miss
from dq.portal.formatting import STATES, cut, instant
from dq.portal.lists import ListPage, NotedChange, ProductRow
from dq.portal.misses import INPUT_PERIOD
from dq.portal.output import Site, WorkerPool
from dq.portal.product import (
    ConsumerFacts,
    ProductBatch,
    ProductFacts,
    ProductState,
    ProductSummary,
    product,
    summary,
)
from dq.portal.product_page import incident_row
from dq.portal.store_queries import (
    IncidentFacts,
    Watcher,
    histories,
    placed_elsewhere,
    quality,
    registered_tables,
)
from dq.registry.table_coverage import DiscoveryRun
from dq.store.engine import open_without_migrating

if TYPE_CHECKING:
    from jinja2 import Environment


# Templates. Every value is escaped, since contracts are untrusted input.

STATIC = ("icon.svg", "portal.css", "portal.js")


def render(name: str, up: str, **values: Any) -> bytes:
    """Render a page. `up` is the relative path to the top of the site, e.g. `../../`."""
    text: str = _environment().get_template(name).render(up=up, **values)
    return text.encode("utf-8")


def static(name: str) -> bytes:
    """Return the content of a static file."""
    return (files("dq.portal") / "static" / name).read_bytes()


def require_templates() -> None:
    """Raise MissingTool if jinja2 is not installed. It is imported when a page is rendered."""
    with require_extras("The portal needs jinja2", "portal"):
        if find_spec("jinja2") is None:
            raise ModuleNotFoundError("jinja2")


@cache
def templates_digest() -> str:
    """Return the hash of templates, static files and code; when it changes, all pages are rendered again."""
    digest = sha256(release().encode())
    portal = files("dq.portal")
    for folder in (portal / "static", portal / "templates", portal):
        for file in sorted(folder.iterdir(), key=lambda file: file.name):
            if file.is_file():
                digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


@cache
def _environment() -> Environment:
    with require_extras("The portal needs jinja2", "portal"):
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup, escape
    environment = Environment(
        loader=PackageLoader("dq.portal", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
        auto_reload=False,
    )
    # Characters that XML does not allow are shown as escapes.
    environment.filters["xml"] = lambda value: Markup(escape_xml_text(str(escape(value))))
    return environment


def _visible(value: Any) -> Any:
    """Make control and bidirectional characters of a string visible.

    None is left as it is: it would be a bug of a template, and shows on the page.
    """
    return escape_block(value) if type(value) is str else value


# The pages of products, rendered in batches.

_BATCH = 100
_UP = "../../"


@dataclass(frozen=True, slots=True)
class PageJob:
    """One product to render; `neighbours` are the files that its references may point to, with digests.

    `registry_url` is the page of the registry's folder on GitHub or GitLab, "" if unknown.
    """

    card: ContractCard
    file: FileRef
    edges: Edges = NO_EDGES
    neighbours: tuple[tuple[FileRef, str], ...] = ()
    consumers: tuple[ConsumerFacts, ...] = ()
    incidents: tuple[IncidentFacts, ...] = ()
    linked: Mapping[str, str] = field(default_factory=dict)
    versions: VersionHistory = NOT_ASKED
    registry_url: str = ""
    lineage: Lineage = NO_LINEAGE


@dataclass(frozen=True, slots=True)
class RenderedBatch:
    """Result of a batch: summaries of its products by file, and files written.

    `changed` are the problems of files that changed during the build, so that their product is unknown.
    """

    rows: Mapping[str, ProductSummary]
    changed: Mapping[str, Problem]
    paths: frozenset[str]
    files_written: int
    same: int


def paths_of(card: ContractCard) -> tuple[str, ...]:
    """Return the paths of a product's files."""
    names = ("index.html", "status.json", "badge.svg", "incidents.xml")
    return tuple(f"products/{card.slug}/{name}" for name in names)


def write(
    site: Site,
    jobs: Sequence[PageJob],
    store_url: str,
    now: datetime,
    as_of: datetime | None,
    tick: timedelta,
    pool: WorkerPool,
) -> Iterator[RenderedBatch]:
    """Write the pages of these products; yield the result of each batch."""
    batches = [jobs[start : start + _BATCH] for start in range(0, len(jobs), _BATCH)]
    for batch in pool.run(partial(_render_batch, site.root, store_url, now, as_of, tick), batches):
        site.paths |= batch.paths
        site.files_written += batch.files_written
        site.same += batch.same
        yield batch


def _render_batch(
    root: Path,
    store_url: str,
    now: datetime,
    as_of: datetime | None,
    tick: timedelta,
    jobs: Sequence[PageJob],
) -> RenderedBatch:
    """Write the pages of these jobs from one snapshot of the store."""
    site, rows, changed = Site(root), {}, {}
    read = [_read(job) for job in jobs]
    store = open_without_migrating(store_url)
    try:
        with store.read() as tx:
            batch = _load_batch(tx, jobs, [contract for contract, _, _ in read if contract], now, as_of)
    finally:
        store.close()
    for planned_job, (contract, neighbours, job) in zip(jobs, read, strict=True):
        if contract is None:
            rows[job.card.file] = _unreadable(site, job, now)
        else:
            other_contracts = (other for other in neighbours if other.file != contract.file)
            near = ContractSet.from_contracts([contract, *other_contracts])
            facts = product(
                job.card, contract, batch, now, near, job.edges, job.consumers, job.versions, tick
            )
            _write(site, job, facts)
            rows[job.card.file] = summary(facts)
        if planned_job is not job:
            changed[job.card.file] = job.card.problems[-1]
    return RenderedBatch(rows, changed, frozenset(site.paths), site.files_written, site.same)


def _read(job: PageJob) -> tuple[Contract | None, list[Contract], PageJob]:
    """Return the contract of a job, or None if it cannot be used, its neighbours, and the job.

    If a file changed during the build, the job gets a problem: its page would disagree with lists and search.
    """
    card = job.card
    if not card.readable:
        return None, [], job
    inputs = [(job.file, card.digest), *job.neighbours]
    read_results = [contracts.read_contract(file, digest) for file, digest in inputs]
    loaded = [contract for contract in read_results if contract is not None]
    if len(loaded) == len(inputs):
        return loaded[0], loaded[1:], job
    file = str(inputs[read_results.index(None)][0])
    message = "The file changed while the portal was built."
    problem = Problem(file, "changed-meanwhile", message, "Build the portal again.")
    return None, [], replace(job, card=card.with_problem(problem))


def _load_batch(
    tx: Connection,
    jobs: Sequence[PageJob],
    read: Sequence[Contract],
    now: datetime,
    as_of: datetime | None,
) -> ProductBatch:
    keys = [job.card.key for job in jobs if job.card.readable]
    incidents = {job.card.key: job.incidents for job in jobs}
    cycles = histories(tx, keys, as_of)
    by_object: dict[tuple[str, str], list[CycleRecord]] = {pair: [] for pair in watched_slos(tx, keys)}
    for (contract, object_name, _), records in cycles.items():
        if (contract, object_name) in by_object:
            by_object[contract, object_name].extend(records)
    for records in by_object.values():
        records.sort(key=lambda record: record.cycle.due_at)
    complete = complete_through_of(tx, by_object, as_of)
    quality_by_object = quality(tx, keys, now, as_of)
    placed = placed_elsewhere(tx, keys)
    tables = registered_tables(tx) if placed else {}
    agreements = {
        (contract.key, schema_object.name): agreement_standings(tx, contract, schema_object, as_of)
        for contract in read
        for schema_object in contract.objects
    }
    warnings = warning_standings(tx, keys, as_of)
    upstream = _upstream(tx, jobs, cycles, now, as_of)
    return ProductBatch(
        cycles, quality_by_object, incidents, complete, placed, tables, agreements, warnings, upstream
    )


def _upstream(
    tx: Connection,
    jobs: Sequence[PageJob],
    cycles: Mapping[tuple[str, str, str], Sequence[CycleRecord]],
    now: datetime,
    as_of: datetime | None,
) -> dict[tuple[str, str], list[CycleRecord]]:
    """Return the last cycles of the inputs of products with a recent miss, by contract key and object."""
    missed = {
        key[0] for key, records in cycles.items() if any(is_recent_miss(record, now) for record in records)
    }
    inputs = {other for job in jobs if job.card.key in missed for _, other, _ in job.edges[0]}
    by_object: dict[tuple[str, str], list[CycleRecord]] = defaultdict(list)
    for (contract, object_name, _), records in histories(tx, inputs, as_of, now - INPUT_PERIOD).items():
        by_object[contract, object_name] += records
    return dict(by_object)


def _write(site: Site, job: PageJob, facts: ProductFacts) -> None:
    values = product_page.product_page(facts, job.linked.get, job.registry_url, job.lineage)
    page = render("product.html", _UP, **values)
    _put(site, job, page, product_page.status_json(facts), facts.state)


def _put(site: Site, job: PageJob, page: bytes, status: Mapping[str, Any], state: ProductState) -> None:
    """Write the files of a product at `paths_of`."""
    title, own = f"Incidents of {cut(job.card.title, 120)}", slug(job.card.key or job.card.file)
    badge = render("badge.svg", _UP, **product_page.badge(state))
    feed = render("feed.xml", _UP, **lists.feed(title, own, list(job.incidents), _UP))
    for path, content in zip(paths_of(job.card), (page, _json(status), badge, feed), strict=True):
        site.put(path, content)


def _unreadable(site: Site, job: PageJob, now: datetime) -> ProductSummary:
    """Write the page of an unusable contract, with the reasons."""
    card, problems = job.card, job.card.problems
    open_incidents = [incident_row(facts) for facts in job.incidents if not facts.incident.state.is_closed]
    values = {
        "title": cut(card.title, 200),
        "state": STATES[ProductState.UNREADABLE],
        "file": card.file,
        "problems": problems[:50],
        "open_incidents": open_incidents,
        "as_of": instant(now),
    }
    status = {
        "contract": card.key,
        "version": None,
        "state": ProductState.UNREADABLE.value,
        "as_of": instant(now).iso,
        "problems": [
            {"at": problem.at, "rule": problem.rule, "message": problem.message} for problem in problems[:50]
        ],
    }
    _put(site, job, render("unreadable.html", _UP, **values), status, ProductState.UNREADABLE)
    return ProductSummary(
        ProductState.UNREADABLE.value,
        f"{problems[0].at}: {problems[0].message}",
        open_incidents=len(open_incidents),
    )


def _json(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str, separators=(",", ":"))
    return (escape_json_document(text) + "\n").encode("utf-8", "backslashreplace")


# The pages over many products: overview, search, lists, domains, changes, incidents, and the search index.


@dataclass(slots=True)
class IndexPages:
    """Writes the pages over many products.

    A page whose inputs are those of the last build, except for its time, is not rendered again. `inputs` are
    their hashes by path, `before` those of the last build, and `files` its files. Without a page to render,
    no template is compiled, which takes longer than the inputs of all pages.
    """

    site: Site
    rows: Sequence[ProductRow]
    incidents: Sequence[IncidentFacts]
    watcher: Watcher
    discoveries: Sequence[DiscoveryRun]
    alarms: reports.RecentAlarms
    before: Mapping[str, str]
    files: Sequence[str]
    inputs: dict[str, str] = field(default_factory=dict)

    def write(
        self,
        noted: Sequence[NotedChange],
        histories: Mapping[str, VersionHistory],
        waivers: Sequence[Any] | None,
    ) -> None:
        """Write all of them."""
        self._incidents()
        self._overview()
        values = lists.changes_page(noted, self.rows, histories, waivers, self.watcher)
        self._put_values("changes.html", "changes.html", values)
        self._states()
        self._domains()
        self._search()
        self._write_shared_files()

    def _write_shared_files(self) -> None:
        """Write the files that all pages load: style sheet, script, and the time of the build."""
        for name in STATIC:
            self.site.put(f"static/{name}", static(name))
        last_tick_at = self.watcher.last_tick_at
        facts = {
            "built": instant(self.watcher.now).iso,
            "heard": instant(last_tick_at).iso if last_tick_at else None,
            "tick": self.watcher.tick.total_seconds(),
        }
        self.site.put("as-of.js", f"window.dqAsOf = {json.dumps(facts)};\n".encode())

    def _overview(self) -> None:
        today = lists.today_page(self.rows, self.incidents, self.watcher)
        report = reports.today_report(self.rows, self.incidents, self.watcher)
        self._put_values("index.html", "today.html", {**today, **report})
        self._put_values("find.html", "find.html", lists.find_page(self.rows))
        feed = lists.feed("Incidents", "all", list(self.incidents), "")
        self._put_values("incidents.xml", "feed.xml", feed)

    def _states(self) -> None:
        """Write the list of the products in each state."""
        for state in ProductState:
            state_rows = sorted(
                (product_row for product_row in self.rows if product_row.state is state),
                key=lambda product_row: product_row.card.title.lower(),
            )
            for page in lists.listings(state.value, f"Products: {STATES[state].text}", state_rows):
                self._list(page, "listing.html", {})

    def _domains(self) -> None:
        """Write the report of each domain, and the list of domains."""
        domains, domain_names = lists.by_domain(self.rows), self._domain_names()
        incidents: dict[str, list[IncidentFacts]] = defaultdict(list)
        for facts in self.incidents:
            incidents[domain_names.get(facts.incident.key.contract, "")].append(facts)
        for name, unsorted_rows in domains.items():
            domain_rows = sorted(unsorted_rows, key=reports.badness)
            report = reports.domain_report(name, domain_rows, incidents[name], self.watcher, self.discoveries)
            first = domain_page(name).removeprefix("domains/").removesuffix(".html")
            for page in lists.listings(first, report["title"], domain_rows, "domains"):
                if page.number == 1:
                    self._list(page, "domain.html", report)
                else:
                    self._list(page, "listing.html", {})
        table = [reports.domain_line(name, domain_rows) for name, domain_rows in domains.items()]
        coverage = reports.coverage_section(self.discoveries, self.watcher.now)
        self._put_values("domains/index.html", "domains.html", {"domains": table, "coverage": coverage})

    def _list(self, page: ListPage, template: str, extra: Mapping[str, Any]) -> None:
        inputs = (_timeless(extra), lists.listing_inputs(page))
        self._put(page.path, template, inputs, lambda: {**extra, **lists.listing_page(page)})

    def _incidents(self) -> None:
        pages = {
            product_row.card.key: product_row.card.slug for product_row in self.rows if product_row.card.key
        }
        for facts in self.incidents:
            path = f"incidents/{lists.incident_slug(facts)}.html"
            inputs = (facts, pages.get(facts.incident.key.contract))
            self._put(path, "incident.html", inputs, partial(lists.incident_page, *inputs))
        values = reports.incidents_page(self.incidents, self._domain_names(), self.watcher, self.alarms)
        self._put_values("incidents/index.html", "incidents.html", values)

    def _put_values(self, path: str, template: str, values: Mapping[str, Any]) -> None:
        """Write a page whose inputs are its values."""
        self._put(path, template, _timeless(values), lambda: values)

    def _put(self, path: str, template: str, inputs: object, values: Callable[[], Mapping[str, Any]]) -> None:
        """Write a page, unless the last build wrote it from the same inputs, which its time is not one of."""
        if not self._is_unchanged(path, [path], inputs):
            as_of = instant(self.watcher.now)
            page = render(template, "../" * path.count("/"), **{**values(), "as_of": as_of})
            self.site.put(path, page, keep_as_of=True)

    def _is_unchanged(self, name: str, paths: Sequence[str], inputs: object) -> bool:
        """Return True, and keep these files, if they were written from the same inputs by the last build."""
        self.inputs[name] = sha256(repr(inputs).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        if self.before.get(name) != self.inputs[name] or not all(map(self.site.has, paths)):
            return False
        self.site.keep(paths)
        return True

    def _domain_names(self) -> Mapping[str, str]:
        """Return the domains of contracts by key."""
        return {
            product_row.card.key: product_row.card.domain for product_row in self.rows if product_row.card.key
        }

    def _search(self) -> None:
        """Write the search index."""
        indexed = [
            (row.card.file, row.card.digest, row.card.slug, row.card.readable, row.summary.state)
            for row in self.rows
        ]
        if not self._is_unchanged(
            _SEARCH, [path for path in self.files if path.startswith(_SEARCH)], indexed
        ):
            for name, data in (*lists.word_index_files(self.rows), *lists.filter_index_files(self.rows)):
                self.site.put(f"{_SEARCH}{name}.js", data)


def _timeless(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the values of a page without its time."""
    return sorted((name, value) for name, value in values.items() if name != "as_of")


_SEARCH = "search/"

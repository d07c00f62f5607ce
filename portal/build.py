"""Builds the site: decides what has to be written anew, writes what has changed, and removes what is gone."""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dq.contracts.access.files import Absent, FileRefused, Found, parts, read, shown
from dq.contracts.model import Identity, identity
from dq.contracts.outcome import UsageError
from dq.contracts.subscriptions import Subscription
from dq.portal import contracts, output, pages, store_queries
from dq.portal.contracts import NO_EDGES, NOT_ASKED, Card, Problem, VersionHistory
from dq.portal.histories import histories
from dq.portal.lists import ProductRow
from dq.portal.output import OWN, Crew, KeptContract, PortalRequest, PortalSummary, Site, SiteState
from dq.portal.pages import PageJob, Screens
from dq.portal.product import Summary
from dq.portal.store_queries import IncidentFacts

# What of the site has to be written anew, and what may stay as the last build left it.

_BATCH = 250


@dataclass(frozen=True, slots=True)
class SitePlan:
    """The products whose pages are made anew, and the rows of the others. `inputs` are the hashes of what
    pages are made from, by file."""

    jobs: Sequence[PageJob]
    kept: Mapping[str, Summary]
    inputs: Mapping[str, str]


def read_cards(
    request: PortalRequest, files: Mapping[str, Found], before: SiteState, crew: Crew
) -> Sequence[Card]:
    """A card of each contract file, in order; of several that are one contract, one may be it.

    The card of the last build is kept for a file that holds the same bytes.
    """
    kept = {
        name: one.card
        for name, one in before.contracts.items()
        if name in files and one.card.readable and one.card.digest == contracts.file_digest(files[name])
    }
    new = [file for name, file in files.items() if name not in kept]
    made: dict[str, Card] = {}
    for some in crew.each(
        contracts.contract_cards, [new[start : start + _BATCH] for start in range(0, len(new), _BATCH)]
    ):
        made |= {one.file: one for one in some}
        request.progress("contracts", len(made), len(new))
    cards = [kept.get(name) or made[name] for name in files]
    return _with_own_pages(_settled(cards, request))


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
    files: Mapping[str, Found],
    cards: Sequence[Card],
    incidents: Sequence[IncidentFacts],
    moved: set[str] | None,
    before: SiteState,
    request: PortalRequest,
    versions: Mapping[str, VersionHistory],
) -> SitePlan:
    """What to do. `moved` are the keys of which the store may know something new, None for all."""
    jobs: list[PageJob] = []
    kept: dict[str, Summary] = {}
    inputs: dict[str, str] = {}
    for job in _jobs(cards, files, incidents, request, versions):
        name = job.card.file
        inputs[name] = _hash(job)
        old = before.contracts.get(name)
        still = (
            old is not None
            and moved is not None
            and old.inputs == inputs[name]
            and job.card.key not in moved
            and _right(old.summary, before.built, request.now)
            and all(map(held.has, pages.paths_of(job.card)))
        )
        if old is not None and still:
            kept[name] = old.summary
        else:
            jobs.append(job)
    return SitePlan(jobs, kept, inputs)


def _right(summary: Summary, built: str, now: datetime) -> bool:
    """Whether a page says now what it would say if it were made anew."""
    if not summary.right_until:
        return True
    return datetime.fromisoformat(built) <= now < datetime.fromisoformat(summary.right_until)


def _hash(job: PageJob) -> str:
    beside = [(str(file), digest) for file, digest in job.beside]
    incidents = [(one.incident.id, one.incident.revision, one.messages) for one in job.incidents]
    consumers = [one.model_dump_json() for one in job.consumers]
    card, linked = (job.card.digest, job.card.key, job.card.problems), sorted(job.linked.items())
    inputs = (card, job.edges, beside, incidents, consumers, job.versions, linked)
    return sha256(repr(inputs).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _jobs(
    cards: Sequence[Card],
    files: Mapping[str, Found],
    incidents: Sequence[IncidentFacts],
    request: PortalRequest,
    versions: Mapping[str, VersionHistory],
) -> Iterator[PageJob]:
    edges = contracts.product_graph(cards)
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
        around = edges.get(card.key, NO_EDGES) if card.readable else NO_EDGES
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


# Builds the site: reads the registry and the store, writes what has changed, removes what is no more.

KEPT_FOR = timedelta(days=90)
"""Ended incidents have pages for so long."""


def build(request: PortalRequest) -> PortalSummary:
    """Writes the site, and says what it did. Raises UsageError for a folder that is no portal's."""
    pages.require_templates()
    with output.opened(request.out) as held, Crew(request.workers) as crew:
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
        before = output.load(held)
        made_by = f"{pages.templates_digest()} {request.tick}"
        if before.made_by != made_by:
            # Pages are made differently now.
            before = SiteState(files=before.files, changes=before.changes, seen=before.seen)
        files = {str(file): file for file in contracts.contract_files(request.paths)}
        cards = read_cards(request, files, before, crew)
        told = histories(held, request, files, cards, crew)
        with request.store.read() as tx:
            watcher = store_queries.watcher(tx, request.now, request.tick, request.as_of)
            incidents = store_queries.stored_incidents(tx, request.now - KEPT_FOR, request.as_of)
            marks = store_queries.watermarks(tx)
            moved = store_queries.changed_since(tx, before.marks, marks)
        made = plan(held, files, cards, incidents, moved, before, request, told.of)
        _begin(held, before, made)
    rows = _written(held, crew, made, cards, request)
    with _nothing_collected():
        shown_cards = [row.card for row in rows]
        noted = output.changed(before, shown_cards, request.now.isoformat())
        shown = Screens(held, rows, incidents, watcher)
        waivers = None if request.waivers is None else [asdict(one) for one in request.waivers]
        shown.write(noted, told.of, waivers)
        held.clear(before.files)
        after = SiteState(
            made_by,
            request.now.isoformat(),
            marks,
            # A contract that changed meanwhile is rendered again, even if it is changed back.
            {
                card.file: KeptContract(card, row.summary, made.inputs[card.file])
                for row, card in zip(rows, cards, strict=True)
                if row.card is card
            },
            sorted(held.paths),
            noted,
            output.seen(before, shown_cards),
        )
        output.save(held, after)
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


def _begin(held: Site, before: SiteState, made: SitePlan) -> None:
    """Forget the pages that this build is about to replace: if it is killed, the next one renders them."""
    for job in made.jobs:
        before.contracts.pop(job.card.file, None)
        before.files += pages.paths_of(job.card)
    if made.jobs:
        output.save(held, before)


def _written(
    held: Site, crew: Crew, made: SitePlan, cards: Sequence[Card], request: PortalRequest
) -> list[ProductRow]:
    """The rows of all products, once the pages of those that changed are there."""
    held.paths.update(path for one in cards if one.file in made.kept for path in pages.paths_of(one))
    summaries, changed = dict(made.kept), dict[str, Problem]()
    for some in pages.write(
        held, made.jobs, request.store_url, request.now, request.as_of, request.tick, crew
    ):
        summaries |= some.rows
        changed |= some.changed
        request.progress("pages of products", len(summaries) - len(made.kept), len(made.jobs))
    given = (one.refused(changed[one.file]) if one.file in changed else one for one in cards)
    return [ProductRow(card, summaries[card.file]) for card in given]


_KINDS = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
    "xml": "application/atom+xml; charset=utf-8",
}
_LARGEST = 64 << 20
_SECONDS = 10


class PortalServer(ThreadingHTTPServer):
    """Serves a portal's folder on 127.0.0.1. Raises UsageError where there is none, or the port is taken."""

    daemon_threads = True

    def __init__(self, root: Path, port: int = 0) -> None:
        if not (root / OWN).is_dir():
            raise UsageError(
                f"{shown(root)} is not a portal.", "Build one in a new folder: dq portal build site"
            )
        self.root = root
        try:
            super().__init__(("127.0.0.1", port), _PortalHandler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or "no such port"
            raise UsageError(f"Port {port} cannot be used: {reason}.", "Choose another --port.") from error


class _PortalHandler(BaseHTTPRequestHandler):
    server: PortalServer
    server_version = "dq"
    sys_version = ""
    timeout = _SECONDS

    def do_GET(self) -> None:
        """Gives a file of the site."""
        if not self._asked_here():
            self._say(HTTPStatus.FORBIDDEN, b"Ask for it as 127.0.0.1 or localhost.\n")
            return
        name = unquote(urlsplit(self.path).path, errors="replace").lstrip("/")
        name = f"{name}index.html" if name == "" or name.endswith("/") else name
        try:
            way = parts(name)
            if way[0] == OWN:
                raise Absent("It is the portal's own.", "")
            body = read(Found(self.server.root, "/".join(way)), limit=_LARGEST)
        except (FileRefused, OSError):
            self._say(HTTPStatus.NOT_FOUND, b"There is no such page.\n")
            return
        self._say(HTTPStatus.OK, body, _KINDS.get(way[-1].rpartition(".")[2], "application/octet-stream"))

    do_HEAD = do_GET  # noqa: N815  # the library's name

    def _asked_here(self) -> bool:
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        return host.lower() in ("127.0.0.1", "localhost")

    def _say(self, status: HTTPStatus, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-cache")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """A look leaves no log."""

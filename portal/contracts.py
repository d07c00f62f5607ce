"""Contracts in the portal: cards, page names, and the impact of each version."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields, replace
from datetime import UTC, date, datetime
from enum import StrEnum
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from dq.contracts.access.discovery import discover
from dq.contracts.access.files import MAX_BYTES, FileRef, FileRejected, read, read_each
from dq.contracts.lineage import LineageOutline, inputs_from_outlines, outline
from dq.contracts.model import Contract
from dq.contracts.outcome import Finding, escape_block, escape_json_document
from dq.contracts.yaml.parse import parse
from dq.validators.git.repository import Repository, object_id, read_objects

# Page names: valid on every file system and web server, and unique for each product.

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_@.-]{0,79}(?<!\.)")
_REPLACED = re.compile(r"[^a-z0-9_-]+")
# Windows reserves these names for devices, with any extension.
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?")
# Page of products without a domain, next to `index`, the list of all domains.
_NO_DOMAIN = "none-"
_TAIL = re.compile(r"-[0-9a-f]{8}")


def slug(name: str) -> str:
    """Return the name of a page or folder for a product, domain or word.

    Short lower-case names stay as they are. In other names, special characters are replaced and a hash is
    appended, so that two names never collide, even on case-insensitive file systems.
    """
    if _PLAIN.fullmatch(name) and not _DEVICES.fullmatch(name) and not _TAIL.search(name[-9:]):
        return name
    mark = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_REPLACED.sub('-', name.lower())[:60].strip('-_') or 'x'}-{mark}"


def domain_page(name: str) -> str:
    """Return the path of a domain's page; "" stands for products without a domain."""
    # These two page names are taken.
    taken = name in ("index", _NO_DOMAIN)
    return f"domains/{(slug(f'domain {name}') if taken else slug(name)) if name else _NO_DOMAIN}.html"


# Cards: the data of one contract that all pages need, small enough to hold those of all products in memory.

NAME, COLUMN, PROSE = 3, 2, 1
"""Search weight of a word: from the name, a column, a description."""

_WORD = re.compile(r"[^\W_]+")
_MIN_WORD_CHARS, _MAX_WORD_CHARS, _MAX_WORDS, _PROSE_CHARS = 2, 40, 600, 4_000


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a contract: location (`file:line:column`), rule, message and fix."""

    at: str
    rule: str
    message: str
    hint: str

    @staticmethod
    def from_finding(finding: Finding) -> Problem:
        return Problem(str(finding.at), finding.rule, finding.message, finding.hint)


@dataclass(frozen=True, slots=True)
class ContractCard:
    """Card of one contract file. `key` is empty if the file does not name its contract.

    `problems` are the reasons why it cannot be used; then only its file and key are certain. `slug` is the
    name of its page's folder. `words` are its search words, each after a digit for its weight, separated by
    blanks: for a hundred thousand cards, a string takes a tenth of the memory of a mapping. After `#`, a word
    has the numbers of columns with it, separated by commas. `columns` are the names of its first columns as
    JSON strings, one a line, in the order of its page. `references` are the targets of its relationships, as
    written.
    """

    file: str
    digest: str
    slug: str
    key: str = ""
    id: str = ""
    version: str = ""
    status: str = ""
    title: str = ""
    product: str = ""
    domain: str = ""
    owners: tuple[str, ...] = ()
    purpose: str = ""
    classifications: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    words: str = ""
    outline: LineageOutline | None = None
    problems: tuple[Problem, ...] = ()
    announced: tuple[str, ...] = ()
    columns: str = ""

    @property
    def readable(self) -> bool:
        return not self.problems

    def with_problem(self, problem: Problem) -> ContractCard:
        """Return a copy with an additional problem."""
        return replace(self, problems=(*self.problems, problem))

    def with_file_page(self) -> ContractCard:
        """Return a copy whose page is named after the file, because another card has the page of its key."""
        return replace(self, key="", slug=slug(self.file))

    def as_json(self) -> list[Any]:
        """As JSON values, in the order of the fields."""
        problems = [astuple(problem) for problem in self.problems]
        other = {"problems": problems, "outline": self.outline and self.outline.objects}
        return [other.get(name, getattr(self, name)) for name in _FIELDS]


_FIELDS = tuple(field.name for field in fields(ContractCard))
_FILE, _KEY, _ID, _OUTLINE, _PROBLEMS = map(_FIELDS.index, ("file", "key", "id", "outline", "problems"))


def load_card(row: list[Any]) -> ContractCard:
    """Return a card from its JSON values. Raises TypeError, IndexError or ValueError if they are invalid."""
    values: list[Any] = [tuple(value) if type(value) is list else value for value in row]
    values[_PROBLEMS] = tuple(Problem(*problem) for problem in values[_PROBLEMS])
    if row[_OUTLINE] is not None:
        objects = tuple((tuple(called), tuple(inputs)) for called, inputs in row[_OUTLINE])
        values[_OUTLINE] = LineageOutline(values[_KEY], values[_ID], values[_FILE], objects)
    return ContractCard(*values)


def make_card(contract: Contract, digest: str) -> ContractCard:
    """Return the card of a readable contract."""
    description = contract.description
    team = contract.team
    named = [getattr(team, "name", None), *(member.name or member.username for member in contract.members())]
    owners = tuple(dict.fromkeys(text for text in named if text))
    references = dict.fromkeys(
        text
        for schema_object in contract.objects
        for element in (schema_object, *schema_object.walk())
        for relationship in element.relationships
        for text in _texts(relationship.to)
    )
    kinds = sorted(
        {
            prop.classification
            for schema_object in contract.objects
            for prop in schema_object.walk()
            if prop.classification
        }
    )
    return ContractCard(
        contract.file,
        digest,
        slug(contract.key),
        contract.key,
        contract.id,
        contract.version,
        contract.status or "",
        contract.name or contract.id,
        contract.data_product or "",
        contract.domain or "",
        owners,
        (description.purpose if description else "") or "",
        tuple(kinds),
        tuple(schema_object.name for schema_object in contract.objects),
        tuple(references),
        _weighted_words(contract, owners),
        outline(contract),
        announced=tuple(_announced_ends(contract)),
        columns="\n".join(json_string(name) for name in _columns(contract)),
    )


def unreadable_card(
    file: str, digest: str, findings: Iterator[Finding] | list[Finding], key: str = ""
) -> ContractCard:
    """Return the card of a file that cannot be used."""
    named = key or file
    return ContractCard(
        file,
        digest,
        slug(named),
        key,
        title=named,
        problems=tuple(Problem.from_finding(finding) for finding in findings),
    )


def _texts(target: object) -> list[str]:
    return [text for text in (target if isinstance(target, list) else [target]) if isinstance(text, str)]


def _announced_ends(contract: Contract) -> Iterator[str]:
    """Yield the service levels that announce the end of support or life."""
    for level in contract.sla_properties:
        if level.property.lower() in ("endofsupport", "endoflife") and level.value is not None:
            yield f"{level.property}: {level.value}"


_MAX_COLUMNS, _MAX_COLUMN_CHARS, _MAX_COLUMNS_OF_WORD = 400, 80, 5


def _columns(contract: Contract) -> Iterator[str]:
    """Yield the names of the first columns of a contract, those of several objects with the object's name."""
    columns = (
        f"{schema_object.name}.{prop.column}" if len(contract.objects) > 1 else prop.column
        for schema_object in contract.objects
        for prop in schema_object.walk()
    )
    for name in islice(columns, _MAX_COLUMNS):
        yield name if len(name) <= _MAX_COLUMN_CHARS else f"{name[: _MAX_COLUMN_CHARS - 1]}…"


def json_string(text: str) -> str:
    """Return a text for a script of the search index, without line breaks."""
    return escape_json_document(json.dumps(escape_block(text), ensure_ascii=False))


def _weighted_words(contract: Contract, owners: tuple[str, ...]) -> str:
    weights: dict[str, int] = {}
    columns: dict[str, list[int]] = {}

    def add(text: str | None, weight: int) -> None:
        for word in search_words((text or "")[:_PROSE_CHARS]):
            if len(weights) < _MAX_WORDS or word in weights:
                weights[word] = max(weights.get(word, 0), weight)

    for text in (contract.id, contract.name, contract.data_product):
        add(text, NAME)
    for schema_object in contract.objects:
        add(schema_object.name, NAME)
    for text in (contract.domain, *owners, *contract.tags):
        add(text, COLUMN)
    props = (prop for schema_object in contract.objects for prop in schema_object.walk())
    for number, prop in enumerate(props):
        add(prop.column, COLUMN)
        for word in search_words(prop.column) if number < _MAX_COLUMNS else ():
            numbers = columns.setdefault(word, [])
            if len(numbers) < _MAX_COLUMNS_OF_WORD and number not in numbers:
                numbers.append(number)
    description = contract.description
    for text in (description.purpose, description.usage, description.limitations) if description else ():
        add(text, PROSE)
    for schema_object in contract.objects:
        add(schema_object.description, PROSE)
        for prop in schema_object.walk():
            add(prop.description, PROSE)
    return " ".join(
        f"{weight}{word}#{','.join(map(str, columns[word]))}" if word in columns else f"{weight}{word}"
        for word, weight in weights.items()
    )


def search_words(text: str) -> Iterator[str]:
    """Yield the search words of a text: at least two characters, lower case, without diacritics.

    `hafen` finds `Häfen`, in any Unicode normalization.
    """
    decomposed = unicodedata.normalize("NFKD", text.lower())
    plain = "".join(sign for sign in decomposed if not unicodedata.category(sign).startswith("M"))
    for match in _WORD.finditer(plain.replace("ß", "ss").replace("ς", "σ")):
        if len(match[0]) >= _MIN_WORD_CHARS:
            yield match[0][:_MAX_WORD_CHARS]


# The lineage graph of all products.

Edge = tuple[str, str, str]
"""From an object of a product: its name, the other product's key, and the object there."""

Edges = tuple[tuple[Edge, ...], tuple[Edge, ...]]
"""Direct inputs and direct users of a product, sorted."""


NO_EDGES: Edges = ((), ())


def product_graph(cards: Iterable[ContractCard]) -> Mapping[str, Edges]:
    """Return the direct inputs and users by product key, for products that have any."""
    declared = inputs_from_outlines(
        card.outline for card in cards if card.outline is not None and card.readable
    )
    edges: dict[str, tuple[set[Edge], set[Edge]]] = defaultdict(lambda: (set(), set()))
    for (key, object_name), sources in declared.items():
        for source_key, source_object in sources:
            edges[key][0].add((object_name, source_key, source_object))
            edges[source_key][1].add((source_object, key, object_name))
    return {key: (tuple(sorted(inputs)), tuple(sorted(users))) for key, (inputs, users) in edges.items()}


@dataclass(frozen=True, slots=True)
class LineageNode:
    """A product in a lineage graph, or `count` products of a domain; 0 for a single product.

    `label` is the key of the contract, or the domain. `page` is the path below the site, "" without a page.
    """

    label: str
    page: str
    count: int = 0


Place = tuple[int, int]
"""Column and row of a node in a lineage graph."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """Lineage graph of a product, two steps in both directions.

    `columns` are the inputs of its inputs, its inputs, the product, the products made from it, and those made
    from these. `links` lead from an input to the product made from it.
    """

    columns: tuple[tuple[LineageNode, ...], ...] = ()
    links: tuple[tuple[Place, Place], ...] = ()


NO_LINEAGE = Lineage()

MAX_LINEAGE_NODES = 12
"""Maximum number of nodes in a column of a lineage graph; more products are grouped by domain."""

_OWN_COLUMN = 2


Adjacent = Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
"""Keys of the direct inputs and users of each product."""


def adjacent_products(graph: Mapping[str, Edges]) -> Adjacent:
    """Return the keys of the direct inputs and users of each product, without objects."""
    return {
        key: (
            tuple(dict.fromkeys(other for _, other, _ in inputs if other != key)),
            tuple(dict.fromkeys(other for _, other, _ in users if other != key)),
        )
        for key, (inputs, users) in graph.items()
    }


def lineage_nodes(adjacent: Adjacent, cards: Mapping[str, ContractCard]) -> Mapping[str, tuple[str, str]]:
    """Return what a lineage graph shows of the direct inputs and users of each product, as text."""
    nodes = {key: (key, cards[key].slug, cards[key].domain) for key in adjacent}
    return {
        key: (repr([nodes[other] for other in inputs]), repr([nodes[other] for other in users]))
        for key, (inputs, users) in adjacent.items()
    }


def lineage_inputs(key: str, adjacent: Adjacent, nodes: Mapping[str, tuple[str, str]]) -> tuple[str, ...]:
    """Return everything that the lineage graph of a product is made from, which takes less than the graph."""
    if not any(adjacent.get(key, ())):
        return ()
    inputs, users = adjacent[key]
    return (*nodes[key], *(nodes[other][0] for other in inputs), *(nodes[other][1] for other in users))


def lineage(key: str, adjacent: Adjacent, cards: Mapping[str, ContractCard]) -> Lineage:
    """Return the lineage graph of a product; `cards` are those of all products by key."""
    if not any(adjacent.get(key, ())):
        return NO_LINEAGE
    columns: dict[int, tuple[LineageNode, ...]] = {_OWN_COLUMN: (_product_node(key, cards),)}
    links: dict[tuple[Place, Place], None] = {}
    for side, step in ((0, -1), (1, 1)):
        direct = adjacent[key][side]
        next_keys = dict.fromkeys(other for near in direct for other in adjacent[near][side])
        indirect = [other for other in next_keys if other != key and other not in set(direct)]
        places: dict[str, Place] = {key: (_OWN_COLUMN, 0)}
        for column, keys in ((_OWN_COLUMN + step, direct), (_OWN_COLUMN + 2 * step, indirect)):
            columns[column], rows = _lineage_column(keys, cards)
            places |= {other: (column, row) for other, row in rows.items()}
        pairs = [(key, near) for near in direct]
        pairs += [(near, other) for near in direct for other in adjacent[near][side] if other != key]
        for near, other in pairs:
            ends = (places[near], places[other])
            if ends[0] != ends[1]:
                links[ends if side else ends[::-1]] = None
    return Lineage(tuple(columns[number] for number in sorted(columns)), tuple(links))


def _lineage_column(
    keys: Sequence[str], cards: Mapping[str, ContractCard]
) -> tuple[tuple[LineageNode, ...], dict[str, int]]:
    """Return the nodes of a column of the lineage graph, and the row of each product in it."""
    if len(keys) <= MAX_LINEAGE_NODES:
        return tuple(_product_node(key, cards) for key in keys), {key: row for row, key in enumerate(keys)}
    by_domain: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        by_domain[cards[key].domain].append(key)
    groups = sorted(by_domain.items(), key=lambda group: (-len(group[1]), group[0]))
    shown = groups if len(groups) <= MAX_LINEAGE_NODES else groups[: MAX_LINEAGE_NODES - 1]
    nodes = [
        LineageNode(domain or "no domain", domain_page(domain), len(members))
        if len(members) > 1
        else _product_node(members[0], cards)
        for domain, members in shown
    ]
    rows = {key: row for row, (_, members) in enumerate(shown) for key in members}
    not_shown = [key for _, members in groups[len(shown) :] for key in members]
    if not_shown:
        nodes.append(LineageNode("other domains", "domains/index.html", len(not_shown)))
        rows |= dict.fromkeys(not_shown, len(shown))
    return tuple(nodes), rows


def _product_node(key: str, cards: Mapping[str, ContractCard]) -> LineageNode:
    return LineageNode(key, f"products/{cards[key].slug}/index.html")


# Contract files and their cards.

REFUSED = "refused"
"""Digest of a file that could not be read."""


def contract_files(paths: Iterable[Path]) -> tuple[FileRef, ...]:
    """Return the contract files at or below the paths. Raises ReadError as `discover` does."""
    return discover(paths).contracts


def file_digests(files: Iterable[FileRef]) -> Iterator[str]:
    """Yield the digest of each file's content, or REFUSED if it cannot be read."""
    for content in read_each(files):
        yield REFUSED if isinstance(content, FileRejected) else sha256(content).hexdigest()


def cards_from_files(files: Sequence[FileRef]) -> list[ContractCard]:
    """Return a card for each file, in order."""
    return [_card_from_file(file) for file in files]


def _card_from_file(file: FileRef) -> ContractCard:
    name = str(file)
    try:
        content = read(file)
    except FileRejected as refused:
        return unreadable_card(name, REFUSED, [refused.finding(name)])
    digest = sha256(content).hexdigest()
    parsed = parse(content, name)
    errors = [finding for finding in parsed.findings if finding.severity.blocks]
    if parsed.contract is None or errors:
        return unreadable_card(name, digest, errors, parsed.contract.key if parsed.contract else "")
    return make_card(parsed.contract, digest)


def read_contract(file: FileRef, digest: str) -> Contract | None:
    """Return the contract in a file, or None if the file no longer has this digest."""
    try:
        content = read(file)
    except FileRejected:
        return None
    return parse(content, str(file)).contract if sha256(content).hexdigest() == digest else None


# The impact of each version of a contract: `dq diff` on its history in Git.

_MAX_LISTED, _MAX_CHARS = 12, 400
_LAST_YEAR = 9000


class VersionImpact(StrEnum):
    """Impact of a change on readers and writers. `FIRST` is the first version, which breaks nothing."""

    BREAK = "break"
    WARN = "warn"
    NOTHING = "nothing"
    FIRST = "first"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class VersionChange:
    """One change of a contract: the versions before and after, and its impact.

    `at` is the commit time (ISO, UTC; "" if not committed). `changes` are the significant changes with their
    rules, worst first, and `omitted` counts those left out. `unannounced`: the version number does not
    reflect the impact. `reason` says why the impact is unknown. `silent`: no promise of the contract differs.
    """

    before: str
    after: str
    broke: VersionImpact
    at: str = ""
    changes: tuple[tuple[str, str], ...] = ()
    omitted: int = 0
    unannounced: bool = False
    reason: str = ""
    silent: bool = False

    def as_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def load_change(values: dict[str, Any]) -> VersionChange:
    """Return a change from its JSON values. Raises TypeError, KeyError or ValueError if they are invalid."""
    changes = tuple((rule, text) for rule, text in values["changes"])
    return VersionChange(**{**values, "broke": VersionImpact(values["broke"]), "changes": changes})


@dataclass(frozen=True, slots=True)
class VersionHistory:
    """Changes of a contract, newest first.

    `older`: earlier ones are left out. `unknown`: why there are none.
    """

    changes: tuple[VersionChange, ...] = ()
    older: bool = False
    unknown: str = ""


NOT_ASKED = VersionHistory(unknown="history not requested")
NO_REPOSITORY = "the registry is not a Git repository"
NOT_IN_GIT = "Git does not know this file yet"
UNREAD = "Git history not readable"
CUT_OFF = "the history of this clone is truncated (shallow clone)"


@dataclass(frozen=True, slots=True)
class FileStep:
    """Change of a contract file in one commit: blob ids before and after, and the commit's Unix time.

    `before` is "" if the file is new, and None if the history is cut off (shallow clone).
    """

    before: str | None
    after: str
    time: int


@dataclass(frozen=True, slots=True)
class FileSteps:
    """Steps of one file to evaluate. `version` is the version in the file.

    `last` is the blob id in HEAD if the working file is to be compared with it, else "".
    """

    file: FileRef
    version: str
    steps: tuple[FileStep, ...]
    last: str = ""


@dataclass(frozen=True, slots=True)
class EvaluatedSteps:
    """The change of each step, None if Git could not provide it, and the uncommitted change of the file."""

    changes: tuple[VersionChange | None, ...]
    uncommitted: VersionChange | None = None


def evaluate_steps(repo: Repository, today: date, jobs: Sequence[FileSteps]) -> list[EvaluatedSteps]:
    """Return the changes of all steps, in order. Raises BaseUnavailable if Git cannot answer."""
    ids = {id_ for job in jobs for step in job.steps for id_ in (step.before, step.after)}
    blobs = read_objects(repo, (id_ for id_ in ids | {job.last for job in jobs} if id_), "blob", MAX_BYTES)
    return [_evaluate_steps(blobs, today, job) for job in jobs]


def unknown_change(step: FileStep) -> VersionChange:
    """Return the change for a step whose content Git does not have, or whose content is too large."""
    return _unknown(None, None, "Git content not available", _instant(step.time).isoformat())


def _evaluate_steps(blobs: dict[str, bytes], today: date, job: FileSteps) -> EvaluatedSteps:
    parsed: dict[str, Contract | None] = {}

    def contract(id_: str) -> Contract | None:
        if id_ not in parsed:
            parsed[id_] = parse(blobs[id_], job.file.name).contract if id_ in blobs else None
        return parsed[id_]

    data = _read(job.file) if job.last else None
    committed = data is not None and job.last in _ids(data, job.last)
    changes: list[VersionChange | None] = []
    for step in job.steps:
        committed_at = _instant(step.time)
        if committed and step.before == "" and step.after == job.last:
            # Most contracts have a single version, which was parsed for the card already.
            changes.append(
                VersionChange("", _truncated(job.version), VersionImpact.FIRST, committed_at.isoformat())
            )
        elif step.after not in blobs or (step.before and step.before not in blobs):
            changes.append(None)
        elif step.before is None:
            changes.append(_unknown(None, contract(step.after), CUT_OFF, committed_at.isoformat()))
        else:
            before = contract(step.before) if step.before else None
            after = contract(step.after)
            changes.append(
                change_between(
                    before, after, committed_at.date(), committed_at.isoformat(), first=not step.before
                )
            )
    if data is None or committed:
        return EvaluatedSteps(tuple(changes))
    now = parse(data, job.file.name).contract
    return EvaluatedSteps(tuple(changes), change_between(contract(job.last), now, today, "", first=False))


def _read(file: FileRef) -> bytes | None:
    try:
        return read(file)
    except FileRejected:
        return None  # reported on the contract's page


def _ids(data: bytes, like: str) -> tuple[str, str]:
    """Return the blob ids of the content, as it is and with Unix line breaks."""
    return object_id(data, "blob", like), object_id(data.replace(b"\r\n", b"\n"), "blob", like)


def change_between(
    before: Contract | None, after: Contract | None, day: date, committed_at: str, *, first: bool
) -> VersionChange:
    """Return the change from one contract to another, evaluated as of a day."""
    if after is None:
        return _unknown(before, after, "this version could not be read", committed_at)
    if first:
        return VersionChange("", _truncated(after.version), VersionImpact.FIRST, committed_at)
    if before is None:
        return _unknown(before, after, "the version before it could not be read", committed_at)
    return _compare(before, after, day, committed_at)


def _compare(before: Contract, after: Contract, day: date, committed_at: str) -> VersionChange:
    # Imported here: most builds compare no versions, and this is much to import.
    from dq.validators.compat.classification import Verdict
    from dq.validators.compat.classified_change import Concern
    from dq.validators.compat.comparison import DiffTerms, diff

    comparison = diff(before, after, DiffTerms(day))
    impacts = {
        Verdict.BREAK: VersionImpact.BREAK,
        Verdict.WARN: VersionImpact.WARN,
        Verdict.OK: VersionImpact.NOTHING,
    }
    verdicts = comparison.verdicts
    significant = [change for change in comparison.changes if change.verdict is not Verdict.OK]
    return VersionChange(
        _truncated(before.version),
        _truncated(after.version),
        impacts[verdicts[Concern.COMPATIBILITY]],
        committed_at,
        tuple((change.rule, _truncated(change.problem)) for change in significant[:_MAX_LISTED]),
        max(len(significant) - _MAX_LISTED, 0),
        verdicts[Concern.VERSION_POLICY] is Verdict.BREAK,
        silent=not comparison.changes,
    )


def _unknown(
    before: Contract | None, after: Contract | None, reason: str, committed_at: str
) -> VersionChange:
    old, new = (_truncated(contract.version) if contract else "" for contract in (before, after))
    return VersionChange(old, new, VersionImpact.UNKNOWN, committed_at, reason=reason)


def _truncated(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}…"


def _instant(time: int) -> datetime:
    """Return the commit time, capped at a valid year, since a commit can claim any time."""
    try:
        committed_at = datetime.fromtimestamp(time, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime(_LAST_YEAR, 1, 1, tzinfo=UTC)
    return committed_at if committed_at.year <= _LAST_YEAR else datetime(_LAST_YEAR, 1, 1, tzinfo=UTC)

"""The contracts of a portal: their summaries, the names of their pages, and what each version broke."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields, replace
from datetime import UTC, date, datetime
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any

from dq.contracts.access.discovery import discover
from dq.contracts.access.files import MAX_BYTES, FileRefused, Found, read
from dq.contracts.lineage import LineageOutline, inputs_of, outline
from dq.contracts.model import Contract
from dq.contracts.outcome import Finding
from dq.contracts.yaml.parse import parse
from dq.validators.compat.classification import Verdict
from dq.validators.compat.classified_change import Aspect, Comparison
from dq.validators.compat.comparison import DiffTerms, diff
from dq.validators.git.repository import Repository, id_of, objects

# What the whole portal knows of each contract, how its pages are called, and what is made from what.

# How pages are called: names that every file system and web server takes, another one for each product.

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_@.-]{0,79}(?<!\.)")
_ODD = re.compile(r"[^a-z0-9_-]+")
# Windows opens devices by these names, whatever stands behind a dot.
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?")
# Beside the list of all domains, `index`.
_NONE = "none-"
_TAIL = re.compile(r"-[0-9a-f]{8}")


def slug(name: str) -> str:
    """The name of a page or folder for a product, domain or word.

    Names in lower case of few signs stay as they are; of all others their signs are replaced, and a hash
    keeps two of them apart, also where case does not count.
    """
    if _PLAIN.fullmatch(name) and not _DEVICES.fullmatch(name) and not _TAIL.search(name[-9:]):
        return name
    mark = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_ODD.sub('-', name.lower())[:60].strip('-_') or 'x'}-{mark}"


def domain_page(name: str) -> str:
    """The path of a domain's page; the empty name is that of products without one."""
    # These two pages are there already.
    taken = name in ("index", _NONE)
    return f"domains/{(slug(f'domain {name}') if taken else slug(name)) if name else _NONE}.html"


# What the whole portal knows of one contract: small enough to hold those of all products at once.

NAME, COLUMN, PROSE = 3, 2, 1
"""How much a word says of a product: of its name, of a column, of a description."""

_WORD = re.compile(r"[^\W_]+")
_SHORTEST, _LONGEST_NAME, _MOST_WORDS, _PROSE_CHARS = 2, 40, 600, 4_000


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a contract: where (`file:line:column`), what, and how to mend it."""

    at: str
    rule: str
    message: str
    mend: str

    @staticmethod
    def of(finding: Finding) -> Problem:
        return Problem(str(finding.at), finding.rule, finding.message, finding.mend)


@dataclass(frozen=True, slots=True)
class Card:
    """One contract file. `key` is empty where the file does not even say which contract it is.

    `problems` are why it cannot be used; then nothing else but its file and key is certain. `slug` is the
    name of its page's folder. `words` are what it is found by, each after a digit that tells how much it
    says, with blanks between: of a hundred thousand cards, a text takes a tenth of what a mapping would.
    `references` are what its relationships lead to, as written.
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

    @property
    def readable(self) -> bool:
        return not self.problems

    def refused(self, problem: Problem) -> Card:
        """The same, where something else is known to be wrong with it."""
        return replace(self, problems=(*self.problems, problem))

    def apart(self) -> Card:
        """The same with a page that is called by its file, where another has the page of its key."""
        return replace(self, key="", slug=slug(self.file))

    def dumped(self) -> list[Any]:
        """As JSON values, in the order of the fields."""
        problems = [astuple(one) for one in self.problems]
        other = {"problems": problems, "outline": self.outline and self.outline.objects}
        return [other.get(name, getattr(self, name)) for name in _FIELDS]


_FIELDS = tuple(one.name for one in fields(Card))
_FILE, _KEY, _ID, _OUTLINE, _PROBLEMS = map(_FIELDS.index, ("file", "key", "id", "outline", "problems"))


def loaded_card(kept: list[Any]) -> Card:
    """A card from its JSON values. Raises TypeError, IndexError or ValueError for what is none."""
    values: list[Any] = [tuple(value) if type(value) is list else value for value in kept]
    values[_PROBLEMS] = tuple(Problem(*one) for one in values[_PROBLEMS])
    if kept[_OUTLINE] is not None:
        objects = tuple((tuple(called), tuple(inputs)) for called, inputs in kept[_OUTLINE])
        values[_OUTLINE] = LineageOutline(values[_KEY], values[_ID], values[_FILE], objects)
    return Card(*values)


def card(contract: Contract, digest: str) -> Card:
    """The card of a contract that can be read."""
    said = contract.description
    team = contract.team
    named = [getattr(team, "name", None), *(one.name or one.username for one in contract.members())]
    owners = tuple(dict.fromkeys(text for text in named if text))
    references = dict.fromkeys(
        text
        for one in contract.objects
        for element in (one, *one.walk())
        for relationship in element.relationships
        for text in _texts(relationship.to)
    )
    kinds = sorted(
        {prop.classification for one in contract.objects for prop in one.walk() if prop.classification}
    )
    return Card(
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
        (said.purpose if said else "") or "",
        tuple(kinds),
        tuple(one.name for one in contract.objects),
        tuple(references),
        _words(contract, owners),
        outline(contract),
        announced=tuple(_announced(contract)),
    )


def unread(file: str, digest: str, findings: Iterator[Finding] | list[Finding], key: str = "") -> Card:
    """The card of a file that cannot be used."""
    named = key or file
    return Card(
        file, digest, slug(named), key, title=named, problems=tuple(Problem.of(one) for one in findings)
    )


def _texts(to: object) -> list[str]:
    return [text for text in (to if isinstance(to, list) else [to]) if isinstance(text, str)]


def _announced(contract: Contract) -> Iterator[str]:
    """When it ends, by the service levels that say so."""
    for one in contract.sla_properties:
        if one.property.lower() in ("endofsupport", "endoflife") and one.value is not None:
            yield f"{one.property}: {one.value}"


def _words(contract: Contract, owners: tuple[str, ...]) -> str:
    found: dict[str, int] = {}

    def add(text: str | None, weight: int) -> None:
        for word in words_of((text or "")[:_PROSE_CHARS]):
            if len(found) < _MOST_WORDS or word in found:
                found[word] = max(found.get(word, 0), weight)

    for text in (contract.id, contract.name, contract.data_product):
        add(text, NAME)
    for one in contract.objects:
        add(one.name, NAME)
    for text in (contract.domain, *owners, *contract.tags):
        add(text, COLUMN)
    for one in contract.objects:
        for prop in one.walk():
            add(prop.column, COLUMN)
    said = contract.description
    for text in (said.purpose, said.usage, said.limitations) if said else ():
        add(text, PROSE)
    for one in contract.objects:
        add(one.description, PROSE)
        for prop in one.walk():
            add(prop.description, PROSE)
    return " ".join(f"{weight}{word}" for word, weight in found.items())


def words_of(text: str) -> Iterator[str]:
    """The words of a text as they are searched: of two signs and more, without case and marks, so that
    `hafen` finds `Häfen`, however either is written."""
    whole = unicodedata.normalize("NFKD", text.lower())
    plain = "".join(sign for sign in whole if not unicodedata.category(sign).startswith("M"))
    for match in _WORD.finditer(plain.replace("ß", "ss").replace("ς", "σ")):
        if len(match[0]) >= _SHORTEST:
            yield match[0][:_LONGEST_NAME]


# What is made from what, among all products.

Edge = tuple[str, str, str]
"""From an object of a product: its name, the other product's key, and the object there."""

Edges = tuple[tuple[Edge, ...], tuple[Edge, ...]]
"""What a product is made from, and what is made from it, one step away and in order."""


NO_EDGES: Edges = ((), ())


def product_graph(cards: Iterable[Card]) -> Mapping[str, Edges]:
    """The inputs and users of each product that has any, by its key."""
    declared = inputs_of(one.outline for one in cards if one.outline is not None and one.readable)
    around: dict[str, tuple[set[Edge], set[Edge]]] = defaultdict(lambda: (set(), set()))
    for product, inputs in declared.items():
        for source in inputs:
            around[product[0]][0].add((product[1], *source))
            around[source[0]][1].add((source[1], *product))
    return {key: (tuple(sorted(inputs)), tuple(sorted(users))) for key, (inputs, users) in around.items()}


# The contracts of a registry as cards: which are made anew only where a file has changed.

REFUSED = "refused"
"""Instead of the digest of a file that could not be read."""


def contract_files(paths: Iterable[Path]) -> tuple[Found, ...]:
    """The contract files at or below the paths. Raises Unreadable as `discover` does."""
    return discover(paths).contracts


def file_digest(file: Found) -> str:
    """The digest of what a file holds; REFUSED for one that may not be read."""
    try:
        return sha256(read(file)).hexdigest()
    except FileRefused:
        return REFUSED


def contract_cards(found: Sequence[Found]) -> list[Card]:
    """A card for each file, in order."""
    return [_card(file) for file in found]


def _card(file: Found) -> Card:
    name = str(file)
    try:
        content = read(file)
    except FileRefused as refused:
        return unread(name, REFUSED, [refused.finding(name)])
    digest = sha256(content).hexdigest()
    parsed = parse(content, name)
    wrong = [finding for finding in parsed.findings if finding.severity.blocks]
    if parsed.contract is None or wrong:
        return unread(name, digest, wrong, parsed.contract.key if parsed.contract else "")
    return card(parsed.contract, digest)


def read_contract(file: Found, digest: str) -> Contract | None:
    """The contract in a file; None where it is not any more what its card was made from."""
    try:
        content = read(file)
    except FileRefused:
        return None
    return parse(content, str(file)).contract if sha256(content).hexdigest() == digest else None


# What each version of a contract broke, by the judgement of `dq diff` on what Git has of it.

_SHOWN, _LONGEST = 12, 400
_LAST_YEAR = 9000


class Broke(StrEnum):
    """What a change of a contract did to who reads or writes the data. `FIRST` had nothing to break."""

    BREAK = "break"
    WARN = "warn"
    NOTHING = "nothing"
    FIRST = "first"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class VersionChange:
    """One change of a contract: the versions before and after, and what it broke.

    `at` is when it was committed (ISO, UTC; empty: not yet). `told` are the changes that matter, each with
    its rule, worst first, and `more` is how many others there are. `unannounced`: the version does not say
    so. `reason` is why it is not known. `silent`: nothing that a contract promises differs.
    """

    before: str
    after: str
    broke: Broke
    at: str = ""
    told: tuple[tuple[str, str], ...] = ()
    more: int = 0
    unannounced: bool = False
    reason: str = ""
    silent: bool = False

    def dumped(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def loaded(kept: dict[str, Any]) -> VersionChange:
    """A change from its JSON values. Raises TypeError, KeyError or ValueError for what is none."""
    told = tuple((rule, text) for rule, text in kept["told"])
    return VersionChange(**{**kept, "broke": Broke(kept["broke"]), "told": told})


@dataclass(frozen=True, slots=True)
class VersionHistory:
    """The changes of a contract, newest first. `older`: there were more. `unknown` is why there are none."""

    changes: tuple[VersionChange, ...] = ()
    older: bool = False
    unknown: str = ""


NOT_ASKED = VersionHistory(unknown="nobody asked")
NO_REPOSITORY = "the registry is no Git repository"
NOT_IN_GIT = "Git does not know this file yet"
UNREAD = "Git cannot tell its history"
CUT_OFF = "the history of this clone is cut off before it"


@dataclass(frozen=True, slots=True)
class FileStep:
    """What one commit made of a contract's file: ids of its bytes, and when (Unix time, as Git has it).

    `before` is empty where there was no file, and None where the history is cut off.
    """

    before: str | None
    after: str
    time: int


@dataclass(frozen=True, slots=True)
class FileSteps:
    """The steps of one file that are to be judged; `last` is what HEAD has of it, where the file itself is
    to be held against that. `version` is the one that it says."""

    file: Found
    version: str
    steps: tuple[FileStep, ...]
    last: str = ""


@dataclass(frozen=True, slots=True)
class JudgedSteps:
    """What each step broke, None where Git could not tell; and what the file does beyond the last commit."""

    changes: tuple[VersionChange | None, ...]
    uncommitted: VersionChange | None = None


def judged(repo: Repository, today: date, jobs: Sequence[FileSteps]) -> list[JudgedSteps]:
    """The judgement of each step, in order. Raises BaseUnavailable where Git cannot answer."""
    ids = {id_ for job in jobs for step in job.steps for id_ in (step.before, step.after)}
    held = objects(repo, (id_ for id_ in ids | {job.last for job in jobs} if id_), "blob", MAX_BYTES)
    return [_judged(held, today, job) for job in jobs]


def unjudged(step: FileStep) -> VersionChange:
    """What is said of a step whose bytes Git does not have, or that are too many."""
    return _unknown(None, None, "Git cannot give its bytes here", _instant(step.time).isoformat())


def _judged(held: dict[str, bytes], today: date, job: FileSteps) -> JudgedSteps:
    known: dict[str, Contract | None] = {}

    def contract(id_: str) -> Contract | None:
        if id_ not in known:
            known[id_] = parse(held[id_], job.file.name).contract if id_ in held else None
        return known[id_]

    data = _read(job.file) if job.last else None
    committed = data is not None and job.last in _ids(data, job.last)
    changes: list[VersionChange | None] = []
    for step in job.steps:
        at = _instant(step.time)
        if committed and step.before == "" and step.after == job.last:
            # Most contracts have one version, and this one was read already.
            changes.append(VersionChange("", _said(job.version), Broke.FIRST, at.isoformat()))
        elif step.after not in held or (step.before and step.before not in held):
            changes.append(None)
        elif step.before is None:
            changes.append(_unknown(None, contract(step.after), CUT_OFF, at.isoformat()))
        else:
            before = contract(step.before) if step.before else None
            after = contract(step.after)
            changes.append(change(before, after, at.date(), at.isoformat(), first=not step.before))
    if data is None or committed:
        return JudgedSteps(tuple(changes))
    now = parse(data, job.file.name).contract
    return JudgedSteps(tuple(changes), change(contract(job.last), now, today, "", first=False))


def _read(file: Found) -> bytes | None:
    try:
        return read(file)
    except FileRefused:
        return None  # its page says so


def _ids(data: bytes, like: str) -> tuple[str, str]:
    """The ids that Git would give a file, as it is and without the line breaks of Windows."""
    return id_of(data, "blob", like), id_of(data.replace(b"\r\n", b"\n"), "blob", like)


def change(
    before: Contract | None, after: Contract | None, day: date, at: str, *, first: bool
) -> VersionChange:
    """What came of one contract by another one in its place, judged as of a day."""
    if after is None:
        return _unknown(before, after, "it could not be read then", at)
    if first:
        return VersionChange("", _said(after.version), Broke.FIRST, at)
    if before is None:
        return _unknown(before, after, "the one before it could not be read", at)
    return _of(before, after, diff(before, after, DiffTerms(day)), at)


def _of(before: Contract, after: Contract, found: Comparison, at: str) -> VersionChange:
    verdicts = found.verdicts
    matter = [one for one in found.changes if one.verdict is not Verdict.OK]
    return VersionChange(
        _said(before.version),
        _said(after.version),
        _BROKE[verdicts[Aspect.COMPATIBILITY]],
        at,
        tuple((one.rule, _said(one.problem)) for one in matter[:_SHOWN]),
        max(len(matter) - _SHOWN, 0),
        verdicts[Aspect.VERSION_POLICY] is Verdict.BREAK,
        silent=not found.changes,
    )


_BROKE = {Verdict.BREAK: Broke.BREAK, Verdict.WARN: Broke.WARN, Verdict.OK: Broke.NOTHING}


def _unknown(before: Contract | None, after: Contract | None, reason: str, at: str) -> VersionChange:
    old, new = (_said(one.version) if one else "" for one in (before, after))
    return VersionChange(old, new, Broke.UNKNOWN, at, reason=reason)


def _said(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _instant(time: int) -> datetime:
    """When a commit claims to have been made: it may claim any time."""
    try:
        made = datetime.fromtimestamp(time, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime(_LAST_YEAR, 1, 1, tzinfo=UTC)
    return made if made.year <= _LAST_YEAR else datetime(_LAST_YEAR, 1, 1, tzinfo=UTC)

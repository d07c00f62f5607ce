"""What the whole portal knows of one contract: small enough to hold those of all products at once."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields, replace
from typing import Any

from dq.contracts.lineage import LineageOutline, outline
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import Finding
from dq.portal.facts.names import slug

NAME, COLUMN, PROSE = 3, 2, 1
"""How much a word says of a product: of its name, of a column, of a description."""

_WORD = re.compile(r"[^\W_]+")
_SHORTEST, _LONGEST, _MOST_WORDS, _PROSE_CHARS = 2, 40, 600, 4_000


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


def loaded(kept: list[Any]) -> Card:
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
    return (
        [one for one in to if isinstance(one, str)]
        if isinstance(to, list)
        else [to]
        if isinstance(to, str)
        else []
    )


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
            yield match[0][:_LONGEST]

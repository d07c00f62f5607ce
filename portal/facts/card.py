"""What the whole portal knows of one contract: small enough to hold those of all products at once."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dq.contracts.lineage.inputs import LineageOutline, outline
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

    `problems` are why it cannot be used; then nothing else but its file and key is certain. `words` are what
    it is found by, with how much each says. `references` are what its relationships lead to, as written.
    """

    file: str
    digest: str
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
    words: dict[str, int] = field(default_factory=dict)
    outline: LineageOutline | None = None
    problems: tuple[Problem, ...] = ()
    announced: tuple[str, ...] = ()

    @property
    def slug(self) -> str:
        """The name of its page's folder."""
        return slug(self.key or self.file)

    @property
    def readable(self) -> bool:
        return not self.problems

    def refused(self, problem: Problem) -> Card:
        """The same, where something else is known to be wrong with it."""
        return replace(self, problems=(*self.problems, problem))

    def dumped(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def loaded(kept: dict[str, Any]) -> Card:
    """A card from its JSON values. Raises TypeError, KeyError or ValueError for what is none."""
    lists = {
        name: tuple(kept[name])
        for name in ("owners", "classifications", "objects", "references", "announced")
    }
    written = kept["outline"]
    drawn = None
    if written is not None:
        objects = tuple((tuple(called), tuple(inputs)) for called, inputs in written["objects"])
        drawn = LineageOutline(written["key"], written["id"], written["file"], objects)
    problems = tuple(Problem(**one) for one in kept["problems"])
    return Card(**{**kept, **lists, "outline": drawn, "problems": problems})


def parsed_text(text: str) -> dict[str, Any]:
    """One line of kept cards. Raises ValueError for what is no JSON object."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("it is no object")
    return value


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
    return Card(file, digest, key, title=key or file, problems=tuple(Problem.of(one) for one in findings))


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


def _words(contract: Contract, owners: tuple[str, ...]) -> dict[str, int]:
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
    return found


def words_of(text: str) -> Iterator[str]:
    """The words of a text as they are searched: of two signs and more, without case and marks, so that
    `hafen` finds `Häfen`, however either is written."""
    whole = unicodedata.normalize("NFKD", text.lower())
    plain = "".join(sign for sign in whole if not unicodedata.category(sign).startswith("M"))
    for match in _WORD.finditer(plain.replace("ß", "ss").replace("ς", "σ")):
        if len(match[0]) >= _SHORTEST:
            yield match[0][:_LONGEST]

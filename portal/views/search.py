"""What the search looks up: files for words that begin alike, and one for each value of each filter.

They are JavaScript that calls one function with JSON: a script tag may load it where `fetch` may not, on
`file://`. A word's file is named by the code points of its first two letters.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import TypeVar

from dq.contracts.shared.wording import block, in_json
from dq.portal.facts.card import Card
from dq.portal.views.lists import ProductRow
from dq.portal.views.words import cut

Shelf = tuple[str, bytes]
"""A file's name and what it holds."""
T = TypeVar("T")


def shelf_of(word: str) -> str:
    """The file that holds a word."""
    return "w-" + "-".join(f"{ord(sign):x}" for sign in word[:2])


@cache
def filter_shelf(name: str, value: str) -> str:
    """The file that holds the products of one value of a filter."""
    return f"f-{name}-{sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


@dataclass(slots=True)
class _WordShelf:
    """The products of words that begin alike, as JSON; of each word, four times a product's place among them
    and how much the word says of it. `last` is the card that was put there last."""

    products: list[str] = field(default_factory=list)
    words: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    last: int = -1


def word_shelves(rows: Iterable[ProductRow], wanted: Collection[str] | None = None) -> Iterator[Shelf]:
    """The files of words; only those of the wanted beginnings of two letters where they are given."""
    found: dict[str, _WordShelf] = defaultdict(_WordShelf)
    for place, one in enumerate(rows):
        shown = ""
        for entry in _entries(one.card):
            start = entry[1:3]
            if wanted is not None and start not in wanted:
                continue
            shelf = found[start]
            if shelf.last != place:
                shelf.last, shown = place, shown or _shown(one.card)
                shelf.products.append(shown)
            shelf.words[entry[1:]].append((len(shelf.products) - 1) * 4 + int(entry[0]))
    for start, shelf in sorted(found.items()):
        words = json.dumps(dict(sorted(shelf.words.items())), ensure_ascii=False, separators=(",", ":"))
        yield _script(shelf_of(start), f'{{"p":[{",".join(shelf.products)}],"w":{in_json(words)}}}')


def words_between(old: ProductRow | None, new: ProductRow | None) -> set[str]:
    """The beginnings of words of which the files change with a product; None for one that is not there."""
    return {entry[1:3] for entry in _between(old, new, lambda one: _entries(one.card))}


def _entries(card: Card) -> list[str]:
    return card.words.split() if card.readable else []


def filter_shelves(rows: Iterable[ProductRow], wanted: Collection[str] | None = None) -> Iterator[Shelf]:
    """The files of the filters; only the wanted ones where they are given."""
    found: dict[str, list[str]] = defaultdict(list)
    for one in rows:
        for name, value in _values(one):
            if wanted is None or filter_shelf(name, value) in wanted:
                found[filter_shelf(name, value)].append(_shown(one.card))
    for shelf, products in sorted(found.items()):
        yield _script(shelf, f'{{"p":[{",".join(products)}]}}')


def filters_between(old: ProductRow | None, new: ProductRow | None) -> set[str]:
    """The names of the filters' files that change with a product; None for one that is not there."""
    return {filter_shelf(*value) for value in _between(old, new, _values)}


def _values(one: ProductRow) -> list[tuple[str, str]]:
    card = one.card
    found = [("status", one.state.value), *(("owner", owner) for owner in card.owners[:3])]
    found += [("domain", card.domain)] if card.domain else []
    return found + [("classification", kind) for kind in card.classifications]


def _between(
    old: ProductRow | None, new: ProductRow | None, what: Callable[[ProductRow], Iterable[T]]
) -> set[T]:
    """Where a product stands now and did not, or no more; all places where it is shown otherwise now."""
    before, after = set(what(old) if old else ()), set(what(new) if new else ())
    alike = old is not None and new is not None and _shown(old.card) == _shown(new.card)
    return before ^ after if alike else before | after


def _shown(card: Card) -> str:
    texts = (block(cut(*one)) for one in ((card.title, 120), (card.domain, 80), (card.purpose, 160)))
    return in_json(json.dumps([card.slug, *texts], ensure_ascii=False, separators=(",", ":")))


def _script(name: str, value: str) -> Shelf:
    # JSON is JavaScript but for two line separators, which `in_json` escapes with all that steers a reader.
    return name, f"dqShelf({json.dumps(name)},{value});\n".encode("utf-8", "backslashreplace")

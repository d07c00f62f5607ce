"""What the search looks up: files for words that begin alike, and one for each value of each filter.

They are JavaScript that calls one function with JSON: a script tag may load it where `fetch` may not, on
`file://`. A word's file is named by the code points of its first two letters.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from hashlib import sha256

from dq.contracts.shared.printable import block, in_json
from dq.portal.facts.card import Card
from dq.portal.views.lists import ProductRow
from dq.portal.views.words import cut


def shelf_of(word: str) -> str:
    """The file that holds a word."""
    return "w-" + "-".join(f"{ord(sign):x}" for sign in word[:2])


def filter_shelf(name: str, value: str) -> str:
    """The file that holds the products of one value of a filter."""
    return f"f-{name}-{sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def word_shelves(cards: Sequence[Card], wanted: Collection[str] | None = None) -> Iterator[tuple[str, bytes]]:
    """The files of words, by name; only the wanted ones where they are given."""
    found: dict[str, dict[str, list[tuple[Card, int]]]] = defaultdict(lambda: defaultdict(list))
    for card in cards:
        for word, weight in card.words.items():
            name = shelf_of(word)
            if wanted is None or name in wanted:
                found[name][word].append((card, weight))
    for name, words in sorted(found.items()):
        numbers: dict[str, int] = {}
        products: list[list[str]] = []
        held: dict[str, list[int]] = {}
        for word, entries in sorted(words.items()):
            codes = []
            for card, weight in entries:
                if card.file not in numbers:
                    numbers[card.file] = len(products)
                    products.append(_shown(card))
                codes.append(numbers[card.file] * 4 + weight)
            held[word] = codes
        yield name, _script(name, {"p": products, "w": held})


def filter_shelves(rows: Iterable[ProductRow]) -> Iterator[tuple[str, bytes]]:
    """The files of the filters, by name."""
    found: dict[str, list[Card]] = defaultdict(list)
    for one in rows:
        card = one.card
        values = [("status", one.state.value), *(("owner", owner) for owner in card.owners[:3])]
        values += [("domain", card.domain)] if card.domain else []
        values += [("classification", kind) for kind in card.classifications]
        for name, value in values:
            found[filter_shelf(name, value)].append(card)
    for shelf, cards in sorted(found.items()):
        yield shelf, _script(shelf, {"p": [_shown(card) for card in cards]})


def _shown(card: Card) -> list[str]:
    return [
        card.slug,
        *(block(cut(*one)) for one in ((card.title, 120), (card.domain, 80), (card.purpose, 160))),
    ]


def _script(name: str, value: object) -> bytes:
    # JSON is JavaScript but for two line separators, which `in_json` escapes with all that steers a reader.
    text = in_json(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return f"dqShelf({json.dumps(name)},{text});\n".encode("utf-8", "backslashreplace")

"""The word that somebody meant, among those that there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like this one, whatever the case, or None when none is near.

    Among more than a hundred words only some that begin alike are compared. Hand in a frozenset where there
    are many words and many questions: what is made of it is remembered.
    """
    lower = word.lower()
    if not lower or len(lower) > 100:
        return None
    if not isinstance(known, frozenset):
        listed = tuple(islice(known, 1_000))
        if len(listed) <= 100:
            return _nearest(lower, listed)
        known = frozenset(listed)
    return _nearest(lower, _by_beginning(known).get(lower[:3], ()))


def suggestion(word: object, known: Iterable[str], otherwise: str) -> str:
    """Asks for the known word that is near; what else to say where none is, or where a text was meant."""
    near = nearest(word, known) if isinstance(word, str) else None
    return f"Did you mean {near!r}?" if near else otherwise


def one_of(words: Sequence[str]) -> str:
    """The words to choose from, after "Write": `date`, or `one of string, varchar`."""
    return words[0] if len(words) == 1 else f"one of {', '.join(words)}"


@lru_cache(4)
def _by_beginning(known: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """At most forty words for each of their beginnings."""
    found: dict[str, list[str]] = {}
    for one in sorted(known):
        beside = found.setdefault(one[:3].lower(), [])
        if len(beside) < 40:
            beside.append(one)
    return {beginning: tuple(words) for beginning, words in found.items()}


@lru_cache(2048)
def _nearest(lower: str, known: tuple[str, ...]) -> str | None:
    # Imported here: a contract without a misspelt word needs none of it.
    from difflib import get_close_matches

    by_lower = {one.lower(): one for one in known}
    near = get_close_matches(lower, by_lower, n=1, cutoff=0.6)
    return by_lower[near[0]] if near else None

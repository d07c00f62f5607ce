"""A pattern as an automaton of its positions, with the number of ways from one to the next.

Repetitions that are counted far stand as loops, and what a lookaround holds as a way that ends there: more
ways than there are, never fewer. What follows from them is in `backtracking`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dq.contracts.patterns.code_points import ANY, Ranges

# The length of a text that is thought of.
TEXT = 20_000
# Of the decision itself: so many steps take it about a tenth of a second.
MAX_WORK = 200_000


class TooAmbiguous(Exception):
    """A text may take too long; `spots` are where in the pattern."""

    def __init__(self, reason: str, *spots: int) -> None:
        super().__init__(reason)
        self.spots = tuple(sorted(set(spots)))


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of a pattern: positions to enter and to leave by, each with the number of ways (one, or more).

    `empty` is the number of ways through it without a character. `begins` says that no way leads in but past
    the text's begin. After the positions `sure`, or where it is `free`, it ends without asking any more.
    """

    first: Mapping[int, int] = field(default_factory=dict)
    last: Mapping[int, int] = field(default_factory=dict)
    empty: int = 1
    begins: bool = False
    sure: frozenset[int] = frozenset()
    free: bool = True


NOTHING = Fragment()
BEGIN = Fragment(begins=True, free=False)
# The end, or a word's boundary.
ASSERTION = Fragment(free=False)


class Automaton:
    """The positions of a pattern, made part by part as it is read."""

    def __init__(self, most_copied: int, text: int = TEXT) -> None:
        """A repetition stands as copies of so many positions at most, else as a loop.

        `text` is the number of characters of the text that is searched.
        """
        self.most_copied = most_copied
        self.text = text
        self.letters: list[Ranges] = []
        self.spots: list[int] = []
        # How many characters of a text a position may take, one loop counted with another.
        self.takes: list[int] = []
        self.follow: list[dict[int, int]] = []
        self.work = 0

    def read(self, letters: Ranges, spot: int) -> Fragment:
        """One character of a set."""
        position = len(self.letters)
        self.letters.append(letters)
        self.spots.append(spot)
        self.takes.append(1)
        self.follow.append({})
        return Fragment({position: 1}, {position: 1}, 0, False, frozenset([position]), False)

    def anything(self, spot: int) -> Fragment:
        """Any text, as a reference back to a group may be."""
        return self.repeated(self.read(ANY, spot), len(self.letters) - 1, 0, None)

    def then(self, one: Fragment, other: Fragment) -> Fragment:
        """One after the other."""
        self._linked(one, other, 1)
        return Fragment(
            self._added(one.first, other.first, one.empty),
            self._added(other.last, one.last, other.empty),
            min(2, one.empty * other.empty),
            one.begins or (not one.first and other.begins),
            other.sure | one.sure if other.free else other.sure,
            one.free and other.free,
        )

    def either(self, parts: Sequence[Fragment]) -> Fragment:
        """One of them."""
        if len(parts) == 1:
            return parts[0]
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for one in parts:
            first.update(one.first)
            last.update(one.last)
        return Fragment(
            first,
            last,
            min(2, sum(one.empty for one in parts)),
            all(one.begins for one in parts),
            frozenset().union(*(one.sure for one in parts)),
            any(one.free for one in parts),
        )

    def looked(self, part: Fragment) -> Fragment:
        """A lookaround: its ways are tried, and end."""
        return Fragment(part.first, {}, 1, False, frozenset(), False)

    def repeated(self, part: Fragment, since: int, low: int, high: int | None) -> Fragment:
        """The part, whose positions are those since a number, so many times."""
        size = len(self.letters) - since
        if high is not None and (
            high == 1 or high * size <= self.most_copied or (size == 1 and low == high <= 64)
        ):
            return self._counted(part, since, low, high)
        self._linked(part, part, 2 if part.empty and low > 1 else 1)
        taken = self.text if high is None else min(self.text, high * sum(self.takes[since:]))
        self.takes[since:] = [taken] * size
        return Fragment(
            part.first,
            self._added(part.last, part.last, part.empty),
            min(2, part.empty if low else 1 + part.empty),
            part.begins and low > 0,
            part.sure,
            part.free or not low,
        )

    def _counted(self, part: Fragment, since: int, low: int, high: int) -> Fragment:
        end = len(self.letters)
        copies = [part, *(self._copied(part, since, end) for _ in range(high - 1))][:high]
        made = NOTHING
        for number, one in reversed(list(enumerate(copies))):
            made = self.then(one, made)
            if number >= low:
                made = Fragment(made.first, made.last, min(2, made.empty + 1), False, made.sure, True)
        return made

    def _copied(self, part: Fragment, since: int, end: int) -> Fragment:
        by = len(self.letters) - since
        self.spend(end - since)
        self.letters += self.letters[since:end]
        self.spots += self.spots[since:end]
        self.takes += self.takes[since:end]
        self.follow += [{to + by: ways for to, ways in one.items()} for one in self.follow[since:end]]
        first = {one + by: ways for one, ways in part.first.items()}
        last = {one + by: ways for one, ways in part.last.items()}
        return Fragment(
            first, last, part.empty, part.begins, frozenset(one + by for one in part.sure), part.free
        )

    def _linked(self, one: Fragment, other: Fragment, ways: int) -> None:
        self.spend(len(one.last) * len(other.first))
        for position, out in one.last.items():
            follow = self.follow[position]
            for target, into in other.first.items():
                follow[target] = min(2, follow.get(target, 0) + out * into * ways)

    def _added(self, one: Mapping[int, int], other: Mapping[int, int], ways: int) -> Mapping[int, int]:
        """The ways of both, the other's as often as said. Two stand for many."""
        if not ways or not other:
            return one
        self.spend(len(one) + len(other))
        made = dict(one)
        for position, more in other.items():
            made[position] = min(2, made.get(position, 0) + more * ways)
        return made

    def spend(self, steps: int) -> None:
        """Counts the steps of the decision. Raises TooAmbiguous where they are too many."""
        self.work += steps
        if self.work > MAX_WORK:
            raise TooAmbiguous("it is too intricate to be judged")

"""How long a matcher that backtracks may try a pattern: how ambiguous its automaton is.

Java tries one way through a pattern after another. Where the same text has ever more ways, a text that does
not match takes ever longer: exponentially, when a loop can be walked in two ways on one text, and as a power
of the text's length, when loops behind each other can share a text out.

Sources: Weber and Seidl, On the degree of ambiguity of finite automata (1991); Weideman and others,
Analyzing matching time behavior of backtracking regular expression matchers by using ambiguity (2016).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from dq.contracts.patterns.automaton import TEXT, Automaton, Fragment, TooAmbiguous
from dq.contracts.patterns.code_points import ANY, masks

# A text of `TEXT` characters is answered within so many steps: the square of its length, and little beside.
MAX_STEPS = 2 * TEXT * TEXT
# More is not told apart.
_MANY = TEXT**3

Follow = list[Mapping[int, int]]


def judge(automaton: Automaton, whole: Fragment) -> None:
    """Raises TooAmbiguous where a search for the pattern may take too long on some text."""
    graph = _Graph(automaton, whole)
    graph.refuse_steps(*graph.shares())


def steps(automaton: Automaton, whole: Fragment) -> int:
    """Return the most steps that a search for the pattern takes in a text of the automaton's length.

    Raises TooAmbiguous where they grow exponentially with the text.
    """
    length, ways, straight, _ = _Graph(automaton, whole).shares()
    return length * ways * straight


@dataclass(frozen=True, slots=True)
class _Loop:
    """Positions that lead to each other, the characters of one of them at least, and of how long a text."""

    inside: frozenset[int]
    letters: int
    takes: int


class _Graph:
    """The automaton with a start, and the search that tries every place of a text, where it is one."""

    def __init__(self, automaton: Automaton, whole: Fragment) -> None:
        self.automaton = automaton
        self.whole = whole
        self.start = len(automaton.letters)
        self.letters = masks([*automaton.letters, ANY])
        self.takes = [*automaton.takes, automaton.text]
        begin = dict(whole.first) if whole.begins else {**whole.first, self.start: 1}
        self.follow: Follow = [*automaton.follow, begin]

    def spots(self, *positions: int) -> list[int]:
        return [self.automaton.spots[one] for one in positions if one < self.start]

    def loops(self, follow: Follow) -> list[_Loop]:
        """The loops, each before those that it leads to."""
        found = [
            _Loop(
                frozenset(group),
                _either(self.letters[one] for one in group),
                max(self.takes[one] for one in group),
            )
            for group in _components(follow)
            if len(group) > 1 or group[0] in follow[group[0]]
        ]
        return found[::-1]

    def refuse_two_ways_round(self, loop: _Loop) -> None:
        """Two ways apart, from one position on one text, that come together again inside of the loop."""
        inside = {one: [to for to in self.follow[one] if to in loop.inside] for one in loop.inside}
        seen: set[tuple[int, int]] = set()
        todo = [(one, one) for one in loop.inside]
        while todo:
            one, other = todo.pop()
            self.automaton.spend(len(inside[one]) * len(inside[other]))
            if one == other and any(self.follow[one][to] > 1 for to in inside[one]):
                raise self._twice(one)
            if one != other and not set(inside[one]).isdisjoint(inside[other]):
                raise self._twice(one, other)
            for left, right in product(inside[one], inside[other]):
                pair = (min(left, right), max(left, right))
                if left != right and pair not in seen and self.letters[left] & self.letters[right]:
                    seen.add(pair)
                    todo.append(pair)

    def _twice(self, *positions: int) -> TooAmbiguous:
        return TooAmbiguous(
            "what is repeated there can match one text in ever more ways", *self.spots(*positions)
        )

    def shares(self) -> tuple[int, int, int, tuple[_Loop, ...]]:
        """Return the factors of a search's steps, and the loops that share the text out.

        They are the text's length, the ways to share it out among loops, and the ways that no loop
        multiplies. Raises TooAmbiguous.
        """
        for loop in self.loops(self.follow):
            self.refuse_two_ways_round(loop)
        # Where the pattern has ended, the search has: nothing is tried behind it.
        follow: Follow = [{} if one in self.whole.sure else to for one, to in enumerate(self.follow)]
        loops = self.loops(follow)
        ways, sharing = self._shared_out(follow, loops)
        return max((one.takes for one in loops), default=1), ways, self._straight(follow), sharing

    def refuse_steps(self, length: int, ways: int, straight: int, sharing: tuple[_Loop, ...]) -> None:
        """Raises TooAmbiguous where the steps are too many."""
        if length * ways * straight <= MAX_STEPS:
            return
        if ways == 1:
            raise TooAmbiguous(f"there are {min(straight, _MANY):,} ways through it")
        raise TooAmbiguous(
            "one text can be shared out in too many ways among what is repeated there",
            *(spot for loop in sharing for spot in self.spots(min(loop.inside))),
        )

    def _shared_out(self, follow: Follow, loops: list[_Loop]) -> tuple[int, tuple[_Loop, ...]]:
        """The largest number of ways along one path, and the loops that make it."""
        found: list[tuple[int, tuple[_Loop, ...]]] = [(1, ())] * len(loops)
        for at, one in enumerate(loops):
            behind = self._reached(follow, one)
            ways, path = found[at]
            for then in range(at + 1, len(loops)):
                other = loops[then]
                self.automaton.spend(1)
                if behind.isdisjoint(other.inside):
                    continue
                made = (ways, path)
                if one.letters & other.letters and self._share(follow, one, other):
                    made = (ways * min(one.takes, other.takes), (*(path or (one,)), other))
                found[then] = max(found[then], made, key=lambda each: each[0])
        return max(found, key=lambda each: each[0], default=(1, ()))

    def _reached(self, follow: Follow, loop: _Loop) -> set[int]:
        seen, todo = set(loop.inside), list(loop.inside)
        while todo:
            self.automaton.spend(1)
            for to in follow[todo.pop()]:
                if to not in seen:
                    seen.add(to)
                    todo.append(to)
        return seen

    def _share(self, follow: Follow, one: _Loop, other: _Loop) -> bool:
        """Whether a text leads round the one, round the other, and from the one into the other."""
        for begin, end in product(one.inside, other.inside):
            seen: set[tuple[int, int, int]] = set()
            todo = [(begin, begin, end)]
            while todo:
                left, middle, right = todo.pop()
                lefts = [to for to in follow[left] if to in one.inside]
                rights = [to for to in follow[right] if to in other.inside]
                self.automaton.spend(len(lefts) * len(rights) * len(follow[middle]))
                for each in product(lefts, follow[middle], rights):
                    if (
                        each in seen
                        or not self.letters[each[0]] & self.letters[each[1]] & self.letters[each[2]]
                    ):
                        continue
                    if each == (begin, end, end):
                        return True
                    seen.add(each)
                    todo.append(each)
        return False

    def _straight(self, follow: Follow) -> int:
        """The ways that one text has besides the loops: at most the product of the choices on one path."""
        ways: dict[int, int] = {}
        for group in _components(follow):
            inside = set(group)
            choices = max(self._choices(follow[one], inside) for one in group)
            after = max((ways[to] for one in group for to in follow[one] if to not in inside), default=1)
            ways.update(dict.fromkeys(group, min(_MANY, max(1, choices) * after)))
        return ways[self.start]

    def _choices(self, follow: Mapping[int, int], inside: set[int]) -> int:
        """The most ways out on one character."""
        # The characters for which there is one way at least, two, three, and so on.
        levels: list[int] = []
        for to, number in follow.items():
            for _ in range(0 if to in inside else number):
                left = self.letters[to]
                for at, level in enumerate(levels):
                    levels[at], left = level | left, level & left
                self.automaton.spend(len(levels))
                if left:
                    levels.append(left)
        return len(levels)


def _either(numbers: Iterable[int]) -> int:
    made = 0
    for one in numbers:
        made |= one
    return made


def _components(follow: Follow) -> Iterator[list[int]]:
    """Positions that lead to each other, as groups; a group comes after all that it leads to (Tarjan)."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    waiting: set[int] = set()
    for root in range(len(follow)):
        todo = [] if root in number else [(root, iter(follow[root]))]
        while todo:
            one, further = todo[-1]
            if one not in number:
                number[one] = low[one] = len(number)
                stack.append(one)
                waiting.add(one)
            for to in further:
                if to not in number:
                    todo.append((to, iter(follow[to])))
                    break
                if to in waiting:
                    low[one] = min(low[one], low[to])
            else:
                todo.pop()
                if todo:
                    low[todo[-1][0]] = min(low[todo[-1][0]], low[one])
                if low[one] == number[one]:
                    group: list[int] = []
                    while not group or group[-1] != one:
                        group.append(stack.pop())
                        waiting.discard(group[-1])
                    yield group

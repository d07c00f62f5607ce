"""What is known of a pattern's groups while it is read, and of those that may be repeated."""

from __future__ import annotations

from dataclasses import dataclass, field

from dq.contracts.patterns.automaton import NOTHING, Fragment


@dataclass(frozen=True, slots=True)
class GroupTurns:
    """A group that may be repeated: from where to where it stands with its quantifier (the `?` of a lazy one
    left out), the positions in it, whether a turn may be empty, and how deep Java calls itself for a turn.
    """

    begin: int
    end: int
    lazy: bool
    since: int
    until: int
    most: int | None
    empty: bool
    calls: int


@dataclass(slots=True)
class OpenGroup:
    """A group that is being read: its alternatives, what stands in this one, and the last piece of it.

    `number` is that of a group that can be referred to. `calls` is how deep Java calls itself for this
    alternative, `deepest` for those before it, `last_calls` for the last piece where it is a group.
    """

    at: int
    text: str
    since: int
    number: int = 0
    alternatives: list[Fragment] = field(default_factory=list)
    before: Fragment = NOTHING
    last: Fragment = NOTHING
    last_since: int = 0
    last_at: int = 0
    last_calls: int = 0
    calls: int = 0
    deepest: int = 0

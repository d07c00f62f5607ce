"""What the subjects of an incident are called: kept among their facts, so that no word is lost on the way."""

from __future__ import annotations

from collections.abc import Collection

TITLE = "title"
"""The fact of this label is what a subject is called while it is the one that is told; it is no line."""

Facts = tuple[tuple[str, str], ...]


def titled(title: str, facts: Facts) -> Facts:
    """The facts of a subject that is called so; as they are where it has no title of its own."""
    return ((TITLE, title), *facts) if title else facts


def title_after(now: str, end: str, still: Collection[Facts]) -> str:
    """What an incident is called once a subject has ended: as the newest that is left, else as the end says.

    `still` are the facts of those that are left, oldest first. Without words of an end it keeps its title.
    """
    if not end:
        return now
    newest = [*still][-1:]
    return (dict(newest[0]).get(TITLE) or now) if newest else end

"""Who consumes what, from the subscription files of a registry: handed in as parsed values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Subscription:
    """One consumer of a contract. No `major` means every one; no `paths` means all of it."""

    consumer: str
    contract: str
    major: str = ""
    paths: tuple[str, ...] = ()

    def concerns(self, contract: str, major: str, path: str) -> bool:
        """Whether a change at this path reaches the consumer."""
        if self.contract != contract or self.major not in ("", major):
            return False
        return not self.paths or not path or any(_overlap(own, path) for own in self.paths)


def _overlap(first: str, second: str) -> bool:
    """Whether one path is at, above or below the other: `orders` and `orders.id` are."""
    short, long = sorted((first, second), key=len)
    return long == short or long.startswith((f"{short}.", f"{short}["))


def read(value: Any) -> list[Subscription]:
    """The subscriptions in one parsed file: a mapping or a list of mappings with `consumer` and `contract`.

    `version` (or `major`) narrows to a major, `elements` to paths such as `orders.amount`. Entries without
    the two names are left out: they subscribe to nothing that we could name.
    """
    entries = value if isinstance(value, list) else [value]
    if isinstance(value, Mapping) and isinstance(value.get("subscriptions"), list):
        entries = [{**value, **one} for one in value["subscriptions"] if isinstance(one, Mapping)]
    found = []
    for entry in entries:
        if not isinstance(entry, Mapping):
            continue
        consumer, contract = _named(entry.get("consumer")), _named(entry.get("contract"))
        if consumer and contract:
            version = str(entry.get("major", entry.get("version", "")) or "")
            paths = entry.get("elements") or entry.get("columns") or ()
            major = version.removeprefix("v").partition(".")[0]
            found.append(Subscription(consumer, contract, major, tuple(str(path) for path in paths)))
    return found


def _named(value: Any) -> str:
    """A name, given as text or as the `name` or `id` of a mapping."""
    if isinstance(value, Mapping):
        value = value.get("name") or value.get("id")
    return str(value) if value else ""


def names(subscriptions: Iterable[Subscription], contract: str, major: str, path: str) -> list[str]:
    """The consumers that a change reaches, sorted, each once."""
    return sorted({one.consumer for one in subscriptions if one.concerns(contract, major, path)})

"""Where every value of a document was written, kept beside the value at little cost."""

from __future__ import annotations

from dataclasses import dataclass, field

from dq.contracts.shared.outcome import Location

# The key under which a mapping read from YAML carries its Place. No YAML key can be equal to it,
# because NUL is refused before parsing.
PLACE = "\0place"

# The reader refuses a document whose values lie deeper.
MAX_DEPTH = 64

Spot = tuple[int, int]


@dataclass(slots=True, eq=False)
class Place:
    """Where one mapping was written, and where each of its keys, values and list items stands.

    `path` is the way from the document's root, such as `schema[0].properties[2]`. Spots are
    (line, column), counting from 1. `raw` has the text of values that YAML turned into something
    else than what was written (`1.10`, `yes`, `2026-01-01`); `cut` has the values of keys that the
    loader left out because the model has no room for them.
    """

    file: str
    path: str
    spot: Spot
    keys: dict[str, Spot] = field(default_factory=dict)
    values: dict[str, Spot] = field(default_factory=dict)
    items: dict[str, list[Spot]] = field(default_factory=dict)
    raw: dict[str, str] = field(default_factory=dict)
    # Made on demand: nearly no mapping has any.
    cut: dict[str, object] | None = None
    # The SHA-256 of the whole file, at the document's root only.
    digest: str = ""

    def at(self, key: str | None = None, index: int | None = None) -> Location:
        """The place of a key's value, of one item of its list, or of the mapping itself.

        A key that is absent gives the mapping's own place, so that a finding about something missing
        stands where it would be added.
        """
        spot = self.spot
        if key is not None:
            spot = self.values.get(key, self.spot)
            if index is not None and index < len(self.items.get(key, ())):
                spot = self.items[key][index]
        return Location(self.file, *spot)

    def at_key(self, key: str) -> Location:
        """The place of the key itself: for a key that should not be there."""
        return Location(self.file, *self.keys.get(key, self.spot))

    def below(self, key: str) -> str:
        """The path of one of its keys."""
        return f"{self.path}.{key}" if self.path else key


def plain(value: object) -> object:
    """The value without the Places inside it, as any other YAML reader would give it."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items() if key != PLACE}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value

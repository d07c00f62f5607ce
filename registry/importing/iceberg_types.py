"""Iceberg's columns as an import has them, and what has to be said of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dq.contracts.types import DataType
from dq.lake.types import ICEBERG_NANOSECONDS, from_iceberg
from dq.registry.importing.documents import Mapped, listed, mapped, shown, text
from dq.registry.importing.found import FoundColumn, Said, Unfolding
from dq.registry.importing.guess import STRING, foreign


def field_id(value: object) -> int | None:
    """Return the id of a field as the metadata has it, or None for what is no id."""
    return value if isinstance(value, int) else None


@dataclass(slots=True)
class IcebergTypes:
    """Reads the columns of the metadata in `file`; `lost` is what a contract cannot say of them."""

    file: str
    lost: list[str] = field(default_factory=list)
    unfolding: Unfolding = field(init=False)

    def __post_init__(self) -> None:
        self.unfolding = Unfolding(self.file)

    def columns(self, schema: Mapped) -> Iterator[tuple[int, FoundColumn]]:
        """The fields of the schema by their ids; one without an id of its own is counted backwards."""
        seen: set[int] = set()
        for at, one in enumerate(map(mapped, listed(schema.get("fields"))), 1):
            name = str(one.get("name"))
            said: dict[str, Said] = {}
            kind, note = self.type(one.get("type"), name, "", said)
            if one.get("initial-default") is not None:
                self.lost.append(f"{name}: rows without it have {shown(one['initial-default'])}")
            required = one.get("required") is True
            number = field_id(one.get("id"))
            number = -at if number is None or number in seen else number
            seen.add(number)
            yield number, FoundColumn(name, kind, text(one.get("doc")), required, note, said)

    def type(self, written: object, name: str, path: str, said: dict[str, Said]) -> tuple[DataType, str]:
        """The type, and what has to be said of it; `said` gets what it says of its fields."""
        self.unfolding.step()
        if isinstance(written, str):
            return self._plain(written, name, path, said)
        inner = mapped(written)
        if inner.get("type") == "struct":
            parts, names, notes = [], [], []
            for one in map(mapped, listed(inner.get("fields"))):
                names.append(str(one.get("name")))
                below = f"{path}.{names[-1]}".lstrip(".")
                kind, note = self.type(one.get("type"), name, below, said)
                more: dict[str, object] = (
                    {"description": text(one.get("doc"))} if text(one.get("doc")) else {}
                )
                if one.get("required") is True:
                    more["required"] = True
                if more:
                    said[below] = {**more, **said.get(below, {})}
                parts.append(kind)
                notes.append(note)
            return DataType("struct", (), tuple(parts), tuple(names)), "; ".join(filter(None, notes))
        if inner.get("type") == "list":
            kind, note = self.type(inner.get("element"), name, f"{path}[]", said)
            if inner.get("element-required") is True:
                said[f"{path}[]"] = {"required": True, **said.get(f"{path}[]", {})}
            return DataType("array", (), (kind,)), note
        if inner.get("type") == "map":
            key, first = self.type(inner.get("key"), name, f"{path}.^".lstrip("."), said)
            value, second = self.type(inner.get("value"), name, f"{path}.*".lstrip("."), said)
            if inner.get("value-required") is True:
                below = f"{path}.*".lstrip(".")
                said[below] = {"required": True, **said.get(below, {})}
            return DataType("map", (), (key, value)), "; ".join(filter(None, (first, second)))
        return STRING, "declared as nothing"

    def _plain(self, written: str, name: str, path: str, said: dict[str, Said]) -> tuple[DataType, str]:
        known = from_iceberg(written)
        # A column of the type unknown is NULL in every row, and Spark reads it so.
        if (known is None and written != "unknown") or written in ICEBERG_NANOSECONDS:
            self.lost.append(f"{name}: Spark opens no table with a column of the type {shown(written)}")
        if known is not None:
            return known
        kind, note, said[path] = foreign(shown(written))
        return kind, note

"""A contract that a person has written on, against its source as it is now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dq.contracts.model import Contract, SchemaObject
from dq.contracts.types import DataType, catalog_type
from dq.registry.importing.model import FoundColumn, FoundTable
from dq.registry.importing.type_inference import DOUBT, GUESS

# Whether values whose type is only guessed, or in doubt, can be of the type that a contract promises.

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_NUMBERS = _INTEGERS | {"decimal", "float", "double"}
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
_NESTED = frozenset({"struct", "array", "map"})
# Formats of texts write dates as numbers, too: 20260501.
_FROM: dict[str, frozenset[str]] = {
    **dict.fromkeys(_NUMBERS, _NUMBERS),
    **dict.fromkeys(_TIMES, _TIMES | _INTEGERS | {"string", "decimal"}),
    # MySQL writes BOOLEAN as TINYINT(1).
    "boolean": frozenset({"boolean", "tinyint"}),
}


def is_plausible(promised: DataType, column: FoundColumn, *, texts: bool) -> bool:
    """Whether the column can be what is promised.

    `texts`: its values are texts whatever they mean, as in CSV and in names of folders, so that a guess of
    text excludes no plain type.
    """
    return _Comparison(column.unseen, column.evidence.startswith(GUESS), texts).fits(
        promised, column.type, ""
    )


@dataclass(frozen=True, slots=True)
class _Comparison:
    unseen: frozenset[str]
    measured: bool
    texts: bool

    def fits(self, promised: DataType, guessed: DataType, path: str) -> bool:
        if path.lstrip(".") in self.unseen or promised.name in ("string", "char", "varchar", "variant"):
            # Readers take whatever stands there as text.
            return True
        if promised.name in _NESTED:
            return self._nested(promised, guessed, path)
        if guessed.name in _NESTED:
            return False
        if guessed.name == "string" and (self.texts or not self.measured):
            return True
        if promised.name in _INTEGERS and self.measured and not _is_whole(guessed):
            return False
        return guessed.name in _FROM.get(promised.name, {guessed.name})

    def _nested(self, promised: DataType, guessed: DataType, path: str) -> bool:
        if guessed.name == "string" and (self.texts or not self.measured):
            return True
        if promised.name == "map" and guessed.name == "struct":
            # Objects of JSON are maps as well; their keys are texts.
            pairs = zip(guessed.names, guessed.parts, strict=True)
            return all(self.fits(promised.parts[1], part, f"{path}.{name}") for name, part in pairs)
        if promised.name != guessed.name:
            return False
        if promised.name != "struct":
            signs = ("[]",) if promised.name == "array" else (".^", ".*")
            parts = zip(promised.parts, guessed.parts, signs, strict=True)
            return all(self.fits(first, second, f"{path}{sign}") for first, second, sign in parts)
        fields = {name.lower(): part for name, part in zip(promised.names, promised.parts, strict=True)}
        values = {name.lower(): (name, part) for name, part in zip(guessed.names, guessed.parts, strict=True)}
        return fields.keys() == values.keys() and all(
            self.fits(part, values[key][1], f"{path}.{values[key][0]}") for key, part in fields.items()
        )


def _is_whole(kind: DataType) -> bool:
    return kind.name in _INTEGERS or (kind.name == "decimal" and kind.numbers[1:] == (0,))


def differences(contract: Contract, tables: Sequence[FoundTable]) -> list[str]:
    """What the source has that the contract does not say, and the other way about, a line each.

    Names are compared without case; of one object and one table they do not matter. A guessed type, or one
    in doubt, is a difference only where its values cannot be what the contract says.
    """
    if len(contract.objects) == len(tables) == 1:
        return list(_of_object(contract.objects[0], tables[0]))
    found = {table.column.lower(): table for table in tables}
    known = {one.column.lower(): one for one in contract.objects}
    lines = [f"+ object {table.name}" for name, table in found.items() if name not in known]
    lines += [f"- object {one.column}" for name, one in known.items() if name not in found]
    for name, one in known.items():
        if name in found:
            lines += _of_object(one, found[name])
    return lines


def _of_object(one: SchemaObject, table: FoundTable) -> Iterator[str]:
    keys = [column.name.lower() for column in table.partitions]
    columns = {column.name.lower(): column for column in (*table.columns, *table.partitions)}
    promised = {prop.column.lower(): prop for prop in one.properties}
    for name, column in columns.items():
        if name not in promised:
            yield f"+ {one.column}.{column.name}: {column.type}{_why(column)}"
    for name, prop in promised.items():
        there, said = columns.get(name), catalog_type(prop)
        if there is None:
            yield f"- {one.column}.{prop.column}: {said}"
        elif not _same(said, there.type):
            # Values of CSV and names of folders are texts; a source without rows says nothing of its values.
            texts = table.format != "json" or name in keys
            if there.evidence.startswith((GUESS, DOUBT)) and is_plausible(said, there, texts=texts):
                continue
            yield f"~ {one.column}.{prop.column}: {said} → {there.type}{_why(there)}"
    order = [prop.column.lower() for prop in one.partition_keys()]
    if order != keys:
        yield f"~ {one.column} partition keys: {', '.join(order) or 'none'} → {', '.join(keys) or 'none'}"


def _same(said: DataType, there: DataType) -> bool:
    """Whether a source that has a type can be one that is promised: files have no word for the length of a
    text, and catalogs none for the case of a name."""
    if said.name in _TEXTS and there.name == "string":
        return True
    names = [name.lower() for name in said.names] == [name.lower() for name in there.names]
    alike = (said.name, said.numbers, len(said.parts)) == (there.name, there.numbers, len(there.parts))
    return names and alike and all(map(_same, said.parts, there.parts))


_TEXTS = ("char", "varchar")


def _why(column: FoundColumn) -> str:
    return f" ({column.evidence})" if column.evidence else ""

"""Whether values whose type is only guessed, or in doubt, can be of the type that a contract promises."""

from __future__ import annotations

from dataclasses import dataclass

from dq.contracts.types import DataType
from dq.registry.importing.found import FoundColumn
from dq.registry.importing.guess import GUESS

_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
_NUMBERS = _WHOLE | {"decimal", "float", "double"}
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
_NESTED = frozenset({"struct", "array", "map"})
# Formats of texts write dates as numbers, too: 20260501.
_FROM: dict[str, frozenset[str]] = {
    **dict.fromkeys(_NUMBERS, _NUMBERS),
    **dict.fromkeys(_TIMES, _TIMES | _WHOLE | {"string", "decimal"}),
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
        if promised.name in _WHOLE and self.measured and not _is_whole(guessed):
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
    return kind.name in _WHOLE or (kind.name == "decimal" and kind.numbers[1:] == (0,))

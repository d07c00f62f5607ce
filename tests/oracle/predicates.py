"""Predicates of `scope.where` as values: written as SQL for the contract, and told in three-valued logic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Predicate:
    """`text` is its SQL; `truth` gives True, False or None (unknown) for a row."""

    text: str
    truth: Callable[[Row], bool | None]

    def __repr__(self) -> str:
        return self.text


def true_for(predicate: Predicate, row: Row) -> bool:
    return predicate.truth(row) is True


_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda one, other: one == other,
    "<>": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    ">=": lambda one, other: one >= other,
}


def _comparison(name: str, operator: str, value: int | str) -> Predicate:
    written = f"'{value}'" if isinstance(value, str) else str(value)

    def truth(row: Row) -> bool | None:
        return None if row[name] is None else _COMPARED[operator](row[name], value)

    return Predicate(f"`{name}` {operator} {written}", truth)


def _is_null(name: str, negated: bool) -> Predicate:
    text = f"`{name}` IS {'NOT ' if negated else ''}NULL"
    return Predicate(text, lambda row: (row[name] is None) is not negated)


def _negated(inner: Predicate) -> Predicate:
    def truth(row: Row) -> bool | None:
        found = inner.truth(row)
        return None if found is None else not found

    return Predicate(f"NOT ({inner.text})", truth)


def _joined(word: str, one: Predicate, other: Predicate) -> Predicate:
    deciding = word == "OR"

    def truth(row: Row) -> bool | None:
        found = (one.truth(row), other.truth(row))
        if deciding in found:
            return deciding
        return None if None in found else not deciding

    return Predicate(f"({one.text}) {word} ({other.text})", truth)


def predicates(columns: dict[str, list[Any]]) -> st.SearchStrategy[Predicate]:
    """Predicates on columns of integers or plain texts, each with values to compare it with."""
    names = st.sampled_from(sorted(columns))
    compared = names.flatmap(
        lambda name: st.builds(
            _comparison,
            st.just(name),
            st.sampled_from(sorted(_COMPARED)),
            st.sampled_from(columns[name]),
        )
    )
    leaves = st.one_of(compared, st.builds(_is_null, names, st.booleans()))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(_negated, inner), st.builds(_joined, st.sampled_from(["AND", "OR"]), inner, inner)
        ),
        max_leaves=3,
    )

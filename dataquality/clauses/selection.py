"""Which clauses a run asks for when it does not ask for all: by check, path, or a rule's id or name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.errors import UsageError
from dq.contracts.shared.spelling import nearest
from dq.dataquality.clauses.clause import Clause, NoResult
from dq.dataquality.clauses.coverage import Account, State, accounts


def wanted(one: SchemaObject, clauses: Sequence[Clause], words: Sequence[str]) -> list[Clause]:
    """The clauses of an object that one of the words stands for; no words at all stand for every clause."""
    if not words:
        return list(clauses)
    titles = _titles(one)
    asked = set(words)
    return [clause for clause in clauses if asked & _names(clause, titles)]


def testable(clauses: Sequence[Clause]) -> list[Clause]:
    """Those that end as a result: not those that no data can break, or that nothing evaluates."""
    return [clause for clause in clauses if not isinstance(clause.ask, NoResult)]


def without(
    accounted: Sequence[Account], clauses: Sequence[Clause], asked: Sequence[Clause]
) -> tuple[Account, ...]:
    """The account of a run of some clauses: what it did not ask for is not evaluated."""
    paths = {path for clause in asked for path in (clause.path, *clause.covers)}
    left = {path for clause in clauses for path in (clause.path, *clause.covers)} - paths
    return tuple(
        replace(one, state=State.NOT_EVALUATED, reason="this run did not ask for it")
        if one.path in left and one.state is State.ENFORCED
        else one
        for one in accounted
    )


Found = tuple[Contract, SchemaObject, Sequence[Clause]]


def refuse_unknown(found: Sequence[Found], words: Sequence[str]) -> None:
    """Raises UsageError for a word that stands for no clause that can be tested in any of these objects.

    The error says why nothing tests it, where a contract has such a rule, and else the nearest known name.
    """
    known: dict[str, bool] = {}
    for _, one, clauses in found:
        titles = _titles(one)
        for clause in clauses:
            tested = not isinstance(clause.ask, NoResult)
            for name in _names(clause, titles):
                known[name] = known.get(name, False) or tested
    for word in words:
        if known.get(word):
            continue
        reason = next(_reasons(found, word), None)
        if reason is not None:
            raise UsageError(
                f"--rule {word!r} is not tested: {reason}.", "'dq explain' accounts for each clause."
            )
        near = nearest(word, [name for name, tested in known.items() if tested])
        mend = f"Did you mean {near!r}?" if near else "'dq explain' lists the clauses of a contract."
        raise UsageError(
            f"--rule {word!r} is no check, clause path, or id or name of a quality rule here.", mend
        )


def _names(clause: Clause, titles: Mapping[str, tuple[str, ...]]) -> set[str]:
    return {clause.check, clause.path, *clause.covers, *titles.get(clause.path, ())}


def _titles(one: SchemaObject) -> dict[str, tuple[str, ...]]:
    """The id and the name of each quality rule, by its path."""
    rules = [rule for element in (one, *one.walk()) for rule in element.quality]
    return {rule.path(): tuple(text for text in (rule.id, rule.name) if text) for rule in rules}


def _reasons(found: Sequence[Found], word: str) -> Iterator[str]:
    for contract, one, clauses in found:
        titles = _titles(one)
        for account in accounts(contract, one, clauses):
            if word == account.path or word in titles.get(account.path, ()):
                yield account.reason

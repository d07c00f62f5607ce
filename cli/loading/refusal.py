"""A contract that a command cannot take along is that contract's own finding; every other one goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from dq.contracts.model import Contract
from dq.contracts.shared.outcome import DqError, Finding, Severity, StoreError

RULE = "contract-refused"

T = TypeVar("T")
R = TypeVar("R")


def refusal(contract: Contract, error: DqError) -> Finding:
    """What keeps a contract out of a run, at the place that the error names, else at its beginning."""
    at = error.at or contract.at()
    return Finding(RULE, Severity.ERROR, error.what, error.mend, at, contract=contract.id)


def each(
    items: Iterable[T], contract_of: Callable[[T], Contract], work: Callable[[T], R]
) -> tuple[list[R], list[Finding]]:
    """What the work gave for every item that it could be done for, and each refusal once.

    A store that does not answer is no contract's fault: StoreError is raised.
    """
    done: list[R] = []
    refused: dict[Finding, None] = {}
    for item in items:
        try:
            done.append(work(item))
        except StoreError:
            raise
        except DqError as error:
            refused[refusal(contract_of(item), error)] = None
    return done, list(refused)

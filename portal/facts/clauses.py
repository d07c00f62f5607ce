"""What became of each clause of an object: kept on which grounds, broken, not told, or enforced by nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dq.contracts.shared.outcome import AnsweredBy, Status
from dq.dataquality.clauses.coverage import Account, State
from dq.dataquality.results.check_runs import Line

WATCHER = "dq watch"


class Fate(StrEnum):
    """What is known of one clause. `COUNTED` was read in an earlier run where its files are as they were.
    `KEPT` is without its grounds, which an older dq did not note;
    `UNCHECKED` was never asked of this version's data, and `UNTOLD` had no answer."""

    BROKEN = "broken"
    UNTOLD = "untold"
    UNCHECKED = "unchecked"
    PROVEN = "proven"
    SCANNED = "scanned"
    COUNTED = "counted"
    SCHEMA = "schema"
    KEPT = "kept"
    WATCHED = "watched"
    DOCUMENTED = "documented"


@dataclass(frozen=True, slots=True)
class ClauseFate:
    """One clause and what is known of it; `how` says what tests it, or why nothing does."""

    account: Account
    fate: Fate
    how: str


def fates(
    accounts: Sequence[Account],
    answered_by: Mapping[str, str],
    lines: Sequence[Line],
    version: str,
    named: Callable[[str], str],
) -> Iterator[ClauseFate]:
    """The fate of each clause by the results of the scope that was checked last.

    `answered_by` leads from a clause to the one whose check tests it too. A path is by positions: a result
    counts in its own version alone, and where `named` calls the clause at that path as the result does.
    """
    found: dict[str, list[Line]] = {}
    for line in lines:
        if line.version == version and line.name in ("", named(line.clause)):
            found.setdefault(line.clause, []).append(line)
    earlier = max((line for line in lines if line.version != version), key=lambda line: line.at, default=None)
    never = f"last checked under version {earlier.version}" if earlier else "never checked"
    for account in accounts:
        answers = found.get(account.path) or found.get(answered_by.get(account.path, "")) or []
        yield _fate(account, answers, never)


_WORST = (Status.FAIL, Status.ERROR, Status.SKIPPED, Status.PASS)
# Of several checks of one clause, the least of their grounds counts.
_GROUNDS = (
    (None, Fate.KEPT),
    (AnsweredBy.SCAN, Fate.SCANNED),
    (AnsweredBy.KEPT, Fate.COUNTED),
    (AnsweredBy.STATISTICS, Fate.PROVEN),
    (AnsweredBy.SCHEMA, Fate.SCHEMA),
)


def _fate(account: Account, answers: Sequence[Line], never: str) -> ClauseFate:
    if account.state is not State.ENFORCED:
        return ClauseFate(account, Fate.DOCUMENTED, f"{account.state.value}: {account.reason}")
    if account.reason == WATCHER:
        return ClauseFate(account, Fate.WATCHED, "see the deliveries above")
    match min((line.status for line in answers), key=_WORST.index, default=None):
        case Status.PASS:
            grounds = {line.answered_by for line in answers}
            return ClauseFate(account, next(fate for at, fate in _GROUNDS if at in grounds), account.reason)
        case Status.FAIL:
            return ClauseFate(account, Fate.BROKEN, account.reason)
        case None:
            return ClauseFate(account, Fate.UNCHECKED, f"{account.reason}: {never}")
        case Status.SKIPPED:
            return ClauseFate(account, Fate.UNTOLD, f"{account.reason}: there was nothing to measure")
    return ClauseFate(account, Fate.UNTOLD, f"{account.reason}: the check had no answer")

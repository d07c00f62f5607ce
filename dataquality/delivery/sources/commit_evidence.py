"""Which commit is a cycle's delivery: the first that brought rows into its partition, or in its time."""

from __future__ import annotations

from collections.abc import Callable, Collection

from dq.contracts.schedule import Cycle
from dq.contracts.schedule.cycle import Partition
from dq.contracts.slo import Slo
from dq.dataquality.delivery.cycle import CycleWindow
from dq.dataquality.delivery.sources.commit_history import SeenCommits
from dq.dataquality.delivery.sources.evidence import Evidence
from dq.lake.commits import Brought, Commit, Pairs


def delivered(
    slo: Slo,
    cycle: Cycle,
    partition: Partition,
    seen: SeenCommits,
    window: CycleWindow,
    live: Callable[[], Collection[Pairs] | None] = lambda: None,
    *,
    revoked: bool = False,
) -> Evidence | None:
    """What the commits of a table say of one partition of a cycle, or of the snapshot where it has none.

    Nothing found shows that nothing came only where no commit since the cycle before is lacking. What a later
    commit has taken away did not stay: `live` says which partitions have data now, None where that is not
    known. Of what is `revoked` already, only what came after it was taken away counts.
    """
    unclear, found, taken = "", None, False
    for commit in seen.commits:
        if not partition and not window.holds(commit.at):
            continue
        parts = [one for one in commit.brought if one.rows != 0 or slo.delivery.empty == "allowed"]
        met = [_meets(one, partition) for one in parts]
        if True in met:
            counts = [one.rows for one, meets in zip(parts, met, strict=True) if meets]
            rows = None if None in counts else sum(count for count in counts if count is not None)
            # In the window there is nothing to guess any more.
            found = found or Evidence("commit", commit.at, rows=rows, names_cycle=not partition)
            taken = False
        elif any(_meets(Brought(pairs, None), partition) is not False for pairs in commit.took):
            found, taken = (None if revoked else found), True
        elif None in met and window.holds(commit.at):
            unclear = unclear or _unclear(commit, partition)
    if found is not None:
        return None if taken and _is_gone(partition, live()) else found
    if unclear:
        return Evidence("commit", readable=False, problem=unclear)
    begins = window.before or cycle.due_at
    if seen.since is not None and seen.since > begins and not revoked:
        problem = f"the log of the table begins {seen.since:%Y-%m-%d %H:%M:%S}Z, and it may have come before"
        return Evidence("commit", readable=False, problem=problem, settled=True)
    return None


def _is_gone(partition: Partition, live: Collection[Pairs] | None) -> bool:
    """Whether nothing of a partition is left; what nobody can tell is there."""
    if live is None:
        return False
    return all(_meets(Brought(pairs, None), partition) is False for pairs in live)


def _meets(brought: Brought, partition: Partition) -> bool | None:
    """Whether rows came into the partition; None where a column of it is not named there."""
    there = {name.lower(): value for name, value in brought.partition}
    told = [
        _same(there[column.lower()], value) if column.lower() in there else None
        for column, value in partition
    ]
    if False in told:
        return False
    if None not in told:
        return True
    # An empty commit has no partition at all.
    return False if brought.rows == 0 else None


def _same(stored: str, wanted: str) -> bool:
    # A path may write the number 5 as 05; logs keep numbers.
    return stored == wanted or (stored.isdecimal() and wanted.isdecimal() and int(stored) == int(wanted))


def _unclear(commit: Commit, partition: Partition) -> str:
    columns = ", ".join(column for column, _ in partition)
    return (
        f"its commits do not name {columns}, by which it would have to be partitioned (commit {commit.ident})"
    )

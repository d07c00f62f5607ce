"""`dq.audit`: deliveries computed again from the contracts of their time, and compared with the store."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from dq.contracts.shared.outcome import Finding
from dq.dataquality.delivery.replay import Audit, keys
from dq.dataquality.delivery.replay import audit as compare
from dq.operations.registry_files import load, promises_of_all_times
from dq.operations.runtime.context import World, called
from dq.store.engine import Store


@dataclass(frozen=True, slots=True)
class AuditOutcome:
    """Which stored deliveries agree with the contracts, which do not, and which could not be compared."""

    rows: Audit
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the store holds no delivery of these contracts."""
        return not (self.rows.agreeing or self.rows.wrong or self.rows.unproven)

    @property
    def exit_code(self) -> int:
        """0 the rows agree, 1 they do not, 3 something could not be read or compared."""
        # What nobody could compare is not fine.
        unsure = self.is_empty or self.rows.unproven or self.findings
        return 1 if self.rows.wrong else 3 if unsure else 0

    def as_dict(self) -> dict[str, object]:
        """What `dq audit --format json` prints."""
        return {
            "agreeing": self.rows.agreeing,
            "unproven": len(self.rows.unproven),
            "wrong": [
                {
                    "contract": wrong.key[0],
                    "object": wrong.key[1],
                    "slo": wrong.key[2],
                    "due_at": wrong.due_at.isoformat(),
                    "what": wrong.what,
                }
                for wrong in self.rows.wrong
            ],
        }


def audit(
    paths: Path | str | Sequence[Path | str] = ".",
    *,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> AuditOutcome:
    """Compute all deliveries again from the contracts, as they are and as Git knows they were, and compare.

    As `dq audit` does. `folder` stands for the working folder, where settings and store are, and from which
    relative paths lead. With `now`, an aware instant, the rows that were there then are compared.

    Raises UsageError for what does not fit, and Unreadable for a path without contracts, for a store, and
    where Git cannot answer.
    """
    world, places = called(paths, folder, now)
    with closing(world.store()) as store:
        outcome = run(world, store, places)
    return replace(outcome, notes=tuple(world.messages.notes))


def run(world: World, store: Store, paths: Sequence[Path]) -> AuditOutcome:
    """The operation itself. Raises as `audit`."""
    loaded = load(paths, world.note)
    promises = promises_of_all_times(loaded.contracts)
    known = {contract.key for contract in loaded.contracts} | {key[0] for _, key in promises}
    with store.read() as tx:
        rows = compare(tx, [key for key in keys(tx) if key[0] in known], promises, world.as_of)
    return AuditOutcome(rows, tuple(loaded.findings))

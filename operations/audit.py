"""`dq.audit` and `dq.replay`: recompute deliveries and compare them with the store."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from dq.contracts.outcome import Finding, UsageError, iso
from dq.dataquality.delivery.replay import Audit, ReplayedCycle, slo_keys
from dq.dataquality.delivery.replay import audit as compare
from dq.dataquality.delivery.replay import replay as derive
from dq.operations.registry_files import load, promises_of_all_times
from dq.operations.runtime.context import RuntimeContext, call_context
from dq.operations.watch import delivery_as_dict
from dq.store.engine import Store


@dataclass(frozen=True, slots=True)
class AuditOutcome:
    """Stored deliveries that agree with the contracts, that do not, and that could not be compared."""

    rows: Audit
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if the store holds no delivery of these contracts."""
        return not (self.rows.agreeing or self.rows.wrong or self.rows.unproven)

    @property
    def exit_code(self) -> int:
        """Exit code: 0 the rows agree, 1 they do not, 3 something could not be read or compared."""
        # Deliveries that could not be compared are not counted as agreeing.
        unsure = self.is_empty or self.rows.unproven or self.findings
        return 1 if self.rows.wrong else 3 if unsure else 0

    def as_dict(self) -> dict[str, object]:
        """Return the output of `dq cycles audit --format json` as JSON values."""
        return {
            "agreeing": self.rows.agreeing,
            "unproven": len(self.rows.unproven),
            "wrong": [
                {
                    "contract": row.key[0],
                    "object": row.key[1],
                    "slo": row.key[2],
                    "due_at": row.due_at.isoformat(),
                    "problem": row.problem,
                }
                for row in self.rows.wrong
            ],
        }


def audit(
    paths: Path | str | Sequence[Path | str] = ".",
    *,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> AuditOutcome:
    """Recompute all deliveries from the contracts and their Git history, and compare them with the store.

    As `dq cycles audit` does. `folder` replaces the working folder, which has settings and store, and is the
    base of relative paths. With `now`, an aware instant, the rows of that instant are compared.

    Raises UsageError for invalid arguments, and ReadError for a path without contracts, an unreadable store,
    or Git errors.
    """
    context, places = call_context(paths, folder, now)
    with closing(context.store()) as store:
        outcome = run(context, store, places)
    return replace(outcome, notes=tuple(context.messages.notes))


def run(context: RuntimeContext, store: Store, paths: Sequence[Path]) -> AuditOutcome:
    """Run the operation. Raises as `audit`."""
    loaded = load(paths, context.note)
    promises = promises_of_all_times(loaded.contracts)
    contract_keys = {contract.key for contract in loaded.contracts} | {key[0] for _, key in promises}
    with store.read() as tx:
        rows = compare(tx, [key for key in slo_keys(tx) if key[0] in contract_keys], promises, context.as_of)
    return AuditOutcome(rows, tuple(loaded.findings))


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """Deliveries derived from their evidence, as of `at`, or compared with the store if `at` is None."""

    cycles: tuple[ReplayedCycle, ...]
    at: datetime | None = None

    @property
    def different(self) -> tuple[ReplayedCycle, ...]:
        """Deliveries that differ from the store."""
        return tuple(replayed for replayed in self.cycles if replayed.differences)

    @property
    def unproven(self) -> int:
        """Number of deliveries without evidence, stored by an older dq."""
        return sum(not replayed.is_proven for replayed in self.cycles)

    @property
    def is_empty(self) -> bool:
        """True if the store holds no delivery and none was requested for a past instant."""
        return not self.cycles and self.at is None

    @property
    def exit_code(self) -> int:
        """Exit code: 0 the store agrees, 1 it does not, 3 evidence is missing or there is no delivery."""
        # Deliveries that could not be derived are not counted as agreeing.
        return 1 if self.different else 3 if self.unproven or self.is_empty else 0

    def as_dict(self) -> dict[str, object]:
        """Return the output of `dq cycles replay --format json` as JSON values."""
        different = self.different
        return {
            "cycles": len(self.cycles),
            "unproven": self.unproven,
            "different": len(different),
            "shown": [_row(replayed) for replayed in (self.cycles if self.at is not None else different)],
        }


def replay(
    contract: str | None = None, *, folder: Path | str | None = None, now: datetime | None = None
) -> ReplayOutcome:
    """Re-evaluate all deliveries from the stored evidence and compare, as `dq cycles replay` does.

    `contract` is a contract's key, by default all. `folder` replaces the working folder, which has settings
    and store. With `now`, an aware instant, deliveries are derived as of then, and nothing is compared.

    Raises UsageError for a contract without stored deliveries and for a `now` without zone, and StoreError if
    the store cannot be read.
    """
    context, _ = call_context(None, folder, now)
    with closing(context.store()) as store:
        return replay_stored(store, contract, now.astimezone(UTC) if now is not None else None)


def replay_stored(store: Store, contract: str | None, as_of: datetime | None) -> ReplayOutcome:
    """Run the operation. Raises as `replay`."""
    with store.read() as tx:
        selected_keys = [key for key in slo_keys(tx) if contract in (None, key[0])]
        if contract is not None and not selected_keys:
            raise UsageError(
                f"no deliveries of {contract!r} in the store.", "Use a contract key as shown by 'dq status'."
            )
        return ReplayOutcome(tuple(derive(tx, selected_keys, as_of)), as_of)


def _row(replayed: ReplayedCycle) -> dict[str, object]:
    return {
        **delivery_as_dict(replayed.record.cycle),
        "status": replayed.status,
        "delivered_at": iso(replayed.delivered_at),
        "reason": replayed.reason,
        "proven": replayed.is_proven,
        "differences": list(replayed.differences),
    }

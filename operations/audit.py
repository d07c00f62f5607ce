"""`dq.audit` and `dq.replay`: deliveries computed again, and compared with what is stored."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from dq.contracts.outcome import Finding, UsageError, iso
from dq.dataquality.delivery.replay import Audit, Replayed, keys
from dq.dataquality.delivery.replay import audit as compare
from dq.dataquality.delivery.replay import replay as derive
from dq.operations.registry_files import load, promises_of_all_times
from dq.operations.runtime.context import World, called
from dq.operations.watch import delivery_as_dict
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
        """What `dq cycles audit --format json` prints."""
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

    As `dq cycles audit` does. `folder` stands for the working folder, where settings and store are, and from
    which relative paths lead. With `now`, an aware instant, the rows that were there then are compared.

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


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """Deliveries as they follow from their evidence, as of `at`; None for now, compared with the store."""

    cycles: tuple[Replayed, ...]
    at: datetime | None = None

    @property
    def different(self) -> tuple[Replayed, ...]:
        """Those of which the store says something else."""
        return tuple(replayed for replayed in self.cycles if replayed.differences)

    @property
    def unproven(self) -> int:
        """How many carry no evidence, from an older dq."""
        return sum(not replayed.proven for replayed in self.cycles)

    @property
    def is_empty(self) -> bool:
        """Whether the store holds no delivery, although it was asked for those of now."""
        return not self.cycles and self.at is None

    @property
    def exit_code(self) -> int:
        """0 the store says the same, 1 it does not, 3 some has no proof, or there is nothing."""
        # What nobody could derive is not fine.
        return 1 if self.different else 3 if self.unproven or self.is_empty else 0

    def as_dict(self) -> dict[str, object]:
        """What `dq cycles replay --format json` prints."""
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
    """Judge all deliveries again from the stored evidence, and compare, as `dq cycles replay` does.

    `contract` is a contract's key; without it all are judged. `folder` stands for the working folder, where
    settings and store are. With `now`, an aware instant, as it stood then, which nothing is compared with.

    Raises UsageError for a contract of which no delivery is stored and for a `now` without zone, and
    StoreError for a store that does not answer.
    """
    world, _ = called(None, folder, now)
    with closing(world.store()) as store:
        return replay_stored(store, contract, now.astimezone(UTC) if now is not None else None)


def replay_stored(store: Store, contract: str | None, at: datetime | None) -> ReplayOutcome:
    """The operation itself. Raises as `replay`."""
    with store.read() as tx:
        chosen = [key for key in keys(tx) if contract in (None, key[0])]
        if contract is not None and not chosen:
            raise UsageError(
                f"no delivery of {contract!r} is stored.", "Name a contract as 'dq status' does."
            )
        return ReplayOutcome(tuple(derive(tx, chosen, at)), at)


def _row(replayed: Replayed) -> dict[str, object]:
    return {
        **delivery_as_dict(replayed.kept.cycle),
        "status": replayed.status,
        "delivered_at": iso(replayed.delivered_at),
        "reason": replayed.reason,
        "proven": replayed.proven,
        "differences": list(replayed.differences),
    }

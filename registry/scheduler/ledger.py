"""Which schedules dq made, kept in the store: only these are removed, and what stands is not read again."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from sqlalchemy import delete, insert, select

from dq.registry.tables import schedule_entry
from dq.store.engine import Store


@dataclass(frozen=True, slots=True)
class NotedSchedule:
    """A schedule that dq made, for which contract and promise, what it wrote, and when AWS says that was.

    `digest` is "" from before a write until after it; then nobody knows what stands there.
    """

    contract: str
    promise: str
    digest: str = ""
    modified: str = ""


@dataclass(frozen=True, slots=True)
class ScheduleNotes:
    """The notes of one registry about one group of one account and region."""

    store: Store
    catalog: str
    group: str
    registry: str

    def all(self) -> dict[str, NotedSchedule]:
        """Every schedule that dq made there and has not removed, by name."""
        query = select(schedule_entry).filter_by(**self._here())
        with self.store.read() as connection:
            rows = connection.execute(query).all()
        return {row.name: NotedSchedule(row.contract, row.promise, row.digest, row.modified) for row in rows}

    def note(self, name: str, noted: NotedSchedule | None) -> None:
        """Keeps what dq did under a name; None forgets it."""
        with self.store.write() as connection:
            connection.execute(delete(schedule_entry).filter_by(**self._here(), name=name))
            if noted is not None:
                row = {**self._here(), "name": name, **asdict(noted)}
                connection.execute(insert(schedule_entry).values(row))

    def _here(self) -> dict[str, str]:
        return {"catalog": self.catalog, "group_name": self.group, "registry": self.registry}

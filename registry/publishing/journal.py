"""What was published of a delivery, as rows: its revisions, and when one began that is not done yet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select, update

from dq.registry.publishing.publication import DeliveryEvent, Publication, event_id, first_event_id
from dq.registry.tables import publication, publication_begun


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision of a delivery that was published: consumers were told of it, or are about to be.

    `folder` is where its files lie, None where Hive would put them; `run` is the producer's word, or "".
    """

    id: str
    number: int
    rows: int | None
    previous_rows: int | None
    begun_at: datetime
    folder: str | None = None
    run: str = ""

    @property
    def newest_count(self) -> int | None:
        """Rows of this revision; where it came without a number, of the newest one before that has it."""
        return self.previous_rows if self.rows is None else self.rows

    def event(self, one: Publication) -> DeliveryEvent:
        """What was told of it."""
        told = replace(one, rows=self.rows)
        return DeliveryEvent(self.id, told, self.begun_at, self.number, self.previous_rows)


def newest(tx: Connection, delivery: str) -> Revision | None:
    """The newest revision of a delivery, or None."""
    columns = publication.c
    names = ("id", "revision", "rows", "previous_rows", "begun_at", "folder", "run")
    asked = (
        select(*(columns[name] for name in names))
        .where(columns.delivery == delivery)
        .order_by(columns.revision.desc())
        .limit(1)
    )
    row = tx.execute(asked).one_or_none()
    return None if row is None else Revision(*row)


def knows_run(tx: Connection, delivery: str, run: str) -> bool:
    """Whether this run of the producer has published a revision."""
    here = (publication.c.delivery == delivery) & (publication.c.run == run)
    return tx.execute(select(publication.c.id).where(here).limit(1)).first() is not None


def adopt(tx: Connection, one: Publication) -> Revision | None:
    """Takes over what was published when servers and catalogs were not told apart; None: another did so."""
    here = publication.c.delivery == one.delivery_before
    tx.execute(update(publication).where(here).values(delivery=one.delivery))
    return newest(tx, one.delivery)


def begin(tx: Connection, delivery: str, now: datetime) -> None:
    """Notes the begin of a first revision, unless a run that was killed has done so."""
    if begun(tx, delivery) is None:
        tx.execute(insert(publication_begun).values(delivery=delivery, at=now))


def begun(tx: Connection, delivery: str) -> datetime | None:
    """When publishing began that is not done yet, or None."""
    asked = select(publication_begun.c.at).where(publication_begun.c.delivery == delivery)
    found: datetime | None = tx.execute(asked).scalar_one_or_none()
    return found


def count(tx: Connection, revision: Revision, rows: int) -> Revision:
    """Add the number of rows to a revision that was published without it."""
    tx.execute(update(publication).where(publication.c.id == revision.id).values(rows=rows))
    return replace(revision, rows=rows)


def finish(tx: Connection, one: Publication, before: Revision | None, run: str, now: datetime) -> Revision:
    """Notes a revision after the newest one: the first is of when it began, a later one of now."""
    began = now if before else begun(tx, one.delivery) or now
    number = before.number + 1 if before else 1
    made = Revision(
        event_id(one, number, began) if before else first_event_id(one),
        number,
        one.rows,
        before.newest_count if before else None,
        began,
        one.folder if one.staged else None,
        run,
    )
    tx.execute(
        insert(publication).values(
            id=made.id,
            delivery=one.delivery,
            revision=number,
            rows=made.rows,
            previous_rows=made.previous_rows,
            folder=made.folder,
            run=run,
            begun_at=began,
            published_at=now,
        )
    )
    tx.execute(delete(publication_begun).where(publication_begun.c.delivery == one.delivery))
    return made

"""What was published long ago is forgotten, with what consumers were told of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, delete, func, select

from dq.registry.tables import consumer_notice, publication, publication_begun
from dq.store.engine import Store


@dataclass(frozen=True, slots=True)
class ForgottenPublications:
    """How many rows are gone: of deliveries that were published, and of what consumers were to be told."""

    publications: int
    notices: int


def placed_deliveries() -> Select[tuple[str]]:
    """The ids of the newest revisions that lie in a folder of their own."""
    columns, later = publication.c, publication.alias("later")
    newer = select(later.c.id).where(
        later.c.delivery == columns.delivery, later.c.revision > columns.revision
    )
    return select(columns.id).where(columns.folder.is_not(None), ~newer.exists())


def forget_publications(store: Store, before: datetime) -> ForgottenPublications:
    """Removes deliveries of which the newest revision was published before an instant, and old notices.

    A delivery goes with all its revisions, so that none is counted anew. A notice that no place took in all
    that time goes too. What lies beside its table stays: nothing else says where.
    """
    columns = publication.c
    old = (
        select(columns.delivery)
        .where(columns.delivery.not_in(select(columns.delivery).where(columns.id.in_(placed_deliveries()))))
        .group_by(columns.delivery)
        .having(func.max(columns.published_at) < before)
    )
    with store.write() as tx:
        gone = tx.execute(delete(publication).where(columns.delivery.in_(old))).rowcount
        tx.execute(delete(publication_begun).where(publication_begun.c.at < before))
        told = tx.execute(delete(consumer_notice).where(consumer_notice.c.written_at < before)).rowcount
    return ForgottenPublications(gone, told)

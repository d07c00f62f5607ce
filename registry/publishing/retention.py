"""What was published long ago is forgotten, with what consumers were told of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, func, select

from dq.registry.tables import consumer_notice, publication, publication_begun
from dq.store.engine import Store


@dataclass(frozen=True, slots=True)
class ForgottenPublications:
    """How many rows are gone: of deliveries that were published, and of what consumers were to be told."""

    publications: int
    notices: int


def forget_publications(store: Store, before: datetime) -> ForgottenPublications:
    """Removes deliveries of which the newest revision was published before an instant, and old notices.

    A delivery goes with all its revisions, so that none is counted anew. A notice that no place took in all
    that time goes too.
    """
    columns = publication.c
    old = select(columns.delivery).group_by(columns.delivery).having(func.max(columns.published_at) < before)
    with store.write() as tx:
        gone = tx.execute(delete(publication).where(columns.delivery.in_(old))).rowcount
        tx.execute(delete(publication_begun).where(publication_begun.c.at < before))
        told = tx.execute(delete(consumer_notice).where(consumer_notice.c.written_at < before)).rowcount
    return ForgottenPublications(gone, told)

"""What a verdict rests on, as a row keeps it: written with each change of a cycle, and read for replays."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from dq.dataquality.delivery.cycle import Grounds
from dq.dataquality.delivery.sources.evidence import Evidence


def written(grounds: Grounds, release: str) -> dict[str, object]:
    """The grounds as JSON, with the release of dq that judged. Instants are texts in UTC."""
    row: dict[str, object] = {"dq": release}
    if grounds.give_up_at is not None:
        row["give_up_at"] = grounds.give_up_at.isoformat()
    if not grounds.empty_allowed:
        row["empty"] = "forbidden"
    if grounds.excused:
        row["excused"] = grounds.excused
    if grounds.revoked:
        row["revoked"] = grounds.revoked
    if grounds.evidence is not None:
        row["evidence"] = _written(grounds.evidence)
    return row


def _written(evidence: Evidence) -> dict[str, object]:
    """What differs from nothing: most evidence is a source and an instant."""
    plain: dict[str, object] = {"source": evidence.source}
    instants = {
        "delivered_at": evidence.delivered_at,
        "first_seen": evidence.first_seen,
        "arriving": evidence.arriving,
    }
    plain |= {name: instant.isoformat() for name, instant in instants.items() if instant is not None}
    if not evidence.readable:
        plain["problem"] = evidence.problem
    if evidence.rows is not None:
        plain["rows"] = evidence.rows
    if evidence.detail:
        plain["detail"] = evidence.detail
    if evidence.names_cycle:
        plain["names_cycle"] = True
    if evidence.settled:
        plain["settled"] = True
    return plain


def read(row: Mapping[str, object]) -> Grounds:
    """The grounds of a row that `written` made. Raises ValueError where it is none."""
    try:
        kept = row.get("evidence")
        return Grounds(
            evidence=_read(kept) if isinstance(kept, dict) else None,
            give_up_at=_instant(row.get("give_up_at")),
            empty_allowed=row.get("empty") != "forbidden",
            excused=str(row.get("excused", "")),
            revoked=str(row.get("revoked", "")),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"{row!r} is no proof") from error


def _read(row: Mapping[str, object]) -> Evidence:
    source, rows = row["source"], row.get("rows")
    if source not in ("receipt", "marker", "commit", "file"):
        raise ValueError(f"{source!r} is no source of evidence")
    return Evidence(
        source,
        delivered_at=_instant(row.get("delivered_at")),
        first_seen=_instant(row.get("first_seen")),
        readable="problem" not in row,
        problem=str(row.get("problem", "")),
        rows=rows if isinstance(rows, int) else None,
        detail=str(row.get("detail", "")),
        names_cycle=bool(row.get("names_cycle")),
        settled=bool(row.get("settled")),
        arriving=_instant(row.get("arriving")),
    )


def _instant(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None

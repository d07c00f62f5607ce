"""Incidents as people name them on a command line, and who the people are."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlalchemy import Connection

from dq.alerts import incident_store
from dq.alerts.incident import Incident
from dq.cli.world.environment import user
from dq.contracts.shared.outcome import UsageError

SHOWN = 8
"""So many signs of an id are shown, and so many tell one incident from the others."""

_MOST = 200
_ID = re.compile(r"[0-9a-f-]{4,36}", re.IGNORECASE)
_MEND = "See 'dq incidents' for those that are open, and 'dq incidents --all' for the others."


def short(incident: Incident) -> str:
    """The beginning of an incident's id, as commands take it."""
    return incident.id[:SHOWN]


def by_id(tx: Connection, text: str) -> Incident | None:
    """The incident whose id begins so, if any. Raises UsageError where several do."""
    if not _ID.fullmatch(text):
        return None
    found = incident_store.by_prefix(tx, text.lower())
    if len(found) > 1:
        names = ", ".join(one.id for one in found)
        raise UsageError(f"several incidents begin with {text!r}: {names}.", "Write more of the id.")
    return found[0] if found else None


def named(tx: Connection, text: str) -> list[Incident]:
    """The incident of an id or the beginning of one, or the open ones of a contract, object or promise.

    `text` is an id, or a contract's key, or contract/object, or contract/object/promise. Raises UsageError
    where there is none.
    """
    found = by_id(tx, text)
    if found is not None:
        return [found]
    open_ = [one for one in incident_store.standing(tx) if is_of(one, text)]
    if not open_:
        raise UsageError(f"there is no open incident {text!r}.", _MEND)
    return open_


def is_of(incident: Incident, text: str) -> bool:
    """Whether the incident is about this contract, contract/object or contract/object/promise."""
    key = incident.key
    return text in (key.contract, f"{key.contract}/{key.object}", str(key))


def person(by: str | None) -> str:
    """Who acts: as the command line says, else the user of the operating system."""
    return words(by if by is not None else user(), "--by", "ana@example.com")


def words(text: str, option: str, example: str) -> str:
    """What somebody says of themselves or of a reason. Raises UsageError where it says nothing."""
    said = " ".join(text.split())
    if not said:
        raise UsageError(f"{option} is empty.", f"Write it like {option} {example!r}.")
    if len(said) > _MOST:
        raise UsageError(f"{option} has {len(said)} signs, more than {_MOST}.", "Say it shorter.")
    return said


def flags(incident: Incident, hushed: bool) -> Sequence[str]:
    """The state of an incident and what else holds of it, in words."""
    said = [incident.state.replace("_", " ")]
    if hushed:
        said.append("silenced")
    if incident.root_id and not incident.state.closed:
        said.append(f"waits for {incident.root_id[:SHOWN]}")
    if incident.holds_up and not incident.state.closed:
        said.append(f"holds up {len(incident.holds_up)}")
    if incident.flapping_since:
        said.append("flapping")
    return said

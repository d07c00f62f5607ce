"""One thing that was looked at, and a guard that gives every question its row, however it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dq.contracts.shared.outcome import DqError


@dataclass(frozen=True, slots=True)
class Look:
    """One thing that was looked at. `good` is None for what is optional and not there, or not tried."""

    what: str
    good: bool | None
    seen: str
    mend: str = ""


def looks(what: str, ask: Callable[[], Iterable[Look]], seconds: float) -> list[Look]:
    """What a question gives; one row that says so where it fails, or has no answer within the seconds.

    The thread of a question that is never answered cannot be ended, and ends with the process.
    """
    seen: list[Look] = []
    threading.Thread(target=_guarded, args=(what, ask, seen, done := threading.Event()), daemon=True).start()
    if done.wait(seconds):
        return seen
    silent = Look(what, False, f"gave no answer within {seconds:g} s", "Ask again, or see who holds it up.")
    return [*seen, silent]


def _guarded(what: str, ask: Callable[[], Iterable[Look]], seen: list[Look], done: threading.Event) -> None:
    try:
        seen.extend(ask())
    except DqError as error:
        seen.append(Look(what, False, " ".join((error.message, *error.details)), error.mend))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        mend = "Check the path, and the rights of this process."
        seen.append(Look(what, False, f"{where}{error.strerror or type(error).__name__}", mend))
    except Exception as error:  # noqa: BLE001  # the one guard per row: no question may hide the others
        # Its text may hold a secret.
        mend = "This is a bug of dq: please report it."
        seen.append(Look(what, False, f"could not be looked at: {type(error).__name__}", mend))
    finally:
        done.set()

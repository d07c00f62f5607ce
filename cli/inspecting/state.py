"""The state: whether it answers, is of this dq, sound and writable, and what waits. Nothing is changed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dq.alerts.outbox import drain
from dq.cli.alerting.sending import told
from dq.cli.inspecting.look import Look
from dq.cli.world.environment import World
from dq.contracts.shared.outcome import DqError
from dq.dataquality.delivery.history import retention
from dq.store import version
from dq.store.engine import found_version, open_as_it_is, parse
from dq.store.errors import address

# So much has to find room beside the state.
_PROBE_BYTES = 1 << 20
_RESTORE = (
    "Stop the watchers, and restore it from a backup, or move it away to start afresh: docs/how-to/operate.md"
)


def store(world: World) -> Iterator[Look]:
    """The store, as it is."""
    url = parse(world.store_url())
    shown = address(url)
    file = Path(str(url.database)) if url.get_backend_name() == "sqlite" else None
    if file is not None:
        wrong = _unwritable(file.parent)
        if wrong is not None:
            yield wrong
            return
        if not file.exists():
            yield Look("store", None, f"{shown} will be made when it is needed")
            return
    found, wanted = found_version(world.store_url()), version.head()
    if found is None:
        yield Look("store", None, f"{shown} is empty; its tables will be made when they are needed")
        return
    if version.is_older(found) and not version.is_unreleased(found):
        mend = "Make a backup, then bring it up to date, as any other command would: dq store upgrade"
        yield Look("store", None, f"{shown} has schema {found}, and this dq wants {wanted}", mend)
        return
    # What a newer or an unreleased dq wrote is refused with its own sentence.
    opened = open_as_it_is(world.store_url())
    try:
        with opened.read() as tx:
            faults = list(retention.integrity_faults(tx))
    finally:
        opened.close()
    if faults:
        more = f", and {len(faults) - 1} faults more" if len(faults) > 1 else ""
        yield Look("store", False, f"{shown} is damaged: {faults[0]}{more}", f"dq store check. {_RESTORE}")
        return
    yield Look("store", True, f"{shown}, schema {found}, sound")


def alerts(world: World) -> Iterator[Look]:
    """Alerts that people should have and have not; nothing where the store cannot say."""
    try:
        found = found_version(world.store_url())
    except DqError:  # the row of the store says it
        return
    if found != version.head():
        return
    opened = open_as_it_is(world.store_url())
    try:
        with opened.read() as tx:
            waiting = drain.all_of(tx, world.now())
    finally:
        opened.close()
    for one in waiting:
        yield Look("alerts", False if one.stuck else None, told(one), "dq outbox shows them all.")
    if not waiting:
        yield Look("alerts", True, "nothing waits, and nothing was refused")


def _unwritable(folder: Path) -> Look | None:
    """Why the state could not be written beside its file, tried with a file that has no name."""
    while not os.path.lexists(folder):
        folder = folder.parent
    mend = "Make the folder writable and free some space, or name another in DQ_STORE_URL."
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(_PROBE_BYTES))
            probe.flush()
    except OSError as error:
        return Look("store", False, f"nothing can be written to {folder}: {error.strerror}", mend)
    return None

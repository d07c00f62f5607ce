"""A run that is killed around any write to EventBridge: the next ones end with exactly one of each."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

from fakes import scheduler
from fakes.glue import GlueShim
from fakes.schedule_keeper import keeping, kept, notes, number, planned, quick

from dq.store.engine import open_store

_MOMENTS = {"CreationDate", "LastModificationDate"}
# A kill before the first commit to the store and before the second, and on both sides of the first write.
KILLS = ((1, None), (0, "before"), (0, "after"), (2, None))


def there(glue: GlueShim) -> dict[str, dict[str, Any]]:
    return {
        name: {key: value for key, value in one.items() if key not in _MOMENTS}
        for name, one in scheduler.schedules(glue).items()
    }


def test_a_kill_around_any_write_of_schedules_is_mended_by_the_next_run(
    glue: GlueShim, tmp_path: Path
) -> None:
    client, url = quick(), f"sqlite:///{tmp_path}/state.db"
    open_store(f"sqlite:///{tmp_path}/template.db").close()
    undisturbed = []
    for day in (0, 1):
        glue.reset()
        scheduler.make_group(glue)
        shutil.copy(tmp_path / "template.db", tmp_path / "state.db")
        store = open_store(url)
        for each in range(day + 1):
            kept(client, store, each)
        digests = {name: one.digest for name, one in notes(store).schedules().items()}
        undisturbed.append((there(glue), digests))
        store.close()
    assert [len(made) for made, _ in undisturbed] == [5, 2]

    glue.reset()
    scheduler.make_group(glue)
    shutil.copy(tmp_path / "template.db", tmp_path / "state.db")
    store = open_store(url)
    killed = dict.fromkeys(KILLS, 0)
    with keeping() as children:
        for day in (0, 1):
            while any((plan := planned(client, store, day)).steps) or plan.state_updates:
                for kill in KILLS:
                    commit, when = kill

                    def aim(child: int, when: str | None = when) -> None:
                        glue.victim, glue.kill_at = child, (0, when) if when else None

                    ended = children.run(url, number(day, commit), ready=aim)
                    glue.kill_at = None
                    killed[kill] += ended == signal.SIGKILL
                    # What nobody has noted could never be changed or removed.
                    assert there(glue).keys() <= notes(store).schedules().keys(), (day, kill)
                    assert ended in (signal.SIGKILL, 0)

            digests = {name: one.digest for name, one in notes(store).schedules().items()}
            assert (there(glue), digests) == undisturbed[day]
            with glue.counted() as writes:
                kept(client, store, day)
            assert writes == []
    store.close()
    # Five are made; one is changed, one switched off, three are removed.
    assert killed[0, "before"] == killed[0, "after"] == 10
    assert killed[1, None] >= 10
    assert killed[2, None] >= 8

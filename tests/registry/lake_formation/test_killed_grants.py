"""A run that is killed between any two grants: the next ones end with exactly one of each."""

from __future__ import annotations

import shutil
import signal
from datetime import date
from pathlib import Path

from fakes.glue import GlueShim
from fakes.lake_formation import granted
from fakes.lake_grants import CATALOG, EXPECTED, TABLES, TODAY, granting, kept, thirty

from dq.registry.aws.glue import Glue
from dq.registry.aws.lake_formation import LakeFormation, LakeState
from dq.registry.plan import apply, propose
from dq.store.engine import Store, open_store

# Two of the thirty are not over yet then.
BEFORE = date(2026, 11, 22)


Grants = dict[tuple[str, str, str], list[str]]


def in_the_store(store: Store) -> Grants:
    return {
        (key.database, key.table, key.principal): sorted(one.columns)
        for key, one in LakeState(store, CATALOG).grants().items()
    }


def test_a_kill_between_any_two_grants_is_mended_by_the_next_run(
    glue: GlueShim, glue_catalog: Glue, lake_formation: LakeFormation, tmp_path: Path
) -> None:
    template, url = tmp_path / "template.db", f"sqlite:///{tmp_path}/state.db"
    open_store(f"sqlite:///{template}").close()

    def fresh(day: date | None) -> Store:
        """Two tables, and the grants of a day: the store that knows of them."""
        glue.reset()
        # Each page costs as much as all of them, and there are hundreds of plans here.
        glue.lake.page = 100
        shutil.copy(template, tmp_path / "state.db")
        store = open_store(url)
        apply(glue_catalog, propose(glue_catalog, TABLES, store), store)
        if day is not None:
            kept(lake_formation, store, thirty(), day)
        glue.calls.clear()
        return store

    with granting() as children:

        def killed(store: Store, at: int, when: str) -> Grants:
            def aim(child: int) -> None:
                glue.calls.clear()
                glue.victim, glue.kill_at = child, (at, when)

            ended = children.run(url, ready=aim)
            glue.kill_at = None
            assert ended == signal.SIGKILL, (at, when)
            there, noted = granted(glue), in_the_store(store)
            # What is there and nobody has noted could never be taken back.
            assert all(set(columns) <= set(noted.get(key, ())) for key, columns in there.items())
            return there

        def ends(store: Store) -> None:
            results = kept(lake_formation, store, thirty(), TODAY)
            assert [one.error for one in results if one.error] == []
            assert granted(glue) == EXPECTED
            assert in_the_store(store) == EXPECTED
            with glue.counted() as writes:
                kept(lake_formation, store, thirty(), TODAY)
            assert writes == []
            store.close()

        # Every run dies at its first write, so that each of them begins where a killed one stopped.
        for day, count in ((None, 38), (BEFORE, 2)):
            store = fresh(day)
            there = granted(glue)
            for number in range(count):
                # Before a write only its note is more than after the one before: every sixth shows that.
                if number % 6 == 0 or day is not None:
                    assert killed(store, 0, "before") == there
                after = killed(store, 0, "after")
                assert len(after.keys() ^ there.keys()) == 1
                there = after
            ends(store)
        # And in the middle of its work, with grants of its own behind it.
        for at in (12, 25):
            store = fresh(None)
            killed(store, at, "after")
            ends(store)

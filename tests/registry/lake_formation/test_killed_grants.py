"""A run that is killed between any two grants: the next one ends with exactly one of each."""

from __future__ import annotations

import shutil
import signal
from datetime import date
from pathlib import Path

from fakes.glue import GlueShim
from fakes.lake_formation import granted
from fakes.lake_grants import CATALOG, EXPECTED, TABLES, TODAY, granting, kept, thirty

from dq.registry.apply import apply, propose
from dq.registry.glue.tables import Glue
from dq.registry.lake_formation.ledger import noted_grants
from dq.registry.lake_formation.port import LakeFormation
from dq.store.engine import Store, open_store

# Two of the thirty are not over yet then.
BEFORE = date(2026, 11, 22)


def in_the_store(store: Store) -> dict[tuple[str, str, str], list[str]]:
    return {
        (key.database, key.table, key.principal): sorted(one.columns)
        for key, one in noted_grants(store, CATALOG).items()
    }


def test_a_kill_between_any_two_grants_is_mended_by_the_next_run(
    glue: GlueShim, glue_catalog: Glue, lake_formation: LakeFormation, tmp_path: Path
) -> None:
    template = tmp_path / "template.db"
    open_store(f"sqlite:///{template}").close()

    def fresh(day: date | None) -> str:
        """Two tables, and the grants of a day: the URL of the store that knows of them."""
        glue.reset()
        shutil.copy(template, tmp_path / "state.db")
        store = open_store(f"sqlite:///{tmp_path}/state.db")
        apply(glue_catalog, CATALOG, propose(glue_catalog, CATALOG, TABLES, store), store)
        if day is not None:
            kept(lake_formation, store, thirty(), day)
        store.close()
        glue.calls.clear()
        return f"sqlite:///{tmp_path}/state.db"

    def writes_of(url: str) -> list[int]:
        """Which calls of an undisturbed run write, counted from 1."""
        store = open_store(url)
        kept(lake_formation, store, thirty(), TODAY)
        store.close()
        return [at for at, call in enumerate(glue.calls, 1) if call.writes]

    given, taken = writes_of(fresh(None)), writes_of(fresh(BEFORE))
    assert (len(given), len(taken)) == (38, 2)
    moments = [(None, at, "after") for at in given]
    moments += [(None, at, "before") for at in given[::9]]
    moments += [(BEFORE, at, when) for at in taken for when in ("before", "after")]

    with granting() as children:
        for day, at, when in moments:
            url = fresh(day)

            def aim(child: int, moment: tuple[int, str] = (at, when)) -> None:
                glue.calls.clear()
                glue.victim, glue.kill_at = child, moment

            ended = children.run(url, ready=aim)
            glue.kill_at = None
            store = open_store(url)
            # What is there and nobody has noted could never be taken back.
            assert all(
                set(columns) <= set(in_the_store(store).get(key, ()))
                for key, columns in granted(glue).items()
            )
            results = kept(lake_formation, store, thirty(), TODAY)

            assert ended == signal.SIGKILL, (at, when)
            assert [one.error for one in results if one.error] == []
            assert granted(glue) == EXPECTED, (at, when)
            assert in_the_store(store) == EXPECTED, (at, when)
            with glue.counted() as writes:
                kept(lake_formation, store, thirty(), TODAY)
            assert writes == [], (at, when)
            store.close()

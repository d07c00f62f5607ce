"""The embedded catalog among processes, at scale, and its neighbours on the shelf."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.flights import flights
from sqlalchemy import event

from dq.contracts.outcome import UsageError
from dq.registry.catalog import ActionKind, CatalogSettings
from dq.registry.catalogs import catalogs, open_catalog
from dq.registry.plan import CompleteRegistry, apply, propose
from dq.registry.table import marked
from dq.store.engine import Store

WRITER = """
    import sys
    from fakes.flights import flights
    from dq.registry.plan import ActionOutcome, apply, propose
    from dq.registry.catalog import CatalogSettings
    from dq.registry.catalogs import open_catalog
    from dq.store.engine import open_store

    store = open_store(sys.argv[1])
    catalog = open_catalog("local", CatalogSettings(store=store))
    done = 0
    for turn in range(40):
        spec = flights("/lake/air", comment=f"{sys.argv[2]} {turn}")
        for result in apply(catalog, propose(catalog, [spec], store), store):
            done += result.outcome is ActionOutcome.DONE
    print(done)
"""


def test_two_processes_lose_no_write(store: Store) -> None:
    url = f"sqlite:///{store.engine.url.database}"
    command = [sys.executable, "-c", textwrap.dedent(WRITER), url]
    both = [
        subprocess.Popen(
            [*command, name],
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": str(Path(__file__).parents[1])},
        )
        for name in ("one", "two")
    ]

    writes = [int(process.communicate()[0]) for process in both]

    live = open_catalog("local", CatalogSettings(store=store)).read("air_flights", "flights")
    assert live is not None
    assert int(live.version) == sum(writes)
    assert min(writes) > 0


def test_unchanged_tables_cost_one_listing_per_database_and_no_write(store: Store) -> None:
    catalog = open_catalog("local", CatalogSettings(store=store))
    one = flights("/lake/air")
    wanted = [
        marked(replace(one, database=f"domain_{index % 4}", name=f"table_{index}", parameters=()), {})
        for index in range(200)
    ]
    apply(catalog, propose(catalog, wanted, store, complete=CompleteRegistry("")), store)
    statements: list[str] = []

    def note(connection: object, cursor: object, statement: str, *rest: object) -> None:
        statements.append(statement.split()[0])

    event.listen(store.engine, "before_cursor_execute", note)
    made = propose(catalog, wanted, store, complete=CompleteRegistry(""))
    apply(catalog, made, store)
    event.remove(store.engine, "before_cursor_execute", note)

    assert {action.kind for action in made.actions} == {ActionKind.NOOP}
    # One for the databases that are known, and two per database: what was applied last, and what there is.
    assert [statement for statement in statements if statement != "BEGIN"] == ["SELECT"] * 9


def test_a_kill_between_the_catalog_and_the_memory_is_no_drift_later(store: Store) -> None:
    catalog = open_catalog("local", CatalogSettings(store=store))
    first, second = flights("/lake/air"), flights("/lake/air", comment="Another.")
    for action in propose(catalog, [first], store).actions:
        catalog.apply(action)

    again = propose(catalog, [first], store)
    changed = propose(catalog, [second], store)

    assert [action.kind for action in again.actions] == [ActionKind.NOOP]
    assert [action.kind for action in changed.actions] == [ActionKind.UPDATE]


def test_the_local_catalog_needs_a_store() -> None:
    with pytest.raises(UsageError, match="needs the state store"):
        open_catalog("local", CatalogSettings())


def test_an_unknown_catalog_is_refused_with_the_nearest(store: Store) -> None:
    with pytest.raises(UsageError, match=r"Unknown catalog 'locl'\. Did you mean 'local'\?"):
        open_catalog("locl", CatalogSettings(store=store))


def test_a_new_catalog_is_one_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    package = tmp_path / "own_catalogs"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "copy.py").write_text(
        "from dq.registry.catalog import CatalogKind\n"
        "from dq.registry.catalogs.local import Local\n"
        "CATALOG = CatalogKind('copy', lambda settings: Local(settings.store))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import own_catalogs  # type: ignore[import-not-found]  # made above

    found = catalogs(own_catalogs)

    assert list(found) == ["copy"]
    assert found["copy"].open(CatalogSettings(store=store)).tables("air") == []

"""Nothing is lost: a table goes only when the whole registry was read and understood, and nobody wants it."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from fakes import children
from fakes.command import Place, Ran, contract, replaced
from sqlalchemy import Row, create_engine, text

from dq.registry.plan import prune_limit

COUNT = 50
NAMES = [f"table_{number:02}" for number in range(COUNT)]
SERVER = "  - {{server: lake, type: local, path: lake/{name}, format: parquet}}\n"


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DQ_STORE_URL", "DQ_CONFIG", "DQ_TEST_NOT_SET"):
        monkeypatch.delenv(name, raising=False)


def file_of(name: str) -> str:
    """Two folders of contracts, and one deep one."""
    number = int(name.removeprefix("table_"))
    return f"{'a' if number % 2 else 'b/deep'}/{name}.odcs.yaml"


@pytest.fixture(scope="module")
def registered(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A registry of 50 contracts, whose tables are registered."""
    place = Place(tmp_path_factory.mktemp("fifty") / "registry")
    place.put("dq-policy.yaml", "")
    for name in NAMES:
        place.put(
            file_of(name), contract(name, **{"kind: DataContract": "kind: DataContract\ndomain: sales"})
        )
    assert place.dq("register", "--apply").code == 0
    return place


@pytest.fixture
def place(registered: Place, tmp_path: Path) -> Place:
    shutil.copytree(registered.folder, tmp_path / "registry")
    return Place(tmp_path / "registry")


def tables(place: Place) -> set[str]:
    """What the catalog has, by the tables' names, whoever asks."""
    return {row.name for row in sql(place, "SELECT name FROM catalog_table")}


def sql(place: Place, statement: str) -> list[Row[Any]]:
    engine = create_engine(f"sqlite:///{place.folder / '.dq' / 'store.db'}")
    with engine.begin() as tx:
        found = tx.execute(text(statement))
        rows = list(found) if found.returns_rows else []
    engine.dispose()
    return rows


def prune(place: Place, *more: str) -> Ran:
    return place.dq("register", "--apply", "--prune", *more)


def gone(place: Place, *names: str) -> None:
    for name in names:
        (place.folder / file_of(name)).unlink()


# --- what keeps a run from judging


def broken(place: Place) -> None:
    (place.folder / file_of("table_07")).write_text("apiVersion: v3.2.0\nkind: [")


def misspelt(place: Place) -> None:
    rewritten(place, "table_07", {"schema:": "schem:"})


def without_a_variable(place: Place) -> None:
    rewritten(place, "table_07", {"lake/table_07": '"${DQ_TEST_NOT_SET}/x"'})


def of_a_database(place: Place) -> None:
    one = SERVER.format(name="table_07")
    other = "  - {server: pg, type: postgres, host: h, port: 1, database: d, schema: s}\n"
    rewritten(place, "table_07", {one: other})


def with_a_column_beyond_ascii(place: Place) -> None:
    rewritten(place, "table_07", {"{name: id,": "{name: größe,"})


def of_an_unclear_status(place: Place) -> None:
    rewritten(place, "table_07", {"status: active": "status: retird"})


def of_the_id_of_another(place: Place) -> None:
    rewritten(place, "table_07", {"id: table_07": "id: table_08"})


def empty(place: Place) -> None:
    (place.folder / file_of("table_07")).write_text("")


def rewritten(place: Place, name: str, changes: dict[str, str]) -> None:
    path = place.folder / file_of(name)
    path.write_text(replaced(path.read_text(), changes))


UNCLEAR = (
    broken,
    misspelt,
    without_a_variable,
    of_a_database,
    with_a_column_beyond_ascii,
    of_an_unclear_status,
    of_the_id_of_another,
    empty,
)


@pytest.mark.parametrize("unclear", UNCLEAR)
def test_one_contract_of_fifty_that_is_not_understood_keeps_every_table(place: Place, unclear) -> None:
    unclear(place)
    gone(place, "table_20")

    shown = place.dq("register")
    found = prune(place)
    data = place.dq("register", "--prune", "--format", "json")

    assert tables(place) == set(NAMES)
    assert "orphan" not in shown.out
    assert "Orphans not evaluated: " in shown.out
    assert found.code == 3
    assert "dq: nothing pruned: " in found.err
    assert data.code == 3
    assert data.json["orphans"]["judged"] is False
    assert len(data.json["orphans"]["reasons"]) == 1
    assert not [one for one in data.json["actions"] if one["kind"] == "orphan"]


@pytest.mark.parametrize(
    "paths",
    [
        ("a",),
        ("b",),
        ("b/deep",),
        ("a", "b"),
        (".", "a"),
        (file_of("table_07"),),
    ],
)
def test_a_part_of_the_registry_removes_nothing_of_the_rest(place: Place, paths: tuple[str, ...]) -> None:
    gone(place, "table_20", "table_21")

    found = prune(place, *paths)

    assert tables(place) == set(NAMES)
    assert found.code == 3
    assert "dq: nothing pruned: " in found.err


def test_a_part_that_a_pull_request_calls_a_registry_owns_nothing_of_the_rest(place: Place) -> None:
    place.put("a/dq-policy.yaml", "")

    prune(place, "a")

    assert tables(place) == set(NAMES)


def test_a_folder_that_says_nowhere_that_it_is_a_registry_removes_nothing(place: Place) -> None:
    (place.folder / "dq-policy.yaml").unlink()
    gone(place, "table_20")

    found = prune(place)

    assert tables(place) == set(NAMES)
    assert found.code == 3
    assert "the root of the registry is unknown" in found.err


def test_a_contract_that_became_a_link_to_nowhere_keeps_every_table(place: Place, tmp_path: Path) -> None:
    gone(place, "table_20")
    (place.folder / file_of("table_20")).symlink_to(tmp_path / "nowhere.yaml")

    found = prune(place)

    assert tables(place) == set(NAMES)
    assert found.code == 3


def test_another_registry_in_the_same_store_keeps_its_tables(place: Place, monkeypatch) -> None:
    monkeypatch.setenv("DQ_STORE_URL", f"sqlite:///{place.folder / '.dq' / 'store.db'}")
    other = Place(place.folder.parent / "other")
    other.put("dq-policy.yaml", "")
    other.put("theirs.odcs.yaml", contract("theirs"))
    other.dq("register", "--apply")
    gone(place, "table_20")

    theirs = prune(other)
    ours = prune(place)

    assert (theirs.code, ours.code) == (0, 0)
    assert tables(place) == {*NAMES, "theirs"} - {"table_20"}


def test_a_registry_of_the_same_name_in_another_store_keeps_its_tables(place: Place, tmp_path: Path) -> None:
    """Two checkouts may be called alike; only the store tells whose dq has made a table."""
    sql(place, "DELETE FROM catalog_applied")
    gone(place, "table_20")

    found = prune(place)

    assert tables(place) == set(NAMES)
    assert found.code == 0
    assert "held sales.table_20: The state store has no record that dq created it" in found.out


# --- what a contract can say that its table stays


@pytest.mark.parametrize("status", ["draft", "proposed", "retired"])
def test_a_contract_that_is_not_in_force_keeps_its_tables(place: Place, status: str) -> None:
    rewritten(place, "table_07", {"status: active": f"status: {status}"})
    gone(place, "table_20")

    found = prune(place)

    assert found.code == 0
    assert tables(place) == set(NAMES) - {"table_20"}
    said = {"retired": "update sales.table_07 (metadata): Its contract is retired: the table is kept"}
    held = f"held sales.table_07: Contract 'table_07' is {status}; its tables are kept."
    assert said.get(status, held) in found.out


def test_a_contract_that_loses_its_schema_keeps_its_tables(place: Place) -> None:
    path = place.folder / file_of("table_07")
    path.write_text(path.read_text().split("schema:")[0])

    found = prune(place)

    assert found.code == 0
    assert tables(place) == set(NAMES)
    assert "Contract 'table_07' has no schema; its tables are kept." in found.out


def test_what_a_contract_has_on_another_server_stays(place: Place) -> None:
    one = SERVER.format(name="table_07")
    other = "  - {server: dev, type: custom, path: lake/dev, format: parquet, database: dev}\n"
    for name in NAMES:
        rewritten(place, name, {SERVER.format(name=name): SERVER.format(name=name) + other})
    assert one in (place.folder / file_of("table_07")).read_text()

    found = prune(place, "--server", "dev", "--format", "json")

    assert found.code == 0, found.err
    assert tables(place) == set(NAMES)
    kinds = {(one["table"], one["kind"]) for one in found.json["actions"]}
    assert {("sales.table_07", "held"), ("dev.table_07", "create")} <= kinds


# --- how many may go


@pytest.mark.parametrize(("ours", "most"), [(0, 1), (1, 1), (9, 1), (20, 2), (49, 4), (50, 5), (2_000, 5)])
def test_a_tenth_may_go_and_never_more_than_five(ours: int, most: int) -> None:
    assert prune_limit(ours) == most


def test_more_than_five_tables_go_only_when_their_number_is_said(place: Place) -> None:
    gone(place, *NAMES[:6])

    asked = prune(place)
    assert tables(place) == set(NAMES)
    fewer = prune(place, "--prune-limit", "5")
    assert tables(place) == set(NAMES)
    said = prune(place, "--prune-limit", "6")

    assert (asked.code, fewer.code, said.code) == (3, 3, 0)
    assert "6 of 50 tables would be deleted, limit 5; to allow it, pass --prune-limit 6" in asked.err
    assert tables(place) == set(NAMES[6:])


def test_orphans_that_were_understood_go_and_nothing_else(place: Place) -> None:
    gone(place, "table_20", "table_21")

    shown = place.dq("register")
    kept = place.dq("register", "--apply")
    before = tables(place)
    found = prune(place)
    again = prune(place)

    assert "- orphan sales.table_20 (destructive)" in shown.out
    assert kept.code == 0
    assert before == set(NAMES)
    assert (found.code, again.code) == (0, 0)
    assert tables(place) == set(NAMES) - {"table_20", "table_21"}


def test_nothing_goes_while_what_should_take_its_place_is_refused(place: Place) -> None:
    rewritten(place, "table_07", {"physicalType: bigint": "physicalType: string"})
    gone(place, "table_20")

    found = prune(place)

    assert found.code == 3
    assert tables(place) == set(NAMES)
    assert "sales.table_20: not removed, because another change was refused or failed" in found.out


# --- a kill between any two steps

# Dies at the n-th commit of the store, before it (even) or after it (odd).
DIES = """
import os, signal, sys
from sqlalchemy import Engine, event
left = int(sys.argv.pop())
def at(point):
    def count(*_):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return count
for point in ("commit", "checkin"):
    event.listen(Engine if point == "commit" else __import__("sqlalchemy").pool.Pool, point, at(point))
from dq.cli.main import main
main()
"""


def killed(place: Place, at: int) -> int | None:
    return children.run(DIES, "register", "--apply", "--prune", at, folder=place.folder)[0]


def test_a_kill_between_any_two_steps_loses_nothing_and_the_next_run_ends_the_same(tmp_path: Path) -> None:
    kept, old, new = {"kept_1", "kept_2"}, {"a_old"}, {"z_new"}
    first = Place(tmp_path / "first" / "registry")
    first.put("dq-policy.yaml", "")
    for name in kept | old:
        first.put(f"{name}.odcs.yaml", contract(name))
    first.dq("register", "--apply")
    for name in old:
        (first.folder / f"{name}.odcs.yaml").unlink()
    for name in new:
        first.put(f"{name}.odcs.yaml", contract(name))

    kills = 0
    while True:
        place = Place(tmp_path / str(kills) / "registry")
        shutil.copytree(first.folder, place.folder)
        code = killed(place, kills)
        standing = tables(place)
        assert kept <= standing
        # What is new is made before what is old goes.
        assert new <= standing or old <= standing
        again = prune(place)
        assert again.code == 0
        assert tables(place) == kept | new
        assert place.dq("register", "--check").code == 0
        if code != -signal.SIGKILL:
            break
        kills += 1

    assert code == 0
    assert kills > 12

"""A build after which something of the last one is gone, damaged, or changed under its hands."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fakes.command import Place, contract

from dq.portal.build import build
from dq.portal.output import OWN, PortalRequest, PortalSummary
from dq.store.engine import Store, open_store

NOW = "2026-05-12T08:00:00Z"
NAMES = ("orders", "sales", "stock")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Three products and their site."""
    place = Place(tmp_path)
    place.put("registry/dq-policy.yaml", "{}")
    for name in NAMES:
        place.put(f"registry/{name}.odcs.yaml", contract(name) + f"domain: of {name}\n")
    built(place)
    return place


def built(place: Place, site: str = "site") -> dict[str, object]:
    # The same path as that of `request`, as a contract is known by its file.
    registry = str(place.folder / "registry")
    ran = place.dq("portal", "build", site, registry, "--as-of", NOW, "--format", "json")
    assert ran.code == 0, ran.err
    told: dict[str, object] = ran.json
    return told


def files(place: Place, site: str = "site") -> dict[str, bytes]:
    root = place.folder / site
    return {
        one.relative_to(root).as_posix(): one.read_bytes()
        for one in root.rglob("*")
        if one.is_file() and OWN not in one.parts
    }


DAMAGE = {
    "half": lambda state: state[: len(state) // 2],
    "a line less": lambda state: state.rsplit(b"\n", 1)[0],
    "other letters": lambda state: state.replace(b"sales", b"salos"),
}


@pytest.mark.parametrize("damage", [*DAMAGE, "no file"])
def test_whatever_became_of_the_state_the_site_ends_as_one_that_is_built_anew(
    place: Place, damage: str
) -> None:
    state = place.folder / "site" / OWN / "state.jsonl"
    (place.folder / "registry" / "stock.odcs.yaml").unlink()
    place.put("site/CNAME", "data.example.com")
    place.put("site/products/stock/mine.txt", "mine")
    if damage == "no file":
        state.unlink()
    else:
        state.write_bytes(DAMAGE[damage](state.read_bytes()))

    built(place)
    built(place, "anew")

    ours = {"CNAME", "products/stock/mine.txt"}
    after = files(place)
    assert {path: data for path, data in after.items() if path not in ours} == files(place, "anew")
    assert ours <= after.keys()
    assert built(place)["written"] == 0


def test_no_link_is_followed_when_pages_are_looked_for(place: Place) -> None:
    outside = place.put("other/index.html", "mine")
    place.put("registry/gone.odcs.yaml", contract("gone"))
    built(place)
    (place.folder / "registry" / "gone.odcs.yaml").unlink()
    for file in (place.folder / "site" / "products" / "gone").iterdir():
        file.unlink()
    (place.folder / "site" / "products" / "gone").rmdir()
    (place.folder / "site" / "products" / "gone").symlink_to(outside.parent)
    (place.folder / "site" / OWN / "state.jsonl").unlink()

    built(place)

    assert outside.read_text() == "mine"


@pytest.mark.parametrize("lost", ["products/sales/status.json", "search/w-73-61.js", "domains/of-*.html"])
def test_a_page_that_somebody_removed_is_written_again(place: Place, lost: str) -> None:
    before = files(place)
    next((place.folder / "site").glob(lost)).unlink()

    built(place)

    assert files(place) == before


def test_a_build_that_is_killed_leaves_no_hashes_of_lists_for_the_next_one(
    place: Place, store: Store
) -> None:
    own, during = place.folder / "site" / OWN, list[bytes]()
    built(place)
    before = (own / "inputs.json").read_bytes()
    contract_file = place.folder / "registry" / "stock.odcs.yaml"
    contract_file.write_text(contract_file.read_text() + "# new\n")

    build(request(place, store, lambda *_: during.append((own / "inputs.json").read_bytes())))

    assert during
    assert {text.splitlines()[1] for text in during} == {b"{}"}
    assert set(json.loads(before.splitlines()[1])) == set(
        json.loads((own / "inputs.json").read_text().splitlines()[1])
    )
    assert b"incidents/index.html" in before


class Late:
    """Writes a file once the contracts are read and before the pages are made."""

    def __init__(self, file: Path, text: str | None) -> None:
        self.file, self.text = file, text

    def __call__(self, what: str, done: int, of: int) -> None:
        if what == "contracts" and done == of:
            if self.text is None:
                self.file.unlink()
            else:
                self.file.write_text(self.text)


@pytest.fixture
def store(place: Place) -> Store:
    return open_store(f"sqlite:///{place.folder}/.dq/store.db")


def meanwhile(place: Place, store: Store, late: Late, names: tuple[str, ...] = NAMES) -> PortalSummary:
    """A build of contracts that all are new, one of which changes while they are built."""
    for name in names:
        file = place.folder / "registry" / f"{name}.odcs.yaml"
        file.write_text(file.read_text() + "# new\n")
    return build(request(place, store, late))


def request(place: Place, store: Store, progress: Callable[[str, int, int], None]) -> PortalRequest:
    return PortalRequest(
        place.folder / "site",
        (place.folder / "registry",),
        store,
        f"sqlite:///{place.folder}/.dq/store.db",
        datetime.fromisoformat(NOW).astimezone(UTC),
        timedelta(minutes=15),
        settle=lambda _: (),
        progress=progress,
    )


def test_pages_of_a_killed_build_are_rendered_again_though_the_contract_was_changed_back(
    place: Place, store: Store
) -> None:
    def kill(what: str, done: int, of: int) -> None:
        if what == "pages of products" and done == of:
            raise KeyboardInterrupt

    before = files(place)
    file = place.folder / "registry" / "sales.odcs.yaml"
    text = file.read_text()
    file.write_text(contract("sales", "1.1.0"))
    with pytest.raises(KeyboardInterrupt):
        build(request(place, store, kill))
    file.write_text(text)

    built(place)

    assert files(place) == before


@pytest.mark.parametrize("text", [contract("sales", "2.0.0"), "id: [", None], ids=["other", "broken", "gone"])
def test_a_contract_that_changes_while_the_site_is_built_is_told_and_nowhere_said_to_be_fine(
    place: Place, store: Store, text: str | None
) -> None:
    done = meanwhile(place, store, Late(place.folder / "registry/sales.odcs.yaml", text))

    pages = files(place)
    (problem,) = done.problems
    assert problem.at.endswith("sales.odcs.yaml")
    assert "changed while" in problem.message
    assert done.states["unreadable"] == 1
    assert json.loads(pages["products/sales/status.json"])["state"] == "unreadable"
    assert b"changed while" in pages["index.html"]
    # The search leads to what can be used.
    assert not [path for path, data in pages.items() if path.startswith("search/w-") and b'"sales"' in data]


def test_it_is_right_again_after_the_next_build_even_if_it_was_changed_back(
    place: Place, store: Store
) -> None:
    file = place.folder / "registry" / "sales.odcs.yaml"
    meanwhile(place, store, Late(file, contract("sales", "2.0.0")))
    file.write_text(contract("sales") + "domain: of sales\n# new\n")

    built(place)
    built(place, "anew")

    # What was noticed is kept, and a new portal has noticed nothing.
    again, anew = files(place), files(place, "anew")
    assert again.pop("changes.html")
    assert anew.pop("changes.html")
    assert again == anew


def test_a_contract_that_another_refers_to_and_that_changes_is_told_of_both(
    place: Place, store: Store
) -> None:
    orders = place.folder / "registry" / "orders.odcs.yaml"
    column = "      - {name: id, logicalType: integer, physicalType: bigint}\n"
    linked = (
        "      - name: id\n        logicalType: integer\n        relationships:\n"
        "          - {type: foreignKey, to: sales.odcs.yaml#/schema/sales/properties/id}\n"
    )
    orders.write_text(orders.read_text().replace(column, linked))

    late = Late(place.folder / "registry/sales.odcs.yaml", contract("sales", "1.1.0"))
    done = meanwhile(place, store, late)

    assert [one.at.rsplit("/", 1)[1] for one in done.problems] == ["sales.odcs.yaml"] * 2
    assert done.states["unreadable"] == 2

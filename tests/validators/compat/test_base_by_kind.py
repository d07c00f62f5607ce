"""Contracts that are known by their `kind` alone, on both sides of a pull request."""

from __future__ import annotations

from pathlib import Path

import pytest
from fragments.registry import Registry

from dq.contracts.outcome import ReadError
from dq.validators.git.base import BaseCommit, open_base

HEAD = "apiVersion: v3.2.0\nkind: DataContract\nstatus: active\n"
ORDERS = f"{HEAD}id: orders\nversion: 1.0.0\nschema:\n- name: orders\n  properties:\n  - name: id\n"
DBT = "version: 2\nmodels: []\n"


def _compared(folder: Path) -> tuple[list[str], list[str], list[str]]:
    """The contracts before and after, and the files that are judged."""
    changed = open_base(folder, "main").changed_contracts()
    assert not changed.invalid
    return (
        [one.file for one in changed.before],
        [one.file for one in changed.after],
        sorted(changed.contents),
    )


@pytest.fixture
def branch(registry: Registry) -> Registry:
    registry.commit({"sales/orders.yaml": ORDERS, "models/schema.yml": DBT, "web.yaml": "a: 1\n"})
    registry.branch("feature")
    return registry


def test_an_edited_contract_of_any_name_is_compared(branch: Registry) -> None:
    branch.commit({"sales/orders.yaml": ORDERS.replace("name: id", "name: key"), "web.yaml": "a: 2\n"})

    assert _compared(branch.folder) == (["sales/orders.yaml"],) * 2 + (["sales/orders.yaml"],)


def test_a_new_one_that_is_not_committed_is_compared(branch: Registry) -> None:
    branch.write("new.yml", ORDERS.replace("id: orders", "id: new"))

    assert _compared(branch.folder) == ([], ["new.yml"], ["new.yml"])


def test_one_that_is_deleted_is_missed(branch: Registry) -> None:
    branch.commit({"sales/orders.yaml": None})

    assert _compared(branch.folder) == (["sales/orders.yaml"], [], [])


@pytest.mark.parametrize("name", ["orders.odcs.yaml", "other/orders.yml"])
def test_a_rename_is_seen_on_both_sides(branch: Registry, name: str) -> None:
    branch.commit({"sales/orders.yaml": None, name: ORDERS})

    assert _compared(branch.folder) == (["sales/orders.yaml"], [name], [name])


@pytest.mark.parametrize(
    "text",
    [ORDERS.replace("kind: DataContract\n", ""), ORDERS.replace("DataContract", "Nothing"), DBT],
    ids=["no kind", "another kind", "dbt"],
)
def test_a_contract_cannot_leave_the_gate_by_another_kind(branch: Registry, text: str) -> None:
    branch.commit({"sales/orders.yaml": text})

    assert _compared(branch.folder)[2] == ["sales/orders.yaml"]


def test_what_was_something_else_at_the_base_is_a_new_contract(branch: Registry) -> None:
    branch.commit({"models/schema.yml": ORDERS.replace("id: orders", "id: new")})

    assert _compared(branch.folder) == ([], ["models/schema.yml"], ["models/schema.yml"])


def test_folders_that_are_not_entered_are_so_on_both_sides(branch: Registry) -> None:
    branch.repo.git.checkout("-q", "main")
    branch.commit({"node_modules/x/a.yaml": ORDERS, ".hidden/b.yaml": ORDERS})
    branch.repo.git.checkout("-q", "feature")
    branch.repo.git.merge("-q", "main")
    branch.commit({"node_modules/x/a.yaml": None, ".hidden/b.yaml": None})

    assert _compared(branch.folder) == ([], [], [])


def test_a_link_in_place_of_a_contract_is_a_contract_that_is_gone(branch: Registry) -> None:
    (branch.folder / "sales/orders.yaml").unlink()
    (branch.folder / "sales/orders.yaml").symlink_to("../web.yaml")

    assert _compared(branch.folder) == (["sales/orders.yaml"], [], [])


def test_who_names_a_contract_is_known_by_any_name(branch: Registry) -> None:
    branch.write("lines.yaml", ORDERS.replace("id: orders", "id: lines") + "# see sales/orders.yaml\n")

    assert open_base(branch.folder, "main").files_mentioning("orders.yaml") == ["lines.yaml"]


def test_a_submodule_that_a_branch_adds_is_refused_for_its_contracts_alone(
    branch: Registry, tmp_path
) -> None:
    other = Registry(tmp_path / "other")
    other.commit({"compose.yaml": "services: {}\n"})
    branch.repo.git.execute(
        ["git", "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.folder), "sub"]
    )
    branch.commit({})

    assert isinstance(open_base(branch.folder, "main"), BaseCommit)

    branch.write("sub/orders.yaml", ORDERS)
    with pytest.raises(ReadError, match="submodule"):
        open_base(branch.folder, "main")

"""A contract that refers to another one, given alone: both are in the registry around its file."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from fakes.command import Place

HEAD = "apiVersion: v3.2.0\nkind: DataContract\nid: {id}\nversion: {version}\nstatus: active\n"
CUSTOMERS = HEAD.format(id="crm", version="{version}") + (
    "schema:\n  - name: customers\n    properties: [{{name: id, logicalType: integer}}]\n"
)
ORDERS = HEAD.format(id="shop", version="1.0.0") + (
    "schema:\n  - name: orders\n    properties:\n"
    "      - {{name: customer, logicalType: integer, relationships: [{{to: {to}}}]}}\n"
)
FILE = "registry/shop/orders.odcs.yaml"


@pytest.fixture
def registry(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.put("registry/dq-policy.yaml", "profile: default\n")
    place.put("registry/crm/customers.odcs.yaml", CUSTOMERS.format(version="1.0.0"))
    place.put(FILE, ORDERS.format(to="customers.id"))
    return place


def relationship(place: Place, file: str | Path = FILE) -> str:
    """State of the relationship, and why."""
    ran = place.dq("explain", str(file), "--format", "json")
    states = [f"{clause['state']}: {clause['reason']}" for clause in json.loads(ran.out)]
    return states[-1]


@pytest.mark.parametrize("to", ["customers.id", "'../crm/customers.odcs.yaml#customers.id'"])
def test_a_reference_is_resolved_in_the_registry_of_the_file(registry: Place, to: str) -> None:
    registry.put(FILE, ORDERS.format(to=to))
    registry.put("registry/broken.odcs.yaml", "kind: DataContract\nid: [")
    (registry.folder / "link.odcs.yaml").symlink_to(FILE)

    expected = "enforced: relationship"
    assert relationship(registry) == expected
    assert relationship(registry, registry.folder / FILE) == expected
    assert relationship(registry, "registry") == expected


def test_a_file_without_policy_and_repository_has_its_folder_as_registry(registry: Place) -> None:
    (registry.folder / "registry/dq-policy.yaml").unlink()
    lacking = "'customers.id' refers to another contract; no given contract has the object 'customers'"
    assert relationship(registry) == f"not evaluated: {lacking}"

    registry.put("registry/shop/below/customers.odcs.yaml", CUSTOMERS.format(version="1.0.0"))
    assert relationship(registry) == f"not evaluated: {lacking}"

    os.mkfifo(registry.folder / "registry/shop/pipe.odcs.yaml")
    registry.put("registry/shop/broken.odcs.yaml", "kind: DataContract\nid: [")
    (registry.folder / "registry/shop/below/customers.odcs.yaml").unlink()
    registry.put("registry/shop/customers.odcs.yaml", CUSTOMERS.format(version="1.0.0"))
    assert relationship(registry) == "enforced: relationship"

    (registry.folder / "registry/shop/customers.odcs.yaml").unlink()
    subprocess.run(["git", "init", "-q", registry.folder], check=True)
    assert relationship(registry) == "enforced: relationship"


def test_two_versions_in_the_registry_are_ambiguous(registry: Place) -> None:
    registry.put("registry/crm/customers-2.odcs.yaml", CUSTOMERS.format(version="2.0.0"))

    assert "several have the object 'customers': crm 1.0.0, crm 2.0.0" in relationship(registry)
    assert relationship(registry) == relationship(registry, "registry")

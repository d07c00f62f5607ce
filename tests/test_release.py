"""A release that could go out: metadata that is true, the same bytes twice, a whole bill of materials."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import uuid
import zipfile
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes import wheel

ROOT = wheel.ROOT
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EPOCH = "1764000000"


def dist(folder: Path, umask: int) -> dict[str, Path]:
    """What `make dist` makes of the last commit, by the ending of its name."""
    subprocess.run(
        [sys.executable, ROOT / ".ci" / "dist.py", folder],
        env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH},
        umask=umask,
        check=True,
        capture_output=True,
    )
    return {file.suffix: file for file in folder.iterdir()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return dist(tmp_path_factory.mktemp("first"), 0o022)


def test_a_release_is_the_same_bytes_again(made: dict[str, Path], tmp_path: Path) -> None:
    again = dist(tmp_path / "second", 0o077)

    assert made.keys() == again.keys() == {".whl", ".gz"}
    assert {end: digest(file) for end, file in made.items()} == {
        end: digest(file) for end, file in again.items()
    }


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_the_sources_hold_all_that_the_wheel_holds(made: dict[str, Path]) -> None:
    folders = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
    with zipfile.ZipFile(made[".whl"]) as one:
        packed = {name for name in one.namelist() if ".dist-info/" not in name}
    with tarfile.open(made[".gz"]) as other:
        sources = {member.name.partition("/")[2] for member in other if member.isfile()}

    def source(name: str) -> str:
        inside = name.removeprefix("dq/")
        apart = f"dq.{inside.partition('/')[0]}" in folders
        return inside if apart else f"{folders['dq']}/{inside}"

    assert sorted(source(name) for name in packed if source(name) not in sources) == []
    assert {"README.md", "LICENSE", "pyproject.toml"} <= sources


def test_the_metadata_says_what_is_so(made: dict[str, Path]) -> None:
    with zipfile.ZipFile(made[".whl"]) as one:
        [name] = [name for name in one.namelist() if name.endswith("METADATA")]
        said = HeaderParser().parsestr(one.read(name).decode())
    classified = [one for one in said.get_all("Classifier", []) if "Python :: 3." in one]
    low, high = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", PROJECT["requires-python"]).groups()  # type: ignore[union-attr]

    assert said["Version"] == PROJECT["version"]
    assert [one.rpartition(".")[2] for one in classified] == [str(n) for n in range(int(low), int(high))]
    assert (said["License-Expression"], said["Author"]) == ("Apache-2.0", "The dq authors")
    assert set(said.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])


def test_the_changelog_has_the_version_with_its_day() -> None:
    heads = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert heads[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(PROJECT['version'])}, \d{{4}}-\d\d-\d\d", heads[1])


@pytest.fixture(scope="module")
def bill(tmp_path_factory: pytest.TempPathFactory) -> Any:
    file = tmp_path_factory.mktemp("bill") / "dq.cdx.json"
    subprocess.run(["make", "--silent", "sbom", f"UV={wheel.uv()}", f"SBOM={file}"], cwd=ROOT, check=True)
    return json.loads(file.read_text())


def test_the_bill_of_materials_has_the_form_of_cyclonedx(bill: Any) -> None:
    """The rules of CycloneDX 1.5 for what stands in ours: its schema's required keys and formats."""
    components = [bill["metadata"]["component"], *bill["components"]]
    refs = [one["bom-ref"] for one in components]

    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    assert uuid.UUID(bill["serialNumber"].removeprefix("urn:uuid:"))
    assert bill["version"] >= 1
    assert len(set(refs)) == len(refs)
    assert all(one["type"] in ("library", "application") and one["name"] for one in components)
    assert all(re.fullmatch(r"pkg:pypi/[a-z0-9-]+@\S+", one["purl"]) for one in bill["components"])
    assert {one["ref"] for one in bill["dependencies"]} <= set(refs)
    assert {to for one in bill["dependencies"] for to in one.get("dependsOn", ())} <= set(refs)


def test_the_bill_of_materials_leaves_nothing_out(bill: Any) -> None:
    """Walked by hand through the lock from dq with all its extras but its host, whatever the platform."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    known: dict[str, list[Any]] = {}
    for package in lock:
        known.setdefault(package["name"], []).append(package)
    [own] = known[PROJECT["name"]]
    extras = {name: ones for name, ones in own["optional-dependencies"].items() if name != "airflow"}
    todo = [*own["dependencies"], *(one for ones in extras.values() for one in ones)]
    wanted: set[str] = set()
    seen: set[tuple[str, str]] = set()
    while todo:
        one = todo.pop()
        wanted.add(one["name"])
        for package in known[one["name"]]:
            for extra in ("", *one.get("extra", ())):
                if (package["name"], extra) not in seen:
                    seen.add((package["name"], extra))
                    more = package.get("optional-dependencies", {}).get(extra, ())
                    todo += more if extra else package.get("dependencies", ())

    listed = {one["name"] for one in bill["components"]}
    assert wanted - listed == set()
    assert [name for name in listed if name.startswith("apache-airflow")] == []


@pytest.mark.parametrize(
    "file", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda one: one.stem
)
def test_a_form_for_issues_is_one_that_github_takes(file: Path) -> None:
    """What docs.github.com, "Syntax for GitHub's form schema", asks of each form."""
    form = yaml.safe_load(file.read_text())
    asked = [one for one in form["body"] if one["type"] != "markdown"]

    assert {"name", "description", "body"} <= form.keys() <= {"name", "description", "body", "labels"}
    assert asked
    assert {one["type"] for one in form["body"]} <= {
        "markdown",
        "textarea",
        "input",
        "dropdown",
        "checkboxes",
    }
    assert len({one["id"] for one in asked}) == len(asked)
    assert all(one["attributes"]["label"] for one in asked)
    assert all(one["attributes"]["options"] for one in asked if one["type"] == "dropdown")

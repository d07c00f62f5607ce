"""Lines to copy from the portal: nothing of them is code but what the portal itself writes."""

from __future__ import annotations

import ast
from pathlib import Path

import yaml
from fakes.browser import Ear
from fakes.canary import Canary
from fakes.hostile_texts import Canaries, hostile_texts
from fakes.portal_mesh import AS_OF, PortalMesh
from fakes.strangers import quiet_environment
from playwright.sync_api import Page

_PLAIN = "SELECT * FROM "


def servers(text: str) -> list[dict[str, str]]:
    return [
        {"server": "path", "type": "local", "path": text, "format": "parquet"},
        {"server": "below", "type": "local", "path": f"lake/{text}", "format": "csv"},
        {"server": "format", "type": "local", "path": "lake", "format": text},
        {"server": "place", "type": "s3", "location": f"s3://lake/{text}", "format": "parquet"},
        {"server": "database", "type": "postgres", "host": "h", "port": "1", "database": text, "schema": "s"},
        {"server": "schema", "type": "databricks", "host": "h", "catalog": "main", "schema": text},
        {"server": "catalog", "type": "databricks", "host": "h", "catalog": text, "schema": "sales"},
        {"server": "plain", "type": "databricks", "host": "h", "catalog": "main", "schema": "sales"},
    ]


def test_t20_every_line_to_copy_holds_strangers_texts_as_literals_only(page: Page, tmp_path: Path) -> None:
    with Canary() as socket, quiet_environment():
        canaries = Canaries(tmp_path, socket)
        mesh = PortalMesh(tmp_path / "mesh")
        texts = hostile_texts(canaries)
        for number, text in enumerate(texts.values()):
            document = {
                "apiVersion": "v3.2.0", "kind": "DataContract", "id": f"stranger-{number:02}", "name": text,
                "version": "1.0.0", "status": "active", "servers": servers(text),
                "schema": [
                    {"name": "orders", "properties": [{"name": "id", "logicalType": "integer"}]},
                    {"name": text, "properties": [{"name": "id", "logicalType": "integer"}]},
                ],
            }  # fmt: skip
            file = mesh.folder / "registry" / f"{number:02}.odcs.yaml"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(yaml.safe_dump(document, sort_keys=False, width=100_000))
        built = mesh.dq("portal", "build", "site", "registry", "--as-of", AS_OF)
        assert built.code in (0, 3), built.err
        site = mesh.folder / "site"
        ear = Ear(page, site.as_uri())
        lines = []
        for number in range(len(texts)):
            page.goto((site / "products" / f"stranger-{number:02}" / "index.html").as_uri())
            lines += page.locator("section[aria-labelledby=read] pre code").all_inner_texts()

        assert ear.heard() == []
        assert canaries.disturbed() == []

    queries = {line for line in lines if line.startswith(_PLAIN)}
    assert queries
    assert {
        word for line in queries for word in line.removeprefix(_PLAIN).split(".") if not plain(word)
    } == set()
    held = set().union(*(literals(line) for line in lines if line not in queries))
    # As a path, each text is in a line, and is itself; only a variable of dq without a default is its name.
    assert {text.replace("${x}", "<x>") for text in texts.values()} - held == set()


def plain(word: str) -> bool:
    return word.isascii() and word.isidentifier()


def literals(line: str) -> set[str]:
    """The texts in a line of Python that calls methods of `spark` with texts, and does nothing else."""
    found = set()
    node = ast.parse(line, mode="eval").body
    while isinstance(node, ast.Call):
        assert node.keywords == []
        assert len(node.args) == 1
        [argument] = node.args
        assert isinstance(argument, ast.Constant), line
        assert isinstance(argument.value, str)
        found.add(argument.value)
        assert isinstance(node.func, ast.Attribute), line
        assert node.func.attr in ("table", "format", "load")
        node = node.func.value
        if isinstance(node, ast.Attribute):
            assert node.attr == "read"
            node = node.value
    assert isinstance(node, ast.Name), line
    assert node.id == "spark"
    return found

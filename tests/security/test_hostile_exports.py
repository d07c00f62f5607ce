"""Sixty hostile texts through each form of `dq export`, and the real program over what it wrote."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes import dbt_build
from fakes.browser import Ear, browser
from fakes.canary import Canary
from fakes.hostile_texts import Canaries, hostile_texts

from dq.cli.main import run
from dq.contracts.yaml.portable import commented

ROLES = ("id", "domain", "object", "column", "field")
"""Where a text stands as a name; in all other places it stands at once."""


@pytest.fixture
def canaries(tmp_path: Path) -> Iterator[Canaries]:
    with Canary() as socket:
        canaries = Canaries(tmp_path, socket)
        canaries.prepare()
        yield canaries


def contract(number: int, text: str, role: str = "") -> dict[str, Any]:
    """A contract that says the text in one role as a name, and everywhere where no name must stand."""
    named = {one: text if one == role else f"{one}_{role}{number}" for one in ROLES}
    about = {"description": text, "businessName": text, "tags": [text], "enum": [{"value": text}]}
    field = {"name": named["field"], "logicalType": "string", "description": text}
    return {
        "apiVersion": "v3.2.0",
        "kind": "DataContract",
        "id": named["id"],
        "name": text,
        "version": "1.0.0",
        "status": "active",
        "domain": named["domain"],
        "description": {"purpose": text, "usage": text},
        "team": {"name": text, "members": [{"username": text, "role": "owner"}]},
        "support": [{"channel": text, "tool": "console", "url": text}],
        "authoritativeDefinitions": [{"type": "runbook", "url": text}],
        "customProperties": [{"property": "note", "value": text}],
        "servers": [{"server": "lake", "type": "local", "path": "lake", "format": "parquet"}],
        "schema": [
            {
                "name": named["object"],
                "description": text,
                "properties": [
                    {"name": named["column"], "logicalType": "string", "required": True, **about},
                    {"name": "inner", "logicalType": "object", "properties": [field]},
                    {"name": "plain", "logicalType": "string", "unique": True},
                ],
            }
        ],
    }


def exported(kind: str, document: dict[str, Any], folder: Path) -> tuple[int, str, str]:
    """The exit code of `dq export`, the text, and what it says beside it."""
    file = folder / "hostile.odcs.yaml"
    file.write_text(yaml.safe_dump(document, allow_unicode=True, sort_keys=False))
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(["export", kind, str(file)])
    return code, out.getvalue(), err.getvalue()


def spark_sql(file: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs a file of statements as its user would, with the shell of the installed Spark."""
    import pyspark

    home = Path(pyspark.__file__).parent
    settings = [
        *("spark.ui.enabled=false", "spark.master=local[1]", "spark.driver.host=127.0.0.1"),
        "spark.sql.catalogImplementation=in-memory",
    ]
    return subprocess.run(
        [
            *(home / "bin" / "spark-sql", *(part for one in settings for part in ("--conf", one))),
            *("--hiveconf", "hive.cli.errors.ignore=true", "-f", file),
        ],
        cwd=file.parent,
        env={**environment, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )


def variants(canaries: Canaries) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every text in every role, each with a name that fits a file."""
    for number, text in enumerate(hostile_texts(canaries).values()):
        for role in ("", *ROLES):
            yield f"{number:02}_{role or 'texts'}", contract(number, text, role)


def test_t11_dbt_evaluates_no_text_of_a_contract(canaries: Canaries, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "models").mkdir(parents=True)
    refused = 0
    for name, document in variants(canaries):
        code, text, err = exported("dbt", document, tmp_path)
        if code:
            assert "cannot be used as a name in dbt" in err or "id-form" in err, err
            refused += 1
        else:
            (project / "models" / f"{name}.yml").write_text(text)

    answer = dbt_build.run(project, canaries.environment())

    written = [file.read_bytes() for file in (project / "target").rglob("*") if file.is_file()]
    assert canaries.disturbed(answer["printed"], *written, *map(str, answer["results"].values())) == []
    assert answer["error"] == ""
    assert "canary" in answer["tables"]
    wrong = {
        name: result for name, result in answer["results"].items() if result[0] not in ("pass", "success")
    }
    assert wrong == {}
    assert len(answer["results"]) > 400
    assert 0 < refused < 180


@pytest.mark.spark
@pytest.mark.slow
def test_t12_the_shell_of_spark_evaluates_no_text_of_a_statement(canaries: Canaries, tmp_path: Path) -> None:
    made, texts, refused = [], {}, 0
    for name, document in variants(canaries):
        code, text, err = exported("sql", document, tmp_path)
        if code:
            assert "cannot be used as a name in a SQL file" in err or "id-form" in err, err
            refused += 1
            continue
        made.append(text)
        [table] = document["schema"]
        if name.endswith("_texts"):
            texts[table["name"]] = commented(table["description"])
    statements = tmp_path / "all.sql"
    asked = [f"DESCRIBE TABLE EXTENDED {table};\n" for table in texts]
    statements.write_text("".join(["CREATE TABLE canary (x INT);\n", *made, *asked, "SHOW TABLES;\n"]))

    done = spark_sql(statements, canaries.environment())

    assert canaries.disturbed(done.stdout, done.stderr) == []
    # Some names are not Hive's; each statement ends where dq ends it, and no other mistake is there.
    errors = [line for line in done.stderr.splitlines() if line.startswith("[")]
    assert [line for line in errors if not line.startswith("[INVALID_SCHEMA_OR_RELATION_NAME]")] == []
    shown = done.stdout.splitlines()
    tables = set(shown)
    assert {"canary", *texts} <= tables
    comments = [line.split("\t")[1].strip() for line in shown if line.startswith("Comment")]
    assert sorted(comments) == sorted(" ".join(text.split()) for text in texts.values())
    assert len(texts) == 60
    assert 0 < refused < 200


def test_python_finds_nothing_but_literals_of_a_contract_in_the_module(
    canaries: Canaries, tmp_path: Path
) -> None:
    shapes, modules = set(), 0
    for _, document in variants(canaries):
        code, text, err = exported("pandera", document, tmp_path)
        if code:
            assert "id-form" in err, err
            continue
        tree = ast.parse(text)
        held = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        assert document["schema"][0]["description"] in held
        exec(compile(tree, "exported.py", "exec"), {"__name__": "exported"})
        # The code is the same for all texts but for its literals, and for enums that pandera cannot ask for.
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant):
                node.value = None
            if isinstance(node, ast.Call):
                node.args = [arg for arg in node.args if "isin" not in ast.dump(arg)]
        shapes.add(ast.dump(tree))
        modules += 1

    assert canaries.disturbed() == []
    assert modules > 250
    assert len(shapes) < 10


FOUND_IN_PAGE = """[
    document.querySelector("h1").textContent.replace(/\\s+/g, " "),
    document.querySelectorAll("[href], [src], script, img, iframe, svg, object").length,
]"""


def test_a_browser_runs_nothing_of_an_exported_page(canaries: Canaries, tmp_path: Path) -> None:
    with browser() as running:
        page = running.new_page()
        ear = Ear(page, tmp_path.as_uri())
        for name, document in variants(canaries):
            if not name.endswith(("texts", "object")):
                continue
            code, text, err = exported("html", document, tmp_path)
            if code:
                assert "id-form" in err, err
                continue
            file = tmp_path / f"{name}.html"
            file.write_text(text)
            page.goto(file.as_uri())
            assert page.evaluate(FOUND_IN_PAGE) == [" ".join(document["name"].split()), 0], name

        assert ear.heard() == []
    assert canaries.disturbed() == []


@pytest.mark.parametrize("kind", ["jsonschema", "avro", "odcs"])
def test_readers_of_json_and_yaml_get_the_texts_as_texts(
    canaries: Canaries, tmp_path: Path, kind: str
) -> None:
    read = yaml.safe_load if kind == "odcs" else json.loads
    for _, document in variants(canaries):
        code, text, err = exported(kind, document, tmp_path)
        if code:
            assert "id-form" in err or "Avro does not allow the name" in err, err
            continue
        [table] = document["schema"]
        made = read(text)
        described = made["schema"][0] if kind == "odcs" else made
        assert described.get("description", described.get("doc")) == table["description"]

    assert canaries.disturbed() == []

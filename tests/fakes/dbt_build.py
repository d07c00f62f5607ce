"""Real dbt with DuckDB over sources that dq wrote: tables for all of them, then all of their tests.

`run` fetches dbt by uv; the rest of this file is what runs in dbt's own environment.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DBT = ("--from", "dbt-core==1.11.16", "--with", "dbt-duckdb==1.10.1")
_PROJECT = {
    "dbt_project.yml": "name: hostile\nversion: '1.0'\nprofile: hostile\nmodel-paths: [models]\n",
    "profiles.yml": "hostile:\n  target: dev\n  outputs:\n    dev: {type: duckdb, path: hostile.duckdb}\n",
    "models/one.sql": "select 1 as one",
}


def run(folder: Path, environment: dict[str, str]) -> dict[str, Any]:
    """Builds the project in the folder, whose sources lie in `models`.

    Gives the tables that are left, the result of each test, and what dbt printed. Skips the test where dbt
    cannot be fetched, and fails it in CI.
    """
    for name, text in _PROJECT.items():
        (folder / name).write_text(text)
    uv = os.environ.get("UV") or shutil.which("uv") or str(ROOT / ".uv/bin/uv")
    tool = [uv, "tool", "run", "--quiet", *DBT]
    try:
        fetched = subprocess.run([*tool, "python", "-c", ""], capture_output=True, text=True, check=False)
        reason = fetched.stderr[-300:] if fetched.returncode else ""
    except OSError as error:
        reason = str(error)
    import pytest  # dbt's own environment has none

    if reason and os.environ.get("CI") == "true":
        pytest.fail(f"dbt cannot be fetched, and in CI nothing is skipped: {reason}")
    if reason:
        pytest.skip(f"dbt cannot be fetched: {reason}")
    done = subprocess.run(
        [*tool, "python", "-I", __file__, "."],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=550, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    made: dict[str, Any] = json.loads((folder / "answer.json").read_text())
    return {**made, "printed": done.stdout + done.stderr}


def _main(folder: Path) -> None:
    import duckdb  # type: ignore[import-not-found]
    import yaml
    from dbt.cli.main import dbtRunner  # type: ignore[import-not-found]

    with duckdb.connect(str(folder / "hostile.duckdb")) as database:
        database.execute("CREATE TABLE canary (x INT)")
        for file in sorted((folder / "models").glob("*.yml")):
            for source in yaml.safe_load(file.read_text())["sources"]:
                for table in source["tables"]:
                    _create(database, source["name"], table)
    # Tests fail where a table holds other values than its contract allows, which is no fault of dbt's.
    settings = ["--profiles-dir", ".", "--no-use-colors", "--threads", "1"]
    built = dbtRunner().invoke(["build", *settings])
    documented = dbtRunner().invoke(["docs", "generate", "--no-compile", *settings])
    results = {
        one.node.unique_id: [str(one.status), str(one.message), one.node.compiled_code]
        for one in getattr(built.result, "results", ())
    }
    with duckdb.connect(str(folder / "hostile.duckdb")) as database:
        tables = [row[0] for row in database.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
    answer = {
        "error": str(built.exception or documented.exception or ""),
        "results": results,
        "tables": tables,
    }
    (folder / "answer.json").write_text(json.dumps(answer))


def _create(database: Any, schema: str, table: dict[str, Any]) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    database.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}")
    columns = ", ".join(f"{quoted(one['name'])} VARCHAR" for one in table["columns"])
    place = f"{quoted(schema)}.{quoted(table['name'])}"
    database.execute(f"CREATE TABLE {place} ({columns})")
    # Each column has a value that its enum allows, so that all of its tests pass.
    values = [_allowed(one) for one in table["columns"]]
    database.execute(f"INSERT INTO {place} VALUES ({', '.join('?' for _ in values)})", values)  # noqa: S608  # quoted


def _allowed(column: dict[str, Any]) -> str:
    lists = [one["accepted_values"] for one in column.get("data_tests", ()) if isinstance(one, dict)]
    return str(lists[0]["values"][0]) if lists else "1"


if __name__ == "__main__":
    _main(Path(sys.argv[1]))

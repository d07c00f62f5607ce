"""What `dq check` must not read or show: one run over contracts that each try, with canaries behind them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakes import jvm

SECRET = "canary-7f3a9c"
HEAD = """\
apiVersion: v3.2.0
kind: DataContract
id: {id}
version: 1.0.0
status: active
servers:
  - {server}
schema:
  - name: {name}
    physicalName: {physical}
    quality: [{{metric: rowCount, mustBe: 0}}]
    properties:
      - {{name: id, logicalType: string, enum: [{{value: none}}]}}
      - {{name: {column}, logicalType: string, required: true}}
"""
LOCAL = "{{server: lake, type: local, path: '{}', format: csv}}"
HIVE = "{{server: lake, type: hive, host: h, database: '{}'}}"
# By id: the server, the physical name, and a column.
TRIES = {
    "absolute": (LOCAL.format("{outside}/secret.csv"), "orders", "a"),
    "above": (LOCAL.format("../outside/secret.csv"), "orders", "a"),
    "link": (LOCAL.format("linked.csv"), "orders", "a"),
    "linked-folder": (LOCAL.format("folder"), "orders", "a"),
    "hidden": (LOCAL.format(".env"), "orders", "a"),
    "hidden-by-pattern": (LOCAL.format("*/config"), "orders", "a"),
    "name": (LOCAL.format("lake/{{object}}"), "'../../outside/secret.csv'", "a"),
    "variable": (LOCAL.format("lake/${{CANARY}}"), "orders", "a"),
    "default": (LOCAL.format("lake/${{CANARY:-x}}"), "orders", "a"),
    "path-table": (HIVE.format("csv"), "'{outside}/secret.csv'", "a"),
    "path-table-by-name": (HIVE.format("csv"), "secret", "a"),
    "path-table-quoted": (HIVE.format("x`.`csv"), "secret", "a"),
    "table-of-env": (HIVE.format("default"), "'${{env:CANARY}}'", "a"),
    "database-of-env": (HIVE.format("${{CANARY}}"), "orders", "a"),
    "column-of-env": (LOCAL.format("lake/orders.csv"), "orders", "'${{env:CANARY}}'"),
    "column-of-system": (LOCAL.format("lake/orders.csv"), "orders", "'${{system:user.dir}}'"),
}


@pytest.mark.spark
def test_no_check_reads_or_shows_what_its_contract_must_not_name(tmp_path: Path) -> None:
    home, outside = tmp_path / "home-of-dq", tmp_path / "outside"
    for folder in (home / "lake", home / "folder", home / ".secrets", outside):
        folder.mkdir(parents=True)
    secret = f"id,a\n{SECRET},\n"
    for file in (outside / "secret.csv", home / ".env", home / ".secrets" / "config", home / "secret"):
        file.write_text(secret)
    (home / "lake" / "orders.csv").write_text("id,a\nx,y\n")
    (home / "linked.csv").symlink_to(outside / "secret.csv")
    (home / "folder" / "part.csv").symlink_to(outside / "secret.csv")
    for id, (server, physical, column) in TRIES.items():
        text = HEAD.format(id=id, server=server, name="orders", physical=physical, column=column)
        text = text.replace("{outside}", str(outside)).replace("{{", "{").replace("}}", "}")
        (home / "contracts").mkdir(exist_ok=True)
        (home / "contracts" / f"{id}.odcs.yaml").write_text(text)
    ours = ("DQ_", "SPARK_", "PYSPARK_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}

    done = subprocess.run(
        [str(Path(sys.executable).parent / "dq"), "check", "contracts", "--all", "--format", "json",
         "--channel", "console"],
        cwd=home, env=environment | jvm.SETTINGS | {"CANARY": SECRET},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip

    assert done.returncode == 3, done.stderr[-3000:]
    shown = done.stdout + done.stderr
    assert [line for line in shown.splitlines() if SECRET in line] == []
    assert [line for line in shown.splitlines() if "column-of-system" not in line and str(home) in line] == []
    assert {one["contract"] for one in json.loads(done.stdout)} == set(TRIES)
    read = {one["contract"] for one in json.loads(done.stdout) if one.get("results")}
    assert read <= {"column-of-env", "column-of-system"}

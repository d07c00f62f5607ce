"""What the tests of the command line share: a command that runs in a folder and gives what it printed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from dq.cli.main import run

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: lake, format: parquet}
team: {members: [{username: ana@example.com, role: owner}]}
support:
  - {channel: "#sales", tool: slack, scope: notifications}
schema:
  - name: orders
    description: One row per order.
    properties:
      - {name: day, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 1}
      - {name: id, logicalType: integer, physicalType: bigint, required: true}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: orders
    schedule: "0 6 * * *"
    customProperties:
      - property: delivery
        vendor: dq
        value: {grace: 30m, partition: {day: "{due - 1d:%F}"}, objective: 90%}
"""


@dataclass
class Ran:
    """An exit code, and what stood on stdout and stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with one good contract, and no setting of the machine."""
    monkeypatch.chdir(tmp_path)
    for name in ("DQ_STORE_URL", "SLACK_BOT_TOKEN", "DQ_LAKE", "DQ_VARS", "DQ_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "orders.odcs.yaml").write_text(CONTRACT)
    return tmp_path


@pytest.fixture
def dq(folder: Path, capfd):
    """Runs one command line in the folder."""

    def command(*arguments: str) -> Ran:
        capfd.readouterr()
        code = run(list(arguments))
        printed = capfd.readouterr()
        return Ran(code, printed.out, printed.err)

    return command

"""What is laid out for a terminal fits its cells, of which wide characters take two and accents none."""

from __future__ import annotations

import sys
from io import StringIO

import pytest
from rich.cells import cell_len

from dq.cli import output
from dq.cli.main import run

CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: orders
version: 1.0.0
status: active
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, required: true}
      - {name: 注文番号と顧客, logicalType: integer, required: true}
      - {name: cafe\u0301, logicalType: integer, required: true}
"""


class Terminal(StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_the_columns_of_a_table_stand_under_each_other_whatever_the_script(tmp_path, capsys):
    file = tmp_path / "orders.odcs.yaml"
    file.write_text(CONTRACT)

    run(["explain", str(file)])
    printed = capsys.readouterr().out.splitlines()

    starts = {cell_len(line.partition("required")[0]) for line in printed if "required" in line}
    assert len([line for line in printed if "required" in line]) == 3
    assert starts == {cell_len(printed[0].partition("clause")[0])}


@pytest.mark.parametrize("columns", [40, 100])
@pytest.mark.parametrize("what", ["x" * 300, "検" * 300, "検a" * 90, "e\u0301" * 300])
def test_a_line_that_is_written_over_stays_one_line_of_the_terminal(monkeypatch, what, columns):
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stderr", terminal)

    output.live(what)

    shown = terminal.getvalue().removeprefix("\r\x1b[K")
    assert shown.endswith("…")
    assert columns - 1 <= cell_len(shown) <= columns

"""An alert on the terminal: red while it is broken, green once it is mended, plain where colours are off."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.command import BEGIN, MISSED, contract
from fakes.desk import Desk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Desk:
    made = Desk(tmp_path, monkeypatch, capfd)
    made.write("registry/[ok] orders.odcs.yaml", contract("orders"))
    (tmp_path / "lake").mkdir()
    return made


@pytest.mark.parametrize(
    ("variables", "head", "command"),
    [
        (
            {"FORCE_COLOR": "1"},
            "\x1b[31;1m[!] ERROR: orders is missing: day=2026-05-10\x1b[0m\n",
            f"    details       \x1b[1mdq status 'registry/[ok] orders.odcs.yaml' --as-of {MISSED}\x1b[0m\n",
        ),
        (
            {"FORCE_COLOR": "1", "NO_COLOR": "1"},
            "[!] ERROR: orders is missing: day=2026-05-10\n",
            f"    details       dq status 'registry/[ok] orders.odcs.yaml' --as-of {MISSED}\n",
        ),
    ],
)
def test_the_head_and_the_command_stand_out(
    variables: dict[str, str], head: str, command: str, desk: Desk
) -> None:
    desk.dq("watch", "registry", "--as-of", BEGIN, "--channel", "console")

    ran = desk.dq("watch", "registry", "--as-of", MISSED, "--channel", "console", **variables)

    assert ran.out.startswith(head)
    assert command in ran.out

"""The command that an alert names, pasted into a shell in the folder where the watcher ran."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from fakes.command import BEGIN, MISSED, contract
from fakes.desk import Desk, Ran

BIN = Path(sys.executable).parent
ODD = [
    "orders.odcs.yaml",
    "-rf.odcs.yaml",
    "a b'c\"d.odcs.yaml",
    "$(touch canary);`touch canary`.odcs.yaml",
    "\u00fcber.odcs.yaml",
    f"{'long' * 55}.odcs.yaml",
]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Desk:
    folder = tmp_path / "where it ran"
    (folder / "lake" / "orders").mkdir(parents=True)
    return Desk(folder, monkeypatch, capfd)


def breach(desk: Desk, given: str, *options: str) -> Ran:
    """What a watcher printed of a delivery that is missing."""
    before, after = [option for option in options if option.startswith("--config")], options
    rest = [option for option in after if option not in before]
    for at in (BEGIN, MISSED):
        ran = desk.dq(*before, "watch", given, *rest, "--as-of", at, "--channel", "console")
    return ran


def pasted(ran: Ran, folder: Path) -> subprocess.CompletedProcess[str]:
    """What a shell that knows no more than where dq is installed does with the command."""
    (command,) = re.findall("details  +(.+)", ran.out)
    home = {"PATH": f"{BIN}:{os.environ['PATH']}", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": ""}
    return subprocess.run(
        ["sh", "-c", command], cwd=folder, env=home, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.parametrize("name", ODD)
def test_it_works_whatever_the_contract_is_called(name: str, desk: Desk) -> None:
    desk.write(f"registry/{name}", contract("orders"))

    done = pasted(breach(desk, "registry"), desk.folder)

    assert done.returncode == 0, done.stderr
    assert "orders is missing: day=2026-05-10" in done.stdout
    assert not (desk.folder / "canary").exists()


@pytest.mark.parametrize("given", [".", "registry", "registry/orders.odcs.yaml", "./registry/../registry"])
def test_the_path_is_the_one_that_the_watcher_was_given(given: str, desk: Desk) -> None:
    desk.write("registry/orders.odcs.yaml", contract("orders"))

    ran = breach(desk, given)

    assert str(desk.folder) not in ran.out
    assert pasted(ran, desk.folder).returncode == 0


def test_an_absolute_path_is_said_as_seen_from_the_folder(desk: Desk) -> None:
    inside = desk.write("registry/orders.odcs.yaml", contract("orders"))
    beside = desk.folder.parent / "other registry"
    beside.mkdir()
    shutil.copy(inside, beside)

    within = breach(desk, str(inside.parent))
    worked = pasted(within, desk.folder)
    shutil.rmtree(desk.folder / ".dq")
    inside.unlink()
    next_door = breach(desk, str(beside))

    assert (worked.returncode, pasted(next_door, desk.folder).returncode) == (0, 0)
    assert str(desk.folder.parent) not in within.out + next_door.out
    assert "details       dq status '../other registry/orders.odcs.yaml'" in next_door.out


def test_the_settings_are_named_as_well(desk: Desk) -> None:
    desk.write("registry/orders.odcs.yaml", contract("orders"))
    config = desk.write("settings/dq.toml", f'store_url = "sqlite:///{desk.folder}/elsewhere.db"\n')
    config.chmod(0o600)

    ran = breach(desk, "registry", "--config=settings/dq.toml")

    assert "details       dq --config settings/dq.toml status registry/orders.odcs.yaml" in ran.out
    assert pasted(ran, desk.folder).returncode == 0


def test_settings_of_the_environment_are_named_too(desk: Desk) -> None:
    desk.write("registry/orders.odcs.yaml", contract("orders"))
    desk.write("my dq.toml", f'store_url = "sqlite:///{desk.folder}/elsewhere.db"\n').chmod(0o600)
    for at in (BEGIN, MISSED):
        ran = desk.dq("watch", "registry", "--as-of", at, "--channel", "console", DQ_CONFIG="my dq.toml")

    assert pasted(ran, desk.folder).returncode == 0


def test_an_alert_of_the_platform_names_one_too(desk: Desk) -> None:
    desk.write("registry/orders.odcs.yaml", contract("orders"))
    marker = desk.write("lake/orders/day=2026-05-10/_SUCCESS", "")
    came = datetime.fromisoformat("2026-05-11T05:00:00Z").timestamp()
    os.utime(marker, (came, came))
    breach(desk, "registry")
    shutil.rmtree(desk.folder / "lake")

    ran = desk.dq("watch", "registry", "--as-of", "2026-05-12T07:12:00Z", "--channel", "console")

    assert "cannot read evidence" in ran.out
    assert str(desk.folder) not in ran.out
    assert pasted(ran, desk.folder).returncode in (0, 3)

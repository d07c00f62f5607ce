"""What lies in `.dq` is believed, so that a folder which somebody else prepared is refused.

Each test is a way in: a checkout that brings the state along, a link that leads elsewhere, a file that others
may read.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fakes.breaches import KEY

from dq.alerts.record import record
from dq.alerts.route import AlertRoute
from dq.cli.main import run
from dq.contracts.incident import Breach
from dq.contracts.outcome import Severity
from dq.store.engine import open_store

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: lake, format: parquet}
schema:
  - name: orders
    properties:
      - {name: day, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 1}
      - {name: id, logicalType: integer, physicalType: bigint, required: true}
"""
STRANGER = "CANARY: your lake is on fire"
COMMANDS = {
    "watch": ("watch", "orders.odcs.yaml", "--channel", "console"),
    "status": ("status", "orders.odcs.yaml"),
    "register": ("register", "orders.odcs.yaml"),
    "publish": ("publish", "orders.odcs.yaml", "--partition", "day=2026-05-01"),
    "check": ("check", "orders.odcs.yaml", "--dry-run"),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one contract and its delivered data, as the working folder."""
    home = tmp_path / "checkout"
    (home / "lake" / "day=2026-05-01").mkdir(parents=True)
    (home / "orders.odcs.yaml").write_text(CONTRACT)
    monkeypatch.chdir(home)
    for name in ("DQ_STORE_URL", "SLACK_BOT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    # Without Java no session can start, which all commands ask for after the state.
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    git(home, "init", "--quiet")
    git(home, "add", "orders.odcs.yaml")
    return home


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def planted(file: Path) -> None:
    """A store with an alert in its outbox that waits to be sent."""
    file.parent.mkdir(parents=True, exist_ok=True)
    store = open_store(f"sqlite:///{file}")
    now = datetime(2026, 5, 1, tzinfo=UTC)
    with store.write() as tx:
        record(tx, Breach(KEY, Severity.ERROR, "2026-05-01", STRANGER, now), [AlertRoute("console", "")], now)
    store.close()


def mode(path: Path) -> str:
    return f"{stat.S_IMODE(path.lstat().st_mode):o}"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_state_that_came_with_the_branch_is_refused_with_what_mends_it(home, capfd, command):
    planted(home / ".dq" / "store.db")
    git(home, "add", "--force", ".dq")
    git(home, "commit", "--quiet", "--message", "a")

    code = run([*COMMANDS[command]])

    out, err = capfd.readouterr()
    assert "CANARY" not in out + err
    assert code == 3
    assert "is tracked by Git" in err
    assert "git rm -r --cached .dq" in err
    assert "DQ_STORE_URL" in err


def test_a_state_that_is_only_staged_or_a_submodule_is_refused(home, capfd):
    (home / ".dq").mkdir()
    git(home / ".dq", "init", "--quiet")
    git(home / ".dq", "commit", "--quiet", "--allow-empty", "--message", "a")
    git(home, "add", "--force", ".dq")

    assert run(["status", "orders.odcs.yaml"]) == 3

    assert "is tracked by Git" in capfd.readouterr().err


def test_a_state_of_ones_own_in_a_checkout_is_used(home, capfd):
    planted(home / ".dq" / "store.db")

    run(["watch", "orders.odcs.yaml", "--channel", "console"])

    assert STRANGER in capfd.readouterr().out


def test_a_store_that_the_operator_names_is_used_whatever_the_branch_holds(home, capfd, monkeypatch):
    planted(home / ".dq" / "store.db")
    git(home, "add", "--force", ".dq")
    monkeypatch.setenv("DQ_STORE_URL", f"sqlite:///{home.parent / 'mine.db'}")

    assert run(["status", "orders.odcs.yaml"]) == 0

    assert mode(home.parent / "mine.db") == "600"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_state_folder_that_is_a_link_is_refused_and_nothing_written_where_it_leads(home, capfd, command):
    outside = home.parent / "outside"
    outside.mkdir()
    (home / ".dq").symlink_to(outside)

    assert run([*COMMANDS[command]]) == 3

    assert list(outside.iterdir()) == []
    assert "checkout/.dq is a link." in capfd.readouterr().err


@pytest.mark.parametrize("name", ["published.jsonl", "store.db", "store.db-wal", "metastore", "derby.log"])
def test_a_link_inside_of_the_state_is_refused_and_nothing_written_where_it_leads(home, capfd, name):
    canary = home.parent / "canary"
    canary.write_text("untouched")
    run(["register", "orders.odcs.yaml", "--apply"])
    (home / ".dq" / name).unlink(missing_ok=True)
    (home / ".dq" / name).symlink_to(canary)

    code = run([*COMMANDS["publish"]])

    assert canary.read_text() == "untouched"
    assert code == 3
    assert f".dq/{name} is a link" in capfd.readouterr().err


def test_a_dangling_link_for_the_notices_makes_no_file(home):
    run(["register", "orders.odcs.yaml", "--apply"])
    (home / ".dq" / "published.jsonl").symlink_to(home.parent / "made")

    code = run([*COMMANDS["publish"]])

    assert not (home.parent / "made").exists()
    assert code == 3


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
def test_a_state_folder_of_somebody_else_is_refused(home, capfd):
    (home / ".dq").mkdir()
    os.chown(home / ".dq", 65534, 65534)

    assert run(["status", "orders.odcs.yaml"]) == 3

    assert "is owned by another user" in capfd.readouterr().err


def test_a_file_in_place_of_the_state_folder_is_a_sentence(home, capfd):
    (home / ".dq").write_text("")

    assert run(["status", "orders.odcs.yaml"]) == 3

    assert "checkout/.dq cannot be used: Not a directory." in capfd.readouterr().err


def test_the_state_is_for_this_user_only_and_ignored_by_git(home, capfd):
    before = os.umask(0o022)
    try:
        run(["register", "orders.odcs.yaml", "--apply"])
        assert run([*COMMANDS["publish"]]) == 0
    finally:
        os.umask(before)

    made = {one.name: mode(one) for one in (home / ".dq").iterdir()}
    assert mode(home / ".dq") == "700"
    assert {"store.db", "published.jsonl", ".gitignore"} <= set(made)
    assert set(made.values()) == {"600"}
    assert git_status(home) == ""


def git_status(folder: Path) -> str:
    said = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all", "--", ".dq"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return said.stdout.decode()


def test_a_state_that_an_older_dq_left_open_is_closed(home):
    planted(home / ".dq" / "store.db")
    (home / ".dq").chmod(0o755)
    (home / ".dq" / "store.db").chmod(0o644)

    assert run(["status", "orders.odcs.yaml"]) == 0

    assert (mode(home / ".dq"), mode(home / ".dq" / "store.db")) == ("700", "600")


def test_two_commands_may_begin_at_once(home):
    program = "import sys; from dq.cli.main import run; sys.exit(run(['status', 'orders.odcs.yaml']))"
    both = [subprocess.Popen([sys.executable, "-c", program], cwd=home) for _ in range(2)]

    assert [one.wait(60) for one in both] == [0, 0]

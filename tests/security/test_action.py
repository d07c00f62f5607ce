"""The GitHub Action judges a stranger's checkout and runs, looks up and configures nothing from it."""

from __future__ import annotations

import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fakes import wheel, workflow

from dq.validators import rule_page

ACTION = wheel.ROOT / "action.yml"
TOOLS = ("bash", "git", "mktemp", "realpath", "cat", "python3")
GOOD = rule_page.document("")[0]
BAD = rule_page.document("status: activ\nid: orders\nversion: 1.10\n")[0]
# Modules that Python, venv, pip, the build and dq import by name.
MODULES = (
    "venv", "pip", "ensurepip", "sitecustomize", "usercustomize", "setuptools", "typing", "json", "yaml",
    "git", "typer", "pydantic", "dq",
)  # fmt: skip
PROGRAMS = ("uv", "dq", "pip", "python", "evil", "bash_env")


@dataclass
class Canary:
    """A file that hostile code writes to, and a listening socket that hostile settings name."""

    file: Path
    address: str
    visits: list[object] = field(default_factory=list)

    @property
    def untouched(self) -> bool:
        said = self.file.read_text() if self.file.exists() else ""
        assert (said, self.visits) == ("", [])
        return True


@pytest.fixture
def canary(tmp_path: Path) -> Iterator[Canary]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = Canary(tmp_path / "canary", f"http://127.0.0.1:{server.getsockname()[1]}/simple")

        def listen() -> None:
            while True:
                try:
                    connection, peer = server.accept()
                except OSError:
                    return
                found.visits.append(peer)
                connection.close()

        threading.Thread(target=listen, daemon=True).start()
        yield found


@pytest.fixture
def checkout(tmp_path: Path, canary: Canary) -> Path:
    """A good contract among everything that could make a program run or fetch what a stranger wants."""
    made = tmp_path / "checkout"
    (made / "contracts").mkdir(parents=True)
    (made / "contracts" / "orders.odcs.yaml").write_text(GOOD)
    for name in MODULES:
        for file in (f"{name}.py", f"packages/{name}/__init__.py", f"packages/{name}/__main__.py"):
            (made / file).parent.mkdir(parents=True, exist_ok=True)
            (made / file).write_text(f"open({str(canary.file)!r}, 'a').write(__file__ + '\\n')\n")
    for name in PROGRAMS:
        (made / name).write_text(f"#!/bin/sh\necho \"$0\" >> '{canary.file}'\n")
        (made / name).chmod(0o755)
    (made / ".python-version").write_text("./evil\n")
    (made / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(made / "evil", made / ".venv" / "bin" / "python")
    (made / "uv.toml").write_text(f'[[index]]\nurl = "{canary.address}"\ndefault = true\n')
    (made / "pyproject.toml").write_text(
        f'[project]\nname = "x"\nversion = "1"\n[tool.uv]\nindex-url = "{canary.address}"\n'
    )
    configured = f"[global]\nindex-url = {canary.address}\npython = {made}/evil\n"
    for name in ("pip.conf", "pip.ini", "setup.cfg"):
        (made / name).write_text(configured)
    (made / ".env").write_text(f"UV_INDEX_URL={canary.address}\nPIP_INDEX_URL={canary.address}\n")
    return made


def tools(folder: Path, *more: str) -> Path:
    """A folder with the programs that a runner has, so that nothing else of this machine is found."""
    folder.mkdir()
    base = {"python3": getattr(sys, "_base_executable", sys.executable), "uv": wheel.uv()}
    for name in (*TOOLS, *more):
        found = base.get(name) or shutil.which(name)
        assert found, name
        (folder / name).write_text(f'#!/bin/sh\nexec "{found}" "$@"\n')
        (folder / name).chmod(0o755)
    return folder


def act(checkout: Path, job: dict[str, str], **inputs: str) -> workflow.Ran:
    return workflow.run(ACTION, checkout, checkout.parent / "temp", job, **inputs)


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_checkout_full_of_traps_is_judged_and_nothing_of_it_is_run(tmp_path, checkout, canary, installer):
    more = ["uv"] if installer == "uv" else []
    job = {
        # Whoever has the working folder on a path, or names a file of the checkout, meant well.
        "PATH": f"{tools(tmp_path / 'tools', *more)}:.:",
        "PYTHONPATH": f".:{checkout}:{checkout}/packages",
        "PIP_CONFIG_FILE": str(checkout / "pip.conf"),
        "UV_CONFIG_FILE": str(checkout / "uv.toml"),
        "BASH_ENV": "./bash_env",
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    ran = act(checkout, job, path="contracts")

    assert canary.untouched
    assert (ran.code, ran.log) == (0, "dq: 1 contract, no findings.\n")
    assert ran.outputs["exit-code"] == "0"


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("--policy=weak.yaml contracts", id="an option"),
        pytest.param("-h", id="a short option"),
        pytest.param("contracts\n--report=sarif=pwned", id="an option on its own line"),
        pytest.param("contracts $(touch pwned) `touch pwned` ;touch${IFS}pwned", id="a command"),
        pytest.param("contracts/*.yaml", id="a pattern"),
    ],
)
def test_a_path_is_a_path_whatever_it_looks_like(tmp_path, checkout, path):
    (checkout / "contracts" / "orders.odcs.yaml").write_text(BAD)
    (checkout / "weak.yaml").write_text("profile: default\nrules: {wrong-type: off}\n")

    ran = act(checkout, {}, path=path, install="false")

    assert ran.code == 3
    assert not list(tmp_path.rglob("pwned"))


def test_paths_on_several_lines_are_all_judged(checkout):
    (checkout / "more").mkdir()
    (checkout / "more" / "orders.odcs.yaml").write_text(BAD)

    ran = act(checkout, {}, path="contracts\nmore\n", install="false")

    assert ran.code == 1


@pytest.mark.parametrize("formats", ["sarif,../../pwned", "markdown=pwned", "json\n/pwned", "$(touch pwned)"])
def test_a_report_is_written_to_the_folder_of_reports_alone(tmp_path, checkout, formats):
    before = {path for path in tmp_path.rglob("*") if "temp" not in path.parts}

    ran = act(checkout, {}, formats=formats, install="false")

    assert ran.code == 2
    assert {path for path in tmp_path.rglob("*") if "temp" not in path.parts} == before
    assert not list(tmp_path.rglob("*pwned*"))


def test_a_dq_that_lies_in_the_checkout_is_not_the_one_that_judges(tmp_path, checkout, canary):
    job = {"PATH": f".:{tools(tmp_path / 'tools')}:"}

    ran = act(checkout, job, path="contracts", install="false")

    assert canary.untouched
    assert (ran.code, ran.log) == (2, "There is no dq on the PATH; leave 'install' at true.\n")


def test_what_a_branch_writes_cannot_set_variables_or_outputs_of_the_job(tmp_path, checkout):
    name = "a\necho=pwned\n::set-output name=pwned::yes\n.odcs.yaml"
    (checkout / "contracts" / name).write_text(BAD.replace("id: orders", 'id: "x\\n::error::pwned"'))

    ran = act(checkout, {}, path="contracts", install="false")

    assert ran.code == 1
    set_ = (tmp_path / "temp" / "GITHUB_OUTPUT").read_text().splitlines()
    assert [line.partition("=")[0] for line in set_] == ["dq", "exit-code", "reports"]
    assert not [line for line in ran.log.splitlines() if line.startswith(("::set-output", "::error::pwned"))]

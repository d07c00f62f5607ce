"""The command that installs an extra names the place where this dq came from."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from dq.contracts.install import require_extras
from dq.contracts.outcome import MissingTool

PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1])\n"
    "from dq.contracts.install import install_command, upgrade_command\n"
    "print(install_command('spark', 'slack')); print(upgrade_command())"
)
GIT = {"vcs": "git", "commit_id": "21b90f0"}


@pytest.mark.parametrize(
    ("origin", "extras", "upgrade"),
    [
        pytest.param(None, "'dq-contracts[spark,slack]'", "dq-contracts", id="an index"),
        pytest.param(
            {"url": "file:///tmp/a%20b/dq-1.whl", "archive_info": {}},
            "'dq-contracts[spark,slack] @ file:///tmp/a%20b/dq-1.whl'",
            "'dq-contracts @ file:///tmp/a%20b/dq-1.whl'",
            id="a wheel",
        ),
        pytest.param(
            {"url": "file:///tmp/a%20b", "dir_info": {"editable": True}},
            "--editable '/tmp/a b[spark,slack]'",
            "--editable '/tmp/a b'",
            id="a checkout that is worked on",
        ),
        pytest.param(
            {"url": "file:///tmp/dq", "dir_info": {}},
            "'dq-contracts[spark,slack] @ file:///tmp/dq'",
            "'dq-contracts @ file:///tmp/dq'",
            id="a checkout",
        ),
        pytest.param(
            {"url": "https://git.example.com/dq.git", "vcs_info": {**GIT, "requested_revision": "v0.2.0"}},
            "'dq-contracts[spark,slack] @ git+https://git.example.com/dq.git@v0.2.0'",
            "'dq-contracts @ git+https://git.example.com/dq.git@v0.2.0'",
            id="a tag",
        ),
        pytest.param(
            {"url": "https://ana:hunter2@git.example.com:8443/dq.git", "vcs_info": GIT},
            "'dq-contracts[spark,slack] @ git+https://git.example.com:8443/dq.git@21b90f0'",
            "'dq-contracts @ git+https://git.example.com:8443/dq.git@21b90f0'",
            id="a commit, with a password",
        ),
        pytest.param(
            {"url": "ssh://git@git.example.com/dq.git", "vcs_info": GIT},
            "'dq-contracts[spark,slack] @ git+ssh://git@git.example.com/dq.git@21b90f0'",
            "'dq-contracts @ git+ssh://git@git.example.com/dq.git@21b90f0'",
            id="over SSH",
        ),
    ],
)
def test_an_extra_comes_from_where_dq_came_from(tmp_path, origin, extras, upgrade):
    package = tmp_path / "dq_contracts-0.1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: dq-contracts\nVersion: 0.1.0\n")
    if origin:
        (package / "direct_url.json").write_text(json.dumps(origin))

    said = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True
    )

    assert said.stdout.splitlines() == [f"pip install {extras}", f"pip install --upgrade {upgrade}"]


def test_a_package_that_is_there_and_broken_is_not_called_absent(tmp_path, monkeypatch):
    (tmp_path / "halfway.py").write_text("raise ImportError('libparts.so: no such file\\x1b[2J')")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(MissingTool) as broken, require_extras("Parts need halfway", "s3"):
        import halfway  # noqa: F401
    with pytest.raises(MissingTool) as absent, require_extras("Parts need nowhere", "s3"):
        import nowhere  # noqa: F401

    assert "Parts need halfway, which cannot be loaded (libparts.so" in broken.value.message
    assert "\x1b" not in broken.value.message
    assert absent.value.message == "Parts need nowhere, which is not installed."

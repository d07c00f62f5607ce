"""A checkout knows where it comes from, whatever its folder is called."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dq.validators.git.repository import name_from_url, remote_name


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/air/contracts.git", "github.com/air/contracts"),
        ("https://user:secret@github.com/air/contracts", "github.com/air/contracts"),
        ("ssh://git@GitHub.com:22/air/contracts.git/", "github.com/air/contracts"),
        ("git@github.com:air/contracts.git", "github.com/air/contracts"),
        ("https://git.example.org:8443/data/air/contracts.git", "git.example.org/data/air/contracts"),
        ("/srv/git/contracts.git", ""),
        ("../contracts", ""),
        ("file:///srv/git/contracts.git", ""),
        ("", ""),
    ],
)
def test_a_remote_has_one_name_and_no_secret(url: str, name: str) -> None:
    assert name_from_url(url) == name


def test_two_checkouts_have_one_name(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        git = ["git", "-C", str(tmp_path / folder)]
        subprocess.run(["git", "init", "-q", str(tmp_path / folder)], check=True)
        url = "git@github.com:air/contracts.git"
        subprocess.run([*git, "remote", "add", "origin", url], check=True)
    (tmp_path / "two" / "registry").mkdir()

    assert remote_name(tmp_path / "one") == remote_name(tmp_path / "two" / "registry")
    assert remote_name(tmp_path / "one") == "github.com/air/contracts"


def test_a_repository_without_a_remote_and_a_plain_folder_have_none(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "one")], check=True)
    (tmp_path / "plain").mkdir()

    assert remote_name(tmp_path / "one") == ""
    assert remote_name(tmp_path / "plain") == ""

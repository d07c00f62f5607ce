"""Real Git repositories for the base of a pull request."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fragments.registry import Registry
from git import Repo


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "registry")


@pytest.fixture
def shallow(registry: Registry, tmp_path: Path) -> Callable[[str], Path]:
    """A clone of one branch with its last commit only, as CI makes them."""

    def clone(branch: str) -> Path:
        folder = tmp_path / "clone"
        Repo.clone_from(f"file://{registry.folder}", folder, branch=branch, depth=1)
        return folder

    return clone

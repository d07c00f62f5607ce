"""What the tests of contracts share: a reader, and the official JSON Schemas, fetched and never vendored."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dq.contracts.outcome import Finding
from dq.contracts.yaml.parse import Parsed, parse

HEAD = "apiVersion: {api}\nkind: DataContract\nid: orders\nversion: 1.0.0\nstatus: active\n"

Read = Callable[..., Parsed]


def spots(findings: list[Finding]) -> list[tuple[int, int, str]]:
    """Line, column and rule of each finding."""
    return [(one.at.line, one.at.column, one.rule) for one in findings]


@pytest.fixture
def read() -> Read:
    """A contract whose sixth line is the first of the text."""

    def run(text: str, api: str = "v3.2.0") -> Parsed:
        return parse((HEAD.format(api=api) + text).encode(), "orders.odcs.yaml")

    return run


PACKAGE = "datacontract-cli==1.2.8"
VERSIONS = ("3.0.2", "3.1.0", "3.2.0")


@pytest.fixture(scope="session")
def odcs_schemas(pytestconfig: pytest.Config) -> dict[str, Any]:
    """The schemas by version. Skips, with the reason, without a network; fails where CI says that it is one.

    Only the files of one wheel are unpacked into pytest's cache; nothing of the package is run.
    """
    folder = pytestconfig.cache.mkdir(PACKAGE.replace("==", "-"))
    if not _schema(folder, VERSIONS[-1]).is_file():
        uv = os.environ.get("UV") or shutil.which("uv")
        command = [uv or "uv", "pip", "install", "--quiet", "--no-deps", "--python", sys.executable]
        try:
            subprocess.run([*command, "--target", str(folder), PACKAGE], check=True, timeout=300)
        except (OSError, subprocess.SubprocessError) as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"the schemas of ODCS cannot be fetched with uv: {error}")
    return {version: json.loads(_schema(folder, version).read_text("utf-8")) for version in VERSIONS}


def _schema(folder: Path, version: str) -> Path:
    return folder / "datacontract" / "schemas" / f"odcs-{version}.schema.json"

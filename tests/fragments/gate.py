"""A registry in a real repository with a branch, judged by the real command, and a canary beside it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
      - {name: id, logicalType: integer, physicalType: bigint, required: true, description: Number.}
      - {name: amount, logicalType: number, physicalType: "decimal(18, 2)", description: Sum.}
"""
AMOUNT = '      - {name: amount, logicalType: number, physicalType: "decimal(18, 2)", description: Sum.}\n'


@dataclass(frozen=True)
class Gated:
    """What a run of the gate said."""

    code: int
    out: str
    err: str

    @property
    def findings(self) -> list[dict[str, Any]]:
        return json.loads(self.out)["findings"] if self.out else []

    @property
    def rules(self) -> set[str]:
        return {one["rule"] for one in self.findings}

    @property
    def verdict(self) -> set[tuple[str, str, str, int]]:
        """What was found, and where."""
        return {(one["rule"], one["severity"], one["file"], one["line"]) for one in self.findings}

    @property
    def severities(self) -> set[tuple[str, str]]:
        return {(one["severity"], one["rule"]) for one in self.findings}


class Scene:
    """A repository with `registry/` on main, the branch `change` checked out, and a canary outside."""

    def __init__(self, folder: Path, canary: Path, enter: Any, printed: Any) -> None:
        self.folder, self.canary, self.enter, self.printed = folder, canary, enter, printed

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, capture_output=True, text=True, timeout=300, check=True
        )
        return done.stdout

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def commit(self, subject: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--no-verify", "--allow-empty", "-m", subject)

    def program(self) -> Path:
        """A program that leaves the canary."""
        path = self.canary.parent / "program"
        path.write_text(f"#!/bin/sh\necho ran >> {self.canary}\n")
        path.chmod(0o755)
        return path

    def gate(self, path: str = "registry", *more: str, here: str = ".", base: str = "main") -> Gated:
        """`dq validate PATH --base main --format json`, from a folder of the repository."""
        self.enter(self.folder / here)
        self.printed.readouterr()
        code = run(["validate", path, "--base", base, "--format", "json", *more])
        printed = self.printed.readouterr()
        return Gated(code, printed.out, printed.err)

    def gate_as_process(self, path: str = "registry", base: str = "main") -> Gated:
        """The same as a process of its own."""
        program = "import sys; from dq.cli.main import main; main()"
        command = [sys.executable, "-P", "-c", program, "validate", path, "--base", base, "--format", "json"]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=300, check=False
        )
        return Gated(done.returncode, done.stdout, done.stderr)


def template(folder: Path) -> Path:
    """The repository as it is before anybody does harm."""
    folder.mkdir()
    made = Scene(folder, folder, None, None)
    made.git("init", "-q", "-b", "main")
    made.git("config", "user.email", "ana@example.com")
    made.git("config", "user.name", "Ana")
    made.write("registry/dq-policy.yaml", "profile: default\n")
    made.write("registry/orders.odcs.yaml", CONTRACT)
    made.write("registry/sales/lines.odcs.yaml", CONTRACT.replace("id: orders", "id: lines"))
    made.commit("promise orders")
    made.git("checkout", "-q", "-b", "change")
    return folder

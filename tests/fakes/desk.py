"""An operator's desk: a working folder, settings, and the real command line in this process."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes.command import Ran

from dq.cli.main import run


@dataclass(frozen=True)
class Desk:
    """Runs commands in `folder` with no setting of this machine but those that are handed in."""

    folder: Path
    patch: pytest.MonkeyPatch
    printed: pytest.CaptureFixture[str]

    def __post_init__(self) -> None:
        self.patch.chdir(self.folder)
        for name in os.environ:
            if name.startswith(("DQ_", "SLACK_")):
                self.patch.delenv(name)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def dq(self, *arguments: str, **variables: str) -> Ran:
        self.printed.readouterr()
        with self.patch.context() as given:
            for name, value in variables.items():
                given.setenv(name, value)
            code = run(list(arguments))
        printed = self.printed.readouterr()
        return Ran(code, printed.out, printed.err)

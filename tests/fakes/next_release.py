"""The dq of the next release, as its users would run it: this one with one migration more."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import dq
from dq.store import engine

SCHEMA = f"{int(engine.head()) + 1:04}"
_MIGRATION = f'''
import sqlalchemy as sa
from alembic import op

revision = "{SCHEMA}"
down_revision = "{engine.head()}"


def upgrade():
    op.add_column("cycle", sa.Column("of_the_next_release", sa.Text))
'''


@dataclass(frozen=True)
class NextRelease:
    """Where it is installed."""

    site: tempfile.TemporaryDirectory[str]

    def run(self, folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """One of its commands, in a folder."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DQ_")}
        return subprocess.run(
            [sys.executable, "-m", "dq", *words],
            cwd=folder,
            env={**environment, "PYTHONPATH": self.site.name, **variables},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


@cache
def install() -> NextRelease:
    """Once per run of the tests."""
    site = tempfile.TemporaryDirectory(prefix="dq-next-")
    # The editable dq is a tree of links to the files of this checkout.
    package = shutil.copytree(dq.__path__[0], Path(site.name, "dq"), symlinks=True)
    (package / "store/migrations/versions" / f"{SCHEMA}_next_release.py").write_text(_MIGRATION)
    return NextRelease(site)

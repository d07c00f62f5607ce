"""Functions of dq as tasks of Spark leave nothing behind that costs the next task."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

PROGRAM = """
import sys
from zipimport import zipimporter
import inside
from dq.dataquality.spark.session import forget_archives
held = lambda: [path for path, one in sys.path_importer_cache.items() if isinstance(one, zipimporter)]
print(len(held()))
forget_archives()
print(len(held()))
import beside
print(inside.NAME, beside.NAME)
"""


def test_archives_are_forgotten_and_found_again(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("inside.py", "NAME = 'inside'")
        archive.writestr("beside.py", "NAME = 'beside'")

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONPATH": str(tmp_path / "a.zip")},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split("\n")[:3] == ["1", "0", "inside beside"]

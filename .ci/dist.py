"""Builds what a release uploads, the same bytes wherever and whenever: `make dist`.

.ci/dist.py FOLDER     from the last commit, not from the working tree; SOURCE_DATE_EPOCH is that commit's
                       time unless it is set

The wheel has the times that SOURCE_DATE_EPOCH names by itself. The times, owners and order of the archive of
the sources are those of the machine that builds, so it is packed once more.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct").decode().strip()
    # The permissions of files go into both archives.
    os.umask(0o022)
    with tempfile.TemporaryDirectory(prefix="dq-dist-") as name:
        sources, made = Path(name, "sources"), Path(name, "made")
        with tarfile.open(fileobj=io.BytesIO(_git("archive", "--format=tar", "HEAD"))) as tree:
            tree.extractall(sources, filter="data")
        subprocess.run(
            [_uv(), "--no-config", "build", "--quiet", "--out-dir", made, sources],
            env={**os.environ, "SOURCE_DATE_EPOCH": epoch},
            check=True,
        )
        for file in sorted(made.glob("*.tar.gz")):
            (folder / file.name).write_bytes(packed(file.read_bytes(), int(epoch)))
        for file in sorted(made.glob("*.whl")):
            shutil.copyfile(file, folder / file.name)
    for file in sorted(folder.glob("dq_contracts-*")):
        print(file)
    return 0


def packed(archive: bytes, epoch: int) -> bytes:
    """A tar.gz with the same files, sorted, of nobody, with one time."""
    plain = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as old,
        tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda one: one.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    return gzip.compress(plain.getvalue(), mtime=epoch)


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def _uv() -> str:
    return os.environ.get("UV") or shutil.which("uv") or str(ROOT / ".uv" / "bin" / "uv")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

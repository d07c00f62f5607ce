"""Finding contract files below paths."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dq.contracts.errors import Unreadable

ENDING = ".odcs.yaml"


def find(paths: Iterable[Path]) -> list[Path]:
    """The contract files at or below the paths, each once, in order.

    A file that is named counts whatever its ending; below a folder, files ending in `.odcs.yaml` (or
    `.odcs.yml`) do, hidden folders left out. Raises Unreadable for a path that is not there and for a
    folder without contracts: an empty answer must not look like a clean one.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_file():
            found[path] = None
        elif path.is_dir():
            inside = _inside(path)
            if not inside:
                raise Unreadable(
                    f"{path} holds no contract.",
                    f"Contracts end in {ENDING}; 'dq init' writes the first one.",
                )
            found.update(dict.fromkeys(inside))
        else:
            raise Unreadable(f"{path} does not exist.", "Name a contract file or a folder of contracts.")
    return list(found)


def _inside(folder: Path) -> list[Path]:
    return sorted(
        one
        for pattern in ("*.odcs.yaml", "*.odcs.yml")
        for one in folder.rglob(pattern)
        if one.is_file() and not any(part.startswith(".") for part in one.relative_to(folder).parts)
    )

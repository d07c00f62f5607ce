"""Odd things in the folder of a table: what other programs leave there, and folders as people arrange them.

Each changes the folder and gives whether it may change what is read; Spark's own reading tells what is.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path


def _data(folder: Path) -> list[Path]:
    # What a link leads to is not walked into.
    return sorted(file for file in folder.rglob("part-*") if file.is_file())


def _copy(folder: Path, name: str, chance: random.Random) -> None:
    """Copy a data file to a path below the table or, for a bare name, next to the file."""
    file = chance.choice(_data(folder))
    target = folder / name if "/" in name else file.with_name(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target)


def success(folder: Path, _: random.Random) -> bool:
    (folder / "_SUCCESS").touch()
    return False


def checksum(folder: Path, chance: random.Random) -> bool:
    file = chance.choice(_data(folder))
    # The checksum of another name: one that Hadoop compares is an error of reading, and no listing.
    file.with_name(f".of-{file.name}.crc").write_bytes(b"crc\0\1\2\3")
    return False


def temporary(folder: Path, chance: random.Random) -> bool:
    _copy(folder, f"_temporary/0/task_1/{chance.choice(_data(folder)).name}", chance)
    return False


def hidden_folder(folder: Path, chance: random.Random) -> bool:
    hidden = chance.choice((".staging", "_old", ".spark-staging-1"))
    _copy(folder, f"{hidden}/part-9.{_ending(folder)}", chance)
    return False


def unfinished_upload(folder: Path, chance: random.Random) -> bool:
    _copy(folder, f"part-8.{_ending(folder)}._COPYING_", chance)
    return False


def hidden_file(folder: Path, chance: random.Random) -> bool:
    _copy(folder, f"{chance.choice('._')}hidden.{_ending(folder)}", chance)
    return False


def metadata_file(folder: Path, chance: random.Random) -> bool:
    _copy(folder, chance.choice(("_metadata", "_common_metadata")), chance)
    return False


def foreign_log(folder: Path, _: random.Random) -> bool:
    log = folder / "_delta_log"
    log.mkdir(exist_ok=True)
    (log / "00000000000000000000.json").write_text('{"commitInfo":{}}\n')
    return False


def empty_file(folder: Path, chance: random.Random) -> bool:
    chance.choice(_data(folder)).with_name(f"part-70.{_ending(folder)}").touch()
    return True


def empty_folder(folder: Path, chance: random.Random) -> bool:
    (folder / chance.choice(("later", "day=2026-05-05", "region=nowhere"))).mkdir(exist_ok=True)
    return False


def nested_folder(folder: Path, chance: random.Random) -> bool:
    _copy(folder, f"{chance.choice(('more', '2026/01'))}/part-6.{_ending(folder)}", chance)
    return True


def other_ending(folder: Path, chance: random.Random) -> bool:
    ending = chance.choice(("", f".{_ending(folder)}.tmp", ".data", ".PARQUET"))
    _copy(folder, f"part-5{ending}", chance)
    return True


def odd_name(folder: Path, chance: random.Random) -> bool:
    name = chance.choice(("part 4", "part%204", "part-ü", "part=4", "part#4", "part[4]", "part{4}", "part'4"))
    _copy(folder, f"{name}.{_ending(folder)}", chance)
    return True


def linked_file(folder: Path, chance: random.Random) -> bool:
    file = chance.choice(_data(folder))
    away = _away(folder) / f"part-30.{_ending(folder)}"
    shutil.copyfile(file, away)
    file.with_name(f"part-30.{_ending(folder)}").symlink_to(away)
    return True


def linked_folder(folder: Path, chance: random.Random) -> bool:
    inner = sorted(path for path in folder.iterdir() if path.is_dir() and "=" in path.name)
    if not inner:
        return False
    chosen = chance.choice(inner)
    away = _away(folder) / "partition"
    chosen.rename(away)
    chosen.symlink_to(away, target_is_directory=True)
    return True


def _away(folder: Path) -> Path:
    """A folder for what lies elsewhere and is linked to."""
    away = folder.parent / f"linked-{folder.name}"
    away.mkdir(exist_ok=True)
    return away


def broken_link(folder: Path, chance: random.Random) -> bool:
    chance.choice(_data(folder)).with_name(f"part-20.{_ending(folder)}").symlink_to(folder / "nowhere")
    return True


def unrelated_file(folder: Path, _: random.Random) -> bool:
    (folder / "README.md").write_text("About this table\n")
    return True


def default_partition(folder: Path, chance: random.Random) -> bool:
    inner = sorted(path for path in folder.iterdir() if path.is_dir() and "=" in path.name)
    if not inner:
        return False
    chosen = chance.choice(inner)
    key = chosen.name.partition("=")[0]
    target = folder / f"{key}=__HIVE_DEFAULT_PARTITION__"
    if not target.exists():
        shutil.copytree(chosen, target, symlinks=True)
    return True


def hidden_partition(folder: Path, chance: random.Random) -> bool:
    inner = sorted(path for path in folder.iterdir() if path.is_dir() and "=" in path.name)
    if inner:
        chosen = chance.choice(inner)
        shutil.copytree(chosen, folder / f".{chosen.name}", symlinks=True, dirs_exist_ok=True)
    return False


def _ending(folder: Path) -> str:
    """The ending of the data files."""
    return next(part for part in ("parquet", "csv", "json") if any(folder.rglob(f"*.{part}")))


Decoration = Callable[[Path, random.Random], bool]
# What a reader that goes by a log, as of Delta or Iceberg, passes over in any case.
DECORATIONS: dict[str, Decoration] = {
    "_SUCCESS": success,
    ".crc": checksum,
    "_temporary/": temporary,
    "hidden folder": hidden_folder,
    "._COPYING_": unfinished_upload,
    "hidden file": hidden_file,
    "_metadata": metadata_file,
    "_delta_log/": foreign_log,
    "empty file": empty_file,
    "empty folder": empty_folder,
    "nested folder": nested_folder,
    "other ending": other_ending,
    "odd name": odd_name,
    "linked file": linked_file,
    "linked folder": linked_folder,
    "broken link": broken_link,
    "unrelated file": unrelated_file,
    "default partition": default_partition,
    "hidden partition": hidden_partition,
}
_FATAL = ("unrelated file", "nested folder", "broken link", "empty file", "other ending")


def decorate(folder: Path, chance: random.Random) -> tuple[tuple[str, ...], bool]:
    """Apply up to four of them; their names, and whether what is read may be other than what was written.

    What keeps Spark from reading a table at all is rarer than the others, so that it hides little.
    """
    if not _data(folder):
        return (), False
    names = [name for name in DECORATIONS if name not in _FATAL or chance.random() < 0.35]
    chosen = chance.sample(names, chance.choice((0, 1, 2, 3, 4)))
    # Last, since no data is found behind a link to a folder.
    chosen.sort(key=lambda name: name == "linked folder")
    changes = [DECORATIONS[name](folder, chance) for name in chosen]
    return tuple(chosen), any(changes)

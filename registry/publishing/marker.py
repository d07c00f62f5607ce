"""The 0-byte file that says that a folder is complete, on a local disk or in an object store."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.access.address import is_remote
from dq.contracts.shared.errors import DqError, Unreadable
from dq.lake.storage import file_system, mend_of, split

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


def require_folder(folder: str, make: bool = False) -> None:
    """Raises DqError when the folder does not exist: nothing was delivered there. `make`: it may be made.

    `folder` is a local path, a `file:` URL, or a URL that Arrow knows (`s3://`, `hdfs://`, `gs://`).
    Raises MissingTool without pyarrow where that is needed, Unreadable when the place does not answer.
    """
    # Object stores have no folders, and HDFS makes one for the first file in it.
    if make and not is_remote(folder):
        with _explained(folder):
            _local(folder).mkdir(parents=True, exist_ok=True)
    if not make and not folder_is_there(folder):
        raise DqError(
            f"Nothing was delivered: {folder} does not exist.",
            "Write the data first, or check the partition; an empty delivery says --rows 0.",
        )


def folder_is_there(folder: str) -> bool:
    """Whether there is such a folder. Raises MissingTool and Unreadable as `require_folder` does."""
    with _explained(folder):
        if not is_remote(folder):
            return _local(folder).is_dir()
        from pyarrow.fs import FileType

        files, path = _remote(folder)
        return bool(files.get_file_info(path).type is FileType.Directory)


def write_marker(folder: str, name: str) -> bool:
    """Puts the empty file into the folder; False, and nothing is written, when it is there already.

    Raises as `require_folder` does.
    """
    with _explained(folder):
        if not is_remote(folder):
            try:
                (_local(folder) / name).touch(exist_ok=False)
            except FileExistsError:
                if not (_local(folder) / name).is_file():
                    raise OSError(errno.EEXIST, f"{name} is no file") from None
                return False
            return True
        from pyarrow.fs import FileType

        files, path = _remote(folder)
        marker = f"{path.rstrip('/')}/{name}"
        if files.get_file_info(marker).type is FileType.File:
            return False
        files.open_output_stream(marker).close()
        return True


def marker_is_there(folder: str, name: str) -> bool:
    """Whether the file is there; nothing is written. Raises as `require_folder` does."""
    with _explained(folder):
        if not is_remote(folder):
            return (_local(folder) / name).is_file()
        from pyarrow.fs import FileType

        files, path = _remote(folder)
        return bool(files.get_file_info(f"{path.rstrip('/')}/{name}").type is FileType.File)


def _local(folder: str) -> Path:
    return Path(re.sub(r"^file:(//)?", "", folder))


def _remote(folder: str) -> tuple[FileSystem, str]:
    root, path = split(folder)
    system, before = file_system(root)
    return system, before + path


@contextmanager
def _explained(folder: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        # Arrow gives ValueError for a scheme that it does not know, OSError for all that a store answers.
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0][:200]
        raise Unreadable(
            f"{folder} cannot be reached or written: {reason}.",
            mend_of(error, "Check that the place exists and that you may write there."),
        ) from error

"""Records of an Avro file, in which Iceberg keeps its manifests and Hudi its commits."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from dq.contracts.shared.errors import MissingTool, Unreadable
from dq.contracts.shared.install import install_command
from dq.dataquality.delivery.lake import unpacking
from dq.dataquality.delivery.lake.files import Files


def records(files: Files, path: str) -> list[dict[str, Any]]:
    """Every record of the file. Raises MissingTool without fastavro, Unreadable for what is no Avro."""
    return parsed(files.read(path), path)


def parsed(content: bytes, path: str) -> list[dict[str, Any]]:
    """Every record of a file with this content, which lies at `path`."""
    try:
        import fastavro
    except ImportError as error:
        what = "Commits of Iceberg and Hudi need fastavro, which is not installed."
        raise MissingTool(what, install_command("lakehouse")) from error
    unpacking.vouch_avro(content, path)
    try:
        return [one for one in fastavro.reader(BytesIO(content)) if isinstance(one, dict)]
    # What it raises for broken files is of many kinds, those of the decompressors among them.
    except Exception as error:
        raise Unreadable(f"{path} is no Avro file that can be read.", "Look at this file.") from error

"""The columns' names behind those by which the log of a Delta table with column mapping knows them.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Column Mapping" and "Checkpoints".
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any

from dq.contracts.shared.errors import MissingTool
from dq.contracts.shared.install import install_command
from dq.dataquality.delivery.lake.files import Files, Seen

_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.[0-9A-Za-z.\-]+)?\.(parquet|json)")
_PHYSICAL = "delta.columnMapping.physicalName"


def mapped(columns: Collection[str]) -> bool:
    """Whether columns have names that Delta made up for a mapping."""
    return any(column.startswith("col-") for column in columns)


def names(files: Files, log: str, inside: Sequence[Seen], commits: Sequence[Seen]) -> dict[str, str]:
    """The name of every top-level column by the log's name of it, from the newest entry that tells.

    Commits since the newest checkpoint are asked first, then the checkpoint, which stands for all before it.
    Raises MissingTool without pyarrow where a checkpoint is needed.
    """
    numbered = {one.name: match for one in inside if (match := _CHECKPOINT.fullmatch(one.name))}
    newest = max((match[1] for match in numbered.values()), default="")
    for one in reversed([one for one in commits if one.name[:20] > newest]):
        for line in files.read(f"{log}/{one.name}").splitlines():
            if b'"metaData"' in line and (told := json.loads(line).get("metaData")):
                return _named(told)
    for name, match in numbered.items():
        if match[1] == newest:
            for told in _checkpointed(files.read(f"{log}/{name}"), match[2]):
                return _named(told)
    return {}


def _checkpointed(content: bytes, form: str) -> Iterator[Mapping[str, Any]]:
    if form == "json":
        told = (json.loads(line).get("metaData") for line in content.splitlines() if line.strip())
    else:
        try:
            from pyarrow import parquet
        except ImportError as error:
            what = "Checkpoints of Delta need pyarrow, which is not installed."
            raise MissingTool(what, install_command("lakehouse")) from error
        file = parquet.ParquetFile(BytesIO(content))
        if "metaData" not in file.schema_arrow.names:
            return
        told = iter(file.read(columns=["metaData"]).column(0).to_pylist())
    yield from (one for one in told if one and one.get("schemaString"))


def _named(metadata: Mapping[str, Any]) -> dict[str, str]:
    fields = json.loads(metadata["schemaString"])["fields"]
    return {field["metadata"].get(_PHYSICAL, field["name"]): field["name"] for field in fields}

"""Parquet: what the footers of its files declare."""

from __future__ import annotations

from collections import Counter

from dq.contracts.install import needing
from dq.contracts.outcome import Unreadable
from dq.contracts.types import DataType
from dq.lake.parquet import columns, require_distinct
from dq.lake.storage import reading
from dq.registry.importing import STRING, FoundColumn, FoundTable, ImportKind
from dq.registry.importing.sources import folder


def read(source: str) -> list[FoundTable]:
    """One table; where its files differ in a type, that of most of them, and a word about the others."""
    with needing("Parquet needs pyarrow", "s3"):
        import pyarrow as pa
        from pyarrow import parquet
    lake = folder(source, (".parquet", ".parq"))
    keys = lake.partitions()
    apart = {key.name.lower() for key in keys}
    said: dict[str, Counter[tuple[DataType, str]]] = {}
    nullable: set[str] = set()
    sample = lake.sample()
    for one in sample:
        with reading(one.path) as file:
            try:
                found = columns(parquet.ParquetFile(file).schema)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
                mend = "Deliver it again if it was cut off, or name a table's folder."
                raise Unreadable(f"{one.path} is not a Parquet file.", mend) from error
        require_distinct(found, one.path)
        for column in found:
            note = column.problem or (f"stored as {column.stored}" if column.stored else "")
            said.setdefault(column.name, Counter())[column.type or STRING, note] += 1
            if column.nullable:
                nullable.add(column.name)
    made = []
    for name, kinds in said.items():
        if name.lower() in apart:
            continue
        (kind, note), _ = kinds.most_common(1)[0]
        everywhere = kinds.total() == len(sample)
        evidence = [note] if note else []
        if len(kinds) > 1:
            told = ", ".join(f"{count} × {one}" for (one, _), count in kinds.most_common())
            evidence.append(f"of {len(sample)} files: {told}")
        if not everywhere:
            evidence.append(f"in {kinds.total()} of {len(sample)} files")
        required = everywhere and name not in nullable
        made.append(FoundColumn(name, kind, required=required, evidence="; ".join(evidence)))
    return [FoundTable(lake.name, tuple(made), keys, lake.place, "parquet")]


KIND = ImportKind("parquet", "a file, or the folder of a table", read)

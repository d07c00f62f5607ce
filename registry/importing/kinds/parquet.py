"""Parquet: columns from the footers of the files."""

from __future__ import annotations

from collections import Counter

from dq.contracts.install import require_extras
from dq.contracts.layout import Layout
from dq.contracts.outcome import ReadError
from dq.contracts.types import DataType
from dq.lake.parquet import columns, require_distinct
from dq.lake.storage import open_bytes
from dq.registry.importing import STRING, ImportedColumn, ImportedTable, ImportKind
from dq.registry.importing.sources import list_folder

_ENDINGS = (".parquet", ".parq")


def read(source: str, layout: Layout | None = None) -> list[ImportedTable]:
    """Read one table; if files differ in a type, the most frequent one, with the others as evidence."""
    with require_extras("Parquet needs pyarrow", "s3"):
        import pyarrow as pa
        from pyarrow import parquet
    lake = list_folder(source, _ENDINGS, layout)
    types_by_column: dict[str, Counter[tuple[DataType, str]]] = {}
    nullable: set[str] = set()
    sample = lake.sample()
    for lake_file in sample:
        with open_bytes(lake_file.path) as file:
            try:
                file_columns = columns(parquet.ParquetFile(file).schema)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
                hint = "Deliver it again if it was truncated, or pass the folder of a table."
                raise ReadError(f"{lake_file.path} is not a Parquet file.", hint) from error
        require_distinct(file_columns, lake_file.path)
        for column in file_columns:
            note = column.problem or (f"stored as {column.stored}" if column.stored else "")
            types_by_column.setdefault(column.name, Counter())[column.type or STRING, note] += 1
            if column.nullable:
                nullable.add(column.name)
    imported_columns = []
    for name, kinds in types_by_column.items():
        (kind, note), _ = kinds.most_common(1)[0]
        everywhere = kinds.total() == len(sample)
        evidence = [note] if note else []
        if len(kinds) > 1:
            counts = ", ".join(f"{count} × {data_type}" for (data_type, _), count in kinds.most_common())
            evidence.append(f"of {len(sample)} files: {counts}")
        if not everywhere:
            evidence.append(f"in {kinds.total()} of {len(sample)} files")
        required = everywhere and name not in nullable
        imported_columns.append(ImportedColumn(name, kind, required=required, evidence="; ".join(evidence)))
    return [lake.table(imported_columns, "parquet")]


KIND = ImportKind("parquet", "a file, or the folder of a table", read, _ENDINGS, takes_layout=True)

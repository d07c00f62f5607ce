"""Parquet: columns from the footers of the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dq.contracts.install import require_extras
from dq.contracts.layout import Layout
from dq.contracts.outcome import ReadError
from dq.contracts.types import DataType
from dq.lake.parquet import columns, require_distinct
from dq.lake.storage import open_bytes
from dq.registry.importing import STRING, ImportedColumn, ImportedTable, ImportKind
from dq.registry.importing.sources import LakeFolder, list_folder

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

_ENDINGS = (".parquet", ".parq")


def read(source: str, layout: Layout | None = None) -> list[ImportedTable]:
    """Read one table; if files differ in a type, the most frequent one, with the others as evidence."""
    with require_extras("Parquet needs pyarrow", "s3"):
        import pyarrow.parquet  # noqa: F401
    return [read_files(list_folder(source, _ENDINGS, layout))]


def read_files(lake: LakeFolder) -> ImportedTable:
    """Read the table of listed files. Raises as `read`."""
    return table_from_footers(lake, {file.path: read_footer(file.path) for file in lake.sample()})


def read_footer(path: str) -> FileMetaData:
    """Read the footer of a file. Raises ReadError if it is not a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    with open_bytes(path) as file:
        try:
            return parquet.ParquetFile(file).metadata
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            raise _not_parquet(path) from error


def _not_parquet(path: str) -> ReadError:
    hint = "Deliver it again if it was truncated, or pass the folder of a table."
    return ReadError(f"{path} is not a Parquet file.", hint)


def table_from_footers(lake: LakeFolder, footers: Mapping[str, FileMetaData]) -> ImportedTable:
    """Return the table of files by the footers of a sample, which are given by path."""
    import pyarrow as pa

    types_by_column: dict[str, Counter[tuple[DataType, str]]] = {}
    nullable: set[str] = set()
    for path, footer in footers.items():
        try:
            file_columns = columns(footer.schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise _not_parquet(path) from error
        require_distinct(file_columns, path)
        for column in file_columns:
            note = column.problem or (f"stored as {column.stored}" if column.stored else "")
            types_by_column.setdefault(column.name, Counter())[column.type or STRING, note] += 1
            if column.nullable:
                nullable.add(column.name)
    imported_columns = []
    for name, kinds in types_by_column.items():
        (kind, note), _ = kinds.most_common(1)[0]
        everywhere = kinds.total() == len(footers)
        evidence = [note] if note else []
        if len(kinds) > 1:
            counts = ", ".join(f"{count} × {data_type}" for (data_type, _), count in kinds.most_common())
            evidence.append(f"of {len(footers)} files: {counts}")
        if not everywhere:
            evidence.append(f"in {kinds.total()} of {len(footers)} files")
        required = everywhere and name not in nullable
        imported_columns.append(ImportedColumn(name, kind, required=required, evidence="; ".join(evidence)))
    return lake.table(imported_columns, "parquet")


KIND = ImportKind(
    "parquet",
    "a file, or the folder of a table",
    read,
    _ENDINGS,
    takes_layout=True,
    read_files=read_files,
)

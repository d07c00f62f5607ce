"""TABLE: what a table format makes of columns that come, go, move or change their name, with sources.

These cells are about data: whether files that were written before are still read right. A query that names
a removed or renamed column fails in all of them, which is a matter of effect, not of format.
Unlisted formats and cells without a source are "no".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

ATHENA = "Athena User Guide, Handle schema updates"
ICEBERG = "Iceberg spec, Schema Evolution and Partition Evolution"
DELTA = "Delta docs, delta-column-mapping (reader 2, writer 5)"
HUDI = "Hudi docs schema_evolution; hudi#19381"
TRINO = "Trino docs file-formats; CoercionUtils.createCoercerForStruct pairs fields by index"


@dataclass(frozen=True, slots=True)
class Structure:
    """How a format finds columns. Each flag: old files stay readable after this change.

    `partition` says what a change of the partition keys means: `new layout` (paths and filters change),
    `hidden` (old and new coexist), `hidden v1` (fields may be added only). `shared` formats keep the schema
    with the table, so that every reader sees the current types.
    """

    add_middle: bool
    remove: bool
    rename: bool
    reorder: bool
    defaults: bool
    partition: str
    shared: bool
    source: str


LAYOUT, HIDDEN, HIDDEN_V1 = "new layout", "hidden", "hidden v1"

#                                middle  remove  rename  reorder defaults
STRUCTURES: Mapping[str, Structure] = {
    "csv": Structure(False, False, True, False, False, LAYOUT, False, ATHENA),
    "json": Structure(True, True, False, True, False, LAYOUT, False, ATHENA),
    "avro": Structure(
        True, True, False, True, True, LAYOUT, False, f"{ATHENA}; Avro spec, Schema Resolution"
    ),
    "parquet-name": Structure(True, True, False, True, False, LAYOUT, False, ATHENA),
    "parquet-index": Structure(False, False, True, False, False, LAYOUT, False, ATHENA),
    "orc-index": Structure(False, False, True, False, False, LAYOUT, False, f"{ATHENA}; {TRINO}"),
    "orc-name": Structure(True, True, False, True, False, LAYOUT, False, ATHENA),
    "iceberg-v1": Structure(True, True, True, True, False, HIDDEN_V1, True, ICEBERG),
    "iceberg-v2": Structure(True, True, True, True, False, HIDDEN, True, ICEBERG),
    "iceberg-v3": Structure(True, True, True, True, True, HIDDEN, True, ICEBERG),
    "delta-3": Structure(True, True, True, True, False, LAYOUT, True, DELTA),
    "delta-4": Structure(True, True, True, True, False, LAYOUT, True, DELTA),
    "hudi": Structure(True, True, False, False, False, LAYOUT, True, HUDI),
}

# A format as contracts and people write it -> the way it is read unless told otherwise. Sources: ORC by
# index is the default of Athena and Trino, Parquet by name that of all; Iceberg writes v2 by default.
_USUAL = {
    "": "parquet-name",
    "any": "parquet-name",
    "parquet": "parquet-name",
    "orc": "orc-index",
    "iceberg": "iceberg-v2",
    "delta": "delta-4",
    "deltalake": "delta-4",
    "tsv": "csv",
    "text": "csv",
    "jsonl": "json",
    "ndjson": "json",
    "json-lines": "json",
}
# Family -> how its rows begin, the oldest version that has one, and the newest.
_KNOWN = {"iceberg": ("iceberg-v", 1, 3), "delta": ("delta-", 3, 4)}
_VERSION = re.compile(r"(iceberg|delta)[ _-]?v?(\d+)(?:\.\d+)*", re.ASCII)

# Formats whose rename is only understood by these engines.
_RENAME_ENGINES = {"hudi": frozenset({"spark", "spark-3"})}
# Engines that pair the fields of a struct by position in partitioned tables of files.
_STRUCT_BY_INDEX = frozenset({"trino"})


def profile(written: str) -> str:
    """The row that a format means: `parquet`, `iceberg v3`, `delta-3.2`; an unknown one as it stands."""
    word = written.strip().lower().replace("_", "-").replace(" ", "-")
    match = _VERSION.fullmatch(word)
    if match is not None:
        prefix, oldest, newest = _KNOWN[match[1]]
        return f"{prefix}{min(max(int(match[2]), oldest), newest)}"
    return _USUAL.get(word, word)


_NOTHING = Structure(False, False, False, False, False, LAYOUT, False, "no source")


def structure(format_: str, engines: tuple[str, ...], *, nested: bool) -> Structure:
    """The row of a format as these engines read it; fields of a struct where `nested`."""
    row = STRUCTURES.get(format_, _NOTHING)
    if nested and not row.shared and _STRUCT_BY_INDEX & set(engines):
        return Structure(False, False, True, False, row.defaults, row.partition, False, TRINO)
    allowed = _RENAME_ENGINES.get(format_)
    if allowed is not None and engines and set(engines) <= allowed:
        return replace(row, rename=True)
    return row

"""Between our specification of a table and Glue's: both ways, and without loss of what belongs to others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dq.registry.action import LiveTable
from dq.registry.glue.formats import FILTERING, FORMATS, format_of, own_parameters
from dq.registry.glue.text_serdes import is_own, terms_of, text_serde, without_own
from dq.registry.glue.types import EXACT_TYPE, SPELLING, glue_type, spark_type
from dq.registry.reader import TEXTS
from dq.registry.table import OPEN_FORMATS, PARTITION_INDEXES, TableColumn, TableSpec, fold_location, folded

Raw = Mapping[str, Any]

# What UpdateTable takes of what GetTable gives; the rest is Glue's own.
_INPUT = (
    "Name", "Description", "Owner", "LastAccessTime", "LastAnalyzedTime", "Retention", "StorageDescriptor",
    "PartitionKeys", "ViewOriginalText", "ViewExpandedText", "TableType", "Parameters", "TargetTable",
)  # fmt: skip


def live_table(raw: Raw) -> LiveTable:
    """A table as Glue answers it, folded. What only says its format is not among the parameters."""
    storage = raw.get("StorageDescriptor") or {}
    kind = format_of(raw)
    parameters = raw.get("Parameters") or {}
    own = own_parameters(kind) | (FILTERING if PARTITION_INDEXES in parameters else {})
    spec = TableSpec(
        raw["DatabaseName"],
        raw["Name"],
        storage.get("Location") or "",
        kind,
        tuple(_column(column) for column in storage.get("Columns") or []),
        tuple(_column(column) for column in raw.get("PartitionKeys") or []),
        tuple(
            (key, text)
            for key, text in parameters.items()
            if not (own.get(key) == text or (kind in TEXTS and is_own(key)))
        ),
        raw.get("Description") or "",
    )
    spec = folded(spec)
    spec = folded(replace(spec, reader=terms_of(raw, spec)))
    return LiveTable(spec, str(raw.get("VersionId", "")), raw.get("UpdateTime"))


def _column(raw: Raw) -> TableColumn:
    told = raw.get("Parameters") or {}
    kind = spark_type(raw.get("Type") or "", told.get(EXACT_TYPE))
    return TableColumn(raw["Name"], kind, raw.get("Comment") or "", told.get(SPELLING, ""))


def new_table(spec: TableSpec) -> dict[str, Any]:
    """The TableInput of a table that is not there yet. Raises NotAType for a type that Glue has not."""
    made = {
        "Name": spec.name,
        "TableType": "EXTERNAL_TABLE",
        "StorageDescriptor": {
            "Columns": [_input(column) for column in spec.columns],
            "Location": _folder(spec.location),
            "NumberOfBuckets": -1,
            "StoredAsSubDirectories": False,
            **_classes(spec, {}),
        },
        # Athena wants the member even where there are none.
        "PartitionKeys": [_input(column) for column in spec.partitions],
        "Parameters": _own(spec) | dict(spec.parameters),
    }
    return made | ({"Description": spec.description} if spec.description else {})


def changed_table(raw: Raw, after: TableSpec) -> dict[str, Any]:
    """The TableInput that turns the live table into `after`, with all that nobody speaks of as it was.

    Of Iceberg, Delta and Hudi tables only parameters and description change.
    """
    before = live_table(raw).spec
    made = {key: raw[key] for key in _INPUT if key in raw}
    parameters = dict(raw.get("Parameters") or {})
    for key in {key for key, _ in before.parameters} - {key for key, _ in after.parameters}:
        del parameters[key]
    parameters |= {key: text for key, text in after.parameters if before.parameter(key) != text}
    if after.description != before.description:
        made["Description"] = after.description
    # How others made a table of texts be read stays, where nothing but its description is ours to change.
    described = before == replace(after, parameters=before.parameters, description=before.description)
    if after.format not in OPEN_FORMATS and not (described and after.format in TEXTS):
        if after.format != before.format:
            for key in own_parameters(before.format):
                parameters.pop(key, None)
        if not TEXTS.isdisjoint({before.format, after.format}):
            parameters = {key: text for key, text in parameters.items() if not is_own(key)}
        parameters |= _own(after)
        made["StorageDescriptor"] = _changed_storage(raw.get("StorageDescriptor") or {}, before, after)
    if after.format not in OPEN_FORMATS and made.get("StorageDescriptor"):
        made["StorageDescriptor"] = at_s3(made["StorageDescriptor"])
    return made | {"Parameters": parameters}


def at_s3(storage: Raw) -> dict[str, Any]:
    """The storage with an address of Hadoop's (`s3a://`, `s3n://`) as AWS writes it: it is the same place."""
    location = storage.get("Location") or ""
    plain = fold_location(location) != location.rstrip("/") and fold_location(location).startswith("s3:")
    return {**storage, "Location": _folder(location)} if plain else dict(storage)


def _changed_storage(raw: Raw, before: TableSpec, after: TableSpec) -> dict[str, Any]:
    made = dict(raw)
    live = {column["Name"].lower(): column for column in raw.get("Columns") or []}
    made["Columns"] = [
        _changed_column(live.get(column.name), before.column(column.name), column) for column in after.columns
    ]
    if after.location != before.location:
        made["Location"] = _folder(after.location)
    if after.format != before.format:
        made |= _classes(after, {})
    elif after.format in TEXTS:
        serde = raw.get("SerdeInfo") or {}
        made["SerdeInfo"] = {**serde, **_classes(after, serde.get("Parameters") or {})["SerdeInfo"]}
    return made


def _changed_column(raw: Raw | None, before: TableColumn | None, after: TableColumn) -> dict[str, Any]:
    if raw is None or before is None:
        return _input(after)
    made = dict(raw)
    if after.comment != before.comment:
        made["Comment"] = after.comment
    if (after.type, after.spelled) != (before.type, before.spelled):
        fresh = _input(after)
        others = {key: text for key, text in (raw.get("Parameters") or {}).items() if key not in _OWN}
        made |= {"Type": fresh["Type"], "Parameters": others | fresh.get("Parameters", {})}
    return made


_OWN = (EXACT_TYPE, SPELLING)


def _input(column: TableColumn) -> dict[str, Any]:
    kind = glue_type(column.type)
    made: dict[str, Any] = {"Name": column.name, "Type": kind}
    if column.comment:
        made["Comment"] = column.comment
    own = {} if kind == column.type else {EXACT_TYPE: column.type}
    own |= {SPELLING: column.spelled} if column.spelled else {}
    return made | ({"Parameters": own} if own else {})


def _own(spec: TableSpec) -> dict[str, str]:
    """The parameters that say the format, how it is read, and how its partitions are found."""
    found = FILTERING if spec.parameter(PARTITION_INDEXES) else {}
    return {
        **own_parameters(spec.format),
        **(text_serde(spec).table if spec.format in TEXTS else {}),
        **found,
    }


def _classes(spec: TableSpec, others: Mapping[str, str]) -> dict[str, Any]:
    """What reads the files; parameters of the SerDe that are others' stay."""
    kind = FORMATS[spec.format]
    name, told = kind.serde, {"serialization.format": "1"}
    if spec.format in TEXTS:
        serde = text_serde(spec)
        name, told = serde.name, dict(serde.parameters)
    return {
        "InputFormat": kind.input,
        "OutputFormat": kind.output,
        "SerdeInfo": {"SerializationLibrary": name, "Parameters": without_own(others) | told},
    }


def _folder(location: str) -> str:
    """With the slash that says "all below", and not "all that begins so"."""
    return f"{fold_location(location)}/" if location else ""

"""Sources of tables: documents of JSON and YAML, folders of files, and catalogs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from dq.contracts.layout import HIVE, TIME_FOLDERS, Layout, parse_layout, unescaped
from dq.contracts.model import strip_source_maps
from dq.contracts.outcome import ReadError, UsageError, pluralize
from dq.contracts.types import DataType, NotAType, parse
from dq.contracts.yaml import source as yaml_source
from dq.lake.delta import LOG_FOLDER
from dq.lake.iceberg import METADATA_FOLDER
from dq.lake.storage import files_below, is_data_path, open_bytes, read_limited
from dq.lake.types import from_iceberg
from dq.registry.importing import (
    DATE,
    STRING,
    TIMESTAMP,
    ImportedColumn,
    ImportedTable,
    OdcsKeys,
    TextTypeInference,
    unsupported_type,
)
from dq.registry.table import ReaderTerms, TableColumn, TableSpec

# The files of one table in a folder, with the partition that each lies in.

MAX_FILES = 20
"""Number of files, spread over the whole table, whose beginning is read."""

# Path pattern of table formats whose data files are not all live -> the format, and how to import it.
_LAKEHOUSE = {
    re.compile(f"/{LOG_FOLDER}/"): ("a Delta table", "dq import delta"),
    re.compile(rf"/{METADATA_FOLDER}/[^/]*\.metadata\.json(\.gz)?$"): (
        "an Iceberg table",
        "dq import iceberg",
    ),
    re.compile(r"/\.hoodie/"): ("a Hudi table", "Import it from its catalog: dq import glue, or hive"),
}
_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class LakeFile:
    """A file with the (key, value) pairs of its partition folders."""

    path: str
    keys: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class LakeFolder:
    """A table's location and all its files, sorted; `location` is the file itself for a single file.

    `unknown_folders` is a folder below it that neither Hive's layout nor a guessed one explains, or "".
    """

    location: str
    files: tuple[LakeFile, ...]
    layout: Layout = HIVE
    unknown_folders: str = ""

    def table(self, columns: Sequence[ImportedColumn], format: str) -> ImportedTable:
        """Return the table of this folder with these columns of its files."""
        losses: tuple[str, ...] = ()
        if self.unknown_folders:
            losses = (
                f"the files are in folders such as {self.unknown_folders!r}, which are no partitions; "
                "if they are, pass --layout",
            )
        partitions = self.partitions()
        # Readers take the values of folder names, whether or not files have such a column too.
        names = {partition.name.lower() for partition in partitions}
        return ImportedTable(
            self.name,
            tuple(column for column in columns if column.name.lower() not in names),
            partitions,
            self.location,
            format,
            unsupported=losses,
            layout=self.layout.template,
        )

    @property
    def name(self) -> str:
        """Name of the table: the folder's name, or the file's without its extension."""
        last = self.location.rstrip("/").rpartition("/")[2]
        return last.partition(".")[0] if self.files and self.files[0].path == self.location else last

    def sample(self) -> Sequence[LakeFile]:
        """Return at most `MAX_FILES` files, including the first and the last."""
        count = len(self.files)
        if count <= MAX_FILES:
            return self.files
        return [self.files[round(index * (count - 1) / (MAX_FILES - 1))] for index in range(MAX_FILES)]

    @property
    def sampled_files(self) -> str:
        """The number of files in `sample`, e.g. `1 file` or `20 of 412 files`."""
        files, count = pluralize(len(self.files), "file"), len(self.sample())
        return files if count == len(self.files) else f"{count} of {files}"

    def partitions(self) -> tuple[ImportedColumn, ...]:
        """Return the partition columns. Raises UsageError if the files do not all have the same keys."""
        names = {tuple(key for key, _ in file.keys): file.path for file in self.files}
        if len(names) > 1:
            variants = "; ".join(
                f"{'/'.join(keys) or 'none'} ({path})" for keys, path in sorted(names.items())
            )
            raise UsageError(
                f"{self.location}: its files do not all have the same partition keys: {variants}.",
                "Pass the folder of one table.",
            )
        columns = []
        for position, name in enumerate(next(iter(names))):
            precision = self.layout.precision(name)
            if precision:
                kind = DATE if precision in ("year", "month", "day") else TIMESTAMP
                columns.append(
                    ImportedColumn(name, kind, evidence=f"folders of the layout {self.layout.template}")
                )
                continue
            guess = TextTypeInference()
            for value in {file.keys[position][1] for file in self.files}:
                guess.add(None if value == _NULL else value)
            values = guess.read_values()
            # Engines write decimal numbers and timestamps differently in folder names.
            is_portable = values.type.name in ("bigint", "date", "string")
            kind = values.type if is_portable else STRING
            values = replace(values, type=kind, evidence=f"{values.evidence} of folders")
            columns.append(ImportedColumn.from_values(name, values))
        return tuple(columns)


def list_folder(source: str, endings: Sequence[str], layout: Layout | None = None) -> LakeFolder:
    """List the files with these endings below a folder or URI, or the one file that `source` names.

    Without `layout`, it is guessed from the folders. Hidden names and those that begin with `_` are skipped.
    Raises UsageError if there is no file, or one is in no folder of the layout, and ReadError if the location
    cannot be read.
    """
    paths = sorted(files_below(source))
    for sign, (description, hint) in _LAKEHOUSE.items():
        if any(sign.search(path, len(source.rstrip("/"))) for path in paths):
            raise UsageError(
                f"{source} is {description}: its files also hold rows that are not current.", f"{hint}."
            )
    data_paths = [
        path
        for path in paths
        if path == source
        or (path.lower().endswith(tuple(endings)) and is_data_path(path[len(source) :].strip("/")))
    ]
    if not data_paths:
        raise UsageError(
            f"{source} contains no {' or '.join(endings)} files.",
            "Pass the folder of one table, or its file.",
        )
    return lake_folder(source, data_paths, layout)


def lake_folder(source: str, data_paths: Sequence[str], layout: Layout | None = None) -> LakeFolder:
    """Return the table of these files below a folder, or of the one file that `source` names.

    Without `layout`, it is guessed from the folders. Raises UsageError for a file in no folder of the layout.
    """
    location = source.rstrip("/")
    folders = [path[len(source) :].strip("/").rpartition("/")[0] for path in data_paths]
    guessed = guess_layout(folders) if layout is None else layout
    if not guessed:
        files = tuple(LakeFile(path, _keys(source, path)) for path in data_paths)
        unknown = next(
            (folder for folder in folders if any("=" not in name for name in folder.split("/"))), ""
        )
        return LakeFolder(location, files, unknown_folders=unknown)
    lake_files = []
    for path in data_paths:
        values = guessed.values_of_file(path[len(source) :].strip("/"))
        if values is None:
            raise UsageError(
                f"{path} is in no folder of the layout {guessed.template!r}.",
                "Pass the folder of one table, or another --layout.",
            )
        lake_files.append(LakeFile(path, tuple((name, values[name.lower()]) for name in guessed.columns)))
    return LakeFolder(location, tuple(lake_files), guessed)


def guess_layout(folders: Sequence[str]) -> Layout:
    """Return the layout of these folders below a table if they end in a date or a time, else Hive's.

    Names above the time are values, `{level_1}`, if they differ, and else text.
    """
    if not all(folders) or all("=" in name for folder in folders for name in folder.split("/")):
        return HIVE
    for pattern, template in TIME_FOLDERS:
        if not all(re.search(f"(^|/){pattern}$", folder, re.ASCII) for folder in folders):
            continue
        depth = pattern.count("/") + 1
        above = {tuple(folder.split("/")[:-depth]) for folder in folders}
        if len(set(map(len, above))) != 1:
            continue
        names = [
            _guess_level(level, {names[level - 1] for names in above})
            for level in range(1, len(min(above)) + 1)
        ]
        layout = parse_layout("/".join([*names, template]))
        if isinstance(layout, Layout) and all(map(layout.partition_of, folders)):
            return layout
    return HIVE


PartitionFolder = tuple[Sequence[tuple[str, str]], str]
"""Values of a partition, and its folder below the table."""


def layout_of_partitions(partitions: Sequence[PartitionFolder]) -> Layout:
    """Return the layout in which each of these partitions has its folder, Hive's if there is no other."""
    if not partitions or all(_in_layout(HIVE, partition) for partition in partitions):
        return HIVE
    keys = [name for name, _ in partitions[0][0]]
    # A year alone is the value of its key.
    forms = [template.partition(":")[2] for _, template in TIME_FOLDERS if template != "{year:%Y}"]
    times = [f"{{{key}:{form}" for form in forms for key in keys]
    for time in (*times, ""):
        depth = time.count("/") + 1 if time else 0
        levels = [folder.split("/")[: -depth or None] for _, folder in partitions]
        values = [dict(pairs) for pairs, _ in partitions]
        if len(set(map(len, levels))) != 1:
            continue
        names = [_key_level(values, [names[level] for names in levels]) for level in range(len(levels[0]))]
        layout = parse_layout("/".join([*names, time] if time else names))
        if isinstance(layout, Layout) and all(_in_layout(layout, partition) for partition in partitions):
            return layout
    return HIVE


def _key_level(values: Sequence[Mapping[str, str]], names: Sequence[str]) -> str:
    """Return the part of a template for the folders of one level: a key with its name, a key, or text."""
    for key in values[0]:
        for form in (f"{key}={{}}", "{}"):
            if all(
                unescaped(name) == form.format(pairs[key]) for pairs, name in zip(values, names, strict=True)
            ):
                return form.format(f"{{{key}}}")
    return names[0]


def _in_layout(layout: Layout, partition: PartitionFolder) -> bool:
    values, folder = partition
    try:
        return layout.folder_of(values) == folder
    except ValueError:
        return False


def _guess_level(level: int, names: Set[str]) -> str:
    keys = {name.partition("=")[0] for name in names if "=" in name}
    if len(keys) == 1 and all("=" in name for name in names):
        return f"{min(keys)}={{{min(keys)}}}"
    return min(names) if len(names) == 1 and not set("{}") & set(min(names)) else f"{{level_{level}}}"


def is_table_location(source: str) -> bool:
    """Return True if the source is the location of an Iceberg table, not the name of a catalog's table."""
    return "/" in source or Path(source, METADATA_FOLDER).is_dir()


def _keys(source: str, path: str) -> tuple[tuple[str, str], ...]:
    between = path[len(source) :].strip("/").split("/")[:-1]
    pairs = (step.partition("=") for step in between)
    return tuple((unescaped(key), unescaped(value)) for key, equals, value in pairs if equals)


# Tables of a catalog.


def table_from_spec(spec: TableSpec) -> ImportedTable:
    """Return the imported table of a catalog's spec. A type that Spark does not have keeps its name."""
    columns = tuple(_column(column, spec.format) for column in spec.columns)
    partitions = tuple(_column(column, spec.format) for column in spec.partitions)
    return ImportedTable(
        spec.name,
        columns,
        partitions,
        spec.location,
        spec.format,
        spec.description,
        reader=_reader(spec.reader),
    )


def _reader(terms: ReaderTerms) -> tuple[tuple[str, object], ...]:
    """Return the reader options as keys of the server's `csv` property."""
    options: dict[str, object] = {}
    for name, text in terms:
        if name == "header":
            options[name] = text == "true"
        elif name == "quote":
            options[name] = text or "none"
        elif text:
            options["nullText" if name == "null_text" else name] = text
    return tuple(options.items())


def _column(column: TableColumn, form: str) -> ImportedColumn:
    name, _, spelled = column.spelled.partition(" ")
    kind, evidence, odcs_keys = _type(spelled or column.type, form)
    keys_by_path = {"": odcs_keys} if odcs_keys else {}
    return ImportedColumn(name or column.name, kind, column.comment, column.required, evidence, keys_by_path)


# Iceberg types that Spark reads by another name, also nested.
_ICEBERG_ONLY = re.compile(r"(?<![^<,:])(?:uuid|fixed\[\d+\])(?![^,>])", re.ASCII)


def _type(type_name: str, form: str) -> tuple[DataType, str, OdcsKeys]:
    renamed = (
        _ICEBERG_ONLY.sub(lambda match: _spark_name(match[0]), type_name) if form == "iceberg" else type_name
    )
    try:
        return parse(renamed), f"stored as {type_name}" if renamed != type_name else "", {}
    except NotAType:
        return unsupported_type(type_name)


def _spark_name(type_name: str) -> str:
    spark_type = from_iceberg(type_name)
    return type_name if spark_type is None else str(spark_type[0])


# Files of JSON and YAML as plain values, at bounded cost.

MAX_BYTES = 256 << 20
"""Maximum size of a document in bytes; YAML has the smaller limit of contracts."""

_MAX_EXCERPT = 100
# Maximum number of notes on unsupported keys.
_MAX_SENTENCES = 100

JsonObject = dict[str, object]


def read_json(source: str, hint: str, max_bytes: int = MAX_BYTES) -> Any:
    """Return the value of a JSON file of at most `max_bytes`. Raises ReadError if it is not JSON."""
    data = read_limited(source, max_bytes)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        raise ReadError(f"{source} is not valid JSON: {reason}.", hint) from error


def read_json_object(source: str, hint: str) -> JsonObject:
    """Return the object in a JSON file. Raises ReadError if it is not a JSON object."""
    value = read_json(source, hint)
    if not isinstance(value, dict):
        raise ReadError(f"{source} is not a JSON object.", hint)
    return value


def read_yaml_object(source: str, hint: str) -> JsonObject:
    """Return the mapping in a YAML file. Raises ReadError with all errors if it is not one."""
    with open_bytes(source) as file:
        data = file.read(MAX_BYTES)
    top, findings = yaml_source.read(data, source)
    errors = [f"    {finding.at}: {finding.message}" for finding in findings if finding.severity.blocks]
    if top is None or errors:
        raise ReadError(f"{source} cannot be read as YAML:", hint, errors)
    mapping = strip_source_maps(top)
    assert isinstance(mapping, dict)
    return mapping


def as_mapping(value: object) -> JsonObject:
    """Return the mapping with string keys, or {} if the value is not a mapping."""
    return {str(key): inner for key, inner in value.items()} if isinstance(value, Mapping) else {}


def schema_fields(schema: Mapping[str, object]) -> list[JsonObject]:
    """Return the fields of a record or struct, or [] if it has none."""
    return [field for field in as_list(schema.get("fields")) if isinstance(field, dict)]


def as_list(value: object) -> list[object]:
    """Return the value as a list, or [] if it is not a list."""
    return list(value) if isinstance(value, list | tuple) else []


def as_text(value: object) -> str:
    """Return the stripped string, or "" if the value is not a string."""
    return value.strip() if isinstance(value, str) else ""


def excerpt(value: object) -> str:
    """Return the beginning of a value on one line, for a message."""
    text_value = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return " ".join(text_value.split())[:_MAX_EXCERPT]


def limit_sentences(sentences: list[str]) -> tuple[str, ...]:
    """Return the distinct sentences, and how many are left out if there are too many."""
    unique = list(dict.fromkeys(sentences))
    omitted = len(unique) - _MAX_SENTENCES
    return (*islice(unique, _MAX_SENTENCES), *((f"… and {omitted:,} more",) if omitted > 0 else ()))


# TABLE: constraints on values that JSON Schema and ODCS call the same.

_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
# JSON Schema type -> its keys that are also keys of `logicalTypeOptions`.
LIMITS = {
    "string": ("minLength", "maxLength"),
    "integer": _NUMBERS,
    "number": _NUMBERS,
    "array": ("minItems", "maxItems", "uniqueItems"),
}
FORMATS = ("email", "hostname", "ipv4", "ipv6", "uri", "uuid")
"""String formats that have no column type of their own."""

_VALUES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,),
}  # fmt: skip
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems")


def is_limit(key: str, value: object) -> bool:
    """Return True if the value is valid for the key.

    In ODCS 3.0 and old drafts `exclusiveMinimum` is a flag.
    """
    if key == "uniqueItems":
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return not (key in _COUNTS and (value < 0 or int(value) != value)) and (key != "multipleOf" or value > 0)


def are_values(kind: str, values: object) -> bool:
    """Return True for a non-empty list whose values all have this JSON Schema type."""
    types = _VALUES.get(kind, ())
    return isinstance(values, list) and bool(values) and all(type(value) in types for value in values)

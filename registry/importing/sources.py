"""Sources of tables: documents of JSON and YAML, folders of files, and catalogs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from dq.contracts.model import plain
from dq.contracts.outcome import Unreadable, UsageError
from dq.contracts.types import DataType, NotAType, parse
from dq.contracts.yaml import source as yaml_source
from dq.lake.delta import LOG_FOLDER
from dq.lake.iceberg import METADATA_FOLDER
from dq.lake.storage import content, files_below, is_data_path, reading, unescaped
from dq.lake.types import from_iceberg
from dq.registry.importing import STRING, FoundColumn, FoundTable, Said, TextGuess, foreign
from dq.registry.table import ReaderTerms, TableColumn, TableSpec

# The files of one table in a folder, with the partition that each lies in.

MOST_FILES = 20
"""Of so many files, spread over all, the head is read."""

# What lies in the folder of a table whose files are not all its rows -> what it is, and how it is imported.
_LAKEHOUSE = {
    re.compile(f"/{LOG_FOLDER}/"): ("a Delta table", "dq import delta"),
    re.compile(rf"/{METADATA_FOLDER}/[^/]*\.metadata\.json(\.gz)?$"): (
        "an Iceberg table",
        "dq import iceberg",
    ),
    re.compile(r"/\.hoodie/"): ("a Hudi table", "Name it in its catalog: dq import glue, or hive"),
}
_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class LakeFile:
    """A file, and the (key, value) pairs of the folders that it lies in."""

    path: str
    keys: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class LakeFolder:
    """A table's place and all its files, sorted; `place` is the file itself where it is one."""

    place: str
    files: tuple[LakeFile, ...]

    @property
    def name(self) -> str:
        """What to call the table: the folder's name, or the file's without its ending."""
        last = self.place.rstrip("/").rpartition("/")[2]
        return last.partition(".")[0] if self.files and self.files[0].path == self.place else last

    def sample(self) -> Sequence[LakeFile]:
        """At most `MOST_FILES` of its files, the first and the last among them."""
        count = len(self.files)
        if count <= MOST_FILES:
            return self.files
        return [self.files[round(at * (count - 1) / (MOST_FILES - 1))] for at in range(MOST_FILES)]

    def partitions(self) -> tuple[FoundColumn, ...]:
        """The keys of the folders. Raises UsageError where the files do not all have the same ones."""
        names = {tuple(key for key, _ in one.keys): one.path for one in self.files}
        if len(names) > 1:
            told = "; ".join(f"{'/'.join(keys) or 'none'} ({path})" for keys, path in sorted(names.items()))
            raise UsageError(
                f"{self.place}: its files do not all have the same partition keys: {told}.",
                "Name the folder of one table.",
            )
        found = []
        for at, name in enumerate(next(iter(names))):
            guess = TextGuess()
            for value in {one.keys[at][1] for one in self.files}:
                guess.add(None if value == _NULL else value)
            kind, evidence = guess.made()
            # How numbers with a point and instants are spelled in folders, engines disagree on.
            plain = kind.name in ("bigint", "date", "string")
            found.append(FoundColumn(name, kind if plain else STRING, evidence=f"{evidence} of folders"))
        return tuple(found)


def folder(source: str, endings: Sequence[str]) -> LakeFolder:
    """The files below a folder or URI whose name ends so, or the one file that it names.

    Hidden names and those that begin with `_` are passed over. Raises UsageError where there is none,
    Unreadable where the place does not answer.
    """
    paths = sorted(files_below(source))
    for sign, (what, mend) in _LAKEHOUSE.items():
        if any(sign.search(path, len(source.rstrip("/"))) for path in paths):
            raise UsageError(f"{source} is {what}: not all of its files are its rows.", f"{mend}.")
    wanted = [
        path
        for path in paths
        if path == source
        or (path.lower().endswith(tuple(endings)) and is_data_path(path[len(source) :].strip("/")))
    ]
    if not wanted:
        raise UsageError(
            f"{source} holds no file whose name ends in {' or '.join(endings)}.",
            "Name the folder of one table, or its file.",
        )
    return LakeFolder(source.rstrip("/"), tuple(LakeFile(path, _keys(source, path)) for path in wanted))


def is_place(source: str) -> bool:
    """Whether a source is the place of an Iceberg table; a catalog may have a table of such a name."""
    return "/" in source or Path(source, METADATA_FOLDER).is_dir()


def _keys(source: str, path: str) -> tuple[tuple[str, str], ...]:
    between = path[len(source) :].strip("/").split("/")[:-1]
    pairs = (step.partition("=") for step in between)
    return tuple((unescaped(key), unescaped(value)) for key, equals, value in pairs if equals)


# What a catalog says of a table.


def of_spec(spec: TableSpec) -> FoundTable:
    """The table. A type that Spark does not have keeps its name."""
    columns = tuple(_column(one, spec.format) for one in spec.columns)
    partitions = tuple(_column(one, spec.format) for one in spec.partitions)
    return FoundTable(
        spec.name,
        columns,
        partitions,
        spec.location,
        spec.format,
        spec.description,
        reader=_reader(spec.reader),
    )


def _reader(terms: ReaderTerms) -> tuple[tuple[str, object], ...]:
    """How its texts are written, in the words of a server's `csv`."""
    made: dict[str, object] = {}
    for name, text in terms:
        if name == "header":
            made[name] = text == "true"
        elif name == "quote":
            made[name] = text or "none"
        elif text:
            made["nullText" if name == "null_text" else name] = text
    return tuple(made.items())


def _column(one: TableColumn, form: str) -> FoundColumn:
    name, _, spelled = one.spelled.partition(" ")
    kind, evidence, said = _type(spelled or one.type, form)
    own = {"": said} if said else {}
    return FoundColumn(name or one.name, kind, one.comment, one.required, evidence, own)


# Types of Iceberg that Spark reads by another name, alone and inside of others.
_ICEBERG_ONLY = re.compile(r"(?<![^<,:])(?:uuid|fixed\[\d+\])(?![^,>])", re.ASCII)


def _type(written: str, form: str) -> tuple[DataType, str, Said]:
    renamed = (
        _ICEBERG_ONLY.sub(lambda found: _spark_name(found[0]), written) if form == "iceberg" else written
    )
    try:
        return parse(renamed), f"stored as {written}" if renamed != written else "", {}
    except NotAType:
        return foreign(written)


def _spark_name(written: str) -> str:
    known = from_iceberg(written)
    return written if known is None else str(known[0])


# Files of JSON and YAML as plain values, at bounded cost.

MOST_BYTES = 256 << 20
"""So much of a document is read; YAML has the smaller limit of contracts."""

_SHOWN = 100
# So many things that a source says more are told one by one.
_MOST_TOLD = 100

Mapped = dict[str, object]


def parsed(source: str, mend: str, most: int = MOST_BYTES) -> Any:
    """What a file of JSON holds, of so many bytes at the most. Raises Unreadable for what is none."""
    data = content(source, most)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error)[:200]
        raise Unreadable(f"{source} is no JSON: {reason}.", mend) from error


def json_of(source: str, mend: str) -> Mapped:
    """The object in a file of JSON. Raises Unreadable for what is none."""
    made = parsed(source, mend)
    if not isinstance(made, dict):
        raise Unreadable(f"{source} is no object of JSON.", mend)
    return made


def yaml_of(source: str, mend: str) -> Mapped:
    """The mapping in a file of YAML. Raises Unreadable, with every fault, for what is none."""
    with reading(source) as held:
        data = held.read(MOST_BYTES)
    top, findings = yaml_source.read(data, source)
    wrong = [f"    {one.at}: {one.message}" for one in findings if one.severity.blocks]
    if top is None or wrong:
        raise Unreadable(f"{source} cannot be read as YAML:", mend, wrong)
    made = plain(top)
    assert isinstance(made, dict)
    return made


def mapped(value: object) -> Mapped:
    """The mapping, with its keys as texts; empty for what is none."""
    return {str(key): inner for key, inner in value.items()} if isinstance(value, Mapping) else {}


def fields_of(schema: Mapping[str, object]) -> list[Mapped]:
    """The fields of a record or a struct; none of what is neither."""
    return [one for one in listed(schema.get("fields")) if isinstance(one, dict)]


def listed(value: object) -> list[object]:
    """The list; empty for what is none."""
    return list(value) if isinstance(value, list | tuple) else []


def text(value: object) -> str:
    """The text without blanks around it; "" for what is none."""
    return value.strip() if isinstance(value, str) else ""


def shown(value: object) -> str:
    """The beginning of a value, for a sentence that tells of it."""
    made = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return " ".join(made.split())[:_SHOWN]


def told(said: list[str]) -> tuple[str, ...]:
    """Each sentence once, and of very many how many are left out."""
    unique = list(dict.fromkeys(said))
    more = len(unique) - _MOST_TOLD
    return (*islice(unique, _MOST_TOLD), *((f"… and {more:,} more",) if more > 0 else ()))


# TABLE: what limits values, where JSON Schema and ODCS call it the same.

_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
# What a value is to JSON Schema -> the keys of `logicalTypeOptions` that it has too.
LIMITS = {
    "string": ("minLength", "maxLength"),
    "integer": _NUMBERS,
    "number": _NUMBERS,
    "array": ("minItems", "maxItems", "uniqueItems"),
}
FORMATS = ("email", "hostname", "ipv4", "ipv6", "uri", "uuid")
"""Formats of texts that are nothing but texts in a table."""

_VALUES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,),
}  # fmt: skip
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems")


def is_limit(key: str, value: object) -> bool:
    """Whether a value can stand at the key. In ODCS 3.0 and old drafts `exclusiveMinimum` is a flag."""
    if key == "uniqueItems":
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return not (key in _COUNTS and (value < 0 or int(value) != value)) and (key != "multipleOf" or value > 0)


def are_values(kind: str, values: object) -> bool:
    """Whether they are a list of values, of which each is of this kind of JSON Schema."""
    wanted = _VALUES.get(kind, ())
    return isinstance(values, list) and bool(values) and all(type(one) in wanted for one in values)

"""JSON as a DataFrame: the keys that its objects have, and values exactly as the contract's types.

Spark reads what a first look has found to be sound: it takes the last of two equal keys, passes over what
follows an object, rounds decimals, and knows no other keys than it is told.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from dq.contracts.access.text_format import TextFormat
from dq.contracts.shared.errors import Unreadable
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.model.metric import Failure
from dq.dataquality.spark import column_notes
from dq.dataquality.spark.error_redaction import attempt
from dq.dataquality.spark.readers.text_files import Listing, heads, load, reader_of
from dq.dataquality.spark.schema import struct_type, type_ddl
from dq.dataquality.spark.tasks import forget_archives
from dq.dataquality.text.json_objects import MalformedJson, SeenObjects, in_line, is_array, objects
from dq.dataquality.text.text_types import STRING, carried

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_MEND = "Write one object per line, or all of them in one array; 'dq sample' names the line."


def json_frame(
    spark: SparkSession, all_files: Listing, scope: Sequence[str], form: TextFormat, promised: DataType
) -> DataFrame | None:
    """The rows of the files; None where no object is in them.

    The columns are the keys that the objects of `scope` have, at every depth; a column with a value that is
    none of the contract's type is of texts. The rest of the files is read by Spark alone, which raises for
    a value of another type. Raises Unreadable for what is no object by line or array of objects, a key that
    stands twice in one object, and keys that differ in case alone.
    """
    arrays = _arrays(spark, all_files.files, form)
    seen = _looked_at(spark, all_files, scope, arrays, form, promised)
    if not seen.rows:
        return None
    spelt, named = seen.shape.type(promised, spelt=True), seen.shape.type(promised)
    keep = [at for at, name in enumerate(named.names) if name.lower() not in all_files.names]
    spelt, named = _some(spelt, keep), _some(named, keep)
    pairs = zip(named.names, spelt.parts, strict=True)
    read = _some(spelt, range(len(keep)), [_read_as(name, kind, seen) for name, kind in pairs])
    frames = [
        _group(spark, all_files, members, read, form, whole=whole)
        for whole in (False, True)
        if (members := [file for file in all_files.files if (file in arrays) is whole])
    ]
    frame = frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])
    return frame.select(*_columns(seen, spelt, named, read, promised), *all_files.columns())


def _some(struct: DataType, keep: Sequence[int], parts: Sequence[DataType] | None = None) -> DataType:
    chosen = parts if parts is not None else [struct.parts[at] for at in keep]
    return DataType("struct", (), tuple(chosen), tuple(struct.names[at] for at in keep))


def _arrays(spark: SparkSession, files: Sequence[str], form: TextFormat) -> frozenset[str]:
    """The files that are one text, rather than one for every line."""
    wide = "a".encode(form.encoding) != b"a"
    found = []
    for file, head in zip(files, heads(spark, files, 4096), strict=True):
        if head.startswith(_MARKS[0] if not wide else ()):
            head = head[3:]
        if wide or is_array(head.decode(form.encoding, "replace")):
            found.append(file)
    return frozenset(found)


def _looked_at(
    spark: SparkSession,
    all_files: Listing,
    scope: Sequence[str],
    arrays: frozenset[str],
    form: TextFormat,
    promised: DataType,
) -> SeenObjects:
    """What all objects of these files have. Raises Unreadable."""
    frames = []
    lines, wholes = [f for f in scope if f not in arrays], [f for f in scope if f in arrays]
    base = "input_file_name() AS file"
    if lines:
        reader = reader_of(spark, "text").option("lineSep", "\n")
        frames.append(load(reader, all_files, lines).selectExpr("CAST(value AS BINARY) AS text", base))
    if wholes:
        reader = reader_of(spark, "binaryFile")
        frames.append(load(reader, all_files, wholes).selectExpr("content AS text", base))
    seen = SeenObjects()
    for frame, whole in zip(frames, [False] * bool(lines) + [True] * bool(wholes), strict=True):
        look = partial(_look, encoding=form.encoding, promised=promised, whole=whole)
        told = attempt(lambda frame=frame, look=look: frame.mapInArrow(look, "seen STRING").collect())  # type: ignore[misc]
        if isinstance(told, Failure):
            raise Unreadable(f"JSON cannot be looked at: {told.message.rstrip('.')}.", _python(told.message))
        for row in told:
            part = json.loads(row.seen)
            if isinstance(part, str):
                raise Unreadable(part, _MEND)
            try:
                seen.merge(SeenObjects.of(part))
            except MalformedJson as error:
                raise Unreadable(f"the files of JSON differ: {error}.", _MEND) from error
    return seen


def _python(message: str) -> str:
    if "No module named" in message:
        return "Start Spark with PYSPARK_PYTHON set to a Python that has dq and pyarrow."
    return "Check that Spark may read it, and the format in the contract."


def _look(
    batches: Iterator[pa.RecordBatch], encoding: str, promised: DataType, whole: bool
) -> Iterator[pa.RecordBatch]:
    """What a task saw, or why it is no JSON, as a text in one row."""
    import pyarrow as pa

    seen: SeenObjects | str = SeenObjects()
    for batch in batches:
        if isinstance(seen, SeenObjects):
            texts, files = (batch.column(at).to_pylist() for at in (0, 1))
            seen = _added(seen, texts, files, encoding, promised, whole)
    told = json.dumps(seen if isinstance(seen, str) else seen.plain())
    yield pa.RecordBatch.from_pydict({"seen": [told]}, pa.schema([("seen", pa.string())]))
    forget_archives()


def _added(
    seen: SeenObjects, texts: list[bytes], files: list[str], encoding: str, promised: DataType, whole: bool
) -> SeenObjects | str:
    for text, file in zip(texts, files, strict=True):
        name = unquote(file).rpartition("/")[2]
        line = 0
        try:
            decoded = text.decode(encoding)
            if whole:
                for line, made in objects(decoded):
                    seen.add(promised, made, f"{name}:{line}")
            elif (one := in_line(decoded.removeprefix("\ufeff"))) is not None:
                seen.add(promised, one, name)
        except UnicodeError:
            return f"{unquote(file)} is not text in {encoding}."
        except MalformedJson as error:
            at = error.line or line
            return f"{unquote(file)}{f':{at}' if at else ''}: {error}."
    return seen


def _read_as(name: str, kind: DataType, seen: SeenObjects) -> DataType:
    """The type that Spark reads a column as: texts where values are of no type, and for keys of maps."""
    return STRING if name in seen.unfit else _keyed(carried(kind))


def _keyed(kind: DataType) -> DataType:
    parts = tuple(_keyed(part) for part in kind.parts)
    if kind.name == "map":
        parts = (STRING, parts[1])
    return DataType(kind.name, kind.numbers, parts, kind.names)


def _group(
    spark: SparkSession,
    all_files: Listing,
    files: Sequence[str],
    read: DataType,
    form: TextFormat,
    *,
    whole: bool,
) -> DataFrame:
    from pyspark.sql.types import StructType

    own = struct_type(read)
    reader = reader_of(spark, "json").option("mode", "FAILFAST").option("encoding", form.charset)
    reader = reader.option("multiLine", str(whole).lower())
    if not whole:
        reader = reader.option("lineSep", "\n")
    return load(reader.schema(StructType([*own.fields, *all_files.partitions])), all_files, files)


def _columns(
    seen: SeenObjects, spelt: DataType, named: DataType, read: DataType, promised: DataType
) -> Iterator[Column]:
    from pyspark.sql.functions import expr

    kinds = {name.lower(): part for name, part in zip(promised.names, promised.parts, strict=True)}
    for written, name, kind, found in zip(spelt.names, named.names, named.parts, read.parts, strict=True):
        wanted = STRING if name in seen.unfit else carried(kind)
        value = sql.name(written)
        if wanted != found:
            value = f"CAST({value} AS {type_ddl(wanted)})"
        note: dict[str, Any] = {}
        if bad := seen.unfit.get(name):
            note = column_notes.unfit(bad.count, seen.rows, carried(kinds[name.lower()]), bad.first)
        yield expr(value).alias(name, metadata=note)

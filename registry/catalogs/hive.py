"""Hive's metastore, by SQL of a Spark session."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from dq.contracts.access.data_location import CHARSETS, RFC_4180, TextFormat
from dq.contracts.escaping import spark_literal
from dq.contracts.install import needing
from dq.contracts.outcome import LAKEHOUSE, DqError, Unreadable, UsageError
from dq.contracts.sql.text import name as quoted
from dq.contracts.types import DataType
from dq.lake.types import from_spark_json
from dq.registry.catalog import (
    Action,
    CatalogKind,
    CatalogSettings,
    ChangedField,
    LiveTable,
    Obstacle,
    Partition,
    Values,
    moved_partition,
    no_partition,
    no_table,
    stale,
)
from dq.registry.table import (
    VIEW,
    ReaderTerms,
    TableColumn,
    TableSpec,
    UnsayableTerms,
    digest,
    encoding_name,
    fold_location,
    folded,
    kind_of,
    reader_terms,
    text_format_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# How Spark's table of CSV or JSON is told to read its files, and what one was told.
#
# Source: Spark SQL, "CSV Files" and "JSON Files", data source options.

# Spark takes the empty text for NULL too, unless some other text is NULL: no file holds this one.
_NO_TEXT = "\x01"


def text_options(spec: TableSpec) -> dict[str, str]:
    """The options of a table of texts; none for other formats."""
    form = text_format_of(spec)
    if spec.format == "json":
        # Of other encodings Spark asks how lines end.
        return {} if form.encoding == RFC_4180.encoding else {"encoding": form.charset, "lineSep": "\n"}
    if spec.format != "csv":
        return {}
    return {
        "sep": form.delimiter,
        "quote": form.quote,
        "escape": form.escape,
        "header": str(form.header).lower(),
        "encoding": form.charset,
        "nullValue": form.null_text or _NO_TEXT,
        "multiLine": "true",
        # A file whose header names other columns is an error, and not read by position.
        "enforceSchema": "false",
    }


def refuse_encoding(spec: TableSpec) -> None:
    """Raises UnsayableTerms for an encoding that Spark does not read."""
    form = text_format_of(spec)
    if form.charset not in CHARSETS:
        raise UnsayableTerms(
            f"{spec.database}.{spec.name}: Spark does not read texts in {form.encoding}.",
            f"Deliver them in one of {', '.join(sorted(CHARSETS))}.",
        )


def text_terms(format: str, told: Mapping[str, str]) -> ReaderTerms:
    """The terms that the options of a table stand for, and each option that does not follow from them."""
    given = {name.lower(): text for name, text in told.items()}

    def option(name: str, other: str, usual: str) -> str:
        return given.get(name, given.get(other, usual))

    null = option("nullvalue", "nullvalue", "")
    encoding = encoding_name(option("encoding", "charset", RFC_4180.encoding))
    form = TextFormat(
        option("sep", "delimiter", ","),
        option("quote", "quote", '"'),
        option("escape", "escape", "\\"),
        option("header", "header", "false").lower() == "true",
        encoding,
        "" if null == _NO_TEXT else null,
    )
    found = reader_terms(format, form)
    expected = text_options(TableSpec("", "", "", format, (), reader=found))
    strange = {
        f"option {name}": given.get(name.lower(), "not set")
        for name, text in expected.items()
        if name not in ("sep", "encoding") and given.get(name.lower()) != text
    }
    return tuple(sorted({**dict(found), **strange}.items()))


# The statements that make a Hive table what it should be, as text for Spark SQL.

# Spark's data source tables keep the exact Spark types; avro needs a module there that Hive's own does not.
CREATES = {"parquet": "USING parquet", "orc": "USING orc", "json": "USING json", "csv": "USING csv"}
HIVE_SERDES = {"avro": "STORED AS AVRO"}

# Spark refuses these, or changes something else, or cannot read the table ever after (numRows).
_RESERVED = frozenset((
    "collation", "comment", "external", "is_managed_location", "location", "numfiles", "numrows", "owner",
    "provider", "rawdatasize", "table_type", "totalsize", "transient_lastddltime",
))  # fmt: skip
# The metastore's columns are this wide; a longer text fails after twenty seconds of retries.
_KEY_SIZE, _VALUE_SIZE = 255, 4000
_DATABASE_SIZE, _PARTITION_KEY_SIZE = 128, 128
_VARIANTS_SINCE = 4

# These need the whole schema to be written anew.
_REWRITES = (ChangedField.TYPE, ChangedField.ORDER, ChangedField.SPELLING)
_REPLACES = (ChangedField.FORMAT, ChangedField.PARTITIONS)


def refuse_reserved(spec: TableSpec) -> None:
    """Raises UsageError for a property that Spark or the metastore would refuse or misread."""
    for key, value in spec.parameters:
        if key.lower() in _RESERVED or key.lower().startswith("spark.sql."):
            raise UsageError(
                f"{spec.database}.{spec.name}: the property {key!r} is reserved by Spark and Hive.",
                "Give it another name.",
            )
        if len(key) > _KEY_SIZE or len(value) > _VALUE_SIZE:
            raise UsageError(
                f"{spec.database}.{spec.name}: the property {key[:40]!r} is longer than Hive takes.",
                f"Keep names within {_KEY_SIZE} and values within {_VALUE_SIZE} characters.",
            )


def refuse_long(spec: TableSpec) -> None:
    """Raises UsageError for a name that is longer than the metastore keeps."""
    names = [("database", spec.database, _DATABASE_SIZE)]
    names += [("partition key", key.name, _PARTITION_KEY_SIZE) for key in spec.partitions]
    for what, name, most in names:
        if len(name) > most:
            raise UsageError(
                f"{spec.database}.{spec.name}: the {what} {name[:40]!r}… has {len(name)} characters.",
                f"Hive's metastore keeps {most}; give it a shorter name.",
            )


def refuse_variants(spec: TableSpec, spark: str) -> None:
    """Raises UsageError for a type that this version of Spark does not know."""
    found = next((column for column in spec.columns if _holds_variant(kind_of(column.type))), None)
    if found is not None and int(spark.split(".")[0]) < _VARIANTS_SINCE:
        raise UsageError(
            f"{spec.database}.{spec.name}: {found.name} is a {found.type}; Spark {spark} does not know it.",
            f"Register it with Spark {_VARIANTS_SINCE}, or give it another physicalType.",
        )


def _holds_variant(kind: DataType) -> bool:
    return kind.name == "variant" or any(_holds_variant(part) for part in kind.parts)


def create_table(spec: TableSpec) -> str:
    """CREATE TABLE; external where a location is given, so that dropping it never deletes a file."""
    keys = ", ".join(quoted(column.name) for column in spec.partitions)
    if spec.format in HIVE_SERDES:
        head = "CREATE EXTERNAL TABLE" if spec.location else "CREATE TABLE"
        columns, how = spec.columns, HIVE_SERDES[spec.format]
        keys = ", ".join(_column_ddl(column) for column in spec.partitions)
    else:
        head, columns, how = "CREATE TABLE", spec.columns + spec.partitions, CREATES[spec.format]
    parts = [f"{head} {quoted_table(spec)} ({', '.join(_column_ddl(column) for column in columns)})"]
    by = f"PARTITIONED BY ({keys})" if keys else ""
    # The two kinds of tables want these in different order.
    told = text_options(spec)
    how += f" OPTIONS ({_pairs(told)})" if told else ""
    parts += [by, how] if spec.format in HIVE_SERDES else [how, by]
    parts.append(f"LOCATION {spark_literal(spec.location)}" if spec.location else "")
    parts.append(f"COMMENT {spark_literal(spec.description)}" if spec.description else "")
    parts.append(f"TBLPROPERTIES ({_pairs(dict(spec.parameters))})" if spec.parameters else "")
    return " ".join(part for part in parts if part)


def replaces(action: Action) -> bool:
    """Whether the table must be dropped and made anew: nothing else changes its format or keys."""
    return any(change.field in _REPLACES for change in action.changes)


def rewrites(action: Action) -> bool:
    """Whether the columns must be written as a whole: SQL has no words for it on Hive tables."""
    return any(
        change.field in _REWRITES or (change.field is ChangedField.COLUMN and change.after is None)
        for change in action.changes
        if not change.kept
    )


def alter_columns(action: Action, spec: TableSpec) -> Iterator[str]:
    """ALTER TABLE for new columns and changed comments."""
    new = {
        change.name for change in action.changes if change.field is ChangedField.COLUMN and not change.kept
    }
    added = [_column_ddl(column) for column in spec.columns if column.name in new]
    if added:
        yield f"ALTER TABLE {quoted_table(spec)} ADD COLUMNS ({', '.join(added)})"
    for change in action.changes:
        if change.field is ChangedField.COMMENT:
            yield (
                f"ALTER TABLE {quoted_table(spec)} ALTER COLUMN {quoted(change.name)} "
                f"COMMENT {spark_literal(change.after or '')}"
            )


def alter_rest(action: Action, spec: TableSpec) -> Iterator[str]:
    """ALTER TABLE for place, description and properties; the properties last, for they carry the mark."""
    altered = f"ALTER {relation_kind(spec)} {quoted_table(spec)}"
    for change in action.changes:
        if change.field is ChangedField.LOCATION:
            yield f"{altered} SET LOCATION {spark_literal(change.after or '')}"
        if change.field is ChangedField.DESCRIPTION and spec.format == VIEW:
            # COMMENT ON is for tables alone; of a view it is this property.
            yield f"{altered} SET TBLPROPERTIES ('comment' = {spark_literal(change.after or '')})"
        elif change.field is ChangedField.DESCRIPTION:
            yield f"COMMENT ON TABLE {quoted_table(spec)} IS {spark_literal(change.after or '')}"
    if any(change.field is ChangedField.READER for change in action.changes):
        yield f"{altered} SET SERDEPROPERTIES ({_pairs(text_options(spec))})"
    changed = {
        change.name: change.after for change in action.changes if change.field is ChangedField.PARAMETER
    }
    gone = [spark_literal(key) for key, value in changed.items() if value is None]
    if gone:
        yield f"{altered} UNSET TBLPROPERTIES IF EXISTS ({', '.join(gone)})"
    kept = {key: value for key, value in changed.items() if value is not None}
    if kept:
        yield f"{altered} SET TBLPROPERTIES ({_pairs(kept)})"


def columns_ddl(spec: TableSpec) -> str:
    """The data columns as DDL."""
    return ", ".join(_column_ddl(column) for column in spec.columns)


def partition_clause(values: Values) -> str:
    """PARTITION (…); every value as text, which Spark casts to the key's type."""
    return f"PARTITION ({', '.join(f'{quoted(key)} = {spark_literal(value)}' for key, value in values)})"


def relation_kind(spec: TableSpec) -> str:
    """The word for it in ALTER and DROP."""
    return "VIEW" if spec.format == VIEW else "TABLE"


def quoted_table(spec: TableSpec) -> str:
    return f"{quoted(spec.database)}.{quoted(spec.name)}"


def _column_ddl(column: TableColumn) -> str:
    comment = f" COMMENT {spark_literal(column.comment)}" if column.comment else ""
    name, _, kind = column.spelled.partition(" ")
    return f"{quoted(name or column.name)} {kind or column.type}{comment}"


def _pairs(parameters: dict[str, str]) -> str:
    return ", ".join(f"{spark_literal(key)} = {spark_literal(value)}" for key, value in parameters.items())


# What Spark's external catalog says of a table and its partitions, as our specification.

_RAW_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
_FINAL = 0x10  # java.lang.reflect.Modifier.FINAL
_SERDE_FORMATS = ("parquet", "orc", "avro", "json", "csv")


def spec_of(table: Any) -> TableSpec:
    """Spark's CatalogTable as our specification, folded."""
    schema = json.loads(table.schema().json())
    keys = list(each(table.partitionColumnNames()))
    properties = {pair._1(): pair._2() for pair in each(table.properties())}
    told = {pair._1(): pair._2() for pair in each(table.storage().properties())}
    view = table.tableType().name() == "VIEW"
    format = _format(_option(table.provider()), _option(table.storage().serde()), properties)
    format = VIEW if view else format
    columns = {field["name"]: _column(field, format) for field in schema["fields"]}
    return folded(
        TableSpec(
            table.database(),
            table.identifier().table(),
            _place(table.storage()),
            format,
            tuple(column for name, column in columns.items() if name not in keys),
            tuple(columns[name] for name in keys),
            tuple(properties.items()),
            _option(table.comment()),
            text_terms(format, told),
        )
    )


def _format(provider: str, serde: str, properties: Mapping[str, str]) -> str:
    if properties.get("table_type", "").upper() == "ICEBERG":
        return "iceberg"
    if provider.lower() != "hive":
        return provider
    return next((name for name in _SERDE_FORMATS if name in serde.lower()), "")


def _column(field: Mapping[str, Any], format: str) -> TableColumn:
    name, kind = field["name"], field["metadata"].get(_RAW_TYPE) or str(from_spark_json(field["type"]))
    spelled = f"{name} {kind}" if format == "json" else ""
    return TableColumn(name, kind, field["metadata"].get("comment", ""), spelled)


def partition_of(one: Any, keys: list[str]) -> Partition:
    """A CatalogTablePartition of a table with these keys."""
    values = {pair._1(): pair._2() for pair in each(one.spec())}
    location = fold_location(_place(one.storage()))
    return Partition(tuple((key.lower(), values[key]) for key in keys), location)


def _place(storage: Any) -> str:
    """The location as a path: the URI of one with a space, or a percent sign, is spelt otherwise."""
    return unquote(_option(storage.locationUri()))


def described(table: Any, properties: Any, comment: Any) -> Any:
    """The CatalogTable with other properties, a Map, and another comment, an Option; all else as it is."""
    changed = {"properties": properties, "comment": comment}
    values = [table.productElement(at) for at in range(table.productArity())]
    # Scala 2.12, which Spark 3.5 is made with, names the elements of a case class by its fields alone; a lazy
    # value is a field too, and not final.
    fields = [field for field in table.getClass().getDeclaredFields() if field.getModifiers() & _FINAL]
    names = [field.getName() for field in fields[: len(values)]]
    return table.copy(*(changed.get(name, value) for name, value in zip(names, values, strict=True)))


def each(scala: Any) -> Iterator[Any]:
    """The elements of a collection, or of an iterator, of Scala."""
    iterator = scala.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _option(scala: Any) -> str:
    """An Option's content as text, "" for none."""
    if not scala.isDefined():
        return ""
    # A Java string arrives as a Python one, anything else as an object.
    content = scala.get()
    return content if isinstance(content, str) else str(content.toString())


# The Hive metastore of a Spark session: a real one in production, Derby on a laptop.
#
# Spark gives no public way to read a table without loss (its listings cut long structs and forget char and
# varchar), so tables are read through the session's external catalog, which Spark 3.5 and 4.0 share.


@dataclass(frozen=True, slots=True)
class Hive:
    """A `Catalog` in the session's metastore.

    The metastore knows no versions: a table's version is the digest of what is read, and it is compared
    right before a write. Two writers within that moment are not told apart.
    """

    spark: SparkSession
    formats: frozenset[str] = frozenset({*CREATES, *HIVE_SERDES})
    id: str = "hive"

    def vet(self, spec: TableSpec) -> None:
        refuse_reserved(spec)
        refuse_long(spec)
        refuse_variants(spec, self.spark.version)
        refuse_encoding(spec)
        _refuse_relative(spec)

    def read(self, database: str, name: str) -> LiveTable | None:
        with _explained():
            catalog = self._external()
            if not catalog.databaseExists(database) or not catalog.tableExists(database, name):
                return None
            spec = spec_of(catalog.getTable(database, name))
        return LiveTable(spec, digest(spec))

    def tables(self, database: str) -> list[LiveTable]:
        with _explained():
            catalog = self._external()
            if not catalog.databaseExists(database):
                return []
            names = sorted(cast("list[str]", list(each(catalog.listTables(database)))))
        found = (self.read(database, name) for name in names)
        return [table for table in found if table is not None]

    def obstacles(self, action: Action) -> tuple[Obstacle, ...]:
        return ()

    def apply(self, action: Action) -> None:
        database, name = action.key
        if action.after is not None:
            refuse_reserved(_changed(action, action.after))
            _refuse_relative(action.after)
        live = self.read(database, name)
        seen = action.before.version if action.before else None
        if (live.version if live else None) != seen:
            raise stale(database, name)
        with _explained():
            self._write(action, live)

    def _write(self, action: Action, live: LiveTable | None) -> None:
        spec = action.after
        database, name = action.key
        if live is not None and (spec is None or replaces(action)):
            # External tables only lose their entry; a managed one would lose its files.
            _refuse_managed(live.spec, self._external().getTable(database, name))
            self._run(f"DROP {relation_kind(live.spec)} {quoted_table(live.spec)}")
            live = None
        if spec is None:
            return
        if live is None:
            self._run(f"CREATE DATABASE IF NOT EXISTS {quoted(database)}")
            self._run(create_table(spec))
            return
        if live.spec.format in LAKEHOUSE:
            self._describe(live.spec, spec)
            return
        if rewrites(action):
            wanted = self._jvm().org.apache.spark.sql.types.StructType.fromDDL(columns_ddl(spec))
            self._external().alterTableDataSchema(database, name, wanted)
            self.spark.catalog.refreshTable(quoted_table(spec))
        else:
            for statement in alter_columns(action, spec):
                self._run(statement)
        for statement in alter_rest(action, spec):
            self._run(statement)

    def _describe(self, live: TableSpec, spec: TableSpec) -> None:
        """Changes properties and description in the metastore alone: SQL would write to Delta's log."""
        catalog = self._external()
        table = catalog.getTable(spec.database, spec.name)
        kept = {pair._1(): pair._2() for pair in each(table.properties())}
        for key in {key for key, _ in live.parameters} - {key for key, _ in spec.parameters}:
            kept.pop(key, None)
        to_map = self._jvm().org.apache.spark.api.python.PythonUtils.toScalaMap
        comment = table.comment()
        if spec.description != live.description:
            comment = self._jvm().scala.Option.apply(spec.description or None)
        catalog.alterTable(described(table, to_map(kept | dict(spec.parameters)), comment))
        self.spark.catalog.refreshTable(quoted_table(spec))

    def add_partition(self, database: str, name: str, values: Values, location: str) -> bool:
        live = self.read(database, name)
        if live is None:
            raise no_table(database, name)
        there = self.place_of(database, name, values)
        if there is not None and there != fold_location(location):
            raise moved_partition(database, name, values, there, location)
        if there is None:
            with _explained():
                self._run(
                    f"ALTER TABLE {quoted_table(live.spec)} ADD IF NOT EXISTS "
                    f"{partition_clause(values)} LOCATION {spark_literal(location)}"
                )
        return there is None

    def place_of(self, database: str, name: str, values: Values) -> str | None:
        if self.read(database, name) is None:
            return None
        return next((one.location for one in self._partitions(database, name, values)), None)

    def move_partition(self, database: str, name: str, values: Values, location: str) -> None:
        live = self.read(database, name)
        if live is None or self.place_of(database, name, values) is None:
            raise no_partition(database, name, values)
        with _explained():
            self._run(
                f"ALTER TABLE {quoted_table(live.spec)} {partition_clause(values)} "
                f"SET LOCATION {spark_literal(location)}"
            )

    def partitions(self, database: str, name: str) -> list[Partition]:
        return sorted(self._partitions(database, name, ()), key=lambda partition: partition.values)

    def _partitions(self, database: str, name: str, only: Values) -> list[Partition]:
        with _explained():
            options: Any = self._jvm().scala.Option
            wanted = options.empty()
            if only:
                python_utils = self._jvm().org.apache.spark.api.python.PythonUtils
                wanted = options.apply(python_utils.toScalaMap(dict(only)))
            catalog = self._external()
            keys = list(each(catalog.getTable(database, name).partitionColumnNames()))
            found = each(catalog.listPartitions(database, name, wanted))
            return [partition_of(one, keys) for one in found]

    def _external(self) -> Any:
        return cast("Any", self.spark)._jsparkSession.sharedState().externalCatalog()

    def _jvm(self) -> Any:
        return cast("Any", self.spark)._jvm

    def _run(self, statement: str) -> None:
        self.spark.sql(statement)


def _changed(action: Action, after: TableSpec) -> TableSpec:
    """The table with only the properties that would be written: those of others may be what they like."""
    before = dict(action.before.spec.parameters) if action.before else {}
    pairs = tuple((key, value) for key, value in after.parameters if before.get(key) != value)
    return TableSpec(after.database, after.name, "", "", (), (), pairs)


def _refuse_relative(spec: TableSpec) -> None:
    if spec.location and not spec.location.startswith("/") and ":" not in spec.location:
        raise UsageError(
            f"{spec.database}.{spec.name}: Hive would look for {spec.location!r} in its own warehouse.",
            "Give the server an absolute path or a URL.",
        )


def _refuse_managed(spec: TableSpec, table: Any) -> None:
    if table.tableType().name() == "MANAGED":
        raise DqError(
            f"{spec.database}.{spec.name} is a managed table: dropping it would delete its files.",
            "Move its files to a place of their own and make it external first.",
        )


@contextmanager
def _explained() -> Iterator[None]:
    """What Spark and the metastore complain about, as one sentence."""
    from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # it has no types
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        java = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
        causes = [str(error), *_causes(java)]
        locked = next((cause for cause in causes if "Another instance of Derby" in cause), None)
        if locked is not None:
            # Spark 3.5 hands the cause over with a whole stack behind it.
            found = re.search(r"booted the database\s+(\S+)", locked)
            where = found[1].rstrip(".") if found else "its folder"
            raise Unreadable(
                f"The embedded metastore at {where} is open in another process; Derby serves one at a time.",
                "Stop that Spark session, or use a metastore service, or the catalog 'local'.",
            ) from error
        first = next((line.strip() for line in causes[0].splitlines() if line.strip()), "no reason given")
        raise Unreadable(f"Spark's catalog refused: {first[:300]}", "Mend that, then run again.") from error


def _causes(java: Any) -> Iterator[str]:
    while java is not None:
        yield str(java.toString())
        java = java.getCause()


def _open(settings: CatalogSettings) -> Hive:
    if settings.session is None:
        raise UsageError(
            "The hive catalog needs a Spark session.", "Hand one in, or use the catalog 'local'."
        )
    with needing("The hive catalog needs Spark", "spark"):
        import pyspark  # noqa: F401  # only to tell its absence apart from a session that cannot start
    session = cast("Callable[[], SparkSession]", settings.session)()
    if session.conf.get("spark.sql.catalogImplementation") != "hive":
        raise UsageError(
            "The Spark session has no Hive metastore, only tables in memory.",
            "Build it with .enableHiveSupport().",
        )
    return Hive(session)


CATALOG = CatalogKind("hive", _open)

"""Hive's metastore, by SQL of a Spark session."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from dq.contracts.access.data_location import CHARSETS, RFC_4180, TextFormat
from dq.contracts.escaping import spark_literal
from dq.contracts.install import require_extras
from dq.contracts.outcome import LAKEHOUSE, DqError, ReadError, UsageError
from dq.contracts.sql.text import name as quoted
from dq.contracts.types import DataType
from dq.lake.types import from_spark_json
from dq.registry.catalog import (
    Action,
    Blocker,
    CatalogKind,
    CatalogSettings,
    ChangedField,
    LiveTable,
    Partition,
    Values,
    moved_partition,
    no_partition,
    no_table,
    stale_plan,
)
from dq.registry.table import (
    VIEW,
    ReaderTerms,
    TableColumn,
    TableSpec,
    UnsupportedReaderOptions,
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


# Options of Spark's CSV and JSON tables.
#
# Source: Spark SQL, "CSV Files" and "JSON Files", data source options.

# Spark reads empty text as NULL unless another null text is set. This one occurs in no file.
_NO_TEXT = "\x01"


def text_options(spec: TableSpec) -> dict[str, str]:
    """Return the options of a CSV or JSON table; empty for other formats."""
    form = text_format_of(spec)
    if spec.format == "json":
        # Spark needs the line separator for other encodings.
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
        # Fail on a header with other columns instead of reading by position.
        "enforceSchema": "false",
    }


def refuse_encoding(spec: TableSpec) -> None:
    """Raise UnsupportedReaderOptions for an encoding that Spark does not read."""
    form = text_format_of(spec)
    if form.charset not in CHARSETS:
        raise UnsupportedReaderOptions(
            f"{spec.database}.{spec.name}: Spark cannot read text in {form.encoding}.",
            f"Deliver it in one of {', '.join(sorted(CHARSETS))}.",
        )


def text_terms(format: str, options: Mapping[str, str]) -> ReaderTerms:
    """Return the reader terms of a table's options, and each option that does not follow from them."""
    lowered = {name.lower(): text for name, text in options.items()}

    def option(name: str, alias: str, default: str) -> str:
        return lowered.get(name, lowered.get(alias, default))

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
    terms = reader_terms(format, form)
    expected = text_options(TableSpec("", "", "", format, (), reader=terms))
    unexpected = {
        f"option {name}": lowered.get(name.lower(), "not set")
        for name, text in expected.items()
        if name not in ("sep", "encoding") and lowered.get(name.lower()) != text
    }
    return tuple(sorted({**dict(terms), **unexpected}.items()))


# Spark SQL statements that create and change Hive tables.

# Spark's data source tables keep the exact Spark types. Spark's avro source needs an extra module, Hive's
# own SerDe does not.
CREATES = {"parquet": "USING parquet", "orc": "USING orc", "json": "USING json", "csv": "USING csv"}
HIVE_SERDES = {"avro": "STORED AS AVRO"}

# Spark rejects these, changes something else, or can never read the table again (numRows).
_RESERVED = frozenset((
    "collation", "comment", "external", "is_managed_location", "location", "numfiles", "numrows", "owner",
    "provider", "rawdatasize", "table_type", "totalsize", "transient_lastddltime",
))  # fmt: skip
# Widths of the metastore's columns. A longer text fails after twenty seconds of retries.
_KEY_SIZE, _VALUE_SIZE = 255, 4000
_DATABASE_SIZE, _PARTITION_KEY_SIZE = 128, 128
_VARIANTS_SINCE = 4

# Changes that require rewriting the whole schema.
_REWRITES = (ChangedField.TYPE, ChangedField.ORDER, ChangedField.SPELLING)
_REPLACES = (ChangedField.FORMAT, ChangedField.PARTITIONS)


def refuse_reserved(spec: TableSpec) -> None:
    """Raise UsageError for a property that Spark or the metastore would reject or misread."""
    for key, value in spec.parameters:
        if key.lower() in _RESERVED or key.lower().startswith("spark.sql."):
            raise UsageError(
                f"{spec.database}.{spec.name}: the property {key!r} is reserved by Spark and Hive.",
                "Give it another name.",
            )
        if len(key) > _KEY_SIZE or len(value) > _VALUE_SIZE:
            raise UsageError(
                f"{spec.database}.{spec.name}: the property {key[:40]!r} is longer than Hive allows.",
                f"Keep names within {_KEY_SIZE} and values within {_VALUE_SIZE} characters.",
            )


def refuse_long(spec: TableSpec) -> None:
    """Raise UsageError for a name that is too long for the metastore."""
    names = [("database", spec.database, _DATABASE_SIZE)]
    names += [("partition key", key.name, _PARTITION_KEY_SIZE) for key in spec.partitions]
    for label, name, limit in names:
        if len(name) > limit:
            raise UsageError(
                f"{spec.database}.{spec.name}: the {label} {name[:40]!r}… has {len(name)} characters.",
                f"Hive's metastore allows {limit}; use a shorter name.",
            )


def refuse_variants(spec: TableSpec, spark: str) -> None:
    """Raise UsageError for a type that this version of Spark does not know."""
    variant_column = next(
        (column for column in spec.columns if _contains_variant(kind_of(column.type))), None
    )
    if variant_column is not None and int(spark.split(".")[0]) < _VARIANTS_SINCE:
        raise UsageError(
            f"{spec.database}.{spec.name}: {variant_column.name} is a {variant_column.type}; Spark "
            f"{spark} does not support it.",
            f"Register it with Spark {_VARIANTS_SINCE}, or give it another physicalType.",
        )


def _contains_variant(kind: DataType) -> bool:
    return kind.name == "variant" or any(_contains_variant(part) for part in kind.parts)


def create_table(spec: TableSpec) -> str:
    """CREATE TABLE statement; external if a location is set, so that dropping it never deletes a file."""
    keys = ", ".join(quoted(column.name) for column in spec.partitions)
    if spec.format in HIVE_SERDES:
        head = "CREATE EXTERNAL TABLE" if spec.location else "CREATE TABLE"
        columns, storage = spec.columns, HIVE_SERDES[spec.format]
        keys = ", ".join(_column_ddl(column) for column in spec.partitions)
    else:
        head, columns, storage = "CREATE TABLE", spec.columns + spec.partitions, CREATES[spec.format]
    parts = [f"{head} {quoted_table(spec)} ({', '.join(_column_ddl(column) for column in columns)})"]
    partitioning = f"PARTITIONED BY ({keys})" if keys else ""
    # The two kinds of tables require a different order.
    options = text_options(spec)
    storage += f" OPTIONS ({_pairs(options)})" if options else ""
    parts += [partitioning, storage] if spec.format in HIVE_SERDES else [storage, partitioning]
    parts.append(f"LOCATION {spark_literal(spec.location)}" if spec.location else "")
    parts.append(f"COMMENT {spark_literal(spec.description)}" if spec.description else "")
    parts.append(f"TBLPROPERTIES ({_pairs(dict(spec.parameters))})" if spec.parameters else "")
    return " ".join(part for part in parts if part)


def needs_recreation(action: Action) -> bool:
    """Return True if the table must be dropped and created again, to change its format or keys."""
    return any(change.field in _REPLACES for change in action.changes)


def needs_schema_rewrite(action: Action) -> bool:
    """Return True if all columns must be rewritten: SQL cannot make the change on Hive tables."""
    return any(
        change.field in _REWRITES or (change.field is ChangedField.COLUMN and change.after is None)
        for change in action.changes
        if not change.ignored
    )


def alter_columns(action: Action, spec: TableSpec) -> Iterator[str]:
    """ALTER TABLE statements for new columns and changed comments."""
    new = {
        change.name for change in action.changes if change.field is ChangedField.COLUMN and not change.ignored
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


def alter_properties(action: Action, spec: TableSpec) -> Iterator[str]:
    """ALTER TABLE statements for location, description and properties; properties last: they hold the
    mark.
    """
    alter = f"ALTER {relation_kind(spec)} {quoted_table(spec)}"
    for change in action.changes:
        if change.field is ChangedField.LOCATION:
            yield f"{alter} SET LOCATION {spark_literal(change.after or '')}"
        if change.field is ChangedField.DESCRIPTION and spec.format == VIEW:
            # COMMENT ON works for tables only; a view keeps its comment in this property.
            yield f"{alter} SET TBLPROPERTIES ('comment' = {spark_literal(change.after or '')})"
        elif change.field is ChangedField.DESCRIPTION:
            yield f"COMMENT ON TABLE {quoted_table(spec)} IS {spark_literal(change.after or '')}"
    if any(change.field is ChangedField.READER for change in action.changes):
        yield f"{alter} SET SERDEPROPERTIES ({_pairs(text_options(spec))})"
    changed = {
        change.name: change.after for change in action.changes if change.field is ChangedField.PARAMETER
    }
    removed = [spark_literal(key) for key, value in changed.items() if value is None]
    if removed:
        yield f"{alter} UNSET TBLPROPERTIES IF EXISTS ({', '.join(removed)})"
    updated = {key: value for key, value in changed.items() if value is not None}
    if updated:
        yield f"{alter} SET TBLPROPERTIES ({_pairs(updated)})"


def columns_ddl(spec: TableSpec) -> str:
    """The data columns as DDL."""
    return ", ".join(_column_ddl(column) for column in spec.columns)


def partition_clause(values: Values) -> str:
    """PARTITION clause; every value is text, which Spark casts to the key's type."""
    return f"PARTITION ({', '.join(f'{quoted(key)} = {spark_literal(value)}' for key, value in values)})"


def relation_kind(spec: TableSpec) -> str:
    """Keyword for the relation in ALTER and DROP."""
    return "VIEW" if spec.format == VIEW else "TABLE"


def quoted_table(spec: TableSpec) -> str:
    return f"{quoted(spec.database)}.{quoted(spec.name)}"


def _column_ddl(column: TableColumn) -> str:
    comment = f" COMMENT {spark_literal(column.comment)}" if column.comment else ""
    name, _, kind = column.spelled.partition(" ")
    return f"{quoted(name or column.name)} {kind or column.type}{comment}"


def _pairs(parameters: dict[str, str]) -> str:
    return ", ".join(f"{spark_literal(key)} = {spark_literal(value)}" for key, value in parameters.items())


# From Spark's external catalog to table specifications and partitions.

_RAW_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
_FINAL = 0x10  # java.lang.reflect.Modifier.FINAL
_SERDE_FORMATS = ("parquet", "orc", "avro", "json", "csv")


def spec_from_catalog_table(table: Any) -> TableSpec:
    """Return the folded specification of Spark's CatalogTable."""
    schema = json.loads(table.schema().json())
    keys = list(iterate(table.partitionColumnNames()))
    properties = {pair._1(): pair._2() for pair in iterate(table.properties())}
    options = {pair._1(): pair._2() for pair in iterate(table.storage().properties())}
    view = table.tableType().name() == "VIEW"
    format = _format(_option_text(table.provider()), _option_text(table.storage().serde()), properties)
    format = VIEW if view else format
    columns = {field["name"]: _column(field, format) for field in schema["fields"]}
    return folded(
        TableSpec(
            table.database(),
            table.identifier().table(),
            _location(table.storage()),
            format,
            tuple(column for name, column in columns.items() if name not in keys),
            tuple(columns[name] for name in keys),
            tuple(properties.items()),
            _option_text(table.comment()),
            text_terms(format, options),
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


def partition_from_spark(partition: Any, keys: list[str]) -> Partition:
    """Return the partition of Spark's CatalogTablePartition, of a table with these keys."""
    values = {pair._1(): pair._2() for pair in iterate(partition.spec())}
    location = fold_location(_location(partition.storage()))
    return Partition(tuple((key.lower(), values[key]) for key in keys), location)


def _location(storage: Any) -> str:
    """Return the location as a path: its URI has spaces and percent signs escaped."""
    return unquote(_option_text(storage.locationUri()))


def with_properties(table: Any, properties: Any, comment: Any) -> Any:
    """Return the CatalogTable with other properties (a Scala Map) and another comment (an Option)."""
    changed = {"properties": properties, "comment": comment}
    values = [table.productElement(index) for index in range(table.productArity())]
    # Scala 2.12 (Spark 3.5) names the elements of a case class by its fields only. A lazy value is a field
    # too, but not final.
    fields = [field for field in table.getClass().getDeclaredFields() if field.getModifiers() & _FINAL]
    names = [field.getName() for field in fields[: len(values)]]
    return table.copy(*(changed.get(name, value) for name, value in zip(names, values, strict=True)))


def iterate(scala: Any) -> Iterator[Any]:
    """Iterate over a Scala collection."""
    iterator = scala.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _option_text(scala: Any) -> str:
    """Return the content of a Scala Option as text, or "" if it is empty."""
    if not scala.isDefined():
        return ""
    # A Java string arrives as a Python one, anything else as an object.
    content = scala.get()
    return content if isinstance(content, str) else str(content.toString())


# The Hive metastore of a Spark session: a real one in production, Derby on a laptop.
#
# Spark gives no public way to read a table without loss (its listings cut long structs and forget char and
# varchar), so tables are read through the session's external catalog, which Spark 3.5 and 4.0 share.


_BATCH = 100


@dataclass(frozen=True, slots=True)
class Hive:
    """A `Catalog` in the session's metastore.

    The metastore has no versions: a table's version is the digest of its specification, compared right before
    a write. Writes within that moment are not detected.
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
            spec = spec_from_catalog_table(catalog.getTable(database, name))
        return LiveTable(spec, digest(spec))

    def databases(self) -> list[str]:
        with _explained():
            return sorted(cast("list[str]", list(iterate(self._external().listDatabases()))))

    def tables(self, database: str) -> list[LiveTable]:
        live_tables = (self.read(database, name) for name in self.table_names(database))
        return [table for table in live_tables if table is not None]

    def table_names(self, database: str) -> list[str]:
        with _explained():
            catalog = self._external()
            if not catalog.databaseExists(database):
                return []
            return sorted(cast("list[str]", list(iterate(catalog.listTables(database)))))

    def blockers(self, action: Action) -> tuple[Blocker, ...]:
        return ()

    def apply(self, action: Action) -> None:
        database, name = action.key
        if action.after is not None:
            refuse_reserved(_changed_properties(action, action.after))
            _refuse_relative(action.after)
        live = self.read(database, name)
        planned_version = action.before.version if action.before else None
        if (live.version if live else None) != planned_version:
            raise stale_plan(database, name)
        with _explained():
            self._write(action, live)

    def _write(self, action: Action, live: LiveTable | None) -> None:
        spec = action.after
        database, name = action.key
        if live is not None and (spec is None or needs_recreation(action)):
            # Dropping an external table keeps its files; dropping a managed one deletes them.
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
        if needs_schema_rewrite(action):
            schema = self._jvm().org.apache.spark.sql.types.StructType.fromDDL(columns_ddl(spec))
            self._external().alterTableDataSchema(database, name, schema)
            self.spark.catalog.refreshTable(quoted_table(spec))
        else:
            for statement in alter_columns(action, spec):
                self._run(statement)
        for statement in alter_properties(action, spec):
            self._run(statement)

    def _describe(self, live: TableSpec, spec: TableSpec) -> None:
        """Change properties and description in the metastore only: SQL would write to Delta's log."""
        catalog = self._external()
        table = catalog.getTable(spec.database, spec.name)
        properties = {pair._1(): pair._2() for pair in iterate(table.properties())}
        for key in {key for key, _ in live.parameters} - {key for key, _ in spec.parameters}:
            properties.pop(key, None)
        to_map = self._jvm().org.apache.spark.api.python.PythonUtils.toScalaMap
        comment = table.comment()
        if spec.description != live.description:
            comment = self._jvm().scala.Option.apply(spec.description or None)
        catalog.alterTable(with_properties(table, to_map(properties | dict(spec.parameters)), comment))
        self.spark.catalog.refreshTable(quoted_table(spec))

    def add_partition(self, database: str, name: str, values: Values, location: str) -> bool:
        live = self.read(database, name)
        if live is None:
            raise no_table(database, name)
        current = self.partition_location(database, name, values)
        if current is not None and current != fold_location(location):
            raise moved_partition(database, name, values, current, location)
        if current is None:
            with _explained():
                self._run(
                    f"ALTER TABLE {quoted_table(live.spec)} ADD IF NOT EXISTS "
                    f"{partition_clause(values)} LOCATION {spark_literal(location)}"
                )
        return current is None

    def add_partitions(
        self, database: str, name: str, partitions: Sequence[Partition]
    ) -> list[bool | DqError]:
        live = self.read(database, name)
        if live is None:
            raise no_table(database, name)
        locations = {partition.values: partition.location for partition in self.partitions(database, name)}
        results: dict[Values, bool | DqError] = {}
        added: list[Partition] = []
        for partition in partitions:
            current = locations.get(partition.values)
            if current is None:
                added.append(partition)
            elif current == fold_location(partition.location):
                results[partition.values] = False
            else:
                results[partition.values] = moved_partition(
                    database, name, partition.values, current, partition.location
                )
        for start in range(0, len(added), _BATCH):
            results |= self._add(live.spec, added[start : start + _BATCH])
        return [results[partition.values] for partition in partitions]

    def _add(self, spec: TableSpec, partitions: Sequence[Partition]) -> dict[Values, bool | DqError]:
        clauses = [
            f"{partition_clause(partition.values)} LOCATION {spark_literal(partition.location)}"
            for partition in partitions
        ]
        try:
            with _explained():
                self._run(f"ALTER TABLE {quoted_table(spec)} ADD IF NOT EXISTS {' '.join(clauses)}")
        except ReadError as error:
            if len(partitions) == 1:
                return {partitions[0].values: error}
            # A partition that is rejected rejects its batch.
            results: dict[Values, bool | DqError] = {}
            for partition in partitions:
                results |= self._add(spec, [partition])
            return results
        return {partition.values: True for partition in partitions}

    def partition_location(self, database: str, name: str, values: Values) -> str | None:
        if self.read(database, name) is None:
            return None
        return next((partition.location for partition in self._partitions(database, name, values)), None)

    def move_partition(self, database: str, name: str, values: Values, location: str) -> None:
        live = self.read(database, name)
        if live is None or self.partition_location(database, name, values) is None:
            raise no_partition(database, name, values)
        with _explained():
            self._run(
                f"ALTER TABLE {quoted_table(live.spec)} {partition_clause(values)} "
                f"SET LOCATION {spark_literal(location)}"
            )

    def partitions(self, database: str, name: str) -> list[Partition]:
        return sorted(self._partitions(database, name, ()), key=lambda partition: partition.values)

    def _partitions(self, database: str, name: str, values: Values) -> list[Partition]:
        with _explained():
            options: Any = self._jvm().scala.Option
            partition_filter = options.empty()
            if values:
                python_utils = self._jvm().org.apache.spark.api.python.PythonUtils
                partition_filter = options.apply(python_utils.toScalaMap(dict(values)))
            catalog = self._external()
            keys = list(iterate(catalog.getTable(database, name).partitionColumnNames()))
            rows = iterate(catalog.listPartitions(database, name, partition_filter))
            return [partition_from_spark(row, keys) for row in rows]

    def _external(self) -> Any:
        return cast("Any", self.spark)._jsparkSession.sharedState().externalCatalog()

    def _jvm(self) -> Any:
        return cast("Any", self.spark)._jvm

    def _run(self, statement: str) -> None:
        self.spark.sql(statement)


def _changed_properties(action: Action, after: TableSpec) -> TableSpec:
    """Return the table with only the properties that would be written; other properties are not checked."""
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
            "Move its files to a separate location and make it external first.",
        )


@contextmanager
def _explained() -> Iterator[None]:
    """Turn errors of Spark and the metastore into ReadError, with one sentence."""
    from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # it has no types
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        java = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
        causes = [str(error), *_causes(java)]
        locked = next((cause for cause in causes if "Another instance of Derby" in cause), None)
        if locked is not None:
            # Spark 3.5 appends a whole stack trace to the cause.
            match = re.search(r"booted the database\s+(\S+)", locked)
            folder = match[1].rstrip(".") if match else "its folder"
            raise ReadError(
                f"The embedded metastore at {folder} is open in another process; Derby serves one at a time.",
                "Stop that Spark session, or use a metastore service, or the catalog 'local'.",
            ) from error
        first = next((line.strip() for line in causes[0].splitlines() if line.strip()), "no reason given")
        raise ReadError(f"Spark's catalog refused: {first[:300]}", "Fix that, then run again.") from error


def _causes(java: Any) -> Iterator[str]:
    while java is not None:
        yield str(java.toString())
        java = java.getCause()


def _open(settings: CatalogSettings) -> Hive:
    if settings.session is None:
        raise UsageError("The hive catalog needs a Spark session.", "Pass one, or use the catalog 'local'.")
    with require_extras("The hive catalog needs Spark", "spark"):
        import pyspark  # noqa: F401  # distinguishes a missing pyspark from a session that cannot start
    session = cast("Callable[[], SparkSession]", settings.session)()
    if session.conf.get("spark.sql.catalogImplementation") != "hive":
        raise UsageError(
            "The Spark session has no Hive metastore, only tables in memory.",
            "Build it with .enableHiveSupport().",
        )
    return Hive(session)


CATALOG = CatalogKind("hive", _open)

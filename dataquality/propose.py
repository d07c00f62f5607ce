"""Rule suggestions: profile the data, add the suggested rules to the contract text, and test them."""

from __future__ import annotations

import datetime as dt
import math
import re
import string
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING, Any

from dq.contracts.check_result import Status
from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.outcome import ReadError, UsageError
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.contracts.yaml.insertion import Addition, YamlPath, can_insert, insert
from dq.contracts.yaml.parse import parse
from dq.dataquality import proposed_rules, sql_values
from dq.dataquality import proposed_rules as policy
from dq.dataquality.backtest import TablePartition, key_sql, partitions
from dq.dataquality.check import check
from dq.dataquality.clauses.coverage import JsonObject
from dq.dataquality.clauses.quality_rule import metric
from dq.dataquality.model.column import Column, resolve, single_columns, struct_field
from dq.dataquality.model.metric import Failure
from dq.dataquality.model.predicate import INTEGERS, NUMBERS, TEXTS
from dq.dataquality.request import Request, find_object, open_data, opens_only_scope
from dq.dataquality.spark.columnar_files import only_partitions
from dq.dataquality.spark.dataset import TEXT_FORMATS, Dataset
from dq.dataquality.spark.schema import unreadable_columns
from dq.dataquality.spark.session import attempt_without_values
from dq.dataquality.sql_predicate import predicate_sql
from dq.lake.types import from_spark_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Profile of a column: its aggregates in Spark SQL, measured in one pass grouped by partition.

_SIGNS = string.ascii_uppercase + string.ascii_lowercase + string.digits
_SHAPES = "A" * 26 + "a" * 26 + "9" * 10


@dataclass(frozen=True, slots=True)
class ProfiledColumn:
    """A column of the contract that the data has; `forms` are the formats that its first values have."""

    path: YamlPath
    name: str
    column: Column
    type: DataType
    declared_keys: frozenset[str]
    sensitive: bool = False
    partition: bool = False
    forms: tuple[str, ...] = ()

    @property
    def value(self) -> str:
        """The column as a SQL expression."""
        return self.column.sql()


def format_counts(
    profiled: ProfiledColumn, schema: DataType, forms: tuple[str, ...] = proposed_rules.FORMATS
) -> dict[str, str]:
    """Return, by format, the aggregates that count the values without this format."""
    return {
        form: f"count_if({predicate_sql(sql_values.violates_format(form, profiled.column.path), schema)})"
        for form in forms
    }


def aggregates(profiled: ProfiledColumn, index: int, schema: DataType) -> dict[str, str]:
    """Return the aggregates of the column at `index`, by name; `h…` sketches the distinct values."""
    value, expressions = profiled.value, {f"n{index}": f"count({profiled.value})"}
    if profiled.type.name in NUMBERS:
        expressions |= {f"lo{index}": f"min({value})", f"hi{index}": f"max({value})"}
    elif profiled.type.name in proposed_rules.TIMES:
        expressions |= {
            f"lo{index}": f"CAST(min({value}) AS STRING)",
            f"hi{index}": f"CAST(max({value}) AS STRING)",
        }
    elif profiled.type.name in TEXTS:
        shape = f"translate(left({value}, {policy.MAX_SHAPE_LENGTH + 1}), '{_SIGNS}', '{_SHAPES}')"
        expressions |= {
            f"s{index}": f"min(length({value}))",
            f"l{index}": f"max(length({value}))",
            f"a{index}": f"min({shape})",
            f"z{index}": f"max({shape})",
            f"p{index}": f"count_if(NOT {value} RLIKE {sql.text(proposed_rules.PLAIN)})",
        }
        for form, count in format_counts(profiled, schema, profiled.forms).items():
            expressions[f"f{index}_{proposed_rules.FORMATS.index(form)}"] = count
    if profiled.type.name in INTEGERS:
        expressions[f"h{index}"] = f"hll_sketch_agg(CAST({value} AS BIGINT))"
    elif profiled.type.name in TEXTS | proposed_rules.TIMES | {"decimal", "boolean"}:
        expressions[f"h{index}"] = f"hll_sketch_agg(CAST({value} AS STRING))"
    return expressions


def column_stats(row: Mapping[str, Any], index: int) -> proposed_rules.PartitionColumnStats:
    """Return the statistics of the column at `index` in one partition."""
    rows = int(row["n"])
    return proposed_rules.PartitionColumnStats(
        rows,
        rows - int(row[f"n{index}"]),
        _bound(row.get(f"lo{index}")),
        _bound(row.get(f"hi{index}")),
        row.get(f"s{index}"),
        row.get(f"l{index}"),
    )


def _bound(value: object) -> proposed_rules.Bound | None:
    match value:
        case bool():
            return None
        case float():
            return value if math.isfinite(value) else None
        case int() | Decimal():
            return value
        case str():
            try:
                # Fractions of a second have a variable number of digits.
                return dt.datetime.fromisoformat(value.partition(".")[0])
            except ValueError:
                return None
    return None


def common_formats(rows: list[Mapping[str, Any]], profiled: ProfiledColumn, index: int) -> frozenset[str]:
    """Return the formats that all values have."""
    return frozenset(
        form
        for form in profiled.forms
        if all(not row[f"f{index}_{proposed_rules.FORMATS.index(form)}"] for row in rows)
    )


def common_shape(rows: list[Mapping[str, Any]], index: int) -> str:
    """Return the common shape of all values, or "" if there are several."""
    shapes = {row.get(name) for row in rows for name in (f"a{index}", f"z{index}")} - {None}
    return str(next(iter(shapes))) if len(shapes) == 1 else ""


# Profile of a table: one pass grouped by partition, and one for the columns with few values.

# Number of rows sampled to find the formats that a column may have.
_FIRST_ROWS = 1_000
# Number of columns considered for composite keys.
_MAX_KEY_CANDIDATES = 6
_PHYSICAL_TYPES = {
    "string": TEXTS,
    "integer": INTEGERS | {"decimal"},
    "number": NUMBERS,
    "date": frozenset({"date"}),
    "timestamp": frozenset({"timestamp", "timestamp_ntz"}),
    "boolean": frozenset({"boolean"}),
}
_OTHER_TYPE = DataType("binary")
Answers = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProfileResult:
    """Profile of a table and the profiled partitions, empty if the whole table was read.

    `frame` are its rows as opened, with all columns; `unreadable` are the columns that Spark cannot read,
    which are not profiled.
    """

    table: proposed_rules.TableProfile
    frame: DataFrame
    scope: tuple[dict[str, str], ...] = ()
    unreadable: tuple[str, ...] = ()


def profile_table(
    spark: SparkSession,
    data: DataFrame | Dataset,
    schema_object: SchemaObject,
    last: int,
    now: datetime | None,
) -> ProfileResult:
    """Profile the last partitions of the data, or all data if it has no partitions.

    Raises ReadError if the data cannot be read, and UsageError like `partitions`.
    """
    table_partitions = _partitions(spark, data, schema_object)
    recent = [part for part in table_partitions[-last:] if part.key is not None]
    scope = tuple(dict(part.values) for part in recent) if len(recent) < len(table_partitions) else ()
    table = open_data(data, spark, scope or None)
    unreadable = unreadable_columns(table)
    rows = (only_partitions(table, scope) if scope else table).drop(*unreadable)
    schema = from_spark_json(rows.schema.jsonValue())
    keys = tuple(name for name, _ in table_partitions[0].values) if table_partitions else ()
    profiled_columns = _with_forms(rows, _columns(schema_object, schema, keys), schema)
    partition_keys = [
        key_sql(sql.name(name), kind) for name in keys if (kind := struct_field(schema, name)) is not None
    ]
    totals, parts = _first_pass(rows, profiled_columns, partition_keys, schema)
    profile = proposed_rules.TableProfile(
        path=path_from_text(schema_object.path()),
        name=schema_object.name,
        partition_rows=tuple(int(part["n"]) for part in parts),
        columns=tuple(
            _column_profile(profiled, index, totals, parts) for index, profiled in enumerate(profiled_columns)
        ),
        keys=keys,
        present=max(len(table_partitions), 1),
        distinct_rows=int(totals["alike"]),
        declared_keys=declared_keys(schema_object),
        now=now,
    )
    values_by_column = _values(rows, profiled_columns, profile, partition_keys)
    columns = [
        replace(column, values=values_by_column.get(index)) for index, column in enumerate(profile.columns)
    ]
    profile = replace(profile, columns=tuple(columns))
    return ProfileResult(
        replace(profile, key_candidates=_pairs(rows, profiled_columns, profile)), table, scope, unreadable
    )


def _partitions(
    spark: SparkSession, data: DataFrame | Dataset, schema_object: SchemaObject
) -> tuple[TablePartition, ...]:
    partition_columns = [prop.column for prop in schema_object.partition_keys()]
    try:
        return partitions(spark, data, partition_columns)
    except UsageError:
        if partition_columns:
            raise
        # Without partitions there is no history, only one snapshot.
        return ()


def _columns(schema_object: SchemaObject, schema: DataType, keys: Sequence[str]) -> list[ProfiledColumn]:
    """Return the columns of the contract that the data has, without those inside arrays and maps."""
    lowered_keys = {name.lower() for name in keys}
    profiled_columns = []
    for properties, column in single_columns(schema_object.properties):
        kind, prop = resolve(schema, column), properties[-1]
        if isinstance(kind, str) or (kind.parts and len(properties) > 1):
            continue
        physical_types = _PHYSICAL_TYPES.get(prop.logical_type or "", frozenset())
        profiled_columns.append(
            ProfiledColumn(
                path=path_from_text(prop.path()),
                name=str(column),
                column=column,
                type=kind if kind.parts or kind.name in physical_types else _OTHER_TYPE,
                declared_keys=declared_keys(prop),
                sensitive=any(
                    prop.classification or policy.is_sensitive_name(prop.column) for prop in properties
                ),
                partition=len(properties) == 1 and column.steps[0].lower() in lowered_keys,  # type: ignore[union-attr]
            )
        )
    return profiled_columns


def path_from_text(path: str) -> YamlPath:
    """Parse a path such as `schema[0].properties[2]` into steps."""
    return tuple(
        int(number) if number else name for name, number in re.findall(r"([A-Za-z]+)|\[(\d+)\]", path)
    )


def declared_keys(element: Property | SchemaObject) -> frozenset[str]:
    """Return the contract's keys of the element and of its options, and the metrics of its quality rules."""
    names = set(element.place.keys)
    options = getattr(element, "logical_type_options", None)
    if options is not None:
        names |= {f"logicalTypeOptions.{key}" for key in options.place.keys}
    for rule in element.quality:
        implementation = rule.implementation if isinstance(rule.implementation, dict) else {}
        names.add(f"quality {metric(rule) or implementation.get('check') or rule.type}")
    return frozenset(names)


def _answer(question: Callable[[], Any]) -> Any:
    answer = attempt_without_values(question)
    if isinstance(answer, Failure):
        hint = "Run 'dq check' on it to find the cause."
        raise ReadError(f"its rows cannot be read: {answer.message}.", hint)
    return answer


def _with_forms(
    rows: DataFrame, profiled_columns: list[ProfiledColumn], schema: DataType
) -> list[ProfiledColumn]:
    """Add the formats that the first values of string columns have; only these are measured on all rows."""
    format_questions = {
        f"f{index}_{form}": f"{count} = 0 AND count({profiled.value}) > 0"
        for index, profiled in enumerate(profiled_columns)
        if profiled.type.name in TEXTS and not profiled.partition
        for form, count in format_counts(profiled, schema).items()
    }
    if not format_questions:
        return profiled_columns
    expressions = [f"{question} AS `{name}`" for name, question in format_questions.items()]
    first_counts = _answer(lambda: rows.limit(_FIRST_ROWS).selectExpr(*expressions).collect()[0])
    formats_by_column = defaultdict(list)
    for name, is_common in first_counts.asDict().items():
        if is_common:
            index, _, form = name[1:].partition("_")
            formats_by_column[int(index)].append(form)
    return [
        replace(profiled, forms=tuple(formats_by_column[index]))
        for index, profiled in enumerate(profiled_columns)
    ]


def _first_pass(
    rows: DataFrame,
    profiled_columns: Sequence[ProfiledColumn],
    partition_keys: Sequence[str],
    schema: DataType,
) -> tuple[Answers, list[Answers]]:
    """Return the estimates for all partitions, and the aggregates of each partition, oldest first."""
    from pyspark.sql import functions as f

    simple = [
        profiled.value
        for profiled in profiled_columns
        if not profiled.type.parts and profiled.type != _OTHER_TYPE
    ]
    expressions = {"n": "count(*)", "halike": f"hll_sketch_agg(xxhash64({', '.join(simple) or '1'}))"}
    for index, profiled in enumerate(profiled_columns):
        expressions |= aggregates(profiled, index, schema)
    keys = [f.expr(text).alias(f"k{index}") for index, text in enumerate(partition_keys)]
    inner = rows.groupBy(*keys).agg(*(f.expr(text).alias(name) for name, text in expressions.items()))
    sketches = [name for name in expressions if name.startswith("h") and not name.startswith("hi")]
    plain_names = [
        *(f"k{index}" for index in range(len(keys))),
        *(name for name in expressions if name not in sketches),
    ]
    outer = inner.agg(
        f.collect_list(f.struct(*plain_names)).alias("parts"),
        *(f.expr(f"hll_sketch_estimate(hll_union_agg({name}))").alias(name[1:]) for name in sketches),
    )
    answers = _answer(lambda: outer.collect()[0]).asDict(recursive=True)
    parts = sorted(
        answers["parts"], key=lambda part: [_sort_key(part[f"k{index}"]) for index in range(len(keys))]
    )
    return answers, parts


def _sort_key(value: Any) -> tuple[bool, Any]:
    return value is not None, 0 if value is None else value


def _column_profile(
    profiled: ProfiledColumn, index: int, totals: Answers, parts: list[Answers]
) -> proposed_rules.ColumnProfile:
    forms = common_formats(parts, profiled, index)
    return proposed_rules.ColumnProfile(
        path=profiled.path,
        name=profiled.name,
        type=profiled.type,
        partition_stats=tuple(column_stats(part, index) for part in parts),
        distinct_count=int(totals.get(str(index)) or 0),
        forms=forms,
        shape=common_shape(parts, index),
        is_ascii=all(part.get(f"p{index}") == 0 for part in parts),
        declared_keys=profiled.declared_keys,
        is_sensitive=profiled.sensitive or not policy.SENSITIVE_FORMS.isdisjoint(forms),
        is_partition=profiled.partition,
    )


def _values(
    rows: DataFrame,
    profiled_columns: Sequence[ProfiledColumn],
    profile: proposed_rules.TableProfile,
    partition_keys: Sequence[str],
) -> dict[int, dict[str, tuple[int, int]]]:
    """Return the values of string columns with few values, with their numbers of partitions and rows."""
    few_valued = [
        index
        for index, column in enumerate(profile.columns)
        if column.type.name in TEXTS
        and not column.is_sensitive
        and not column.is_partition
        and 0 < column.distinct_count <= policy.MAX_ENUM_VALUES / proposed_rules.DISTINCT_TOLERANCE
        and max((stats.longest or 0 for stats in column.partition_stats), default=0)
        <= policy.MAX_VALUE_LENGTH
    ]
    if not few_valued:
        return {}
    keys = [f"{text} AS k{index}" for index, text in enumerate(partition_keys)]
    names = [f"k{index}" for index in range(len(keys))]
    pairs = ", ".join(f"{index}, CAST({profiled_columns[index].value} AS STRING)" for index in few_valued)
    stacked = rows.selectExpr(*keys, f"stack({len(few_valued)}, {pairs}) AS (at, value)").where(
        "value IS NOT NULL"
    )
    counts = _answer(lambda: stacked.groupBy("at", "value", *names).count().collect())
    values_by_column: dict[int, dict[str, tuple[int, int]]] = defaultdict(dict)
    for row in counts:
        parts, count = values_by_column[row["at"]].get(row["value"], (0, 0))
        values_by_column[row["at"]][row["value"]] = (parts + 1, count + row["count"])
    return values_by_column


def _pairs(
    rows: DataFrame, profiled_columns: Sequence[ProfiledColumn], profile: proposed_rules.TableProfile
) -> tuple[tuple[str, ...], ...]:
    """Return combinations of two or three columns that are nearly unique, the likeliest key first.

    Only combinations with few enough possible values that duplicates would be expected by chance.
    """
    expressions = {profiled.name: profiled.value for profiled in profiled_columns}
    candidates = proposed_rules.key_columns(profile)
    if (
        any(
            column.distinct_count >= proposed_rules.DISTINCT_TOLERANCE * profile.rows for column in candidates
        )
        or profile.rows < policy.MIN_ROWS
    ):
        return ()
    candidate_keys: list[tuple[str, ...]] = []
    for size in (2, 3):
        for group in combinations(candidates[:_MAX_KEY_CANDIDATES], size):
            space = prod(column.distinct_count for column in group)
            if (
                space >= proposed_rules.DISTINCT_TOLERANCE * profile.rows
                and profile.rows**2 >= 2 * space * policy.MIN_CHANCE_DUPLICATES
            ):
                candidate_keys.append(tuple(column.name for column in group))
    if not candidate_keys:
        return ()
    counts = [
        f"approx_count_distinct(xxhash64({', '.join(expressions[name] for name in names)}), 0.02) AS d{index}"
        for index, names in enumerate(candidate_keys)
    ]
    estimates = _answer(lambda: rows.selectExpr(*counts).collect()[0])
    sizes = {column.name: column.distinct_count for column in candidates}
    nearly = [
        names for index, names in enumerate(candidate_keys) if estimates[f"d{index}"] >= 0.95 * profile.rows
    ]
    return tuple(sorted(nearly, key=lambda names: (len(names), prod(sizes[name] for name in names))))


# Suggest rules, insert them into the contract text, and test them on the same data.

LAST = 90


@dataclass(frozen=True, slots=True)
class DroppedProposal:
    """A rule that was dropped after its test, with the reason."""

    proposal: proposed_rules.Proposal
    reason: str


@dataclass(frozen=True, slots=True)
class Proposed:
    """Suggested rules for one object, and observations about it.

    `partitions` is the number of profiled partitions, of `present`; 0 for a table without partitions. `empty`
    are columns without values.
    """

    contract: str
    object: str
    rows: int
    partitions: int
    present: int
    proposals: tuple[proposed_rules.Proposal, ...]
    dropped: tuple[DroppedProposal, ...] = ()
    empty: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    def as_dict(self) -> JsonObject:
        """Return the suggestions as JSON values."""
        return {
            "contract": self.contract,
            "object": self.object,
            "rows": self.rows,
            "partitions": self.partitions,
            "present": self.present,
            "proposals": [_entry(proposal) for proposal in self.proposals],
            "dropped": [{**_entry(entry.proposal), "reason": entry.reason} for entry in self.dropped],
            "empty": list(self.empty),
            "sensitive": list(self.hidden),
            "unreadable": list(self.unreadable),
        }


def _entry(proposal: proposed_rules.Proposal) -> JsonObject:
    return {
        "column": proposal.column or None,
        "path": path_text(proposal.path),
        "key": proposal.key or None,
        "value": proposal.value,
        "evidence": proposal.evidence,
    }


def path_text(steps: Sequence[str | int]) -> str:
    """Return the steps as a path such as `schema[0].properties[2]`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".")


def propose(request: Request, data: bytes, last: int = LAST) -> tuple[bytes, Proposed]:
    """Add suggested rules for one object to the contract's file; return its bytes and the suggestions.

    Existing content of the contract is neither changed nor repeated. Every rule is tested on the same data by
    its own check, and dropped if it does not pass.

    Args:
        request: As for a check of the object; timestamps after its `now` are in the future.
        data: Bytes of the contract's file.
        last: Number of partitions to profile, at least 1.

    Raises:
        UsageError: `last` is below 1, or nothing can be added to the text.
        ReadError: The data cannot be read.
    """
    if last < 1:
        raise UsageError(f"last={last} is below 1.", "Pass a number of at least 1.")
    contract, schema_object = request.contract, find_object(request.contract, request.object)
    profiled = profile_table(request.session(), request.data, schema_object, last, request.now)
    # Rules that fail are dropped, so their failing rows are not looked up.
    object_request = replace(
        request,
        data=_opened_once(request.data, profiled),
        object=schema_object.name,
        partitions=profiled.scope or None,
        samples=False,
    )
    table = profiled.table
    dropped: list[DroppedProposal] = []
    while True:
        # Drop rules that did not pass, replace a failed composite key by the next one, and test again.
        candidates = [
            proposal
            for proposal in proposed_rules.proposals(table)
            if proposal not in [entry.proposal for entry in dropped]
        ]
        unreachable = _unreachable(data, candidates)
        dropped += unreachable
        proposals = [
            proposal for proposal in candidates if proposal not in [entry.proposal for entry in unreachable]
        ]
        additions = [
            Addition(proposal.path, proposal.key, proposal.value, proposal.evidence) for proposal in proposals
        ]
        text = insert(data, contract.file, additions)
        failing = _broken(text, proposals, object_request) if proposals else []
        if not failing:
            break
        dropped += failing
        if any(entry.proposal.summary == proposed_rules.COMPOSITE_KEY for entry in failing):
            table = replace(table, key_candidates=table.key_candidates[1:])
    return text, Proposed(
        contract=contract.id,
        object=schema_object.name,
        rows=table.rows,
        partitions=len(table.partition_rows) if table.keys else 0,
        present=table.present if table.keys else 0,
        proposals=tuple(proposals),
        dropped=tuple(dropped),
        empty=tuple(column.name for column in table.columns if table.rows and not column.filled),
        hidden=tuple(column.name for column in table.columns if column.is_sensitive),
        unreadable=profiled.unreadable,
    )


def _opened_once(data: DataFrame | Dataset, profiled: ProfileResult) -> DataFrame | Dataset:
    """Return the profiled rows of text files, because opening these validates every value of them."""
    is_text = isinstance(data, Dataset) and data.path is not None and data.format in TEXT_FORMATS
    is_complete = not profiled.scope or not opens_only_scope(data)
    return profiled.frame if is_text and is_complete else data


def _unreachable(data: bytes, candidates: Sequence[proposed_rules.Proposal]) -> list[DroppedProposal]:
    reachable = can_insert(data, [proposal.path for proposal in candidates])
    reason = "its position in the file holds an alias, an anchor or another value"
    return [
        DroppedProposal(proposal, reason)
        for proposal, is_reachable in zip(candidates, reachable, strict=True)
        if not is_reachable
    ]


def _broken(
    text: bytes, proposals: Sequence[proposed_rules.Proposal], object_request: Request
) -> list[DroppedProposal]:
    """Return the suggestions that make the contract invalid or whose check does not pass."""
    by_path = _proposals_by_path(object_request.contract, proposals)
    parsed = parse(text, object_request.contract.file)
    errors = [finding for finding in parsed.findings if finding.severity.blocks]
    if parsed.contract is None or errors:
        findings_by_path = {
            path: finding for finding in errors for path in by_path if finding.path.startswith(path)
        }
        assert findings_by_path, errors
        return [DroppedProposal(by_path[path], finding.message) for path, finding in findings_by_path.items()]
    report = check(replace(object_request, contract=parsed.contract, rules=tuple(by_path)))
    results = {result.clause: result for result in report.results}
    return [
        DroppedProposal(proposal, results[path].message if path in results else "no check tests it")
        for path, proposal in by_path.items()
        if path not in results or results[path].status is not Status.PASS
    ]


def _proposals_by_path(
    contract: Contract, proposals: Sequence[proposed_rules.Proposal]
) -> dict[str, proposed_rules.Proposal]:
    """Return the suggested rules by the paths that their clauses will have in the contract."""
    nodes = {
        node.path(): node
        for schema_object in contract.objects
        for node in (schema_object, *schema_object.walk())
    }
    rules = {f"{path}.quality": len(node.quality) for path, node in nodes.items()}
    proposals_by_path = {}
    for proposal in proposals:
        path = path_text(proposal.path)
        if proposal.key:
            proposals_by_path[f"{path}.{proposal.key}"] = proposal
        else:
            proposals_by_path[f"{path}[{rules.setdefault(path, 0)}]"] = proposal
            rules[path] += 1
    return proposals_by_path

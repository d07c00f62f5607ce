"""A contract with the rules that its data has kept: profiled, written into its text, and tested once more."""

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

from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.outcome import Status, Unreadable, UsageError
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.contracts.yaml.insertion import Addition, Way, insert, reaches
from dq.contracts.yaml.parse import parse
from dq.dataquality import proposed_rules, sql_values
from dq.dataquality import proposed_rules as policy
from dq.dataquality.backtest import FoundPartition, key_sql, partitions
from dq.dataquality.check import check
from dq.dataquality.clauses.coverage import JsonObject
from dq.dataquality.clauses.quality_rule import metric
from dq.dataquality.model.column import Column, field, resolve, single_columns
from dq.dataquality.model.metric import Failure
from dq.dataquality.model.predicate import INTEGERS, NUMBERS, TEXTS
from dq.dataquality.request import Request, opened, pick
from dq.dataquality.spark.columnar_files import only
from dq.dataquality.spark.dataset import Dataset
from dq.dataquality.spark.schema import unreadable_columns
from dq.dataquality.spark.session import answered
from dq.dataquality.sql_predicate import predicate_sql
from dq.lake.types import from_spark_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# What data shows of a table: what is asked of each column, in one pass that groups by partition.

# What is asked of each column in one pass, as Spark SQL, and how the answers are read.

_SIGNS = string.ascii_uppercase + string.ascii_lowercase + string.digits
_SHAPES = "A" * 26 + "a" * 26 + "9" * 10


@dataclass(frozen=True, slots=True)
class AskedColumn:
    """A column of the contract that is there; `forms` are the formats that its first values have."""

    way: Way
    name: str
    column: Column
    type: DataType
    written: frozenset[str]
    sensitive: bool = False
    partition: bool = False
    forms: tuple[str, ...] = ()

    @property
    def value(self) -> str:
        """It as an expression."""
        return self.column.sql()


def of_forms(
    one: AskedColumn, schema: DataType, forms: tuple[str, ...] = proposed_rules.FORMATS
) -> dict[str, str]:
    """The aggregates that count the values of a text without each of these formats."""
    return {
        form: f"count_if({predicate_sql(sql_values.breaks(form, one.column.path), schema)})" for form in forms
    }


def aggregates(one: AskedColumn, at: int, schema: DataType) -> dict[str, str]:
    """The aggregates of the column in this place, by their names; `h…` sketches the different values."""
    value, made = one.value, {f"n{at}": f"count({one.value})"}
    if one.type.name in NUMBERS:
        made |= {f"lo{at}": f"min({value})", f"hi{at}": f"max({value})"}
    elif one.type.name in proposed_rules.TIMES:
        made |= {f"lo{at}": f"CAST(min({value}) AS STRING)", f"hi{at}": f"CAST(max({value}) AS STRING)"}
    elif one.type.name in TEXTS:
        shape = f"translate(left({value}, {policy.LONGEST_SHAPE + 1}), '{_SIGNS}', '{_SHAPES}')"
        made |= {
            f"s{at}": f"min(length({value}))",
            f"l{at}": f"max(length({value}))",
            f"a{at}": f"min({shape})",
            f"z{at}": f"max({shape})",
            f"p{at}": f"count_if(NOT {value} RLIKE {sql.text(proposed_rules.PLAIN)})",
        }
        for form, count in of_forms(one, schema, one.forms).items():
            made[f"f{at}_{proposed_rules.FORMATS.index(form)}"] = count
    if one.type.name in INTEGERS:
        made[f"h{at}"] = f"hll_sketch_agg(CAST({value} AS BIGINT))"
    elif one.type.name in TEXTS | proposed_rules.TIMES | {"decimal", "boolean"}:
        made[f"h{at}"] = f"hll_sketch_agg(CAST({value} AS STRING))"
    return made


def seen(row: Mapping[str, Any], at: int) -> proposed_rules.SeenValues:
    """What the answers of one partition say of the column in this place."""
    rows = int(row["n"])
    return proposed_rules.SeenValues(
        rows,
        rows - int(row[f"n{at}"]),
        _bound(row.get(f"lo{at}")),
        _bound(row.get(f"hi{at}")),
        row.get(f"s{at}"),
        row.get(f"l{at}"),
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
                # Fractions of a second come with as many digits as they have.
                return dt.datetime.fromisoformat(value.partition(".")[0])
            except ValueError:
                return None
    return None


def forms_of(rows: list[Mapping[str, Any]], one: AskedColumn, at: int) -> frozenset[str]:
    """The formats that all values have."""
    return frozenset(
        form
        for form in one.forms
        if all(not row[f"f{at}_{proposed_rules.FORMATS.index(form)}"] for row in rows)
    )


def shape_of(rows: list[Mapping[str, Any]], at: int) -> str:
    """The one shape of all values, "" where there are several."""
    shapes = {row.get(name) for row in rows for name in (f"a{at}", f"z{at}")} - {None}
    return str(next(iter(shapes))) if len(shapes) == 1 else ""


# What data shows of a table: one pass that groups by partition, and one of the columns of few values.

# From so many rows it is seen which formats a column could have at all.
_FIRST_ROWS = 1_000
# So many columns are looked at for a key of several.
_IN_KEYS = 6
_HELD = {
    "string": TEXTS,
    "integer": INTEGERS | {"decimal"},
    "number": NUMBERS,
    "date": frozenset({"date"}),
    "timestamp": frozenset({"timestamp", "timestamp_ntz"}),
    "boolean": frozenset({"boolean"}),
}
_OTHER = DataType("binary")
Answers = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Learnt:
    """The facts, and the partitions they are of: none where all of the table was read.

    Nothing is learnt of the columns that Spark does not read.
    """

    table: proposed_rules.TableFacts
    scope: tuple[dict[str, str], ...] = ()
    unreadable: tuple[str, ...] = ()


def learn(
    spark: SparkSession, data: DataFrame | Dataset, one: SchemaObject, last: int, now: datetime | None
) -> Learnt:
    """What the last partitions of the data show, or all of it where there are none.

    Raises Unreadable where the data cannot be read, and UsageError as `partitions` does.
    """
    found = _partitions(spark, data, one)
    chosen = [part for part in found[-last:] if part.key is not None]
    scope = tuple(dict(part.partition) for part in chosen) if len(chosen) < len(found) else ()
    table = opened(data, spark, scope or None)
    unreadable = unreadable_columns(table)
    rows = (only(table, scope) if scope else table).drop(*unreadable)
    schema = from_spark_json(rows.schema.jsonValue())
    keys = tuple(name for name, _ in found[0].partition) if found else ()
    asked = _with_forms(rows, _columns(one, schema, keys), schema)
    grouped = [key_sql(sql.name(name), kind) for name in keys if (kind := field(schema, name)) is not None]
    whole, parts = _first_pass(rows, asked, grouped, schema)
    facts = proposed_rules.TableFacts(
        way=way_of(one.path()),
        name=one.name,
        sizes=tuple(int(part["n"]) for part in parts),
        columns=tuple(_column(item, at, whole, parts) for at, item in enumerate(asked)),
        keys=keys,
        present=max(len(found), 1),
        alike=int(whole["alike"]),
        written=written(one),
        now=now,
    )
    listed = _values(rows, asked, facts, grouped)
    columns = [replace(each, values=listed.get(at)) for at, each in enumerate(facts.columns)]
    facts = replace(facts, columns=tuple(columns))
    return Learnt(replace(facts, pairs=_pairs(rows, asked, facts)), scope, unreadable)


def _partitions(
    spark: SparkSession, data: DataFrame | Dataset, one: SchemaObject
) -> tuple[FoundPartition, ...]:
    promised = [prop.column for prop in one.partition_keys()]
    try:
        return partitions(spark, data, promised)
    except UsageError:
        if promised:
            raise
        # No partitions, and so no history: what is there is one snapshot.
        return ()


def _columns(one: SchemaObject, schema: DataType, keys: Sequence[str]) -> list[AskedColumn]:
    """The columns of the contract that the data has, and that stand once in a row."""
    folded = {name.lower() for name in keys}
    made = []
    for way, column in single_columns(one.properties):
        kind, prop = resolve(schema, column), way[-1]
        if isinstance(kind, str) or (kind.parts and len(way) > 1):
            continue
        held = _HELD.get(prop.logical_type or "", frozenset())
        made.append(
            AskedColumn(
                way=way_of(prop.path()),
                name=str(column),
                column=column,
                type=kind if kind.parts or kind.name in held else _OTHER,
                written=written(prop),
                sensitive=any(each.classification or policy.by_name(each.column) for each in way),
                partition=len(way) == 1 and column.steps[0].lower() in folded,  # type: ignore[union-attr]
            )
        )
    return made


def way_of(path: str) -> Way:
    """A path such as `schema[0].properties[2]` as steps."""
    return tuple(
        int(number) if number else name for name, number in re.findall(r"([A-Za-z]+)|\[(\d+)\]", path)
    )


def written(one: Property | SchemaObject) -> frozenset[str]:
    """The keys that the contract has for it, those of its options, and what its quality rules measure."""
    names = set(one.place.keys)
    options = getattr(one, "logical_type_options", None)
    if options is not None:
        names |= {f"logicalTypeOptions.{key}" for key in options.place.keys}
    for rule in one.quality:
        implemented = rule.implementation if isinstance(rule.implementation, dict) else {}
        names.add(f"quality {metric(rule) or implemented.get('check') or rule.type}")
    return frozenset(names)


def _told(question: Callable[[], Any]) -> Any:
    found = answered(question)
    if isinstance(found, Failure):
        mend = "Run 'dq check' on it, which names what is wrong."
        raise Unreadable(f"its rows cannot be read: {found.message}.", mend)
    return found


def _with_forms(rows: DataFrame, asked: list[AskedColumn], schema: DataType) -> list[AskedColumn]:
    """The texts with the formats that their first values have: only these are asked of all."""
    wanted = {
        f"f{at}_{form}": f"{count} = 0 AND count({one.value}) > 0"
        for at, one in enumerate(asked)
        if one.type.name in TEXTS and not one.partition
        for form, count in of_forms(one, schema).items()
    }
    if not wanted:
        return asked
    named = [f"{question} AS `{name}`" for name, question in wanted.items()]
    first = _told(lambda: rows.limit(_FIRST_ROWS).selectExpr(*named).collect()[0])
    held = defaultdict(list)
    for name, true in first.asDict().items():
        if true:
            at, _, form = name[1:].partition("_")
            held[int(at)].append(form)
    return [replace(one, forms=tuple(held[at])) for at, one in enumerate(asked)]


def _first_pass(
    rows: DataFrame, asked: Sequence[AskedColumn], grouped: Sequence[str], schema: DataType
) -> tuple[Answers, list[Answers]]:
    """What is asked of each partition, the oldest first, and the estimates for all of them."""
    from pyspark.sql import functions as f

    simple = [one.value for one in asked if not one.type.parts and one.type != _OTHER]
    made = {"n": "count(*)", "halike": f"hll_sketch_agg(xxhash64({', '.join(simple) or '1'}))"}
    for at, one in enumerate(asked):
        made |= aggregates(one, at, schema)
    keys = [f.expr(text).alias(f"k{at}") for at, text in enumerate(grouped)]
    inner = rows.groupBy(*keys).agg(*(f.expr(text).alias(name) for name, text in made.items()))
    sketches = [name for name in made if name.startswith("h") and not name.startswith("hi")]
    plain = [*(f"k{at}" for at in range(len(keys))), *(name for name in made if name not in sketches)]
    outer = inner.agg(
        f.collect_list(f.struct(*plain)).alias("parts"),
        *(f.expr(f"hll_sketch_estimate(hll_union_agg({name}))").alias(name[1:]) for name in sketches),
    )
    found = _told(lambda: outer.collect()[0]).asDict(recursive=True)
    parts = sorted(found["parts"], key=lambda part: [_sortable(part[f"k{at}"]) for at in range(len(keys))])
    return found, parts


def _sortable(value: Any) -> tuple[bool, Any]:
    return value is not None, 0 if value is None else value


def _column(one: AskedColumn, at: int, whole: Answers, parts: list[Answers]) -> proposed_rules.ColumnFacts:
    forms = forms_of(parts, one, at)
    return proposed_rules.ColumnFacts(
        way=one.way,
        name=one.name,
        type=one.type,
        seen=tuple(seen(part, at) for part in parts),
        different=int(whole.get(str(at)) or 0),
        forms=forms,
        shape=shape_of(parts, at),
        plain=all(part.get(f"p{at}") == 0 for part in parts),
        written=one.written,
        sensitive=one.sensitive or not policy.SENSITIVE_FORMS.isdisjoint(forms),
        partition=one.partition,
    )


def _values(
    rows: DataFrame, asked: Sequence[AskedColumn], facts: proposed_rules.TableFacts, grouped: Sequence[str]
) -> dict[int, dict[str, tuple[int, int]]]:
    """All values of the texts that have few, with how many partitions and rows have each."""
    few = [
        at
        for at, one in enumerate(facts.columns)
        if one.type.name in TEXTS
        and not one.sensitive
        and not one.partition
        and 0 < one.different <= policy.MOST_VALUES / proposed_rules.NEARLY
        and max((each.longest or 0 for each in one.seen), default=0) <= policy.LONGEST_VALUE
    ]
    if not few:
        return {}
    keys = [f"{text} AS k{at}" for at, text in enumerate(grouped)]
    names = [f"k{at}" for at in range(len(keys))]
    pairs = ", ".join(f"{at}, CAST({asked[at].value} AS STRING)" for at in few)
    stacked = rows.selectExpr(*keys, f"stack({len(few)}, {pairs}) AS (at, value)").where("value IS NOT NULL")
    found = _told(lambda: stacked.groupBy("at", "value", *names).count().collect())
    made: dict[int, dict[str, tuple[int, int]]] = defaultdict(dict)
    for row in found:
        parts, count = made[row["at"]].get(row["value"], (0, 0))
        made[row["at"]][row["value"]] = (parts + 1, count + row["count"])
    return made


def _pairs(
    rows: DataFrame, asked: Sequence[AskedColumn], facts: proposed_rules.TableFacts
) -> tuple[tuple[str, ...], ...]:
    """The columns that together have a value of their own in about every row, the likeliest key first.

    Two or three, of which chance would have made the same values in several rows.
    """
    expressions = {one.name: one.value for one in asked}
    known = proposed_rules.keyed(facts)
    if (
        any(one.different >= proposed_rules.NEARLY * facts.rows for one in known)
        or facts.rows < policy.FEWEST_ROWS
    ):
        return ()
    wanted: list[tuple[str, ...]] = []
    for size in (2, 3):
        for some in combinations(known[:_IN_KEYS], size):
            space = prod(one.different for one in some)
            if space >= proposed_rules.NEARLY * facts.rows and facts.rows**2 >= 2 * space * policy.BY_CHANCE:
                wanted.append(tuple(one.name for one in some))
    if not wanted:
        return ()
    counts = [
        f"approx_count_distinct(xxhash64({', '.join(expressions[name] for name in names)}), 0.02) AS d{at}"
        for at, names in enumerate(wanted)
    ]
    found = _told(lambda: rows.selectExpr(*counts).collect()[0])
    sizes = {one.name: one.different for one in known}
    nearly = [names for at, names in enumerate(wanted) if found[f"d{at}"] >= 0.95 * facts.rows]
    return tuple(sorted(nearly, key=lambda names: (len(names), prod(sizes[name] for name in names))))


# A contract with the rules that its data has kept: learnt, written into its text, and tested once more.

LAST = 90


@dataclass(frozen=True, slots=True)
class Dropped:
    """A rule that was not proposed after all, and why."""

    proposal: proposed_rules.Proposal
    reason: str


@dataclass(frozen=True, slots=True)
class Proposed:
    """What is proposed for one object, and what is told of it without being promised.

    `partitions` were looked at, of `present`; 0 of a table without any. `empty` are columns without a value.
    """

    contract: str
    object: str
    rows: int
    partitions: int
    present: int
    proposals: tuple[proposed_rules.Proposal, ...]
    dropped: tuple[Dropped, ...] = ()
    empty: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    def as_dict(self) -> JsonObject:
        """As JSON values."""
        return {
            "contract": self.contract,
            "object": self.object,
            "rows": self.rows,
            "partitions": self.partitions,
            "present": self.present,
            "proposals": [_entry(one) for one in self.proposals],
            "dropped": [{**_entry(one.proposal), "reason": one.reason} for one in self.dropped],
            "empty": list(self.empty),
            "sensitive": list(self.hidden),
            "unreadable": list(self.unreadable),
        }


def _entry(one: proposed_rules.Proposal) -> JsonObject:
    return {
        "column": one.column or None,
        "path": path_of(one.way),
        "key": one.key or None,
        "value": one.value,
        "evidence": one.evidence,
    }


def path_of(way: Sequence[str | int]) -> str:
    """Steps as a path such as `schema[0].properties[2]`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in way)
    return text.removeprefix(".")


def propose(request: Request, data: bytes, last: int = LAST) -> tuple[bytes, Proposed]:
    """The bytes of the contract's file with the rules of one object, and what they are.

    `request` is what a check of the object would be handed; its `now` says what lies in the future. Nothing
    that the contract says already is changed or said twice. Every rule is tested on the same data by the
    check that will test it, and left out if it does not pass.

    Raises UsageError for a `last` below 1 and a text that takes no additions, Unreadable for data that
    cannot be read.
    """
    if last < 1:
        raise UsageError(f"the last {last} partitions are none.", "Give a number from 1.")
    contract, one = request.contract, pick(request.contract, request.object)
    learnt = learn(request.session(), request.data, one, last, request.now)
    asked = replace(request, object=one.name, partitions=learnt.scope or None)
    table = learnt.table
    dropped: list[Dropped] = []
    while True:
        # What did not hold is left out, a key that is none gives way to the next, and all is tested anew.
        wanted = [
            each for each in proposed_rules.proposals(table) if each not in [out.proposal for out in dropped]
        ]
        out = _unreachable(data, wanted)
        dropped += out
        made = [each for each in wanted if each not in [each.proposal for each in out]]
        additions = [Addition(each.way, each.key, each.value, each.evidence) for each in made]
        text = insert(data, contract.file, additions)
        wrong = _broken(text, made, asked) if made else []
        if not wrong:
            break
        dropped += wrong
        if any(each.proposal.says == proposed_rules.TOGETHER for each in wrong):
            table = replace(table, pairs=table.pairs[1:])
    return text, Proposed(
        contract=contract.id,
        object=one.name,
        rows=table.rows,
        partitions=len(table.sizes) if table.keys else 0,
        present=table.present if table.keys else 0,
        proposals=tuple(made),
        dropped=tuple(dropped),
        empty=tuple(each.name for each in table.columns if table.rows and not each.filled),
        hidden=tuple(each.name for each in table.columns if each.sensitive),
        unreadable=learnt.unreadable,
    )


def _unreachable(data: bytes, wanted: Sequence[proposed_rules.Proposal]) -> list[Dropped]:
    there = reaches(data, [one.way for one in wanted])
    reason = "an alias, an anchor or another value stands where it would be written"
    return [Dropped(one, reason) for one, can in zip(wanted, there, strict=True) if not can]


def _broken(text: bytes, made: Sequence[proposed_rules.Proposal], asked: Request) -> list[Dropped]:
    """The proposals that the contract cannot have, or that the data does not pass, as their check tells."""
    paths = _paths(asked.contract, made)
    parsed = parse(text, asked.contract.file)
    wrong = [finding for finding in parsed.findings if finding.severity.blocks]
    if parsed.contract is None or wrong:
        told = {path: finding for finding in wrong for path in paths if finding.path.startswith(path)}
        assert told, wrong
        return [Dropped(paths[path], finding.message) for path, finding in told.items()]
    report = check(replace(asked, contract=parsed.contract, rules=tuple(paths)))
    results = {result.clause: result for result in report.results}
    return [
        Dropped(one, results[path].message if path in results else "no check tests it")
        for path, one in paths.items()
        if path not in results or results[path].status is not Status.PASS
    ]


def _paths(contract: Contract, made: Sequence[proposed_rules.Proposal]) -> dict[str, proposed_rules.Proposal]:
    """The proposals by the paths of the clauses that they make."""
    nodes = {node.path(): node for one in contract.objects for node in (one, *one.walk())}
    rules = {f"{path}.quality": len(node.quality) for path, node in nodes.items()}
    found = {}
    for one in made:
        path = path_of(one.way)
        if one.key:
            found[f"{path}.{one.key}"] = one
        else:
            found[f"{path}[{rules.setdefault(path, 0)}]"] = one
            rules[path] += 1
    return found

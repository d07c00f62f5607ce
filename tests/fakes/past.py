"""Days of a table with every kind of clause, drawn from a seed, as Parquet in folders."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

HEAD = """\
apiVersion: v3.2.0
kind: DataContract
id: past
version: 1.0.0
servers:
  - {{server: lake, type: local, path: '{path}', format: {format}}}
  - {{server: copy, type: local, path: '{path}-copy', format: {format}}}
schema:
"""
SLA = """\
slaProperties:
  - {property: latency, value: 4, unit: d, element: past.at}
  - {property: retention, value: 6, unit: d, element: past.at}
"""
NOW = dt.datetime(2026, 5, 9, 12, tzinfo=dt.UTC)
TYPES = {
    "id": pa.int64(),
    "code": pa.string(),
    "state": pa.string(),
    "amount": pa.float64(),
    "paid": pa.decimal128(10, 2),
    "number": pa.int32(),
    "card": pa.string(),
    "at": pa.timestamp("us", tz="UTC"),
    "since": pa.string(),
    "parts": pa.list_(pa.string()),
    "place": pa.struct([("zip", pa.string()), ("town", pa.string())]),
    "rates": pa.map_(pa.string(), pa.int32()),
    "picture": pa.list_(pa.float32()),
    "boss": pa.int64(),
    "more": pa.string(),
}


def measure(check: str, rest: str, arguments: str = "") -> str:
    """A rule with one of dq's own metrics."""
    given = f", arguments: {{{arguments}}}" if arguments else ""
    return f"{{type: custom, engine: dq, implementation: {{check: {check}{given}, {rest}}}}}"


# Where a rule stands -> the rules; `B` is a bound that is drawn anew.
RULES = {
    "": [
        "{metric: rowCount, mustBeGreaterThan: B}",
        "{metric: rowCount, mustBeGreaterThan: -30, unit: percent, arguments: {period: 1, unit: d}}",
        "{metric: duplicateValues, mustBeLessThan: B, arguments: {properties: [code, state]}}",
        '{type: sql, query: "SELECT count(*) FROM {object} WHERE amount > 5", mustBeLessThan: B}',
        '{type: sql, query: "SELECT count(*) FROM (SELECT code FROM {object} GROUP BY code) AS c", '
        "mustBeLessThan: B}",
        '{type: sql, query: "SELECT avg(amount) FROM {object}", mustBeLessThan: B}',
        "{type: custom, engine: dq, implementation: {check: unusual, arguments: {of: [rowCount]}}}",
        measure(
            "agrees", "mustBeLessThan: B", "with: {server: copy}, key: [id, code], columns: [paid], cycles: 2"
        ),
        measure(
            "agreesInSum", "mustBeLessThan: B, unit: percent", "with: {server: copy}, by: state, sums: [paid]"
        ),
        measure("distinctCount", "mustBeLessThan: B", "properties: [code, state]"),
        measure("uniqueRatio", "mustBeGreaterThan: 0.5", "properties: [id, code]"),
    ],
    "id": [
        measure("sequenceGaps", "mustBeLessThan: B"),
        measure("max", "mustBeLessThan: 90", "by: state"),
        measure("compareColumns", "mustBeLessThan: B", 'operator: ">=", property: boss'),
    ],
    "code": [
        "{metric: missingValues, mustBeLessThan: B, arguments: {missingValues: [c1]}}",
        "{metric: duplicateValues, mustBeLessThan: 40, unit: percent}",
        measure("distinctRatio", "mustBeGreaterThan: 0.2", "by: [state]"),
        measure("distinctCount", "mustBeGreaterThan: 0", "against: previous, by: state"),
    ],
    "state": [
        "{metric: nullValues, mustBeLessThan: 20, unit: percent}",
        "{metric: invalidValues, mustBeLessThan: B, arguments: {pattern: '^[a-z]+$'}}",
        "{metric: duplicateValues, mustBeLessThan: 90, unit: percent}",
    ],
    "amount": [
        measure("min", "mustBeGreaterThan: -3"),
        measure("sum", "mustBeLessThan: 40"),
        measure("mean", "mustBeLessThan: 4"),
        measure("stddev", "mustBeLessThan: B"),
        measure("quantile", "mustBeLessThan: 6", "q: 0.75"),
    ],
    "paid": [
        measure("sum", "mustBeGreaterThan: B", "by: state"),
        measure("mean", "mustBeLessThan: 4.5"),
        measure("quantile", "mustBeLessThan: 6", "q: 0.5, by: state"),
        measure("sum", "mustBeGreaterThan: -1000", "against: previous"),
        "{type: custom, engine: dq,"
        " implementation: {check: unusual, arguments: {of: [nullShare, mean, sum]}}}",
    ],
    "card": ["{type: custom, engine: dq, implementation: {check: luhn, mustBeLessThan: B, unit: rows}}"],
}
PROPERTIES = {
    "id": "logicalType: integer, physicalType: bigint, required: true, unique: true",
    "code": "logicalType: string, required: true, primaryKey: true, primaryKeyPosition: 1,"
    " logicalTypeOptions: {minLength: 2, maxLength: 2, pattern: '^c'}",
    "state": "logicalType: string, enum: [{value: open}, {value: paid}]",
    "amount": "logicalType: number, physicalType: double,"
    " logicalTypeOptions: {minimum: -2, exclusiveMaximum: 9}",
    "paid": "logicalType: number, physicalType: 'decimal(10,2)', logicalTypeOptions: {multipleOf: 0.5}",
    "number": "logicalType: integer, physicalType: bigint, logicalTypeOptions: {maximum: 8}",
    "card": "logicalType: string, logicalTypeOptions: {format: uuid}",
    "at": "logicalType: timestamp, logicalTypeOptions: {timezone: true, minimum: '2026-05-02T00:00:00Z'}",
    "since": "logicalType: date, physicalType: string",
    "parts": "logicalType: array, logicalTypeOptions: {maxItems: 2, uniqueItems: true},"
    " items: {logicalType: string}",
    "place": "logicalType: object, logicalTypeOptions: {required: [zip]},"
    " properties: [{name: zip, logicalType: string, required: true}, {name: town, logicalType: string}]",
    "rates": "logicalType: map, map: {key: {logicalType: string}, value: {logicalType: integer}}",
    "picture": "logicalType: vector, logicalTypeOptions: {dimensions: 2, elementType: float32}",
    "boss": "logicalType: integer, physicalType: bigint, relationships: [{to: past.id}]",
    "gone": "logicalType: string, required: true",
    "day": "logicalType: date, partitioned: true, partitionKeyPosition: 1, primaryKey: true,"
    " primaryKeyPosition: 2",
}


def contract(path: Path, draw: random.Random | None = None, form: str = "parquet") -> str:
    """A contract with every rule, or with those that are drawn."""

    def some(rules: list[str]) -> str:
        bound = str(draw.randint(0, 8)) if draw else "3"
        kept = [rule.replace(": B", f": {bound}") for rule in rules if draw is None or draw.random() < 0.5]
        return f", quality: [{', '.join(kept)}]" if kept else ""

    lines = [
        "  - name: past",
        *(f"    {rules.removeprefix(', ')}" for rules in [some(RULES[""])] if rules),
        "    customProperties: [{property: dataset, vendor: dq, value: {additionalColumns: forbid}}]",
        "    properties:",
    ]
    for name, rest in PROPERTIES.items():
        if draw is None or name == "day" or draw.random() < 0.7:
            lines.append(f"      - {{name: {name}, {rest}{some(RULES.get(name, []))}}}")
    sla = SLA if draw is None or "name: at," in "".join(lines) else ""
    return HEAD.format(path=path, format=form) + "\n".join(lines) + "\n" + sla


def rows(draw: random.Random, count: int, day: int) -> dict[str, list[object]]:
    """Rows of a day, some of which break something."""

    def of(*values: object) -> list[object]:
        return [draw.choice(values) for _ in range(count)]

    moment = dt.datetime(2026, 5, 1, 6, tzinfo=dt.UTC) + dt.timedelta(days=day)
    ids = [draw.randint(0, 99) if draw.random() < 0.2 else 10 * day + at for at in range(count)]
    return {
        "id": ids,
        "code": [f"c{draw.randint(0, 9)}" if draw.random() < 0.3 else f"c{at % 10}" for at in range(count)],
        "state": of("open", "paid", "paid", "OPEN" if day == 3 else "open", None if day == 2 else "open"),
        "amount": of(0.5, 1.25, -0.0, 3.75, float("nan") if day == 4 else 2.5, -2.5 if day == 1 else 8.0),
        "paid": of(Decimal("1.50"), Decimal("2.00"), Decimal("9.99") if day == 2 else None),
        "number": of(1, 5, None, 12 if day == 5 else 8),
        "card": of("79927398713", "79927398710" if day % 2 else None),
        "at": of(moment, moment - dt.timedelta(hours=9), None),
        "since": of("2026-05-01", "yesterday" if day == 3 else "2026-01-01", None),
        "parts": of([], ["a"], ["a", "b"], ["a", "a"] if day == 1 else None),
        "place": of({"zip": "1", "town": "x"}, None, {"zip": None if day == 6 else "2", "town": None}),
        "rates": of([("a", 1)], [], None),
        "picture": of([1.0, 2.0], [1.0] if day == 2 else None),
        "boss": [
            None if draw.random() < 0.3 else draw.choice([*ids, 500 if day == 5 else ids[0]]) for _ in ids
        ],
        "more": of("m", None),
    }


def deliver(folder: Path, told: dict[str, list[object]], **other: pa.DataType) -> Path:
    """A file of a partition. `other` are other types of columns; None: the column is not there."""
    types = {name: kind for name, kind in {**TYPES, **other}.items() if kind is not None}
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"part-{len(list(folder.iterdir()))}.parquet"
    columns = [pa.array(told[name], kind, from_pandas=False) for name, kind in types.items()]
    pq.write_table(pa.table(columns, names=list(types)), file)
    return file

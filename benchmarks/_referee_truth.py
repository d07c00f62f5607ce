"""Verdicts of a contract on rows, in plain Python: by the standard and the pages of the checks, without dq.

A document is what its YAML gives, a row a dict; a clause is named by its path. The answer is a status and a
number: the rows that break a clause, what a rule counts, or its percentage.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

Row = dict[str, Any]
Json = dict[str, Any]
Truth = tuple[str, float | None]


def truth(document: Json, columns: Sequence[str], rows: Sequence[Row], now: dt.datetime) -> dict[str, Truth]:
    """Every clause of the first object, by its path."""
    schema_object = document["schema"][0]
    path = "schema[0]"
    promised = [prop["name"] for prop in schema_object["properties"]]
    extra = [name for name in columns if name not in promised]
    results: dict[str, Truth] = {
        f"{path}.additionalColumns": ("fail" if extra else "pass", float(len(extra)))
    }
    keys = [prop["name"] for prop in schema_object["properties"] if prop.get("primaryKey")]
    if keys:
        results[f"{path}.primaryKey"] = broken(repeated(rows, keys))
    for at, rule in enumerate(schema_object.get("quality", [])):
        results[f"{path}.quality[{at}]"] = of_object(rule, rows)
    for at, prop in enumerate(schema_object["properties"]):
        results |= dict(of_property(f"{path}.properties[{at}]", prop, rows))
    for at, level in enumerate(document.get("slaProperties", [])):
        results[f"slaProperties[{at}]"] = fresh(level, rows, now)
    return results


def of_property(path: str, prop: Json, rows: Sequence[Row]) -> Iterator[tuple[str, Truth]]:
    name = prop["name"]
    values = [row[name] for row in rows]
    present = [value for value in values if value is not None]
    yield path, ("pass", None)
    gaps = len(values) - len(present)
    for key in ("required", "primaryKey"):
        if prop.get(key):
            yield f"{path}.{key}", broken(gaps)
    if prop.get("unique"):
        yield f"{path}.unique", broken(repeated(rows, [name]))
    if prop.get("enum"):
        allowed = [entry["value"] for entry in prop["enum"]]
        yield f"{path}.enum", broken(sum(not among(value, allowed) for value in present))
    for key, bound in prop.get("logicalTypeOptions", {}).items():
        breaks = BREAKS[key]
        yield f"{path}.logicalTypeOptions.{key}", broken(sum(breaks(value, bound) for value in present))
    for at, rule in enumerate(prop.get("quality", [])):
        yield f"{path}.quality[{at}]", of_column(rule, values, rows, name)


def broken(count: int) -> Truth:
    return ("fail" if count else "pass"), float(count)


def number(value: Any) -> Fraction:
    """A number of the contract as it is written, one of the data as it is."""
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def placed(value: Any, bound: Any) -> int:
    """-1, 0 or 1 as the value lies below, on or above the bound of the contract."""
    if isinstance(value, dt.datetime):
        bound = dt.datetime.fromisoformat(bound)
    elif isinstance(value, dt.date):
        bound = dt.date.fromisoformat(bound)
    elif isinstance(value, float):
        bound = float(bound)
    else:
        value, bound = number(value), number(bound)
    return (value > bound) - (value < bound)


def no_number(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def stepped(value: Any, step: Any) -> bool:
    return number(value) % number(step) != 0


BREAKS: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": lambda value, bound: no_number(value) or placed(value, bound) < 0,
    "maximum": lambda value, bound: no_number(value) or placed(value, bound) > 0,
    "exclusiveMinimum": lambda value, bound: no_number(value) or placed(value, bound) <= 0,
    "exclusiveMaximum": lambda value, bound: no_number(value) or placed(value, bound) >= 0,
    "multipleOf": stepped,
    "minLength": lambda value, bound: len(value) < bound,
    "maxLength": lambda value, bound: len(value) > bound,
    "pattern": lambda value, bound: re.search(bound, value) is None,
}


def among(value: Any, allowed: Sequence[Any]) -> bool:
    """Return True if a value of the data is one of the contract's."""
    if no_number(value):
        return False
    if isinstance(value, (str, bool)):
        return any(type(item) is type(value) and item == value for item in allowed)
    return any(placed(value, item) == 0 for item in allowed if item is not None)


def same(value: Any) -> Any:
    """Equal for values that are one key: NaN is NaN, and zero has no sign."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value.normalize() if isinstance(value, Decimal) else value


def repeated(rows: Sequence[Row], names: Sequence[str]) -> int:
    """The rows beyond the first of each key; one with NULL in its key repeats nothing."""
    keys = [tuple(same(row[name]) for name in names) for row in rows]
    complete_keys = [key for key in keys if None not in key]
    return len(complete_keys) - len(set(complete_keys))


def of_object(rule: Json, rows: Sequence[Row]) -> Truth:
    if rule.get("type") == "sql":
        column, _, bound = rule["_above"].partition(" > ")
        above = sum(row[column] is not None and row[column] > int(bound) for row in rows)
        return judged(rule, above, len(rows))
    if rule["metric"] == "rowCount":
        return judged(rule, len(rows), len(rows))
    return judged(rule, repeated(rows, rule["arguments"]["properties"]), len(rows))


def of_column(rule: Json, values: Sequence[Any], rows: Sequence[Row], name: str) -> Truth:
    arguments = rule.get("arguments", {})
    match rule["metric"]:
        case "nullValues":
            counted = values.count(None)
        case "missingValues":
            counted = sum(value is None or among(value, arguments["missingValues"]) for value in values)
        case "duplicateValues":
            counted = repeated(rows, [name])
        case _:
            present = [value for value in values if value is not None]
            if "validValues" in arguments:
                counted = sum(not among(value, arguments["validValues"]) for value in present)
            else:
                counted = sum(re.search(arguments["pattern"], value) is None for value in present)
    return judged(rule, counted, len(values))


HOLDS: dict[str, Callable[[Fraction, Any], bool]] = {
    "mustBe": lambda measured, to: measured == number(to),
    "mustNotBe": lambda measured, to: measured != number(to),
    "mustBeGreaterThan": lambda measured, to: measured > number(to),
    "mustBeGreaterOrEqualTo": lambda measured, to: measured >= number(to),
    "mustBeLessThan": lambda measured, to: measured < number(to),
    "mustBeLessOrEqualTo": lambda measured, to: measured <= number(to),
    "mustBeBetween": lambda measured, to: number(to[0]) <= measured <= number(to[1]),
    "mustNotBeBetween": lambda measured, to: not number(to[0]) <= measured <= number(to[1]),
}


def judged(rule: Json, counted: int, total: int) -> Truth:
    """Verdict of a count, or of its percentage of all rows; of no rows there is none."""
    percent = rule.get("unit") == "percent"
    if percent and not total:
        return "skipped", None
    measured = Fraction(100 * counted, total) if percent else Fraction(counted)
    operator = next(key for key in rule if key in HOLDS)
    return ("pass" if HOLDS[operator](measured, rule[operator]) else "fail"), float(measured)


def fresh(level: Json, rows: Sequence[Row], now: dt.datetime) -> Truth:
    """Verdict on the newest instant that is not in the future; no number is compared."""
    name = level["element"].partition(".")[2]
    past = [row[name] for row in rows if row[name] is not None and row[name] <= now]
    young = bool(past) and now - max(past) <= dt.timedelta(hours=level["value"])
    return ("pass" if young else "fail"), None

"""From a quality rule with a metric of dq's own engine to what it asks, or to all that is wrong with it."""

from __future__ import annotations

from dataclasses import replace

from dq.contracts.measures.arguments import (
    Holder,
    Known,
    is_classified,
    operands,
    operators,
    quantile_share,
    sequence_start,
    single_properties,
    within,
)
from dq.contracts.measures.table import (
    AGAINST,
    BAND,
    BY_TYPES,
    COMPARISONS,
    DIRECTIONS,
    MEASURES,
    MOST_BY,
    SHARED,
    UNITS,
    MeasureKind,
)
from dq.contracts.measures.terms import Against, MeasureFault, Measurement, Way
from dq.contracts.model import OPERATORS, Property, Quality, SchemaObject
from dq.contracts.shared.source_map import plain
from dq.contracts.shared.spelling import suggestion

ENGINE = "dq"
_KEYS = ("check", "arguments", "unit", *OPERATORS)
# Logical types that are compared with each other.
_FAMILIES = {"integer": "number", "number": "number"}


def measure_named(quality: Quality) -> MeasureKind | None:
    """The metric that a rule of the engine dq names; None for every other rule."""
    if quality.type != "custom" or quality.engine != ENGINE:
        return None
    written = plain(quality.implementation)
    name = written.strip() if isinstance(written, str) else None
    if isinstance(written, dict) and isinstance(written.get("check"), str):
        name = str(written["check"])
    return MEASURES.get(name) if name is not None else None


def read(
    kind: MeasureKind, one: SchemaObject, prop: Property | None, quality: Quality
) -> Measurement | tuple[MeasureFault, ...]:
    """What a rule on an object, or on one of its properties, asks; or every fault of it, in no order."""
    faults: list[MeasureFault] = []
    path = quality.path("implementation")
    rule = Holder(quality.implementation, quality.at("implementation"), path, faults)
    rule.unknown(_KEYS, "the implementation")
    raw = rule.written.get("arguments")
    given = Holder(raw, rule.at("arguments"), f"{path}.arguments", faults)
    if raw is not None and not isinstance(raw, dict):
        rule.wrong("arguments", "its arguments are no mapping.", "Write: arguments: {by: [country]}")
    given.unknown((*kind.own, *SHARED), kind.name)
    known = single_properties(one)
    way = next((way for way, holders in known.values() if holders[-1] is prop), None)
    made = Measurement(kind, _columns(kind, rule, given, known, prop, way), _by(given, known, one))
    made = replace(made, against=_against(given))
    made = _own(kind, made, given, known, prop)
    made = _bounded(made, rule, quality)
    _typed(kind, made, rule, known)
    _told(made, given, known)
    return made if not faults else tuple(faults)


def _columns(
    kind: MeasureKind, rule: Holder, given: Holder, known: Known, prop: Property | None, way: Way | None
) -> tuple[Way, ...]:
    """The columns that are measured: that of the property, or those that a rule on the object names."""
    if prop is not None:
        if way is None:
            said = "a value inside of an array or map is no column of its own."
            rule.wrong("", said, "Move the rule to a column.")
        if "properties" in given.written:
            mend = "Leave it out, or move the rule to the object."
            given.wrong("properties", "a rule on a property measures that property.", mend)
        other = _named(given, "property", known) if kind.name == "compareColumns" else ()
        return (*([way] if way else ()), *other)
    if kind.columns == 0:
        rule.wrong("", f"{kind.name} measures one column.", "Move the rule to the property that it is about.")
        return ()
    if "property" in given.written:
        given.wrong("property", "a rule on an object names its columns in properties.", "Write properties.")
    found = _named(given, "properties", known)
    if kind.columns and len(found) not in (0, kind.columns):
        said = f"{kind.name} takes {kind.columns} columns, not {len(found)}."
        given.wrong("properties", said, "Write two: properties: [ordered_on, shipped_on]")
    return found


def _named(given: Holder, key: str, known: Known) -> tuple[Way, ...]:
    """The columns that an argument names: a name, or a list of names."""
    value = given.get(key)
    single = isinstance(value, str)
    listed = [value] if single else value
    if not isinstance(listed, list) or not listed:
        if key in given.written:
            given.wrong(key, f"{key} is {value!r}.", f"Write names of properties: {key}: [country]")
        else:
            given.missing(key, f"Add to the arguments: {key}: …")
        return ()
    found: list[Way] = []
    for index, name in enumerate(listed):
        at = None if single else index
        if not isinstance(name, str) or name not in known:
            mend = suggestion(name, known, "Write a property of the object.")
            given.wrong(key, f"{name!r} is no column of the object.", mend, at)
        elif known[name][0] in found:
            given.wrong(key, f"{name!r} stands twice.", "Write it once.", at)
        else:
            found.append(known[name][0])
    return tuple(found)


def _by(given: Holder, known: Known, one: SchemaObject) -> tuple[Way, ...]:
    if "by" not in given.written:
        return ()
    found = _named(given, "by", known)
    if len(found) > MOST_BY:
        given.wrong("by", f"by has {len(found)} columns.", f"Write at most {MOST_BY}.")
    holders = dict(known.values())
    written = given.get("by")
    listed = written if isinstance(written, list) else []
    ways = [known[name][0] if isinstance(name, str) and name in known else None for name in listed]
    for way in found:
        at = ways.index(way) if way in ways else None
        name, prop = ".".join(way), holders[way][-1]
        if is_classified(holders[way]):
            said = f"{name!r} is classified, and its values would be shown as names of groups."
            given.wrong("by", said, "Group by a column that may be shown.", at)
        elif prop.logical_type not in (None, *BY_TYPES):
            said = f"{name!r} is of the type {prop.logical_type}, which makes no groups."
            given.wrong("by", said, f"Group by a column of {one.name} that is {', '.join(BY_TYPES)}.", at)
    return found


def _against(given: Holder) -> Against | None:
    value = given.get("against")
    band = [key for key in (*BAND, "direction") if key in given.written]
    if "against" not in given.written:
        for key in band:
            given.wrong(key, f"{key} is for a comparison with earlier runs.", "Add: against: usual")
        return None
    if not isinstance(value, str) or value not in AGAINST:
        mend = suggestion(value, AGAINST, f"Write one of {', '.join(AGAINST)}.")
        given.wrong("against", f"against is {value!r}.", mend)
        return None
    if value != "usual":
        for key in band:
            given.wrong(key, f"{key} goes with against: usual.", f"Leave it out, or against: {value}.")
        return Against(value)
    read = {
        key: within(given, key, least, most, default, whole=key in ("runs", "minimum"))
        for key, (default, least, most) in BAND.items()
    }
    direction = given.get("direction", "both")
    if direction not in DIRECTIONS:
        given.wrong("direction", f"direction is {direction!r}.", f"Write one of {', '.join(DIRECTIONS)}.")
        direction = "both"
    if read["minimum"] > read["runs"]:
        said = f"minimum {read['minimum']} is more than runs {read['runs']}: it would never end learning."
        given.wrong("minimum", said, "Write a smaller minimum.")
    slack = read["slack"] / 100
    runs, minimum = int(read["runs"]), int(read["minimum"])
    return Against(value, runs, minimum, read["deviations"], slack, str(direction))


def _own(
    kind: MeasureKind, made: Measurement, given: Holder, known: Known, prop: Property | None
) -> Measurement:
    """The arguments that only this metric has."""
    if kind.name == "quantile":
        return replace(made, share=quantile_share(given))
    if kind.name == "sequenceGaps":
        dated = prop is not None and prop.logical_type == "date"
        step = int(within(given, "step", 1, 10**9, 1, whole=True))
        return replace(made, step=step, start=sequence_start(given, dated), dated=dated)
    if kind.name != "compareColumns":
        return made
    written = given.get("operator")
    if written not in COMPARISONS:
        if "operator" in given.written:
            given.wrong("operator", f"operator is {written!r}.", f"Write one of {' '.join(COMPARISONS)}.")
        else:
            given.missing("operator", 'Add to the arguments: operator: "<="')
        return made
    families = [_family(way, known) for way in made.columns]
    told = {family for family in families if family}
    if len(told) > 1:
        shown = " and ".join(sorted(told))
        given.wrong("", f"a column of {shown} are not compared.", "Name two columns of one type.")
    return replace(made, comparison=COMPARISONS[str(written)], family=next(iter(told), ""))


def _family(way: Way, known: Known) -> str:
    logical = known[".".join(way)][1][-1].logical_type or ""
    return _FAMILIES.get(logical, logical)


def _bounded(made: Measurement, rule: Holder, quality: Quality) -> Measurement:
    """With its operator and unit: in the implementation, or on the rule."""
    own = operators(rule)
    found = own + quality.operators()
    operands(rule, found)
    usual = made.against is not None and made.against.mode == "usual"
    if found and usual:
        rule.wrong(found[0][0], "what is usual is told by earlier runs.", "Leave the operator out.")
    elif not found and not usual and made.kind.name == "compareColumns" and made.against is None:
        found = [("mustBe", 0)]
    elif not found and not usual:
        rule.wrong("", f"nothing bounds the number of {made.kind.name}.", "Add one: mustBeGreaterThan: 0")
    written = rule.get("unit", quality.unit)
    unit = "" if written is None else UNITS.get(str(written).strip().lower(), "?")
    units = ("percent",) if made.against else made.kind.units
    if usual and unit:
        rule.wrong("unit", "what is usual has the unit of the number.", "Leave the unit out.")
    elif unit and unit not in units:
        takes = f"It takes {' or '.join(units)}." if units else "Leave it out."
        if not units:
            takes += " A change against an earlier run can be in percent: against: previous"
        rule.wrong("unit", f"{made.kind.name} has no unit {written!r}.", takes)
    return replace(made, bounds=tuple(found), unit=unit)


def _typed(kind: MeasureKind, made: Measurement, rule: Holder, known: Known) -> None:
    for way in made.columns:
        logical = known[".".join(way)][1][-1].logical_type
        if kind.types and logical is not None and logical not in kind.types:
            listed = " and ".join(kind.types)
            said = f"{'.'.join(way)!r} is of the type {logical}, and {kind.name} is of {listed}."
            rule.wrong("check", said, "Move the rule to such a column.")


def _told(made: Measurement, given: Holder, known: Known) -> None:
    """Values that may not be shown are not kept, so that nothing can be compared with them."""
    for way in made.columns:
        if made.against and is_classified(known[".".join(way)][1]):
            said = f"{'.'.join(way)!r} is classified, so that no number of it is kept to compare with."
            given.wrong("against", said, "Write a fixed bound.")

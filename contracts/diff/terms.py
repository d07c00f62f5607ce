"""Service levels and quality rules in normal form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dq.contracts import extension
from dq.contracts.diff import level, schedule_compare
from dq.contracts.diff.canonical import canonical, fields, unordered, zone
from dq.contracts.diff.element import ElementKind, FlatElement, Value
from dq.contracts.diff.reading import element, show, value, values
from dq.contracts.diff.threshold import (
    metric,
    of_engine,
    operators_of,
    strict,
    threshold,
    unfolded,
)
from dq.contracts.extension import Delivery
from dq.contracts.model import Contract, Quality, SlaProperty
from dq.contracts.node import Node
from dq.contracts.shared.source_map import PLACE

# What of the delivery terms says when a delivery is due is compared with the cron, by its fire times.
_TIMING = frozenset({"timezone", "dialect", "dst", "calendar"})
_DURATIONS = frozenset({"grace", "window", "giveUpAfter"})


def slas(contract: Contract) -> Iterator[FlatElement]:
    """The service levels of a contract."""
    for sla in contract.sla_properties:
        name = level.name_of(sla.property)
        about = _element(contract, sla)
        found = values(sla, ElementKind.SLA)
        if sla.value is not None:
            shown = f"{sla.value} {sla.unit}" if sla.unit else sla.value
            found["level"] = value(sla, "value", level.level(sla.property, sla.value, sla.unit), shown)
        if found.get("scheduler", Value("", "", sla.at())).normal == "cron":
            del found["scheduler"]
        delivery, _ = extension.delivery(contract, sla)
        if sla.schedule is not None:
            timing = schedule_compare.timing(sla.schedule, _in_zone(delivery))
            shown = f"{sla.schedule} ({delivery.timezone})" if delivery else sla.schedule
            found["schedule"] = value(sla, "schedule", timing, shown)
        if about:
            found["element"] = value(sla, "element", about)
        if delivery is not None:
            found["delivery"] = Value(True, "delivery terms", delivery.at(), delivery.path())
            found.update(terms(delivery, "delivery", skip=_TIMING))
        keys = (
            ("id", sla.id or ""),
            ("full", f"{name}|{about}|{sla.driver or ''}"),
            ("element", f"{name}|{about}"),
            ("name", name),
        )
        label = sla.id or (f"{name}({about})" if sla.element else name)
        yield element(sla, ElementKind.SLA, keys, name, f"sla.{label}", found)


def _in_zone(delivery: Delivery | None) -> Delivery | None:
    if delivery is None or zone(delivery.timezone) == delivery.timezone:
        return delivery
    return delivery.model_copy(update={"timezone": "UTC"})


def _element(contract: Contract, sla: SlaProperty) -> str:
    """What the entry speaks about, with the object's name in front where there is only one."""
    named = sla.element or contract.sla_default_element or ""
    if len(contract.objects) != 1:
        return ",".join(sorted(part.strip() for part in named.split(",")))
    one = contract.objects[0]
    parts = [part.strip() for part in named.split(",")] if named else [one.name]
    own = (one.name, one.physical_name)
    full = [part if part in own or part.split(".")[0] in own else f"{one.name}.{part}" for part in parts]
    return ",".join(sorted(full))


def terms(node: Node, prefix: str, skip: frozenset[str] = frozenset()) -> Iterator[tuple[str, Value]]:
    """The values of one of our extensions that differ from their defaults."""
    for key, name, _ in fields(type(node)):
        raw = getattr(node, name)
        if key in skip or raw is None or raw == type(node).model_fields[name].default:
            continue
        yield f"{prefix}.{key}", value(node, key, _term(key, raw), show(raw))


def _term(key: str, raw: Any) -> object:
    if key in _DURATIONS and isinstance(raw, str):
        return level.length(raw) or level.PromisedLevel("text", None, raw)
    if key == "objective":
        return level.level("objective", raw, None)
    return canonical(raw)


def rules(listed: list[Quality], holder: str, column: str) -> Iterator[FlatElement]:
    """The quality rules of one object or property."""
    for rule in listed:
        found = values(rule, ElementKind.QUALITY)
        name = metric(rule)
        allowed = valid_values(rule)
        promise = _promise(rule)
        if promise:
            # In a rule of type text, the description is the rule.
            del found["description"]
            found["text"] = value(rule, "description", promise, str(rule.description))
        if name:
            key = "metric" if rule.metric else "rule" if rule.rule else "implementation"
            found["metric"] = value(rule, key, name)
        arguments = _arguments(rule)
        if arguments:
            key = "arguments" if rule.arguments else "implementation"
            found["arguments"] = value(rule, key, canonical(arguments), show(arguments))
        if allowed is not None and not told_by_allowed_values(rule):
            found["validValues"] = value(rule, _values_key(rule), *allowed)
        bounds = threshold(rule)
        if bounds is not None:
            operators, unit = operators_of(rule)
            shown = ", ".join(f"{key} {raw}" for key, raw in operators)
            shown += f" {unit}" if unit else ""
            at = operators[0][0] if operators[0][0] in rule.place.keys else "implementation"
            found["threshold"] = value(rule, at, bounds, shown)
        if name and isinstance(rule.implementation, dict | str) and not rule.metric and not rule.rule:
            # What the implementation says is told by its parts.
            found["implementation"] = value(rule, "implementation", canonical(unfolded(rule)), name)
        terms_, _ = extension.scope(rule)
        found.update(terms(terms_, "scope"))
        # Rules of two engines are two promises too.
        subject = f"{rule.type}|{name or rule.engine or ''}"
        content = canonical({key: one.normal for key, one in found.items() if key != "threshold"})
        keys = (
            ("id", rule.id or ""),
            ("name", rule.name or ""),
            ("whole", repr((content, bounds))),
            ("content", repr(content)),
            ("metric", f"{subject}|{rule.query or promise}"),
            # Two rules with other texts are two promises, although they are of one type.
            ("type", "" if promise else subject),
        )
        label = rule.id or rule.name or name or rule.type
        path = f"{holder}.quality.{label}"
        quiet = told_by_allowed_values(rule)
        yield element(rule, ElementKind.QUALITY, keys, name, path, found, object_name=column, quiet=quiet)


def _promise(rule: Quality) -> str:
    """Return what a rule of type text promises, without regard to case and white space."""
    return " ".join((rule.description or "").casefold().split()) if rule.type == "text" else ""


def _values_key(rule: Quality) -> str:
    return "validValues" if rule.valid_values is not None else "arguments"


def _arguments(rule: Quality) -> dict[str, object]:
    raw = rule.arguments if isinstance(rule.arguments, dict) else of_engine(rule).get("arguments")
    raw = raw if isinstance(raw, dict) else {}
    return {key: inner for key, inner in raw.items() if key not in (PLACE, "validValues")}


def valid_values(rule: Quality) -> tuple[object, object] | None:
    """The values that a rule lists as valid, without order and as they stand; None without a list."""
    listed = rule.valid_values
    if listed is None and isinstance(rule.arguments, dict):
        listed = rule.arguments.get("validValues")
    return (unordered(listed), show(listed)) if isinstance(listed, list) else None


def told_by_allowed_values(rule: Quality) -> bool:
    """Whether the rule says nothing but which values are allowed, as `enum` would."""
    return (
        valid_values(rule) is not None
        and metric(rule) in ("", "invalidValues")
        and strict(rule)
        and not _arguments(rule)
    )

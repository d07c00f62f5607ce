"""Rules with a metric of dq's own engine for the examples of checks, and examples that many of them share."""

from __future__ import annotations

from decimal import Decimal

from fakes.examples import Example


def rule(check: str, arguments: str, rest: str, kind: str = "number", more: str = "") -> str:
    """The contract of an example: a rule on the property `v`, beside a property `g` that may make groups."""
    given = f", arguments: {{{arguments}}}" if arguments else ""
    implementation = f"{{check: {check}{given}{', ' if rest else ''}{rest}}}"
    return (
        f"properties: [{{name: v, logicalType: {kind}, quality:"
        f" [{{type: custom, engine: dq, implementation: {implementation}{more}}}]}},"
        " {name: g, logicalType: string}]"
    )


NAN = float("nan")
_TWO = "v double, g string"
_WHERE = ", customProperties: [{property: scope, vendor: dq, value: {where: \"g = 'a'\"}}]"


def of_numbers(check: str, own: str = "") -> tuple[Example, ...]:
    """What is the same for every metric of numbers."""
    more = f"{own}, " if own else ""
    by = rule(check, f"{more}by: [g]", "mustBeLessThan: 9")
    rows = ((1.0, "a"), (1.0, "a"), (10.0, None), (10.0, None), (None, "b"))
    ends = {"sum": ("fail", "1 of 3 groups"), "stddev": ("pass", "2 of 3 groups")}
    end, seen = ends.get(check, ("fail", "1 of 3 groups"))
    scoped = ((1.0, "a"), (2.0, "a"), (90.0, "b"), (NAN, "b"))
    return (
        Example("NaN is no number", rule(check, own, "mustBe: 1"), _TWO, ((NAN, "a"), (1.0, "a")), "error"),
        Example("an argument that is none", rule(check, f"{more}bye: g", "mustBe: 1"), _TWO, (), "error"),
        Example("no history", rule(check, f"{more}against: previous", "mustBe: 0"), _TWO, rows, "skipped"),
        Example("a scope", rule(check, own, "mustBeLessThan: 4", more=_WHERE), _TWO, scoped, "pass"),
        Example("groups, and NULL is one", by, _TWO, rows, end, (seen,)),
    )


DEC = Decimal


def pair(check: str, rest: str, names: str = "v, g") -> str:
    """The contract of an example: a rule on the object, about two columns."""
    return (
        "{properties: [{name: v, logicalType: string}, {name: g, logicalType: string}], quality:"
        f" [{{type: custom, engine: dq, implementation: {{check: {check},"
        f" arguments: {{properties: [{names}]}}, {rest}}}}}]}}"
    )


TEXTS = "v string, g string"
# Three of five rows have a value, two of them the same one.
SOME = (("x", "a"), ("x", None), ("y", "a"), (None, "b"), (None, "a"))


def of_keys(check: str) -> tuple[Example, ...]:
    """What is the same for every metric of keys."""
    wrong = pair(check, "mustBeGreaterOrEqualTo: 0", "v, x")
    return (Example("a name that is none", wrong, TEXTS, SOME, "error"),)

r"""A pattern is not one that ECMA-262 and Java read alike, or some text keeps it busy for hours.

Why: ODCS says that patterns are those of ECMA-262, and Spark matches with Java's. What only one of them
knows fails at night on the cluster, or means something else there. And a pattern that can match one text in
many ways, such as `(\w+\s?)*$`, tries them all on a text that does not match. What is no pattern to anybody
is an error, the rest a warning.

Bad:
    schema:
      - name: orders
        properties:
          - name: order_id
            logicalType: string
            logicalTypeOptions: {pattern: "^O-([0-9]{6}$"}

Good:
    schema:
      - name: orders
        properties:
          - name: order_id
            logicalType: string
            logicalTypeOptions: {pattern: "^O-[0-9]{6}$"}

Mend: Correct the position that is named. Escape signs that are meant as themselves. Let every turn of a
repetition begin or end with a sign that nothing else in it matches, as in `^[a-z]+(-[a-z]+)*$`, and let
neighbours match different signs: `[^@]+@[^@]+` instead of `.+@.+`.
"""

import re
import warnings

from dq.contracts import pattern
from dq.contracts.model import PLACE, Place
from dq.validators.rule import Context, Contract, Fault, Faults, Rule, Severity


def check(_contract: Contract, context: Context) -> Faults:
    for prop in context.walk.properties:
        options = prop.logical_type_options
        if options is not None and options.pattern is not None:
            yield from _judged(options.place, options.pattern)
    for quality in context.walk.qualities:
        if "invalidValues" not in (quality.metric, quality.rule):
            continue
        arguments = quality.arguments or {}
        written, place = arguments.get("pattern"), arguments.get(PLACE)
        if isinstance(written, str) and isinstance(place, Place):
            yield from _judged(place, written)


def _judged(place: Place, written: str) -> Faults:
    wrong = pattern.refused(written)
    if wrong is not None:
        message = f"pattern {_short(written)!r}: {wrong.message}."
        # What no reader understands is not ECMA-262, as the standard asks; the rest is only not run here.
        unread = wrong.code != "PATTERN_SYNTAX" or not _compiles(written)
        yield Fault(place.at("pattern"), message, wrong.mend, place.below("pattern"), doubt=not unread)


def _compiles(written: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(written)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:60] + "…"


RULE = Rule("pattern-invalid", Severity.ERROR, __doc__, check)

r"""Pattern that is invalid, differs between ECMA-262 and Java, or backtracks exponentially.

Why: ODCS patterns follow ECMA-262, but Spark matches with Java. Syntax that only one of them supports fails
at run time, or has another meaning. And a pattern that can match a string in many ways, e.g. `(\w+\s?)*$`,
tries all of them on a string that does not match. A pattern that is invalid everywhere is an error, the rest
are warnings.

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

How to fix: Correct the pattern at the position in the message, and escape literal special characters. Make
every iteration of a repetition begin or end with a character that nothing else in it matches, e.g.
`^[a-z]+(-[a-z]+)*$`, and let adjacent parts match different characters: `[^@]+@[^@]+` instead of `.+@.+`.
"""

import re
import warnings

from dq.contracts.model import SOURCE_MAP_KEY, SourceMap
from dq.validators.rule import Context, Contract, Rule, Severity, Violation, Violations


def check(_contract: Contract, context: Context) -> Violations:
    for prop in context.walk.properties:
        options = prop.logical_type_options
        if options is not None and options.pattern is not None:
            yield from _check_pattern(options.place, options.pattern)
    for quality in context.walk.qualities:
        if "invalidValues" not in (quality.metric, quality.rule):
            continue
        arguments = quality.arguments or {}
        pattern_text, place = arguments.get("pattern"), arguments.get(SOURCE_MAP_KEY)
        if isinstance(pattern_text, str) and isinstance(place, SourceMap):
            yield from _check_pattern(place, pattern_text)


def _check_pattern(place: SourceMap, text: str) -> Violations:
    # Imported here: most contracts have no patterns.
    from dq.contracts.pattern import pattern_problem

    wrong = pattern_problem(text)
    if wrong is not None:
        message = f"pattern {_short(text)!r}: {wrong.message}."
        # A pattern invalid everywhere violates the standard (ECMA-262); the rest is only unsupported here.
        unread = wrong.code != "PATTERN_SYNTAX" or not _compiles(text)
        yield Violation(
            place.locate("pattern"), message, wrong.hint, place.child_path("pattern"), doubt=not unread
        )


def _compiles(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:60] + "…"


RULE = Rule("pattern-invalid", Severity.ERROR, __doc__, check)

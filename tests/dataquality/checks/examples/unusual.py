"""Examples of the check `unusual`."""

from __future__ import annotations

import datetime as dt

from fakes.examples import Example
from fakes.unusual import daily

_NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
_SEVEN = (("a",),) * 7
_RULE = "quality: [{type: custom, engine: dq, implementation: IMPLEMENTATION}]"
_ROWS = _RULE.replace("IMPLEMENTATION", "unusual")
_OF_SHARE = _RULE.replace("IMPLEMENTATION", "{check: unusual, arguments: {of: [nullShare]}}")
_SHARE = f"properties: [{{name: v, logicalType: string, {_OF_SHARE}}}]"
_USUAL = (3, 4, 3, 2, 3, 3, 4) * 5


def _rows(**terms: str) -> str:
    arguments = ", ".join(f"{name}: {text}" for name, text in terms.items())
    return _RULE.replace("IMPLEMENTATION", f"{{check: unusual, arguments: {{{arguments}}}}}")


def _many(count: int) -> tuple[tuple[object, ...], ...]:
    return (("a",),) * count


EXAMPLES = (
    Example("as usual", _ROWS, "v string", (("a",), (None,), ("a",)), "pass", (), "", _NOW,
            daily(_ROWS, _NOW, rowCount=_USUAL)),
    Example("far more", _ROWS, "v string", _many(90), "fail", (), "", _NOW,
            daily(_ROWS, _NOW, rowCount=_USUAL)),
    Example("far more, as the rule expects", _rows(expected="[2026-11-21]"), "v string", _many(90), "pass",
            (), "", _NOW, daily(_ROWS, _NOW, rowCount=_USUAL)),
    Example("no rows", _ROWS, "v string", (), "fail", (), "", _NOW,
            daily(_ROWS, _NOW, rowCount=(90, 95, 100, 92, 97) * 8)),
    Example("no rows, as ever", _ROWS, "v string", (), "pass", (), "", _NOW,
            daily(_ROWS, _NOW, rowCount=(0,) * 40)),
    Example("learning", _ROWS, "v string", _SEVEN, "skipped",
            ("rowCount 7 not compared: learning (3 of 20 runs)",), "", _NOW,
            daily(_ROWS, _NOW, rowCount=(1, 1, 1))),
    Example("no history", _ROWS, "v string", _SEVEN, "skipped", (), "", _NOW),
    Example("no time", _ROWS, "v string", _SEVEN, "skipped", (), "", None,
            daily(_ROWS, _NOW, rowCount=_USUAL)),
    Example("few NULL values", _SHARE, "v string", _many(9), "pass", (), "", _NOW,
            daily(_SHARE, _NOW, nullShare=(0.0,) * 40)),
    Example("NULL alone", _SHARE, "v string", ((None,),) * 5, "fail", (), "", _NOW,
            daily(_SHARE, _NOW, nullShare=(0.0,) * 40)),
    Example("no rows for a share", _SHARE, "v string", (), "skipped", ("nullShare no rows for a ratio",), "",
            _NOW, daily(_SHARE, _NOW, nullShare=(0.0,) * 40)),
    Example("a mistaken argument", _rows(sigma="3"), "v string", _SEVEN, "error", (), "", _NOW),
    Example("a mistaken number", _rows(of="[rows]"), "v string", _SEVEN, "error", (), "", _NOW),
    Example("its former name", _RULE.replace("IMPLEMENTATION", "rowCountAnomaly"), "v string", _SEVEN,
            "error", (), "", _NOW),
    Example("of another engine", _ROWS.replace("engine: dq", "engine: soda"), "v string", _SEVEN, "", (),
            "", _NOW),
)  # fmt: skip

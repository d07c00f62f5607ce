"""Examples of the check `custom`."""

from __future__ import annotations

from fakes.examples import Example


def _rule(implementation: str) -> str:
    return (
        "properties: [{name: card, logicalType: string,"
        f" quality: [{{type: custom, engine: dq, implementation: {implementation}}}]}}]"
    )


_CARDS = (("4539578763621486",), ("79927398713",), (None,))
EXAMPLES = (
    Example("kept", _rule("luhn"), "card string", _CARDS, "pass", ("0 of 3 rows",)),
    Example("broken", _rule("luhn"), "card string", (*_CARDS, ("79927398710",)), "fail", ("1 of 4 rows",)),
    Example(
        "tolerated",
        _rule("{check: luhn, mustBeLessThan: 50, unit: percent}"),
        "card string",
        (*_CARDS, ("1-1",)),
        "pass",
        ("25 % (1 of 4 rows)",),
    ),
    Example("no rows", _rule("luhn"), "card string", (), "pass", ("0 of 0 rows",)),
    Example("a missing column", _rule("luhn"), "id string", (("1",),), "error"),
    Example("an unknown check", _rule("luna"), "card string", _CARDS, "error"),
    Example("a module", _rule("dq.dataquality.clauses.luhn:luhn"), "card string", _CARDS, "error"),
    Example(
        "arguments that it does not take",
        _rule("{check: luhn, arguments: {a: 1}}"),
        "card string",
        (),
        "error",
    ),
    Example("a key that is none", _rule("{check: luhn, must: 1}"), "card string", (), "error"),
    Example(
        "another engine", "quality: [{type: custom, engine: soda, implementation: x}]", "card string", (), ""
    ),
)

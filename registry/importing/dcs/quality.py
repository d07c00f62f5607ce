"""TABLE: rules of quality of a Data Contract Specification, whose words ODCS took over with few changes."""

from __future__ import annotations

from dq.registry.importing.documents import listed, mapped, shown, text

_METRICS = {
    "duplicateCount": "duplicateValues",
    "duplicatePercent": "duplicateValues",
    "uniqueCheck": "duplicateValues",
}
_RENAMED = {
    "mustBeGreaterThanOrEqualTo": "mustBeGreaterOrEqualTo",
    "mustBeLessThanOrEqualTo": "mustBeLessOrEqualTo",
}
_ALIKE = {
    "library": ("rule", "metric", "arguments", "validValues", "unit", "severity", "dimension"),
    "sql": ("query", "severity", "dimension"),
    "text": (),
    "custom": ("engine", "implementation", "severity", "dimension"),
}
_HOLES = {"{model}": "{object}", "{table}": "{object}", "{field}": "{property}", "{column}": "{property}"}
_OPERATORS = (
    "mustBe", "mustNotBe", "mustBeGreaterThan", "mustBeGreaterOrEqualTo", "mustBeLessThan",
    "mustBeLessOrEqualTo", "mustBeBetween", "mustNotBeBetween",
)  # fmt: skip


def rules(written: object, where: str, lost: list[str]) -> list[dict[str, object]]:
    """The rules in the words of ODCS; what has no word there goes to `lost`."""
    return [made for one in listed(written) if (made := _rule(mapped(one), where, lost))]


def _rule(one: dict[str, object], where: str, lost: list[str]) -> dict[str, object]:
    kind = text(one.get("type")) or "library"
    if kind not in _ALIKE:
        lost.append(f"{where}: quality {shown(one)}")
        return {}
    said = {_RENAMED.get(key, key): value for key, value in one.items()}
    made: dict[str, object] = {} if kind == "library" else {"type": kind}
    for key in ("name", "description", *_ALIKE[kind], *(_OPERATORS if kind in ("library", "sql") else ())):
        if said.get(key) is not None:
            made[key] = said[key]
    if isinstance(made.get("query"), str):
        for word, new in _HOLES.items():
            made["query"] = str(made["query"]).replace(word, new)
    if kind == "library" and "rule" in made and "metric" not in made:
        word = text(made.pop("rule"))
        made = {"metric": _METRICS.get(word, word), **made}
        if word.endswith("Percent"):
            made["unit"] = "percent"
    known = {"type", "rule", *made}
    lost += [f"{where}: quality {key} {shown(value)}" for key, value in said.items() if key not in known]
    return made

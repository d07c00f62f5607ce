"""The changes of contracts as Markdown: the two verdicts apart, each with its changes."""

from __future__ import annotations

from dq.contracts.escaping.markdown import code, escaped
from dq.validators.compat import Comparison, Verdict
from dq.validators.compat.classified_change import Aspect
from dq.validators.compat.findings import summary
from dq.validators.reports.markdown import table

_HEADER = ("verdict", "change", "where", "what")
_TITLES = {Aspect.COMPATIBILITY: "Compatibility", Aspect.VERSION_POLICY: "Version policy"}


def sections(found: Comparison) -> list[str]:
    """A heading and a table for each of the two questions; nothing where nothing changed."""
    made = []
    for part, verdict in found.verdicts.items():
        said = summary(found, part)
        made.append(f"### {_TITLES[part]}: {verdict}" + (f" ({escaped(said)})" if said else ""))
        rows = [
            (
                escaped(one.verdict.value),
                code(one.rule),
                code(one.path or one.contract),
                escaped(one.problem + (one.subscribed if one.verdict is not Verdict.OK else "")),
            )
            for one in found.of(part)
        ]
        if rows:
            made.append(table(_HEADER, rows))
    return made

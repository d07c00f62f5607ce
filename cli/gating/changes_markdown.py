"""The changes of contracts as Markdown: the two verdicts apart, each with its changes."""

from __future__ import annotations

from dq.contracts.escaping import markdown_code, markdown_text
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
        made.append(f"### {_TITLES[part]}: {verdict}" + (f" ({markdown_text(said)})" if said else ""))
        rows = [
            (
                markdown_text(one.verdict.value),
                markdown_code(one.rule),
                markdown_code(one.path or one.contract),
                markdown_text(one.problem + (one.subscribed if one.verdict is not Verdict.OK else "")),
            )
            for one in found.of(part)
        ]
        if rows:
            made.append(table(_HEADER, rows))
    return made

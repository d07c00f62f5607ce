"""dq rules"""

from __future__ import annotations

from dq.cli import show
from dq.validators import page
from dq.validators.lint import rules_of


def command(format: show.Format = show.FORMAT) -> None:
    """List the rules of the gate, and those of changes between two versions.

    Example: dq rules
    """
    from dq.validators.compat import RULES

    rules = rules_of()
    if format is show.Format.JSON:
        show.as_json(
            [
                {"rule": rule.id, "severity": rule.severity, "summary": page.parse(rule.page).summary}
                for rule in rules.values()
            ]
            + [{"rule": id_, "severity": None, "summary": rule.problem} for id_, rule in RULES.items()]
        )
        return
    rows = [(rule.id, rule.severity.value, page.parse(rule.page).summary) for rule in rules.values()]
    show.table(("rule", "severity", "what it finds"), rows)
    show.line()
    changes = [(id_, rule.problem) for id_, rule in RULES.items()]
    show.table(("change", "what it means"), changes)

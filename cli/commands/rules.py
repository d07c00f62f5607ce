"""dq rules"""

from __future__ import annotations

from dq.cli.terminal import output
from dq.dataquality.clauses.plugins import installed, package
from dq.validators import rule_page
from dq.validators.lint import rules_of


def command(format: output.Format = output.FORMAT) -> None:
    """List the rules of the gate, those of changes between two versions, and the custom checks.

    Example: dq rules
    """
    from dq.validators.compat import RULES

    rules = rules_of()
    customs = [(name, ", ".join(package(one) for one in claims)) for name, claims in installed().items()]
    if format is output.Format.JSON:
        output.as_json(
            [
                {"rule": rule.id, "severity": rule.severity, "summary": rule_page.parse(rule.page).summary}
                for rule in rules.values()
            ]
            + [{"rule": id_, "severity": None, "summary": rule.problem} for id_, rule in RULES.items()]
            + [{"rule": name, "severity": None, "summary": f"a check of {by}"} for name, by in customs]
        )
        return
    rows = [(rule.id, rule.severity.value, rule_page.parse(rule.page).summary) for rule in rules.values()]
    output.table(("rule", "severity", "what it finds"), rows)
    output.line()
    changes = [(id_, rule.problem) for id_, rule in RULES.items()]
    output.table(("change", "what it means"), changes)
    output.line()
    output.table(("custom check", "of the package"), customs)

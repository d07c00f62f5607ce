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
    from dq.validators.compat.classified_change import RULES

    rows = [(one.id, one.severity.value, rule_page.parse(one.page).summary) for one in rules_of().values()]
    changes = [(id_, rule.problem) for id_, rule in RULES.items()]
    customs = [(name, ", ".join(package(one) for one in claims)) for name, claims in installed().items()]
    if format is output.Format.JSON:
        others = [*changes, *((name, f"a check of {by}") for name, by in customs)]
        listed = [*rows, *((name, None, summary) for name, summary in others)]
        output.as_json([dict(zip(("rule", "severity", "summary"), one, strict=True)) for one in listed])
        return
    output.table(("rule", "severity", "what it finds"), rows)
    output.line()
    output.table(("change", "what it means"), changes)
    output.line()
    output.table(("custom check", "of the package"), customs)

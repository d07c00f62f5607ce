"""`dq.rules` and `dq.explain`: rule pages, and how each clause of a contract is evaluated."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path

from dq.contracts.model import Contract
from dq.contracts.outcome import Finding, UsageError
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import ClauseCoverage, clause_coverage, expected_clauses
from dq.dataquality.clauses.foreign_key import ContractSet
from dq.dataquality.clauses.plugins import installed, package
from dq.dataquality.clauses.plugins import load as load_check
from dq.dataquality.model.run_context import Unusable
from dq.operations.registry_files import load, with_registry
from dq.operations.runtime.messages import MESSAGES
from dq.validators import rule_page
from dq.validators.lint import load_rules
from dq.validators.rule_page import Explanation


@dataclass(frozen=True, slots=True)
class RulesOutcome:
    """Rules of the gate with severity and summary, changes with their meaning, checks with their packages."""

    rules: tuple[tuple[str, str, str], ...]
    changes: tuple[tuple[str, str], ...]
    checks: tuple[tuple[str, str], ...]

    def as_list(self) -> list[dict[str, str | None]]:
        """Return the output of `dq rules --format json` as JSON values."""
        changes = [*self.changes, *((name, f"a check of {packages}") for name, packages in self.checks)]
        rows = [*self.rules, *((name, None, summary) for name, summary in changes)]
        return [{"rule": name, "severity": severity, "summary": summary} for name, severity, summary in rows]


def rules() -> RulesOutcome:
    """Return the rules of the gate, the compatibility rules, and the custom checks, as `dq rules` does."""
    from dq.validators.compat.classified_change import RULES

    return RulesOutcome(
        tuple(
            (rule.id, rule.severity.value, rule_page.parse(rule.page).summary)
            for rule in load_rules().values()
        ),
        tuple((name, rule.problem) for name, rule in RULES.items()),
        tuple((name, _packages(name)) for name in installed()),
    )


@dataclass(frozen=True, slots=True)
class ExplainOutcome:
    """Page of a rule or check, or accounts of a contract's clauses; `findings` if it cannot be read."""

    page: Explanation | None = None
    accounts: tuple[ClauseCoverage, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code of `dq explain`: 3 a contract cannot be read."""
        return 3 if self.findings else 0

    def as_json(self) -> object:
        """Return the output of `dq explain --format json` as JSON values."""
        return [account.as_dict() for account in self.accounts] if self.page is None else self.page.as_dict()


def explain(what: Path | str) -> ExplainOutcome:
    """Explain a rule, a custom check, or the clauses of a contract, as `dq explain` does.

    `what` is the id of a rule, the name of a custom check, or the path of a contract's file or of a folder.

    Raises UsageError for anything else.
    """
    if not Path(what).exists():
        return ExplainOutcome(_page(str(what)))
    messages = MESSAGES.get()()
    loaded = load([Path(what)], messages.note)
    neighbours = with_registry(loaded.contracts, Path())
    all_accounts = [account for contract in loaded.contracts for account in _accounts(contract, neighbours)]
    return ExplainOutcome(None, tuple(all_accounts), tuple(loaded.findings), tuple(messages.notes))


def _page(name: str) -> Explanation:
    from dq.validators.compat.classified_change import RULES

    if name in RULES:
        return rule_page.explain_change(name, *RULES[name])
    if name not in load_rules() and name in installed():
        return _custom(name)
    return rule_page.explain_rule(load_rules(), name)


def _custom(name: str) -> Explanation:
    """Return the page of a plug-in check: the docstring of its function."""
    try:
        text = inspect.getdoc(load_check(name)) or "No description."
    except Unusable as error:
        raise UsageError(f"{error}.", "Fix or remove the package.") from error
    return Explanation(name, "custom check", text, facts=(f"a custom check of {_packages(name)}",))


def _packages(name: str) -> str:
    return ", ".join(package(claim) for claim in installed()[name])


def _accounts(contract: Contract, neighbours: ContractSet) -> list[ClauseCoverage]:
    return [
        account
        for schema_object in contract.objects
        for account in clause_coverage(
            contract, schema_object, expected_clauses(contract, schema_object, built_in(), neighbours)
        )
    ]

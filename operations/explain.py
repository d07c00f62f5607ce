"""`dq.rules` and `dq.explain`: what can be found in a contract, and what becomes of each of its clauses."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path

from dq.contracts.model import Contract
from dq.contracts.outcome import Finding, UsageError
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import Account, accounts, foreseen
from dq.dataquality.clauses.foreign_key import Neighbours
from dq.dataquality.clauses.plugins import installed, package
from dq.dataquality.clauses.plugins import load as load_check
from dq.dataquality.model.run_context import Unusable
from dq.operations.registry_files import load
from dq.operations.runtime.context import MESSAGES
from dq.validators import rule_page
from dq.validators.lint import rules_of
from dq.validators.rule_page import Explained


@dataclass(frozen=True, slots=True)
class RulesOutcome:
    """Rules of the gate with severity and summary, changes with their meaning, checks with their packages."""

    rules: tuple[tuple[str, str, str], ...]
    changes: tuple[tuple[str, str], ...]
    checks: tuple[tuple[str, str], ...]

    def as_list(self) -> list[dict[str, str | None]]:
        """What `dq rules --format json` prints."""
        changes = [*self.changes, *((name, f"a check of {packages}") for name, packages in self.checks)]
        rows = [*self.rules, *((name, None, summary) for name, summary in changes)]
        return [{"rule": name, "severity": severity, "summary": summary} for name, severity, summary in rows]


def rules() -> RulesOutcome:
    """The rules of the gate, those of changes between two versions, and the custom checks, as `dq rules`."""
    from dq.validators.compat.classified_change import RULES

    return RulesOutcome(
        tuple(
            (rule.id, rule.severity.value, rule_page.parse(rule.page).summary) for rule in rules_of().values()
        ),
        tuple((name, rule.problem) for name, rule in RULES.items()),
        tuple((name, _packages(name)) for name in installed()),
    )


@dataclass(frozen=True, slots=True)
class ExplainOutcome:
    """The page of a rule or check; of a contract the accounts of its clauses, and why it cannot be read."""

    page: Explained | None = None
    accounts: tuple[Account, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """As `dq explain` ends: 3 a contract cannot be read."""
        return 3 if self.findings else 0

    def as_json(self) -> object:
        """What `dq explain --format json` prints."""
        return [account.as_dict() for account in self.accounts] if self.page is None else self.page.as_dict()


def explain(what: Path | str) -> ExplainOutcome:
    """The page of a rule or a custom check, or what becomes of each clause of a contract, as `dq explain`.

    `what` is the id of a rule, the name of a custom check, or the path of a contract's file or of a folder.

    Raises UsageError for what is none of them.
    """
    if not Path(what).exists():
        return ExplainOutcome(_page(str(what)))
    messages = MESSAGES.get()()
    loaded = load([Path(what)], messages.note)
    neighbours = Neighbours.of(loaded.contracts)
    found = [account for contract in loaded.contracts for account in _accounts(contract, neighbours)]
    return ExplainOutcome(None, tuple(found), tuple(loaded.findings), tuple(messages.notes))


def _page(name: str) -> Explained:
    from dq.validators.compat.classified_change import RULES

    if name in RULES:
        return rule_page.explain_change(name, *RULES[name])
    if name not in rules_of() and name in installed():
        return _custom(name)
    return rule_page.of_rule(rules_of(), name)


def _custom(name: str) -> Explained:
    """The page of a check that a package registers: the docstring of its function."""
    try:
        text = inspect.getdoc(load_check(name)) or "It says nothing of itself."
    except Unusable as error:
        raise UsageError(f"{error}.", "Mend or remove the package.") from error
    return Explained(name, "custom check", text, facts=(f"a custom check of {_packages(name)}",))


def _packages(name: str) -> str:
    return ", ".join(package(claim) for claim in installed()[name])


def _accounts(contract: Contract, neighbours: Neighbours) -> list[Account]:
    return [
        account
        for schema_object in contract.objects
        for account in accounts(
            contract, schema_object, foreseen(contract, schema_object, built_in(), neighbours)
        )
    ]

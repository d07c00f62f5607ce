"""What the tests of the gate share: the shelf, a date, and contracts made from fragments."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pytest

from dq.contracts.outcome import Finding
from dq.validators import rule_page
from dq.validators.lint import lint, load_rules
from dq.validators.policy.policy import DEFAULT, Policy
from dq.validators.rule import Rule

TODAY = date(2026, 11, 21)

Lint = Callable[..., list[Finding]]


@pytest.fixture(scope="session")
def rules() -> dict[str, Rule]:
    return load_rules()


@pytest.fixture(scope="session")
def lint_fragment(rules: dict[str, Rule]) -> Lint:
    """Findings of a fragment laid over the base contract of the pages."""

    def run(fragment: str, policy: Policy = DEFAULT, file: str = rule_page.BASE_FILE) -> list[Finding]:
        text, _ = rule_page.document(fragment)
        return lint(text.encode(), file, rules=rules, policy=policy, today=TODAY)

    return run

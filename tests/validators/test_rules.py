"""Every rule on the shelf keeps the promise of its own page."""

from __future__ import annotations

import re
import sys
from datetime import date
from importlib import import_module
from pathlib import Path

import pytest
from fakes import golden

from dq.contracts.install import PluginError
from dq.contracts.outcome import Finding
from dq.contracts.yaml.parse import parse
from dq.operations.gate import unenforced
from dq.validators import rule_page
from dq.validators import rules as shelf
from dq.validators.context import no_findings
from dq.validators.lint import SubscriptionFiles, lint, lint_files, load_rules
from dq.validators.official import installed_schema
from dq.validators.policy.branch import ChangedPolicy, policy_findings
from dq.validators.policy.file import read
from dq.validators.policy.policy import Policy, RuleSetting
from dq.validators.rule import Rule, RuleScope
from dq.validators.rules.delivery import terms
from dq.validators.rules.form import reading

RULES = load_rules()
TODAY = date(2026, 11, 21)
BASE = rule_page.document("")[0].encode()
# What the fragments of rules about subscriptions do not say, and the contract that they are held against.
SUBSCRIPTION_BASE = {
    "contract": "contract: orders\n",
    "major": "major: 1\n",
    "consumer": "consumer: {team: billing, account: '210987654321', contact: '#billing'}\n",
    "purpose": "purpose: The invoices of each month.\n",
    "columns": "columns: [orders.order_id, orders.amount]\n",
    "startDate": "startDate: 2026-01-01\n",
}
SUBSCRIPTION_FILE = "subscriptions/billing.yaml"
SUBSCRIBED = (
    "schema:\n"
    "  - name: orders\n"
    "    properties:\n"
    "      - {name: order_id, logicalType: string}\n"
    "      - {name: amount, logicalType: number, tags: [finance]}\n"
    "      - {name: country, logicalType: string}\n"
    "      - {name: email, logicalType: string, classification: pii}\n"
)
SUBSCRIPTION = rule_page.document("", SUBSCRIPTION_BASE)[0].encode()
SHELF = Path(__file__).parents[2] / "validators" / "rules"


def _findings(rule: Rule, document: bytes) -> list[Finding]:
    if rule.scope is RuleScope.CHANGE:
        _, wrong = read(document, "dq-policy.yaml", RULES)
        changed = ChangedPolicy("dq-policy.yaml", b"profile: strict\n", document)
        return [*wrong, *policy_findings([changed], rule.severity)]
    if rule.policies:
        policy, wrong = read(document, "dq-policy.yaml", RULES)
        base = [(rule_page.BASE_FILE, BASE)]
        return [*wrong, *lint_files(base, rules=RULES, policy=policy, today=TODAY).findings]
    if rule.scope is RuleScope.SUBSCRIPTION:
        return _of_subscription(rule, document)
    files = [(rule_page.BASE_FILE, document)]
    if rule.scope is RuleScope.REGISTRY:
        files = [("a/" + rule_page.BASE_FILE, BASE), ("b/" + rule_page.BASE_FILE, document)]
    told = unenforced if rule.consequences else no_findings
    wished = Policy(settings={rule.id: RuleSetting(None, own_severity=False)} if rule.opt_in else {})
    official = installed_schema() if rule.id == "official-schema" else None
    found = lint_files(files, rules=RULES, policy=wished, today=TODAY, unenforced=told, official=official)
    return [one for one in found.findings if one.at.file == files[-1][0]]


def _of_subscription(rule: Rule, document: bytes) -> list[Finding]:
    files: dict[str, bytes] = {SUBSCRIPTION_FILE: document}
    if rule.id == "subscription-duplicate":
        files = {"subscriptions/another.yaml": SUBSCRIPTION, **files}
    text, _ = rule_page.document(SUBSCRIBED)
    contract = parse(text.encode(), rule_page.BASE_FILE).contract
    assert contract is not None
    given = SubscriptionFiles(files, frozenset(files), {contract.identity: contract})
    accounts = RuleSetting(None, {"other_accounts": False}, own_severity=False)
    policy = Policy(settings={"subscription-without-approver": accounts})
    return list(
        lint_files([], rules=RULES, policy=policy, today=TODAY, subscriptions=lambda _: given).findings
    )


def _document(rule: Rule, fragment: str) -> tuple[str, int]:
    """The fragment as a whole document: laid over a contract or a subscription, or a policy as it is."""
    if rule.scope is RuleScope.SUBSCRIPTION:
        return rule_page.document(fragment, SUBSCRIPTION_BASE)
    return (fragment, 1) if rule.policies else rule_page.document(fragment)


def test_the_base_contract_has_no_finding() -> None:
    assert lint(BASE, rule_page.BASE_FILE, rules=RULES, today=TODAY) == []


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_bad_gives_exactly_this_finding_inside_the_fragment(rule: Rule) -> None:
    text, begins = _document(rule, rule_page.parse(rule.page).bad)

    if rule.bad is not None:
        found, begins = _findings(rule, rule.bad), 1
    else:
        found = _findings(rule, text.encode())

    assert [(one.rule, one.severity) for one in found] == [(rule.id, rule.severity)]
    assert found[0].at.line >= begins
    assert found[0].hint


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_good_gives_no_finding(rule: Rule) -> None:
    text, _ = _document(rule, rule_page.parse(rule.page).good)

    assert _findings(rule, text.encode()) == []


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_has_a_kebab_case_id(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.id)


def test_a_rule_with_a_check_has_a_short_file_of_its_name() -> None:
    pages = ("form/reading.py", "delivery/terms.py")
    named = {
        path.stem.replace("_", "-"): path.read_text("utf-8")
        for path in SHELF.rglob("[a-z]*.py")
        if not path.as_posix().endswith(pages)
    }
    listed = {rule.id for rules in (reading.RULES, terms.RULES) for rule in rules}

    assert set(named) | listed == set(RULES)
    assert [id_ for id_, source in named.items() if len(source.splitlines()) > 120] == []


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_what_explains_a_rule_is_on_the_shelf(rule: Rule) -> None:
    assert set(rule.after) <= set(RULES)


NEW_RULE = '''"""The contract is called test.

Why: Nobody finds it.

Bad:
    name: test

Good:
    name: Orders

How to fix: Rename it.
"""

from dq.contracts.outcome import Severity
from dq.validators.rule import Rule, violation


def check(contract, context):
    if contract.name == "test":
        yield violation(contract, "name", "the contract is called test.", "Rename it.")


RULE = Rule("named-test", Severity.WARNING, __doc__, check)
'''


def test_a_new_file_on_a_shelf_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_rules").mkdir()
    (tmp_path / "own_rules" / "__init__.py").write_text("")
    (tmp_path / "own_rules" / "named_test.py").write_text(NEW_RULE)
    monkeypatch.syspath_prepend(tmp_path)

    rules = load_rules(import_module("own_rules"))

    text, line = rule_page.document("name: test\n")
    found = lint(text.encode(), rule_page.BASE_FILE, rules=rules, today=TODAY)
    assert [(one.rule, one.at.line, one.contract) for one in found] == [("named-test", line, "orders")]


def test_rules_may_lie_in_groups_and_are_sorted_by_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("grouped_rules", "grouped_rules/columns", "grouped_rules/keys"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "__init__.py").write_text("")
    for place, id_ in (("columns/b", "rule-b"), ("keys/a", "rule-a"), ("c", "rule-c")):
        (tmp_path / "grouped_rules" / f"{place}.py").write_text(NEW_RULE.replace("named-test", id_))
    monkeypatch.syspath_prepend(tmp_path)

    assert list(load_rules(import_module("grouped_rules"))) == ["rule-a", "rule-b", "rule-c"]


def test_a_file_may_have_several_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "listed_rules").mkdir()
    (tmp_path / "listed_rules" / "__init__.py").write_text("")
    (tmp_path / "listed_rules" / "names.py").write_text(
        NEW_RULE.replace("RULE = ", "FIRST = ")
        + 'RULES = (FIRST, Rule("a-second", Severity.WARNING, __doc__, check))\n'
    )
    monkeypatch.syspath_prepend(tmp_path)

    assert list(load_rules(import_module("listed_rules"))) == ["a-second", "named-test"]


def test_a_file_without_a_rule_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty_rules").mkdir()
    (tmp_path / "empty_rules" / "__init__.py").write_text("")
    (tmp_path / "empty_rules" / "nothing.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(PluginError, match=r"empty_rules\.nothing does not define RULE"):
        load_rules(import_module("empty_rules"))

    assert "empty_rules.nothing" in sys.modules


def test_the_shipped_shelf_is_the_default() -> None:
    assert load_rules(shelf).keys() == RULES.keys()


def test_rules_say_what_is_agreed() -> None:
    """Of each rule, what it finds in the Bad fragment of its page, word for word."""
    said = []
    for rule in RULES.values():
        document = (
            rule.bad if rule.bad is not None else _document(rule, rule_page.parse(rule.page).bad)[0].encode()
        )
        said += [
            f"{one.rule} ({one.severity}) {one.at}\n    {one.message}\n    {one.hint}\n"
            for one in _findings(rule, document)
        ]

    golden.compare(Path(__file__).parent / "golden" / "findings.txt", "\n".join(said))

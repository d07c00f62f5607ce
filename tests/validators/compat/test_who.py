"""What a judged change tells its reader: who is hit, what to do, which waiver lets it pass."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
import yaml
from fragments.compat import TODAY, contract, document

from dq.contracts.subscriptions import Subscription, read
from dq.validators.compat.classification import Bump, Mode, Verdict, normalize_engine
from dq.validators.compat.classified_change import RULES, ClassifiedChange, Waiver
from dq.validators.compat.comparison import DiffTerms, diff


def only(before: dict[str, Any], after: dict[str, Any], rule: str, **more: Any) -> ClassifiedChange:
    old, new = contract(document(before, after)), contract(document(after, before, "2.0.0"))
    (found,) = [one for one in diff(old, new, DiffTerms(today=TODAY, **more)).changes if one.rule == rule]
    return found


NARROW, WIDE = {"property": {"physicalType": "int"}}, {"property": {"physicalType": "bigint"}}
TWO, ONE = {"columns": ["a", "b"]}, {"columns": ["a"]}


def test_the_engine_that_fails_is_named_with_its_source() -> None:
    found = only(NARROW, WIDE, "type-changed", engines=("spark-3.5", "trino"), format="parquet")

    assert found.affected == ("consumers", "writers", "history", "engine spark-3")
    assert "spark#34308" in found.note


def test_an_engine_of_which_nothing_is_known_cannot_read() -> None:
    found = only(NARROW, WIDE, "type-changed", engines=("spark", "homemade"), format="parquet")

    assert "engine homemade" in found.affected


def subscription(team: str, columns: str = "", major: int = 1, **more: str) -> Subscription:
    """One of the contract `orders`, which holds on the day of the tests."""
    lines = {
        "contract": more.get("contract", "orders"),
        "major": major,
        "consumer": f"{{team: {team}, contact: '#{team}'}}",
        "purpose": more.get("purpose", "Invoices."),
        **({"columns": f"[{columns}]"} if columns else {}),
        "startDate": more.get("start", "2025-01-01"),
        "endDate": more.get("end", "2030-12-31"),
        "approvers": "[ana@example.com]",
    }
    text = "".join(f"{key}: {value}\n" for key, value in lines.items())
    made, wrong = read(text.encode(), f"subscriptions/{team}.yaml")
    assert made is not None
    assert wrong == []
    return made


def test_a_consumer_is_named_where_the_change_reaches_what_it_reads() -> None:
    known = [
        subscription("billing", "orders.b"),
        subscription("search"),
        subscription("audit", "orders.a"),
        subscription("other", contract="lines"),
        subscription("next", "orders.b", major=2),
        subscription("past", "orders.b", end="2026-01-14"),
        subscription("later", "orders.b", start="2026-01-16"),
        subscription("last", "orders.b", end="2026-01-15"),
    ]

    found = only(TWO, ONE, "column-removed", subscriptions=known)

    assert found.affected == ("consumers", "consumer billing", "consumer last", "consumer search")
    assert found.verdict is Verdict.BREAK
    assert found.subscribers_text == (
        " Subscribed: billing (Invoices; subscriptions/billing.yaml:5; ask #billing, ana@example.com); "
        "last (Invoices; subscriptions/last.yaml:5; ask #last, ana@example.com); "
        "search (Invoices; subscriptions/search.yaml:1; ask #search, ana@example.com)."
    )


def test_that_no_subscription_names_a_column_is_said_and_changes_no_verdict() -> None:
    found = only(TWO, ONE, "column-removed", subscriptions=[subscription("audit", "orders.a")])

    assert (found.verdict, found.affected) == (Verdict.BREAK, ("consumers",))
    assert found.subscribers_text == " No subscription uses it."


def test_a_registry_without_subscriptions_says_nothing_of_them() -> None:
    assert only(TWO, ONE, "column-removed").subscribers_text == ""


def test_the_waiver_that_is_offered_lets_exactly_this_change_pass() -> None:
    found = only(TWO, ONE, "column-removed")
    (entry,) = yaml.safe_load(found.waiver(TODAY))["waivers"]
    waiver = Waiver(**entry)

    waived = only(TWO, ONE, "column-removed", waivers=[waiver])
    other = only({"columns": ["a", "b", "c"]}, {"columns": ["a", "b"]}, "column-removed", waivers=[waiver])

    assert (waived.verdict, waived.bump, waived.waived) == (Verdict.OK, Bump.MINOR, "… (…)")
    assert other.verdict is Verdict.BREAK


def test_a_waiver_for_many_paths_needs_an_end_that_is_near() -> None:
    near = Waiver("column-removed", "orders", "orders.*", expires=date(2026, 3, 1))
    far = Waiver("column-removed", "orders", "orders.*", expires=date(2027, 3, 1))

    assert only(TWO, ONE, "column-removed", waivers=[near]).verdict is Verdict.OK
    assert only(TWO, ONE, "column-removed", waivers=[far]).verdict is Verdict.BREAK


def test_what_looks_like_a_rename_is_hinted_at_and_judged_as_before() -> None:
    before, after = {"columns": ["amount int"]}, {"columns": ["amount_eur int"]}

    found = only(before, after, "column-removed")

    assert "give both the same id" in found.note
    assert found.verdict is Verdict.BREAK


def test_two_changes_that_look_like_renames_are_not_guessed_at() -> None:
    before = contract(document({"columns": ["amount int", "total int"]}))
    after = contract(document({"columns": ["amount_eur int", "total_eur int"]}, version="2.0.0"))

    found = diff(before, after, DiffTerms(today=TODAY))

    assert not any("rename" in one.note for one in found.changes)


def test_a_renamed_key_column_is_one_finding() -> None:
    column = {"id": "c1", "primaryKey": True, "partitioned": True}
    before = contract(document({"property": {**column, "name": "day"}}))
    after = contract(document({"property": {**column, "name": "order_day"}}, version="2.0.0"))

    found = diff(before, after, DiffTerms(today=TODAY))

    assert [one.rule for one in found.changes] == ["column-renamed", "version-bump-ok"]


def test_a_type_that_changes_logically_and_physically_is_one_finding() -> None:
    before = contract(document({"property": {"logicalType": "integer", "physicalType": "int"}}))
    text = {"property": {"logicalType": "string", "physicalType": "string"}}

    found = diff(before, contract(document(text, version="2.0.0")), DiffTerms(today=TODAY))

    assert [one.rule for one in found.changes] == ["type-changed", "version-bump-ok"]


def test_the_mode_of_an_object_is_read_in_the_old_contract() -> None:
    terms = {"property": "dataset", "vendor": "dq", "value": {"compatibility": "BACKWARD"}}
    before = contract(document({**TWO, "table": {"customProperties": [terms]}}))
    after = contract(document({**ONE, "table": {"customProperties": [terms]}}, version="2.0.0"))

    assert diff(before, after, DiffTerms(today=TODAY)).verdict is Verdict.OK
    assert diff(before, after, DiffTerms(today=TODAY, mode=Mode.FORWARD)).verdict is Verdict.BREAK


def test_nothing_breaks_in_the_mode_none_but_the_version_still_tells() -> None:
    before, after = contract(document(TWO)), contract(document(ONE, version="1.1.0"))

    found = diff(before, after, DiffTerms(today=TODAY, mode=Mode.NONE))

    assert {one.rule: one.verdict for one in found.changes} == {
        "column-removed": Verdict.OK,
        "version-bump-too-small": Verdict.BREAK,
    }


def test_a_comparison_as_plain_values_has_the_published_keys() -> None:
    found = diff(
        contract(document(TWO)), contract(document(ONE, version="2.0.0")), DiffTerms(today=TODAY)
    ).as_dict()

    assert found.keys() == {"changes", "verdict", "compatibility", "version_policy", "required_version"}
    assert (found["verdict"], found["required_version"]) == ("break", "2.0.0")
    changes = found["changes"]
    assert isinstance(changes, list)
    keys = {"rule", "path", "before", "after", "effect", "severity", "verdict", "affected", "bump"}
    assert all(keys <= change.keys() for change in changes)


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("spark<=3.5", "spark-3"),
        ("Spark 3", "spark-3"),
        ("spark", "spark"),
        ("spark>=4.0", "spark"),
        ("trino<452", "trino-451"),
        ("trino>=452", "trino"),
        ("trino-hive partitions", "trino"),
        ("redshift", "redshift-spectrum"),
        ("homemade", "homemade"),
    ],
)
def test_engines_are_understood_as_people_write_them(written: str, known: str) -> None:
    assert normalize_engine(written) == known


def test_every_rule_says_what_happened_and_what_to_do() -> None:
    assert [id_ for id_, one in RULES.items() if not one.problem or not one.instead.endswith(".")] == []

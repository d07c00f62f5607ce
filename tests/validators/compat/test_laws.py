"""Laws of the judgement: nothing is forgotten, and the way back mirrors the way there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import open_data_contract_standard
import pytest
import yaml
from fakes.asymmetric import ASYMMETRIC
from fragments.compat import TODAY, contract, document
from fragments.documents import documents
from hypothesis import given
from hypothesis import strategies as st

from dq.contracts import extension, model, odcs
from dq.contracts.diff import MAPPED_KEYS, Change, ChangeKind, ElementKind
from dq.contracts.model import SOURCE_MAP_KEY, Node
from dq.contracts.outcome import Location
from dq.validators.compat.classification import ComparisonContext, Effect, Level, Mode, Verdict, verdict
from dq.validators.compat.classification_table import POLICY_ATTRIBUTES, TABLE, classify, comparator_for
from dq.validators.compat.classified_change import RULES
from dq.validators.compat.comparison import DiffTerms, compare_content, diff

CASES = Path(__file__).parents[2] / "cases"
ROWS = [
    one
    for file in ("compat-cases.yaml", "compat-more.yaml")
    for one in yaml.load((CASES / file).read_text("utf-8"), yaml.CSafeLoader)["cases"]
]

# What each model of the contract is in a diff.
KINDS: dict[type[Node], ElementKind] = {
    model.Contract: ElementKind.CONTRACT,
    model.SchemaObject: ElementKind.OBJECT,
    model.Property: ElementKind.PROPERTY,
    model.Quality: ElementKind.QUALITY,
    model.SlaProperty: ElementKind.SLA,
    model.Server: ElementKind.SERVER,
    model.Role: ElementKind.ROLE,
    model.SupportChannel: ElementKind.SUPPORT,
    model.Price: ElementKind.PRICE,
    model.Relationship: ElementKind.RELATIONSHIP,
}
# Parts that are compared whole, as the value of one attribute of their holder.
WHOLE = {
    model.CustomProperty,
    model.AuthoritativeDefinition,
    model.Description,
    model.Constraint,
    model.VerifiedStatement,
    model.Instructions,
    model.EnumValue,
    model.Synonym,
    model.MapTypes,
    model.Member,
    model.Team,
}
EXTENSIONS = {
    extension.Delivery: (ElementKind.SLA, "delivery"),
    extension.DatasetTerms: (ElementKind.OBJECT, "dataset"),
    extension.Scope: (ElementKind.QUALITY, "scope"),
    extension.Route: (ElementKind.SUPPORT, "route"),
}
TIMING = {"timezone", "dialect", "dst", "calendar"}  # compared as the instants of the schedule


def keys_of(node: type[Node]) -> Iterator[str]:
    for name, info in node.model_fields.items():
        if (info.alias or name) != SOURCE_MAP_KEY:
            yield info.alias or name


def judged_somewhere(kind: ElementKind, key: str) -> bool:
    folded = MAPPED_KEYS[kind].get(key, key)
    if folded in ("key", "the same for every contract"):
        return True
    if folded in set(ElementKind):
        return bool(TABLE[ElementKind(folded)])
    if folded.endswith(".*"):
        return any(one.startswith(folded[:-1]) for one in TABLE[kind])
    holder, dot, attribute = folded.partition(".")
    if dot:
        return comparator_for(ElementKind(holder), attribute) is not None
    return comparator_for(kind, folded) is not None or (
        kind is ElementKind.CONTRACT and key in POLICY_ATTRIBUTES
    )


@pytest.mark.parametrize(("node", "kind"), KINDS.items(), ids=lambda one: getattr(one, "__name__", str(one)))
def test_every_attribute_of_the_model_has_a_row(node: type[Node], kind: ElementKind) -> None:
    assert [key for key in keys_of(node) if not judged_somewhere(kind, key)] == []


def test_every_model_of_the_contract_is_compared() -> None:
    nodes = {
        one
        for one in vars(model).values()
        if isinstance(one, type) and issubclass(one, Node) and one.__module__ == model.__name__
    }
    holders = {Node, model.Extensible, model.Described, model.Element, model.TypeOptions}

    assert nodes - holders == KINDS.keys() | WHOLE


def test_every_option_of_a_type_has_a_row() -> None:
    exclusive = {"exclusiveMinimum", "exclusiveMaximum"}  # open ends of minimum and maximum
    nested = {"required"}  # makes the named fields required
    options = set(keys_of(model.TypeOptions)) - exclusive - nested

    assert [
        key for key in options if comparator_for(ElementKind.PROPERTY, f"logicalTypeOptions.{key}") is None
    ] == []


@pytest.mark.parametrize("terms", EXTENSIONS, ids=lambda one: one.__name__)
def test_every_term_of_ours_has_a_row(terms: type[Node]) -> None:
    kind, prefix = EXTENSIONS[terms]

    assert [k for k in set(keys_of(terms)) - TIMING if comparator_for(kind, f"{prefix}.{k}") is None] == []


def test_every_key_of_every_server_type_has_a_row() -> None:
    keys = {key for one in odcs.SERVER_TYPES.values() for key in (*one.required, *one.optional)}

    assert sorted(key for key in keys if comparator_for(ElementKind.SERVER, key) is None) == []


def test_every_key_of_the_official_schema_is_a_key_of_the_model() -> None:
    schema = json.loads(
        (Path(open_data_contract_standard.__file__).parent / "schema.json").read_text("utf-8")
    )
    known = {key for node in (*KINDS, *WHOLE, model.TypeOptions) for key in keys_of(node)}
    known |= {key for one in odcs.SERVER_TYPES.values() for key in (*one.required, *one.optional)}

    assert sorted(set(properties(schema)) - known) == []


def properties(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("properties"), dict):
            yield from value["properties"]
        for inner in value.values():
            yield from properties(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from properties(inner)


def test_an_attribute_without_a_row_is_told_as_a_warning() -> None:
    at = Location("x")
    change = Change(ElementKind.PROPERTY, "colour", ChangeKind.CHANGED, "t.a", 1, 2, at, at, "", None, None)

    found = classify(change, ComparisonContext(TODAY))

    assert (found.rule, found.effect, found.level) == ("unclassified-change", Effect.REPLACE, Level.WARN)


def test_every_row_of_the_table_is_about_something() -> None:
    assert [kind for kind in ElementKind if not TABLE.get(kind)] == []


@pytest.mark.parametrize("effect", Effect)
@pytest.mark.parametrize("level", Level)
def test_full_is_the_worse_of_both_and_none_only_knows_policy(effect: Effect, level: Level) -> None:
    both = {mode: verdict(effect, level, mode).rank for mode in Mode}

    assert both[Mode.FULL] == max(both[Mode.FORWARD], both[Mode.BACKWARD])
    assert both[Mode.NONE] == (both[Mode.FULL] if effect is Effect.POLICY else 0)


def sides(case: dict[str, Any]) -> bool:
    plain = all(isinstance(case[side], dict) for side in ("before", "after"))
    other = ("files", "versions", "yaml", "merge_base", "base", "accept", "findings", "path")
    return plain and not any(key in case[side] for side in ("before", "after") for key in other)


@pytest.mark.parametrize("case", [pytest.param(one, id=one["id"]) for one in ROWS if sides(one)])
def test_the_way_back_mirrors_the_way_there_unless_a_reason_is_given(case: dict[str, Any]) -> None:
    before = contract(document(case["before"], case["after"]))
    after = contract(document(case["after"], case["before"]))
    format_ = None if case.get("format", "any") == "any" else case["format"]

    there = verdicts(before, after, Mode.FORWARD, format_)
    back = verdicts(after, before, Mode.BACKWARD, format_)

    assert there == back


def verdicts(before: Any, after: Any, mode: Mode, format_: str | None = None) -> list[Verdict]:
    """The worst verdict of each path that is not fine, but where a rule stands that has a reason.

    What was renamed has another path on the way back, so paths themselves are not compared.
    """
    terms = DiffTerms(today=TODAY, mode=mode, format=format_)
    there, back = compare_content(before, after, terms), compare_content(after, before, terms)
    excused = {one.path for one in (*there, *back) if one.rule in ASYMMETRIC}
    worst: dict[str, Verdict] = {}
    for one in there:
        if one.path not in excused:
            worst[one.path] = max(worst.get(one.path, Verdict.OK), one.verdict, key=lambda found: found.rank)
    return sorted(one for one in worst.values() if one is not Verdict.OK)


FLAGS = st.fixed_dictionaries(
    {"name": st.just("a")},
    optional={
        "required": st.booleans(),
        "unique": st.booleans(),
        "logicalTypeOptions": st.fixed_dictionaries(
            {},
            optional={
                "minimum": st.integers(0, 3),
                "maximum": st.integers(4, 6),
                "exclusiveMaximum": st.integers(4, 6),
                "maxLength": st.integers(1, 3),
                "pattern": st.sampled_from(["^A", "^B"]),
                "multipleOf": st.sampled_from([2, 4, 5]),
            },
        ),
    },
)


@given(FLAGS, FLAGS)
def test_constraints_mirror_whatever_they_are(first: dict[str, Any], second: dict[str, Any]) -> None:
    before, after = contract(document({"property": first})), contract(document({"property": second}))

    found = diff(before, after, DiffTerms(today=TODAY))
    back = diff(after, before, DiffTerms(today=TODAY, mode=Mode.BACKWARD))

    assert plain(found) == plain(back)


@given(documents(), documents(), st.sampled_from(Mode))
def test_any_two_contracts_can_be_compared(first: dict[str, Any], second: dict[str, Any], mode: Mode) -> None:
    found = diff(contract(first), contract(second), DiffTerms(today=TODAY, mode=mode))

    json.dumps(found.as_dict())
    assert {one.rule for one in found.changes} <= RULES.keys()


@given(documents(), st.sampled_from(Mode))
def test_a_contract_compared_with_itself_is_silent(document: dict[str, Any], mode: Mode) -> None:
    assert diff(contract(document), contract(document), DiffTerms(today=TODAY, mode=mode)).changes == ()


def plain(found: Any) -> dict[tuple[str, str], Verdict]:
    return {
        (one.path, one.attribute): one.verdict for one in found.changes if not one.rule.startswith("version")
    }


def test_every_reason_is_given_for_a_rule_that_exists() -> None:
    assert ASYMMETRIC.keys() - RULES.keys() == set()

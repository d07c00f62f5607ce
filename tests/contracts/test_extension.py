"""What dq adds to ODCS is typed and closed, and its faults stand where they were written."""

from __future__ import annotations

import datetime as dt
import json

import jsonschema
import pytest

from dq.contracts import extension
from dq.contracts.model import strip_source_maps

DELIVERY = (
    "slaProperties: [{id: d, property: frequency, value: 1, "
    "customProperties: [{property: delivery, value: %s}]}]"
)


def _delivery(read, value: str):
    contract = read(DELIVERY % value).contract
    return extension.delivery(contract, contract.sla_properties[0])


def test_a_delivery_has_defaults(read) -> None:
    made, findings = _delivery(read, "{}")

    assert findings == []
    assert (made.timezone, made.grace, made.empty, made.objective, made.window) == (
        "UTC", "0m", "forbidden", "95%", "90d",
    )  # fmt: skip


def test_a_delivery_says_everything(read) -> None:
    made, findings = _delivery(
        read,
        "{timezone: Europe/Paris, dialect: seconds_first, dst: shift, grace: 45m, "
        'partition: {day: "{due:%F}", country: [de, fr]}, evidence: [marker, file], empty: allowed, '
        'calendar: {skip: [2026-12-25, "2026-12-26"], weekdays_only: true, valid_until: 2027-01-31}, '
        "objective: 99%, window: 30d, severity: critical, giveUpAfter: 2d}",
    )

    assert findings == []
    assert made.partition == {"day": ["{due:%F}"], "country": ["de", "fr"]}
    assert made.calendar.skip == [dt.date(2026, 12, 25), dt.date(2026, 12, 26)]
    assert (made.calendar.weekdays_only, made.give_up_after, made.severity) == (True, "2d", "critical")


@pytest.mark.parametrize(
    ("value", "rule", "path", "hint"),
    [
        ("{grce: 45m}", "unknown-key", "grce", "Did you mean 'grace'?"),
        (
            "{grace: 45}",
            "wrong-type",
            "grace",
            "Add a unit, e.g. grace: 45m for minutes, 45h for hours, 45d for days.",
        ),
        ("{empty: alowed}", "unknown-value", "empty", "Did you mean 'allowed'?"),
        (
            "{calendar: {weekday_only: true}}",
            "unknown-key",
            "calendar.weekday_only",
            "Did you mean 'weekdays_only'?",
        ),
        ("{calendar: {skip: [christmas]}}", "wrong-type", "calendar.skip[0]", None),
        ("{partition: day}", "wrong-type", "partition", None),
        ("{partition: {day: 1}}", "wrong-type", "partition", None),
        ("{partition: {}}", "wrong-type", "partition", None),
        ("{evidence: [mail]}", "unknown-value", "evidence[0]", None),
    ],
)
def test_a_fault_of_a_delivery_stands_at_its_place(
    read, value: str, rule: str, path: str, hint: str | None
) -> None:
    _, (found,) = _delivery(read, value)

    assert (found.rule, found.path) == (rule, f"slaProperties[0].customProperties[0].value.{path}")
    assert hint is None or found.hint == hint
    assert found.hint


def test_reading_twice_gives_the_same_and_leaves_the_contract_alone(read) -> None:
    contract = read(DELIVERY % "{grce: 45m, grace: 1h}").contract
    before = strip_source_maps(contract.sla_properties[0].custom_properties[0].value)

    first = extension.delivery(contract, contract.sla_properties[0])
    second = extension.delivery(contract, contract.sla_properties[0])

    assert first == second
    assert strip_source_maps(contract.sla_properties[0].custom_properties[0].value) == before


def test_before_3_2_the_delivery_stands_with_the_contract(read) -> None:
    contract = read(
        "slaProperties: [{id: d, property: frequency, value: 1}]\n"
        "customProperties: [{property: 'delivery:d', value: {grace: 45m}}]",
        "v3.1.0",
    ).contract

    made, findings = extension.delivery(contract, contract.sla_properties[0])

    assert (made.grace, findings) == ("45m", [])


def test_no_delivery_is_none(read) -> None:
    contract = read("slaProperties: [{property: latency, value: 1}]").contract

    assert extension.delivery(contract, contract.sla_properties[0]) == (None, [])


def test_the_property_of_another_vendor_is_not_ours(read) -> None:
    contract = read(
        "schema: [{name: a, customProperties: [{property: dataset, vendor: x, value: {marker: y}}]}]"
    ).contract

    made, findings = extension.dataset(contract.objects[0])

    assert (made.marker, findings) == ("_SUCCESS", [])


def test_dataset_scope_and_route_have_defaults(read) -> None:
    contract = read(
        "schema: [{name: a, quality: [{metric: rowCount, mustBe: 1}]}]\nsupport: [{channel: a}]"
    ).contract

    dataset, _ = extension.dataset(contract.objects[0])
    scope, _ = extension.scope(contract.objects[0].quality[0])
    route, _ = extension.route(contract.support[0])

    assert (dataset.additional_columns, dataset.compatibility) == ("warn", "FORWARD")
    assert (scope.rows, scope.where, route.severities) == (None, None, ["warning", "error", "critical"])


def test_all_faults_of_a_contract_come_with_what_was_left_out(read) -> None:
    contract = read(
        "schema:\n"
        "  - name: a\n"
        "    customProperties: [{property: dataset, value: {format: parqet}}]\n"
        "    quality: [{type: text, customProperties: [{property: scope, value: {row: table}}]}]\n"
        "    properties:\n"
        "      - name: b\n"
        "        quality: [{type: text, customProperties: [{property: scope, value: 1}]}]\n"
        "support: [{channel: a, customProperties: [{property: route, value: {severities: [bad]}}]}]\n"
        "customProperties: [{property: 'delivery:x', value: {grace: 1}}]\n"
    ).contract

    findings, cut = extension.extension_findings(contract)

    assert sorted((one.rule, one.path) for one in findings) == [
        ("unknown-key", "schema[0].quality[0].customProperties[0].value.row"),
        ("unknown-value", "schema[0].customProperties[0].value.format"),
        ("unknown-value", "support[0].customProperties[0].value.severities[0]"),
        ("wrong-type", "customProperties[0].value.grace"),
        ("wrong-type", "schema[0].properties[0].quality[0].customProperties[0].value"),
    ]
    assert {one.path for one in findings} <= cut


def test_the_published_schema_agrees_with_the_models() -> None:
    schema = extension.json_schema()
    validator = jsonschema.Draft202012Validator(schema)

    validator.check_schema(schema)
    json.dumps(schema)
    good = {"property": "delivery", "vendor": "dq", "value": {"grace": "45m", "timezone": "UTC"}}
    assert list(validator.iter_errors(good)) == []
    for bad in ({"grce": "45m"}, {"grace": 45}, {"empty": "maybe"}):
        assert list(validator.iter_errors({"property": "delivery", "value": bad}))
    assert list(validator.iter_errors({"property": "anything", "value": 1})) == []


IDENTITY = (
    "schema: [{name: a, properties: [{name: mail, customProperties: [{property: identity, value: %s}]}]}]"
)


@pytest.mark.parametrize(
    ("value", "names", "normalize"),
    [
        ("customer.email", ["customer.email"], "text"),
        ("[email, device_id]", ["email", "device_id"], "text"),
        ("{name: phone, normalize: 'phone:49'}", ["phone"], "phone:49"),
        ("{name: [a, b], normalize: exact}", ["a", "b"], "exact"),
    ],
)
def test_an_identity_is_a_name_several_or_a_mapping(
    read, value: str, names: list[str], normalize: str
) -> None:
    terms, findings = extension.identity(read(IDENTITY % value).contract.objects[0].properties[0])

    assert findings == []
    assert (terms.names, terms.normalize) == (names, normalize)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{name: phone, normalize: lower}", "'lower' is not text, exact, or phone:"),
        ("{name: phone, normalize: 'phone:DE'}", "'phone:DE' is not text, exact, or phone:"),
        ("{nam: phone}", "nam"),
        ("[]", "has no name"),
        ("[email, 7]", "7 is not a name"),
        ("'e mail'", "'e mail' is not a name"),
        ("3", "must be a mapping"),
    ],
)
def test_a_malformed_identity_is_a_finding(read, value: str, message: str) -> None:
    found, _ = extension.extension_findings(read(IDENTITY % value).contract)

    assert any(message in finding.message for finding in found)
    assert all(finding.severity.blocks and finding.hint for finding in found)


@pytest.mark.parametrize("place", ["{name: c, items: {%s}}", "{name: c, map: {key: {%s}, value: {}}}"])
def test_an_identity_inside_of_a_column_is_validated(read, place: str) -> None:
    inner = (
        "logicalType: string, customProperties: [{property: identity, value: {name: e, normalize: lower}}]"
    )
    contract = read(f"schema: [{{name: a, properties: [{place % inner}]}}]").contract

    (found,), _ = extension.extension_findings(contract)

    assert "'lower' is not text" in found.message

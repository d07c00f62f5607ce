"""`dq export odcs --to VERSION`: every feature of ODCS, from its own version into every other one."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from fakes import schemas
from fakes.odcs import FILE, Feature, document, features
from jsonschema import Draft201909Validator

from dq.contracts.odcs import SUPPORTED
from dq.contracts.slo import read_slos as promises
from dq.contracts.types import catalog_type
from dq.contracts.yaml.parse import parse
from dq.registry import exporting
from dq.registry.exporting import Exported

ODCS = exporting.load()["odcs"]
VERSIONS = tuple(version.removeprefix("v") for version in SUPPORTED)
FEATURES = tuple(features())
# The JSON Schema of 3.0.2 says that the schema of a DuckDB is a number, which its text does not.
MISPRINTS = {("3.0.2", "servers.type: duckdb")}
# The same instant, as the text that ODCS has there.
SAME = {"contractCreatedTs without quotes"}
# 3.0 wants a URL of a support channel. Nobody can make one up: it is told.
TOLD = {("3.0.2", "support.channel alone"), ("3.0.2", "support.customProperties")}


def contract_of(data: bytes) -> Any:
    parsed = parse(data, FILE)
    assert parsed.contract is not None, data
    assert [str(one) for one in parsed.findings if one.severity.blocks] == [], data.decode()
    return parsed.contract


def exported(data: bytes, target: str) -> Exported:
    contract = contract_of(data)
    return ODCS.variants[f"v{target}"](contract, contract.objects)


RENAMED = {"duplicateCount": "duplicateValues", "nullCheck": "nullValues", "validValues": "invalidValues"}


def normal(value: Any) -> Any:
    """What the standard called otherwise before 3.1, as it is called now; nothing is lost by that."""
    if isinstance(value, list):
        return [normal(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {key: normal(one) for key, one in value.items() if not (key == "vendor" and one == "dq")}
    if made.get("type", "library") == "library" and "rule" in made:
        made["metric"] = RENAMED.get(made["rule"], made.pop("rule"))
        made.pop("rule", None)
    if "validValues" in made and "metric" in made:
        made["arguments"] = {"validValues": made.pop("validValues")}
    if "staging_dir" in made:
        made["stagingDir"] = made.pop("staging_dir")
    for flag, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if made.get(flag) is True:
            made[flag] = made.pop(bound)
    return made


def values(data: bytes | str) -> Any:
    return json.loads(json.dumps(yaml.load(data, yaml.CSafeLoader), default=str))


def newest(feature: Feature) -> str:
    return next(version for version in reversed(VERSIONS) if feature.is_of(version))


@pytest.mark.parametrize("target", VERSIONS)
def test_every_feature_is_valid_in_every_version_and_what_it_loses_is_told(
    odcs_schemas: dict[str, Any], target: str
) -> None:
    schema = Draft201909Validator(odcs_schemas[target]) if target in odcs_schemas else None
    refused, silent, noisy = set(), set(), set()

    for feature in FEATURES:
        source = newest(feature)
        data = feature.contract(source)
        made = exported(data, target)
        contract_of(made.text.encode())
        if schema is not None and not schema.is_valid(values(made.text)):
            refused.add((target, feature.key))
        same = {**normal(values(made.text)), "apiVersion": ""} == {**normal(values(data)), "apiVersion": ""}
        if not same and not made.unsupported:
            silent.add(feature.key)
        if (
            same
            and made.unsupported
            and (target, feature.key) not in TOLD
            and target not in ("3.0.0", "3.0.1")
        ):
            noisy.add(feature.key)

    assert refused == {one for one in MISPRINTS | TOLD if one[0] == target}
    assert noisy == set()
    assert silent == SAME


TYPES = (
    "string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(9,2)",
    "decimal(38,0)", "date", "timestamp", "timestamp_ntz", "binary", "char(3)", "varchar(20)", "variant",
    "array<array<string>>", "map<string,double>", "map<int,array<date>>",
    "struct<a:int,b:array<struct<c:decimal(5,1),d:string>>>", "array<map<string,struct<x:binary>>>",
)  # fmt: skip
HOSTILE = ("a\n- name: b", '"', "'; DROP TABLE x --", "${HOME}", "{{ x }}", "no", "1e3", "# x", "&a", "*a",
           "<b>",           "\u2028\x85\u202e", "\\", "a: b", "!!python/object:os.system")  # fmt: skip
NESTED = """schema:
  - name: t
    description: All of it.
    properties:
      - name: at
        logicalType: timestamp
        logicalTypeOptions: {timezone: true}
      - {name: clock, logicalType: time}
      - {name: area, logicalType: string, partitioned: true, partitionKeyPosition: 1, enum: [{value: a}]}
      - name: lines
        logicalType: array
        items:
          logicalType: object
          properties:
            - {name: sku, logicalType: string, required: true, description: Of the article.}
            - {name: at, logicalType: timestamp, physicalType: timestamp_ntz}
      - name: rates
        logicalType: map
        map:
          key: {logicalType: string}
          value: {logicalType: object, properties: [{name: x, logicalType: integer, physicalType: int}]}
      - {name: weights, logicalType: vector, items: {logicalType: number, physicalType: float}}
"""


def shape(data: bytes) -> list[tuple[object, ...]]:
    [one] = contract_of(data).objects
    return [
        (prop.column, str(catalog_type(prop)), prop.required, prop.description, prop.partitioned)
        for prop in one.properties
    ]


@pytest.mark.parametrize("target", VERSIONS)
def test_there_and_back_the_types_names_and_texts_are_the_same(target: str) -> None:
    plain = "schema:\n  - name: t\n    properties:\n" + "".join(
        f"      - {{name: {json.dumps(HOSTILE[at % len(HOSTILE)] + str(at))}, physicalType: '{kind}',"
        f" description: {json.dumps(HOSTILE[-at % len(HOSTILE)])},"
        f" required: {'true' if at % 2 else 'false'}}}\n"
        for at, kind in enumerate(TYPES)
    )

    drawn = [schemas.document(seed).encode() for seed in range(6)]
    for data in (document(plain, "v3.2.0"), document(NESTED, "v3.2.0"), *drawn):
        there = exported(data, target).text.encode()
        back = exported(there, "3.2.0").text.encode()
        assert shape(there) == shape(data)
        assert shape(back) == shape(data)
        before, after = (schemas.facts(contract_of(one)) for one in (data, back))
        # An enum becomes a rule, and limits go with the logical types that they belong to.
        # Of a map before 3.2, the physical type alone is left.
        gone = {
            key
            for path, key in before
            if before[path, key] != after.get((path, key)) and not set(path) & {"^", "*"}
        }
        assert gone <= {"enum", "logicalType", "logicalTypeOptions"}
        assert gone == set() or target != "3.2.0"


def test_a_promise_of_delivery_is_kept_in_a_version_whose_service_levels_take_none() -> None:
    data = document(
        "servers: [{server: lake, type: local, path: lake, format: parquet}]\n"
        "schema: [{name: t, properties: [{name: day, logicalType: date, partitioned: true}]}]\n"
        "slaProperties: [{id: daily, property: frequency, value: 1, unit: d, element: t,"
        " schedule: '0 6 * * *', customProperties: [{property: delivery, vendor: dq,"
        " value: {grace: 30m, timezone: Europe/Berlin}}]}]",
        "v3.2.0",
    )

    made = exported(data, "3.1.0")

    [was], [now] = promises(contract_of(data))[0], promises(contract_of(made.text.encode()))[0]
    assert (now.id, now.grace, now.delivery) == (was.id, was.grace, was.delivery)
    assert made.unsupported == (
        "slaProperties[0].customProperties[0]: delivery is written as delivery:daily of the contract",
    )
    early = exported(data, "3.0.2")
    assert "slaProperties[0].schedule: schedule is left out" in early.unsupported
    assert "slaProperties[0].customProperties[0]: delivery is left out" in early.unsupported

"""Contracts that hypothesis makes up: every clause that a diff looks at, in any combination."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = st.sampled_from(["a", "b", "c", "amount", "order_id", "Land"])
TYPES = st.sampled_from(["int", "bigint", "string", "decimal(10,2)", "array<int>", "struct<a:int>", "jsonb"])
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "minimum": st.integers(-5, 5),
        "exclusiveMaximum": st.integers(6, 20),
        "maximum": st.integers(6, 20),
        "pattern": st.sampled_from(["^A", "B$"]),
        "format": st.sampled_from(["email", "i64"]),
    },
)
RULES = st.lists(
    st.fixed_dictionaries(
        {"metric": st.sampled_from(["nullValues", "rowCount", "invalidValues"])},
        optional={
            "id": NAMES,
            "mustBe": st.integers(0, 3),
            "unit": st.sampled_from(["rows", "percent"]),
            "validValues": st.lists(st.sampled_from(["A", "B", "C"]), min_size=1, unique=True),
        },
    ),
    max_size=3,
)
PROPERTIES = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES},
        optional={
            "id": NAMES,
            "physicalType": TYPES,
            "logicalType": st.sampled_from(["string", "integer", "number", "date"]),
            "required": st.booleans(),
            "unique": st.booleans(),
            "partitioned": st.booleans(),
            "primaryKey": st.booleans(),
            "classification": st.sampled_from(["public", "restricted"]),
            "logicalTypeOptions": OPTIONS,
            "quality": RULES,
            "deprecated": st.booleans(),
            "enum": st.lists(st.sampled_from(["A", "B", "C"]), min_size=1, unique=True).map(
                lambda listed: [{"value": one} for one in listed]
            ),
        },
    ),
    min_size=1,
    max_size=4,
    unique_by=(lambda one: one["name"], lambda one: one.get("id", one["name"])),
)
SLAS = st.lists(
    st.fixed_dictionaries(
        {
            "property": st.sampled_from(["latency", "retention", "availability", "frequency"]),
            "value": st.integers(1, 9),
            "unit": st.sampled_from(["h", "d", "y"]),
        },
        optional={"schedule": st.sampled_from(["0 6 * * *", "0 7 * * 1-5"])},
    ),
    max_size=2,
    unique_by=lambda one: one["property"],
)
SERVERS = st.lists(
    st.fixed_dictionaries(
        {"server": NAMES, "type": st.just("s3"), "location": st.sampled_from(["s3://b/o", "s3://c/o"])},
        optional={"format": st.sampled_from(["parquet", "csv", "iceberg"])},
    ),
    max_size=2,
    unique_by=lambda one: one["server"],
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "apiVersion": "v3.2.0",
        "kind": "DataContract",
        "id": "orders",
        "version": "1.0.0",
        "status": draw(st.sampled_from(["draft", "active", "deprecated"])),
        "tags": draw(st.lists(NAMES, unique=True, max_size=2)),
        "servers": draw(SERVERS),
        "slaProperties": draw(SLAS),
        "schema": [{"name": "orders", "properties": draw(PROPERTIES)}],
    }

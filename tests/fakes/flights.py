"""Contracts as text, and what they make."""

from __future__ import annotations

from fakes.reach import anywhere

from dq.contracts.access.data_location import resolve
from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.registry.table import TableSpec, specs

FLIGHTS = """\
apiVersion: v3.2.0
kind: DataContract
id: air-flights
name: Air flights
version: {version}
domain: air
dataProduct: flights
team:
  name: Air Operations
servers:
  - server: lake
    type: {server}
schema:
  - name: Flights
    physicalName: Flights
    description: {description}
    customProperties:
      - property: dataset
        vendor: dq
        value: {{format: {format}}}
    properties:
      - {{name: id, logicalType: integer, physicalType: {id_type}, description: {comment}}}
      - {{name: Price, logicalType: number, physicalType: "decimal(18,2)"}}
{more}\
      - {{name: flight_date, logicalType: date, partitioned: true, partitionKeyPosition: 1}}
      - {{name: hour, logicalType: integer, physicalType: int, partitioned: true, partitionKeyPosition: 2}}
"""


def contract(location: str, **parts: str) -> Contract:
    """The contract of one table of flights; `parts` fill the text above."""
    filled = {
        "version": "1.0.0",
        "description": "Every flight that left.",
        "format": "parquet",
        "id_type": "bigint",
        "comment": "The key.",
        "more": "",
        "server": f"s3\n    location: {location}",
    } | parts
    parsed = parse(FLIGHTS.format(**filled).encode(), "flights.odcs.yaml")
    assert parsed.findings == []
    assert parsed.contract is not None
    return parsed.contract


def flights(location: str, **parts: str) -> TableSpec:
    """The specification of that table."""
    made = contract(location, **parts)
    return specs(made, lambda one: resolve(made, one, None, anywhere()))[0]

"""Tables of Iceberg in Glue, written by pyiceberg: registered, they are as they were, and it goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import boto3
import pyarrow as pa
import pytest
from fakes.flights import flights
from fakes.glue import GlueShim
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.types import StringType

from dq.registry.aws.glue import Glue
from dq.registry.catalog import ActionKind
from dq.registry.plan import ActionOutcome, apply, propose
from dq.registry.table import TableSpec, marked
from dq.store.engine import Store

NAME = "air_flights.flights"
ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "carrier": ["UA", None]})


@pytest.fixture
def iceberg(glue: GlueShim) -> GlueCatalog:
    """pyiceberg on the same Glue, with a table of two rows in a bucket of moto."""
    keys = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION")
    endpoint, key, secret, region = (glue.environment[name] for name in keys)
    storage = f"http://127.0.0.1:{glue.backend}"
    boto3.client("s3", endpoint_url=storage).create_bucket(
        Bucket="lake", CreateBucketConfiguration={"LocationConstraint": region}
    )
    made = GlueCatalog(
        "theirs",
        **{
            "glue.endpoint": endpoint, "glue.region": region,
            "glue.access-key-id": key, "glue.secret-access-key": secret,
            "s3.endpoint": storage, "s3.region": region,
            "s3.access-key-id": key, "s3.secret-access-key": secret,
        },
    )  # fmt: skip
    made.create_namespace("air_flights")
    made.create_table(NAME, ROWS.schema, location="s3://lake/air").append(ROWS)
    return made


def spec(description: str) -> TableSpec:
    plain = replace(flights("s3://lake/air", format="iceberg"), parameters=(), description=description)
    return marked(plain, {"dq.contract-id": "air-flights", "dq.contract-version": "1.0.0"})


def register(
    catalog: Glue, store: Store, wanted: TableSpec, *, adopt: bool = False
) -> tuple[ActionKind, ActionOutcome]:
    made = propose(catalog, [wanted], store, adopt=adopt)
    (result,) = apply(catalog, made, store)
    return result.action.kind, result.outcome


def theirs(catalog: Glue) -> str:
    """All that is not dq's of the table as Glue has it, as one text."""
    raw: dict[str, Any] = catalog.connection.client.get_table(DatabaseName="air_flights", Name="flights")
    table = raw["Table"]
    own = {key: text for key, text in table["Parameters"].items() if not key.startswith("dq.")}
    members = ("StorageDescriptor", "PartitionKeys", "TableType")
    return json.dumps([own, *(table.get(name) for name in members)], sort_keys=True)


def test_columns_and_pointers_are_untouched_and_pyiceberg_reads_on(
    glue_catalog: Glue, store: Store, iceberg: GlueCatalog
) -> None:
    before, metadata = theirs(glue_catalog), iceberg.load_table(NAME).metadata

    refused = register(glue_catalog, store, spec("Ours."))
    adopted = register(glue_catalog, store, spec("Ours."), adopt=True)
    changed = register(glue_catalog, store, spec("Now."))

    assert [one for _, one in (refused, adopted, changed)] == [
        ActionOutcome.REFUSED,
        ActionOutcome.DONE,
        ActionOutcome.DONE,
    ]
    assert theirs(glue_catalog) == before
    table = iceberg.load_table(NAME)
    assert table.metadata == metadata
    assert table.scan().to_arrow().to_pylist() == ROWS.to_pylist()
    assert register(glue_catalog, store, spec("Now.")) == (ActionKind.NOOP, ActionOutcome.UNCHANGED)


def test_pyiceberg_commits_and_evolves_and_keeps_what_dq_wrote(
    glue_catalog: Glue, store: Store, iceberg: GlueCatalog
) -> None:
    register(glue_catalog, store, spec(""), adopt=True)

    table = iceberg.load_table(NAME)
    table.append(ROWS)
    with table.update_schema() as update:
        update.add_column("note", StringType())

    live = glue_catalog.read("air_flights", "flights")
    assert live is not None
    assert (live.spec.format, live.spec.parameter("dq.contract-id")) == ("iceberg", "air-flights")
    assert register(glue_catalog, store, spec("")) == (ActionKind.NOOP, ActionOutcome.UNCHANGED)
    assert len(iceberg.load_table(NAME).scan().to_arrow()) == 2 * len(ROWS)


def test_a_commit_between_reading_and_writing_is_not_lost(
    glue: GlueShim, glue_catalog: Glue, store: Store, iceberg: GlueCatalog
) -> None:
    register(glue_catalog, store, spec(""), adopt=True)

    def between(call: Any, forward: Any) -> Any:
        iceberg.load_table(NAME).append(ROWS)
        return forward()

    glue.faults["UpdateTable"] = [between]
    kind, ending = register(replace(glue_catalog, pause=lambda seconds: None), store, spec("Changed."))

    assert (kind, ending) == (ActionKind.UPDATE, ActionOutcome.DONE)
    assert len(iceberg.load_table(NAME).scan().to_arrow()) == 2 * len(ROWS)
    live = glue_catalog.read("air_flights", "flights")
    assert live is not None
    assert live.spec.description == "Changed."

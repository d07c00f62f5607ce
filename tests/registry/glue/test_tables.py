"""Tables in Glue beside other writers: what is theirs survives, the stale is found, the lost is read back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fakes.flights import flights
from fakes.glue import Answer, Call, GlueShim, refused

from dq.contracts.outcome import DqError, ReadError, UsageError
from dq.registry.aws.client import Rate, TokenBucket, connect
from dq.registry.aws.glue import Glue
from dq.registry.aws.glue_requests import new_table
from dq.registry.catalog import ActionKind, CatalogSettings, Impact, Partition
from dq.registry.catalogs import open_catalog
from dq.registry.plan import ActionOutcome, ActionResult, CompleteRegistry, apply, propose
from dq.registry.table import TableColumn, TableSpec, marked
from dq.store.engine import Store

LAKE = "s3://lake/air"
KEY = {"DatabaseName": "air_flights", "Name": "flights"}


@pytest.fixture
def glue_catalog(glue: GlueShim, glue_catalog: Glue) -> Iterator[Glue]:
    """Turns do not wait here."""
    return replace(glue_catalog, pause=lambda seconds: None)


def run(catalog: Glue, store: Store, *specs: TableSpec, **options: Any) -> list[ActionResult]:
    made = propose(catalog, specs, store, adopt=options.pop("adopt", False))
    return apply(catalog, made, store, **options)


def raw(catalog: Glue) -> dict[str, Any]:
    table: dict[str, Any] = catalog.connection.client.get_table(**KEY)["Table"]
    return table


def others_write(catalog: Glue, **members: Any) -> None:
    """Another writer changes members of the table, and bumps its version."""
    live = raw(catalog)
    keys = ("Name", "Description", "StorageDescriptor", "PartitionKeys", "TableType", "Parameters", "Owner")
    made = {key: live[key] for key in keys if key in live} | members
    catalog.connection.client.update_table(
        DatabaseName="air_flights", TableInput=made, VersionId=live["VersionId"], SkipArchive=True
    )


def test_what_athena_reads_is_written(glue_catalog: Glue, store: Store) -> None:
    run(glue_catalog, store, flights(LAKE))

    table = raw(glue_catalog)
    storage = table["StorageDescriptor"]
    assert table["TableType"] == "EXTERNAL_TABLE"
    assert table["Parameters"]["EXTERNAL"] == "TRUE"
    assert table["Parameters"]["classification"] == "parquet"
    assert storage["Location"] == "s3://lake/air/"
    assert storage["SerdeInfo"]["SerializationLibrary"].endswith("ParquetHiveSerDe")
    assert storage["Columns"][0] == {"Name": "id", "Type": "bigint", "Comment": "The key."}
    assert [key["Type"] for key in table["PartitionKeys"]] == ["date", "int"]


def test_a_database_is_made_once_and_marked(glue: GlueShim, glue_catalog: Glue, store: Store) -> None:
    second = marked(replace(flights(LAKE), name="second", location=f"{LAKE}2", parameters=()), {})

    run(glue_catalog, store, flights(LAKE), second)

    assert glue.writes().count("CreateDatabase") == 1
    found = glue_catalog.connection.client.get_database(Name="air_flights")["Database"]
    assert found["Parameters"] == {"dq.managed-by": "dq"}


def test_what_others_wrote_survives_an_update(glue_catalog: Glue, store: Store) -> None:
    run(glue_catalog, store, flights(LAKE))
    live = raw(glue_catalog)
    theirs = dict(live["Parameters"]) | {"UPDATED_BY_CRAWLER": "x", "projection.enabled": "false"}
    storage = live["StorageDescriptor"]
    storage["Columns"][0]["Parameters"] = {"theirs": "1"}
    storage["SerdeInfo"]["Parameters"]["theirs"] = "2"
    others_write(glue_catalog, Parameters=theirs, StorageDescriptor=storage, Owner="somebody")

    results = run(glue_catalog, store, flights(LAKE, comment="Another.", version="1.1.0"))

    table = raw(glue_catalog)
    assert [result.outcome for result in results] == [ActionOutcome.DONE]
    assert table["Parameters"]["UPDATED_BY_CRAWLER"] == "x"
    assert table["Parameters"]["projection.enabled"] == "false"
    assert table["Owner"] == "somebody"
    assert table["StorageDescriptor"]["Columns"][0]["Parameters"] == {"theirs": "1"}
    assert table["StorageDescriptor"]["Columns"][0]["Comment"] == "Another."
    assert table["StorageDescriptor"]["SerdeInfo"]["Parameters"]["theirs"] == "2"


def test_every_update_names_its_version_and_keeps_old_ones_only_where_columns_change(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    run(glue_catalog, store, flights(LAKE))
    run(glue_catalog, store, flights(LAKE, description="New."))
    run(glue_catalog, store, flights(LAKE, description="New.", more="      - {name: carrier}\n"))

    updates = [call.body for call in glue.calls if call.operation == "UpdateTable"]

    assert [bool(body["VersionId"]) for body in updates] == [True, True]
    assert [body["SkipArchive"] for body in updates] == [True, False]


@pytest.mark.parametrize(
    "parameters",
    [
        {"table_type": "ICEBERG", "metadata_location": "s3://lake/air/metadata/2.json",
         "previous_metadata_location": "s3://lake/air/metadata/1.json"},
        {"table_type": "DELTA", "spark.sql.sources.provider": "delta"},
        {"spark.sql.sources.provider": "hudi", "last_commit_time_sync": "20261120"},
    ],
    ids=["iceberg", "delta", "hudi"],
)  # fmt: skip
def test_open_tables_keep_their_columns_and_pointers_byte_for_byte(
    glue_catalog: Glue, store: Store, parameters: dict[str, str]
) -> None:
    kind = parameters.get("table_type", "hudi").lower()
    storage = {
        "Columns": [
            {"Name": "ID", "Type": "bigint", "Parameters": {"iceberg.field.id": "1"}, "Comment": "Theirs."},
            {"Name": "gone", "Type": "uniontype<int>", "Parameters": {"iceberg.field.current": "false"}},
        ],
        "Location": "s3://lake/air",
        "InputFormat": "theirs",
    }
    client = glue_catalog.connection.client
    client.create_database(DatabaseInput={"Name": "air_flights"})
    made = {"Name": "flights", "TableType": "EXTERNAL_TABLE", "Parameters": parameters}
    born = json.dumps({"DatabaseName": "air_flights", "TableInput": made | {"StorageDescriptor": storage}})
    assert _as_another_writer(client, born) == 200
    before = raw(glue_catalog)

    results = run(glue_catalog, store, flights(LAKE, format=kind), adopt=True)
    changed = run(glue_catalog, store, flights(LAKE, format=kind, description="Now.", version="1.1.0"))

    after = raw(glue_catalog)
    assert [one.outcome for one in (*results, *changed)] == [ActionOutcome.DONE, ActionOutcome.DONE]
    assert json.dumps(after["StorageDescriptor"]) == json.dumps(before["StorageDescriptor"])
    assert after.get("PartitionKeys") == before.get("PartitionKeys")
    assert {key: after["Parameters"][key] for key in parameters} == parameters
    assert after["Parameters"]["dq.contract-version"] == "1.1.0"
    assert after["Description"] == "Now."
    assert (
        run(glue_catalog, store, flights(LAKE, format=kind, description="Now.", version="1.1.0"))[0].outcome
        is ActionOutcome.UNCHANGED
    )


def test_a_view_keeps_its_text_and_gets_our_properties(glue_catalog: Glue, store: Store) -> None:
    client = glue_catalog.connection.client
    client.create_database(DatabaseInput={"Name": "air_flights"})
    made = {"Name": "flights", "TableType": "VIRTUAL_VIEW", "ViewOriginalText": "/* Presto View: e30= */",
            "ViewExpandedText": "/* Presto View */", "Parameters": {"presto_view": "true"},
            "StorageDescriptor": {"Columns": [{"Name": "id", "Type": "bigint"}]}}  # fmt: skip
    body = json.dumps({"DatabaseName": "air_flights", "TableInput": made})
    assert _as_another_writer(client, body) == 200
    plain = replace(flights(LAKE), format="view", location="", parameters=())
    spec = marked(plain, {"dq.contract-id": "air-flights", "dq.contract-version": "1.0.0"})

    refused = run(glue_catalog, store, spec)
    adopted = run(glue_catalog, store, spec, adopt=True)

    after = raw(glue_catalog)
    assert [one.outcome for one in (*refused, *adopted)] == [ActionOutcome.REFUSED, ActionOutcome.DONE]
    assert {key: after[key] for key in ("TableType", "ViewOriginalText", "StorageDescriptor")} == {
        key: made[key] for key in ("TableType", "ViewOriginalText", "StorageDescriptor")
    }
    assert after["Parameters"]["presto_view"] == "true"
    assert after["Parameters"]["dq.contract-id"] == "air-flights"
    assert run(glue_catalog, store, spec)[0].outcome is ActionOutcome.UNCHANGED


def _as_another_writer(client: Any, body: str, action: str = "CreateTable") -> int:
    """A request past our own validation, which other writers do not have."""
    import urllib.request

    url = client.meta.endpoint_url
    headers = {"X-Amz-Target": f"AWSGlue.{action}", "Content-Type": "application/x-amz-json-1.1",
               "Authorization": "AWS4-HMAC-SHA256 Credential=test/20261120/eu-central-1/glue/aws4_request, "
               "SignedHeaders=host, Signature=0"}  # fmt: skip
    with urllib.request.urlopen(urllib.request.Request(url, body.encode(), headers)) as answer:
        return int(answer.status)


def between(change: Any) -> Any:
    """A fault: another writer acts between our reading and our writing."""

    def fault(call: Call, forward: Any) -> Answer:
        change()
        return forward()

    return fault


def test_a_version_that_moved_for_what_is_not_ours_is_merged_anew(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    run(glue_catalog, store, flights(LAKE))
    theirs = raw(glue_catalog)["Parameters"] | {"recordCount": "7"}
    glue.faults["UpdateTable"] = [between(lambda: others_write(glue_catalog, Parameters=theirs))]

    results = run(glue_catalog, store, flights(LAKE, comment="Another."))

    table = raw(glue_catalog)
    assert [result.outcome for result in results] == [ActionOutcome.DONE]
    assert table["Parameters"]["recordCount"] == "7"
    assert table["StorageDescriptor"]["Columns"][0]["Comment"] == "Another."
    assert glue.writes().count("UpdateTable") == 3


def test_a_version_that_moved_for_what_is_ours_makes_the_plan_stale(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    run(glue_catalog, store, flights(LAKE))
    storage = raw(glue_catalog)["StorageDescriptor"]
    storage["Columns"][0]["Comment"] = "Theirs."
    glue.faults["UpdateTable"] = [between(lambda: others_write(glue_catalog, StorageDescriptor=storage))]

    results = run(glue_catalog, store, flights(LAKE, comment="Ours."))

    assert [result.outcome for result in results] == [ActionOutcome.FAILED]
    assert "The plan is stale" in str(results[0].error)
    assert raw(glue_catalog)["StorageDescriptor"]["Columns"][0]["Comment"] == "Theirs."


def test_a_table_that_is_written_all_the_time_is_given_up_with_a_reason(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    run(glue_catalog, store, flights(LAKE))
    conflict = refused("ConcurrentModificationException", "conflict")
    glue.faults["UpdateTable"] = [lambda call, forward: conflict] * 5

    results = run(glue_catalog, store, flights(LAKE, comment="Ours."))

    assert [result.outcome for result in results] == [ActionOutcome.FAILED]
    assert "continuously by someone else" in str(results[0].error)


LOST: dict[str, Any] = {
    "an error of the server after it was done": lambda call, forward: (
        forward(), refused("InternalServiceException", "sorry", 500),
    )[1],
    "a hang-up after it was done": lambda call, forward: (forward(), None)[1],
    "a refusal that is none": lambda call, forward: (
        forward(), refused("OperationTimeoutException", "late"),
    )[1],
}  # fmt: skip


@pytest.mark.parametrize("fault", LOST.values(), ids=list(LOST))
def test_an_answer_that_is_lost_is_read_back(glue: GlueShim, store: Store, fault: Any) -> None:
    catalog = _impatient()
    glue.faults["CreateTable"] = [lambda call, forward: forward(), fault]
    created = run(catalog, store, flights(LAKE))
    glue.faults["UpdateTable"] = [fault]
    updated = run(catalog, store, flights(LAKE, comment="Another."))

    assert [one.outcome for one in (*created, *updated)] == [ActionOutcome.DONE, ActionOutcome.DONE]
    assert glue.writes() == ["CreateTable", "CreateDatabase", "CreateTable", "UpdateTable"]
    again = run(catalog, store, flights(LAKE, comment="Another."))
    assert [one.outcome for one in again] == [ActionOutcome.UNCHANGED]


def test_what_was_not_done_is_never_called_done(glue: GlueShim, store: Store) -> None:
    catalog = _impatient()
    run(catalog, store, flights(LAKE))
    glue.faults["UpdateTable"] = [lambda call, forward: refused("InternalServiceException", "sorry", 500)]

    results = run(catalog, store, flights(LAKE, comment="Another."))

    assert [one.outcome for one in results] == [ActionOutcome.FAILED]
    assert isinstance(results[0].error, ReadError)
    again = propose(catalog, [flights(LAKE, comment="Another.")], store)
    assert [action.kind for action in again.actions] == [ActionKind.UPDATE]


def test_a_retry_of_what_arrived_is_no_conflict(glue: GlueShim, glue_catalog: Glue, store: Store) -> None:
    fault = LOST["an error of the server after it was done"]
    glue.faults["CreateTable"] = [lambda call, forward: forward(), fault]
    created = run(glue_catalog, store, flights(LAKE))
    glue.faults["UpdateTable"] = [fault]
    updated = run(glue_catalog, store, flights(LAKE, comment="Another."))

    # Whose table it is that a repeated CreateTable meets, no catalog tells.
    assert [one.outcome for one in (*created, *updated)] == [ActionOutcome.UNCHANGED, ActionOutcome.DONE]


def test_throttling_is_waited_out(glue: GlueShim, glue_catalog: Glue, store: Store) -> None:
    throttled = refused("ThrottlingException", "Rate exceeded")
    glue.faults["GetTable"] = [lambda call, forward: throttled] * 2

    results = run(glue_catalog, store, flights(LAKE))

    assert [one.outcome for one in results] == [ActionOutcome.DONE]


def test_one_table_that_is_refused_stops_no_other(glue: GlueShim, glue_catalog: Glue, store: Store) -> None:
    other = marked(replace(flights(LAKE), name="other", location=f"{LAKE}2", parameters=()), {})
    denied = refused("AccessDeniedException", "User is not authorized to perform: glue:CreateTable")
    glue.faults["CreateTable"] = [lambda call, forward: denied]

    results = run(glue_catalog, store, flights(LAKE), other)

    assert [one.outcome for one in results] == [ActionOutcome.FAILED, ActionOutcome.DONE]
    assert "not authorized to perform: glue:CreateTable" in str(results[0].error)
    assert "permission" in str(results[0].error)


def test_other_partition_keys_are_refused_with_the_way_out(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    run(glue_catalog, store, flights(LAKE))
    other = replace(flights(LAKE), partitions=(TableColumn("flight_date", "date"),))

    results = run(glue_catalog, store, other, allow=frozenset(Impact))

    assert [(one.action.kind, one.outcome) for one in results] == [
        (ActionKind.CONFLICT, ActionOutcome.REFUSED)
    ]
    assert "Glue cannot change the partition keys" in str(results[0].error)
    assert "new table for the new keys" in results[0].action.blockers[0].hint


def test_a_changed_type_reaches_the_partitions_first(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    run(glue_catalog, store, flights(LAKE))
    many = [Partition((("flight_date", f"2026-01-{day:02}"), ("hour", str(hour))), f"{LAKE}/{day}/{hour}")
            for day in range(1, 29) for hour in range(5)]  # fmt: skip
    table = ("air_flights", "flights")
    assert all(glue_catalog.add_partition(*table, one.values, one.location) for one in many)
    assert not glue_catalog.add_partition(*table, many[0].values, many[0].location)

    run(glue_catalog, store, flights(LAKE, id_type="string"), allow=frozenset({Impact.BREAKING}))

    listed = glue_catalog.connection.client.get_partitions(DatabaseName="air_flights", TableName="flights")
    types = {one["StorageDescriptor"]["Columns"][0]["Type"] for one in listed["Partitions"]}
    assert types == {"string"}
    assert len(glue_catalog.partitions("air_flights", "flights")) == 140
    assert glue.writes()[-3:] == ["BatchUpdatePartition", "BatchUpdatePartition", "UpdateTable"]


def test_a_partition_with_other_keys_is_refused_before_a_write(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    run(glue_catalog, store, flights(LAKE))

    with (
        glue.counted() as writes,
        pytest.raises(UsageError, match="has the partition keys flight_date, hour"),
    ):
        glue_catalog.add_partition("air_flights", "flights", (("flight_date", "2026-11-20"),), f"{LAKE}/x")

    assert writes == []


def test_a_partition_that_glue_refuses_in_an_answer_that_says_all_is_well_is_an_error(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    run(glue_catalog, store, flights(LAKE))
    values = (("flight_date", "2026-11-20"), ("hour", "7"))
    detail = {"ErrorCode": "InternalServiceException", "ErrorMessage": "sorry"}
    error = {"PartitionValues": ["2026-11-20", "7"], "ErrorDetail": detail}
    answer = Answer(200, json.dumps({"Errors": [error]}).encode())
    glue.faults["BatchCreatePartition"] = [lambda call, forward: answer]

    with pytest.raises(DqError, match=r"refused partitions of air_flights\.flights: InternalService"):
        glue_catalog.add_partition("air_flights", "flights", values, f"{LAKE}/x")


def test_glue_refuses_one_partition_of_a_batch(glue: GlueShim, glue_catalog: Glue, store: Store) -> None:
    run(glue_catalog, store, flights(LAKE))
    partitions = [
        Partition((("flight_date", "2026-11-20"), ("hour", str(hour))), f"{LAKE}/{hour}") for hour in range(3)
    ]
    detail = {"ErrorCode": "InternalServiceException", "ErrorMessage": "sorry"}
    error = {"PartitionValues": ["2026-11-20", "1"], "ErrorDetail": detail}
    answer = Answer(200, json.dumps({"Errors": [error]}).encode())
    glue.faults["BatchCreatePartition"] = [lambda call, forward: answer]

    added, refused, last = glue_catalog.add_partitions("air_flights", "flights", partitions)

    assert (added, last) == (True, True)
    assert "refused partitions of air_flights.flights: InternalServiceException" in str(refused)


@pytest.mark.parametrize("values", [{"PartitionValues": ["2026-11-20", "01"]}, {}])
def test_an_error_of_a_batch_without_its_partition_is_not_ignored(
    glue: GlueShim, glue_catalog: Glue, store: Store, values: dict[str, list[str]]
) -> None:
    run(glue_catalog, store, flights(LAKE))
    detail = {"ErrorCode": "InternalServiceException", "ErrorMessage": "sorry"}
    answer = Answer(200, json.dumps({"Errors": [{**values, "ErrorDetail": detail}]}).encode())
    glue.faults["BatchCreatePartition"] = [lambda call, forward: answer]

    with pytest.raises(DqError, match="InternalServiceException: sorry"):
        glue_catalog.add_partition(
            "air_flights", "flights", (("flight_date", "2026-11-20"), ("hour", "1")), f"{LAKE}/1"
        )


def test_a_whole_database_is_listed_page_by_page_and_unchanged_costs_no_write(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    plain = flights(LAKE)
    many = [
        marked(replace(plain, name=f"t{number:03}", location=f"{LAKE}/{number}", parameters=()), {})
        for number in range(130)
    ]
    first = propose(glue_catalog, many, store, complete=CompleteRegistry(""))
    apply(glue_catalog, first, store)
    glue.calls.clear()

    second = propose(glue_catalog, many, store, complete=CompleteRegistry(""))
    apply(glue_catalog, second, store)

    assert {action.kind for action in second.actions} == {ActionKind.NOOP}
    assert [call.operation for call in glue.calls] == ["GetTables", "GetTables"]


def test_marks_that_another_writer_wiped_are_found_and_put_back(glue_catalog: Glue, store: Store) -> None:
    run(glue_catalog, store, flights(LAKE))
    others_write(glue_catalog, Parameters={"classification": "parquet"})

    made = propose(glue_catalog, [flights(LAKE)], store)
    results = apply(glue_catalog, made, store)

    assert made.actions[0].kind is ActionKind.DRIFT
    assert "Its dq properties are missing; someone else changed it at " in made.actions[0].note
    assert [one.outcome for one in results] == [ActionOutcome.DONE]
    assert raw(glue_catalog)["Parameters"]["dq.contract-id"] == "air-flights"
    assert raw(glue_catalog)["Parameters"]["EXTERNAL"] == "TRUE"


def test_a_table_of_another_registry_is_refused(glue_catalog: Glue, store: Store) -> None:
    run(glue_catalog, store, flights(LAKE))
    others_write(
        glue_catalog,
        Parameters=raw(glue_catalog)["Parameters"] | {"dq.registry": "github.com/other/contracts"},
    )

    results = run(glue_catalog, store, flights(LAKE, comment="Ours."), adopt=True)

    assert [one.outcome for one in results] == [ActionOutcome.REFUSED]
    assert "belongs to the registry 'github.com/other/contracts'" in str(results[0].error)


def test_what_is_remembered_of_one_account_is_not_taken_for_another_s(glue: GlueShim) -> None:
    mine, theirs = connect(), connect(catalog_id="999999999999")

    assert mine.id == "glue:123456789012:eu-central-1"
    assert theirs.id == "glue:999999999999:eu-central-1"
    theirs.client.get_databases(**theirs.catalog)
    assert glue.calls[-1].body["CatalogId"] == "999999999999"


def test_a_role_is_taken_on_and_names_the_account(glue: GlueShim) -> None:
    catalog = open_catalog("glue", CatalogSettings(role_arn="arn:aws:iam::222222222222:role/registrar"))

    assert catalog.tables("air_flights") == []
    assert catalog.id == "glue:222222222222:eu-central-1"


@pytest.mark.parametrize("role", ["registrar", "arn:aws:iam::1:user/me", "arn:aws:sts::1:role"])
def test_a_role_that_is_none_is_refused(glue: GlueShim, role: str) -> None:
    with pytest.raises(UsageError, match="is not the ARN of a role"):
        connect(role)


def test_without_a_region_the_mistake_is_the_user_s(glue: GlueShim, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")

    with pytest.raises(UsageError, match="You must specify a region"):
        connect()


def test_without_credentials_the_mistake_is_the_user_s(
    glue: GlueShim, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")

    with pytest.raises(UsageError, match="Unable to locate credentials"):
        connect()


def test_a_bucket_gives_its_burst_at_once_and_then_its_rate() -> None:
    slept: list[float] = []
    now = [0.0]
    bucket = TokenBucket(Rate(5, 2), clock=lambda: now[0], pause=slept.append)

    for _ in range(4):
        bucket.take()

    assert slept == [pytest.approx(0.2), pytest.approx(0.4)]
    now[0] = 100.0
    bucket.take()
    assert len(slept) == 2


def _impatient() -> Glue:
    """A catalog that tries once, so that what is lost stays lost."""
    return Glue(connect(attempts=1), pause=lambda seconds: None)


@pytest.mark.parametrize(
    "members",
    [
        {"TableType": "VIRTUAL_VIEW", "ViewOriginalText": "/* Presto View: x */"},
        {"TargetTable": {"CatalogId": "999999999999", "DatabaseName": "theirs", "Name": "flights"}},
    ],
    ids=["a view", "a link to a table of another account"],
)
def test_what_is_no_table_is_never_made_one(
    glue: GlueShim, glue_catalog: Glue, store: Store, members: dict[str, Any]
) -> None:
    client = glue_catalog.connection.client
    client.create_database(DatabaseInput={"Name": "air_flights"})
    columns = {"StorageDescriptor": {"Columns": [{"Name": "id", "Type": "bigint"}]}}
    body = {"DatabaseName": "air_flights", "TableInput": {"Name": "flights"} | columns | members}
    assert _as_another_writer(client, json.dumps(body)) == 200
    before = raw(glue_catalog)

    with glue.counted() as writes:
        results = run(glue_catalog, store, flights(LAKE), adopt=True)

    assert ([one.outcome for one in results], writes) == ([ActionOutcome.REFUSED], [])
    assert raw(glue_catalog) == before


def test_a_refusal_that_comes_with_the_whole_request_shows_no_token(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    message = "The request signature does not match.\n\nThe canonical string was\nx-amz-security-token:SECRET"
    glue.faults["GetTable"] = [lambda call, forward: refused("InvalidSignatureException", message)]

    with pytest.raises(ReadError) as caught:
        glue_catalog.read("air_flights", "flights")

    assert "does not match" in str(caught.value)
    assert "SECRET" not in str(caught.value)


def test_a_database_that_another_process_makes_meanwhile_is_no_fault(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    client = glue_catalog.connection.client
    glue.faults["CreateDatabase"] = [
        between(lambda: client.create_database(DatabaseInput={"Name": "air_flights"}))
    ]

    results = run(glue_catalog, store, flights(LAKE))

    assert [one.outcome for one in results] == [ActionOutcome.DONE]


def test_a_table_that_another_removes_between_reading_and_writing_is_stale(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    run(glue_catalog, store, flights(LAKE))
    client = glue_catalog.connection.client
    glue.faults["UpdateTable"] = [between(lambda: client.delete_table(**KEY))]

    results = run(glue_catalog, store, flights(LAKE, comment="Another."))

    assert [one.outcome for one in results] == [ActionOutcome.FAILED]
    assert glue_catalog.read("air_flights", "flights") is None


@pytest.mark.parametrize("form", ["parquet", "json"])
@pytest.mark.parametrize("scheme", ["s3a", "s3n"])
def test_a_table_at_an_address_of_hadoop_is_adopted_as_planned(
    glue: GlueShim, glue_catalog: Glue, store: Store, scheme: str, form: str
) -> None:
    """T29: the plan said "adopt", and Glue's own rules refused the table's location on apply."""
    spec, client = flights(LAKE, format=form), glue_catalog.connection.client
    client.create_database(DatabaseInput={"Name": "air_flights"})
    table = new_table(spec)
    storage = table["StorageDescriptor"] | {"Location": f"{scheme}://lake/air/"}
    theirs = {key: text for key, text in table["Parameters"].items() if not key.startswith("dq.")}
    for action, body in (
        ("CreateTable", {"TableInput": table | {"Parameters": theirs, "StorageDescriptor": storage}}),
        ("CreatePartition", {"TableName": "flights", "PartitionInput": {
            "Values": ["2026-05-01", "7"], "StorageDescriptor": storage | {"Location": f"{scheme}://lake/x"},
        }}),
    ):  # fmt: skip
        written = json.dumps({"DatabaseName": "air_flights", **body})
        assert _as_another_writer(client, written, action) == 200
    planned = propose(glue_catalog, [spec], store, adopt=True)

    [result] = apply(glue_catalog, planned, store)
    again = run(glue_catalog, store, spec)
    other_type = flights(LAKE, format=form, id_type="int", version="1.1.0")
    narrowed = run(glue_catalog, store, other_type, allow=frozenset(Impact))

    assert (planned.actions[0].kind, result.outcome) == (ActionKind.ADOPT, ActionOutcome.DONE), result.error
    assert raw(glue_catalog)["StorageDescriptor"]["Location"] == "s3://lake/air/"
    assert [one.outcome for one in (*again, *narrowed)] == [ActionOutcome.UNCHANGED, ActionOutcome.DONE], (
        narrowed[0].error
    )

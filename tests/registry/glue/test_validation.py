"""Every request is looked at before it leaves; what AWS would refuse never reaches the wire."""

from __future__ import annotations

import contextlib
import copy
import re
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError
from fakes.glue import GlueShim
from fakes.glue_mistakes import MISTAKES, RIGHT, planted

from dq.contracts.outcome import UsageError
from dq.registry.aws.glue import Glue
from dq.registry.aws.glue_requests import RULES, compiled, refuse


@pytest.mark.parametrize(("operation", "change", "said"), [
    pytest.param(operation, change, said, id=title) for title, operation, change, said in MISTAKES
])  # fmt: skip
def test_a_planted_mistake_is_refused_before_a_call_leaves(
    glue: GlueShim, glue_catalog: Glue, operation: str, change: Any, said: str
) -> None:
    request = planted(operation, change)

    with pytest.raises(UsageError, match=re.escape(said)):
        getattr(glue_catalog.connection.client, operation)(**request)

    assert glue.calls == []


@pytest.mark.parametrize("operation", sorted(RIGHT))
def test_the_request_without_the_mistake_leaves(glue: GlueShim, glue_catalog: Glue, operation: str) -> None:
    # There is no such table, but who is refused was asked.
    with contextlib.suppress(ClientError):
        getattr(glue_catalog.connection.client, operation)(**copy.deepcopy(RIGHT[operation]))

    assert len(glue.calls) == 1


def test_at_least_eighty_different_mistakes_are_planted() -> None:
    assert len({title for title, *_ in MISTAKES}) == len(MISTAKES) >= 80


def test_every_operation_with_rules_of_its_own_has_a_right_request_and_a_mistake() -> None:
    model = _model()
    ours = {model.operation_model(name).name for name in RULES}
    tried = {_camel(operation) for _, operation, *_ in MISTAKES}

    assert ours <= {_camel(operation) for operation in RIGHT}
    assert ours <= tried


def test_all_mistakes_of_a_request_are_told_at_once() -> None:
    request = copy.deepcopy(RIGHT["create_table"])
    request["TableInput"]["Name"] = "Flights"
    request["TableInput"]["StorageDescriptor"]["Columns"][0]["Type"] = "number"
    request["TableInput"]["StorageDescriptor"]["Location"] = "/lake"

    with pytest.raises(UsageError) as caught:
        refuse(_model().operation_model("CreateTable"), request)

    told = str(caught.value)
    assert told.startswith("air.Flights: Glue would reject this CreateTable:")
    assert [word for word in ("'Flights'", "'number'", "'/lake'") if word not in told] == []


def test_every_pattern_of_the_model_can_be_asked() -> None:
    model = _model()
    patterns = set()
    for name in model.shape_names:
        pattern = model.shape_for(name).metadata.get("pattern")
        if pattern:
            patterns.add(pattern)

    assert len(patterns) > 20
    for pattern in patterns:
        compiled(pattern)


def test_a_clipped_text_of_any_letters_fits() -> None:
    request = copy.deepcopy(RIGHT["create_table"])
    request["TableInput"]["StorageDescriptor"]["Columns"][0]["Comment"] = "🛫" * 63
    request["TableInput"]["Description"] = "two\nlines, and 🛫"

    refuse(_model().operation_model("CreateTable"), request)


def test_a_mistake_of_a_table_that_another_writer_keeps_is_not_ours_to_refuse() -> None:
    request = copy.deepcopy(RIGHT["update_table"])
    request["TableInput"]["Parameters"] = {"table_type": "ICEBERG", "metadata_location": "s3://x/y.json"}
    request["TableInput"]["StorageDescriptor"] = {"Columns": [{"Name": "A", "Type": "uniontype<int>"}]}

    refuse(_model().operation_model("UpdateTable"), request)


def _model() -> Any:
    return botocore.session.get_session().get_service_model("glue")


def _camel(operation: str) -> str:
    return "".join(word.title() for word in operation.split("_"))

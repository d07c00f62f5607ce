"""Errors of AWS as sentences."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from dq.contracts.outcome import ReadError
from dq.registry.aws.client import explained


@pytest.mark.parametrize(
    ("code", "text", "end"),
    [
        (
            "ThrottlingException",
            "Rate exceeded",
            "Rate exceeded. Wait, then run again, with fewer runs at a time.",
        ),
        ("InvalidInputException", "Bad input.", "Bad input. Fix that, then run again."),
    ],
)
def test_an_error_of_aws_is_a_sentence_with_advice_that_fits(code, text, end):
    with pytest.raises(ReadError) as raised, explained("write a table"):
        raise ClientError({"Error": {"Code": code, "Message": text}}, "UpdateTable")

    assert str(raised.value).endswith(end)

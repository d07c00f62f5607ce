"""The name under which the store files a contract: one for each id and major, for major 1 the id alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dq.contracts.model import contract_key, identity

PARTS = st.text(alphabet="ab12@%/.v", max_size=5)


@pytest.mark.parametrize(
    ("id", "version", "filed"),
    [
        ("orders", "1.0.0", "orders"),
        ("orders", "v1.4.2", "orders"),
        ("orders", "1", "orders"),
        ("orders", "0.9.0", "orders@0"),
        ("orders", "2.0.0", "orders@2"),
        ("orders", "12.1.0-rc.1", "orders@12"),
        ("orders@2", "1.0.0", "orders@2@1"),
        ("orders", "2@1.0", "orders@2%401"),
        ("orders", "", "orders@"),
    ],
)
def test_major_one_is_the_id_alone_and_every_other_says_itself(id: str, version: str, filed: str) -> None:
    assert contract_key(id, version) == filed


@given(PARTS, PARTS, PARTS, PARTS)
def test_two_contracts_have_one_name_only_when_id_and_major_are_the_same(
    id: str, version: str, other: str, another: str
) -> None:
    same = identity(id, version) == identity(other, another)

    assert (contract_key(id, version) == contract_key(other, another)) is same

"""Which of several files is a contract: decided by memory, never by a file's name."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dq.dataquality.delivery.key_owners import OwnershipClaim, owner_files, resolve_owners, save_owners
from dq.store.engine import open_store

NOW = datetime(2026, 5, 10, tzinfo=UTC)

# The files of this run, the file that was first, whether that one may still hold the key, those that are
# refused, and what is remembered from now on.
CASES = {
    "the first file ever": (["a"], None, False, [], "a"),
    "the same file again": (["a"], "a", True, [], None),
    "a second file": (["a", "b"], "b", True, ["a"], None),
    "a second file with a better name": (["a", "b"], "b", False, ["a"], None),
    "two at once": (["a", "b"], None, False, ["a", "b"], None),
    "a file that moved": (["a"], "gone", False, [], "a"),
    "a file that moved, and a second one": (["a", "b"], "gone", False, ["a", "b"], None),
    "a second file without the first": (["a"], "elsewhere", True, ["a"], None),
}


@pytest.mark.parametrize("case", CASES)
def test_who_was_first_holds(case: str) -> None:
    files, first, may_hold, refused, new = CASES[case]
    memory = {"orders": first} if first else {}

    found = resolve_owners([OwnershipClaim("orders", file) for file in files], memory, lambda *_: may_hold)

    assert sorted(claim.file for claim in found.rejected) == refused
    assert found.new.get("orders") == new


def test_what_one_contract_decides_is_nothing_to_another() -> None:
    claims = [OwnershipClaim("orders", "a"), OwnershipClaim("orders", "b"), OwnershipClaim("clicks", "a")]

    found = resolve_owners(claims, {}, lambda *_: False)

    assert {claim.key for claim in found.rejected} == {"orders"}
    assert found.new == {"clicks": "a"}


def test_a_file_is_remembered_until_it_moves(url: str) -> None:
    store = open_store(url)
    for new in ({"orders": "a", "clicks": "c"}, {"orders": "a"}, {"orders": "b"}):
        with store.write() as tx:
            save_owners(tx, new, NOW)

    with store.read() as tx:
        assert owner_files(tx) == {"orders": "b", "clicks": "c"}
    store.close()

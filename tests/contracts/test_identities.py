"""Spellings of a key are one value, and other values stay other values."""

from __future__ import annotations

import pytest

from dq.contracts.identity import as_uuid, normalized, spellings


@pytest.mark.parametrize(
    "spelling",
    [
        "Ann@Example.com",
        " ann@example.com\t",
        "ＡＮＮ@example.com",
        "ann\u200b@example.com",
        "ann@example.com\x00",
    ],
)
def test_spellings_of_a_text_are_one(spelling: str) -> None:
    assert normalized(spelling, "text") == "ann@example.com"


def test_case_folding_and_composition_meet() -> None:
    assert normalized("STRASSE é", "text") == normalized("straße  e\u0301", "text")
    assert normalized("ann@example.org", "text") != normalized("ann@example.com", "text")


@pytest.mark.parametrize(
    "spelling",
    [
        "+49 170 1234567",
        "0049-170-1234567",
        "0170/1234567",
        "+49 (0)170 123 45 67",
        "491701234567",
        "١٧٠١٢٣٤٥٦٧",
    ],
)
def test_spellings_of_a_phone_number_are_one(spelling: str) -> None:
    assert normalized(spelling, "phone:49") == "1701234567"


def test_a_number_that_begins_like_the_calling_code_is_one_in_both_spellings() -> None:
    assert normalized("04931 12345", "phone:49") == normalized("+49 4931 12345", "phone:49")


def test_exact_changes_nothing() -> None:
    assert normalized(" Ann ", "exact") == " Ann "
    assert spellings("A", "exact") == {"A"}


def test_a_uuid_is_one_value_with_and_without_hyphens() -> None:
    plain, text = "00112233445566778899AABBCCDDEEFF", "00112233-4455-6677-8899-aabbccddeeff"
    assert spellings(plain, "text") == spellings(f"{{{text.upper()}}}", "text")
    assert as_uuid(plain) == as_uuid(f"urn:uuid:{text}") == bytes.fromhex(plain)
    assert as_uuid("not one") is None

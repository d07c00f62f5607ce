"""CODEOWNERS as GitHub and GitLab read it."""

from __future__ import annotations

import pytest

from dq.validators.git.approvals import codeowners_of, owner_names

PATH = "registry/subscriptions/orders/billing.yaml"


@pytest.mark.parametrize(
    ("text", "owners"),
    [
        ("* @a", ["@a"]),
        ("*.yaml @a", ["@a"]),
        ("*.yml @a", []),
        ("registry/ @a", ["@a"]),
        ("/registry @a", ["@a"]),
        ("/subscriptions/ @a", []),
        ("subscriptions/ @a", ["@a"]),
        ("orders @a @b", ["@a", "@b"]),
        ("/registry/subscriptions/* @a", []),
        ("/registry/**/billing.yaml @a", ["@a"]),
        ("/registry/subscriptions/orders/*.yaml @a", ["@a"]),
        ("/Registry/ @a", []),
        ("* @a\n/registry/ @b # and no other\n/docs/ @c", ["@b"]),
        ("* @a\n/registry/subscriptions/", []),
        ("# * @a", []),
        ("\\* @a", []),
        ("[Data]\n* @a", None),
        ("^[Data] @a\n* @a", None),
        ("* @a\n!/registry/ @b", None),
        ("", []),
    ],
)
def test_the_last_pattern_that_matches_names_the_owners(text: str, owners: list[str] | None) -> None:
    assert codeowners_of(text, PATH) == owners


def test_an_owner_stands_for_a_name_in_a_team() -> None:
    assert owner_names("@acme/sales") >= {"acme/sales", "sales"}
    assert owner_names("ana@example.com") == {"ana@example.com"}

"""What pages are called: another name for each product and domain, on every file system."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dq.portal.contracts import domain_page, slug

ODD = [
    "orders@2", "Orders", "orders", "a/b", "a-b", "..", ".", "", "con", "con.x", "nul", "é", "e", "a" * 300,
    "a" * 301, "x\0", "x ", "x.", "\ud800", "ÅÄÖ", "orders-0123abcd", "index", "none-", "shop.2", "_", "__",
]  # fmt: skip


@pytest.mark.parametrize("name", ["orders", "orders@2", "sales.daily", "a_b-c"])
def test_a_plain_name_stays_as_it_is(name: str) -> None:
    assert slug(name) == name


def test_no_two_names_share_a_page_even_where_case_does_not_count() -> None:
    assert len({slug(name).lower() for name in ODD}) == len(ODD)
    assert len({domain_page(name) for name in ODD}) == len(ODD)


def test_no_domain_takes_the_place_of_the_list_of_all() -> None:
    assert domain_page("index") != "domains/index.html"
    assert domain_page("none-") != domain_page("")


@given(st.text())
def test_a_name_is_one_that_every_file_system_takes(name: str) -> None:
    made = slug(name)

    assert re.fullmatch(r"[a-z0-9][a-z0-9_@.-]*", made)
    assert len(made) <= 100
    assert not made.endswith(".")
    assert slug(made) == made or re.search(r"-[0-9a-f]{8}$", made)

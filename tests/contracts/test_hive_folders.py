"""Folders of partitions: what Hive and Spark write and read."""

from __future__ import annotations

import pytest

from dq.contracts.layout import partition_folder, unescaped


@pytest.mark.parametrize("value", ["eu", "a/b", "100%", "%41", "it's", "ü", "a b", "x=y", "{1}", "?"])
def test_a_value_comes_back_from_the_name_of_its_folder(value: str) -> None:
    key, _, text = partition_folder([("k%", value)]).partition("=")

    assert (unescaped(key), unescaped(text)) == ("k%", value)


@pytest.mark.parametrize(("text", "value"), [("5%", "5%"), ("%zz", "%zz"), ("%C3%BC", "\xc3\xbc")])
def test_an_escape_is_one_character_and_what_is_none_stays(text: str, value: str) -> None:
    assert unescaped(text) == value

"""Pages are read from docstrings, and their fragments become whole documents."""

from __future__ import annotations

import pytest
import yaml

from dq.validators import rule_page

DOCSTRING = """A summary
in two lines.

Why: First
  paragraph.

Second one.

Bad:
    name: a
    schema:
      - name: b

Good:
    name: c

How to fix: Do it.
"""


def test_a_docstring_is_taken_apart() -> None:
    assert rule_page.parse(DOCSTRING) == rule_page.Page(
        summary="A summary in two lines.",
        why="First paragraph.\n\nSecond one.",
        bad="name: a\nschema:\n  - name: b\n",
        good="name: c\n",
        hint="Do it.",
    )


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(None, id="no docstring"),
        pytest.param("Only a summary.", id="no sections"),
        pytest.param(DOCSTRING.replace("Why:", "Because:"), id="a section is missing"),
        pytest.param(DOCSTRING + "\nWhy: Twice.\n", id="a section stands twice"),
        pytest.param(DOCSTRING.replace("Do it.", ""), id="a section is empty"),
    ],
)
def test_a_docstring_without_the_sections_is_refused(broken: str | None) -> None:
    with pytest.raises(rule_page.BrokenPage):
        rule_page.parse(broken)


def test_a_fragment_replaces_top_level_keys_of_the_base() -> None:
    text, line = rule_page.document("version: 2.0.0\nstatus: retired\n")

    document = yaml.safe_load(text)
    assert (document["version"], document["status"], document["id"]) == ("2.0.0", "retired", "orders")
    assert text.splitlines()[line - 1] == "version: 2.0.0"


def test_a_fragment_that_begins_a_document_stands_alone() -> None:
    assert rule_page.document("---\n- a\n") == ("---\n- a\n", 1)

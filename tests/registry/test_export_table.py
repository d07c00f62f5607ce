"""The tables of docs/how-to/import.md: what each form says, and as what it writes the types that it lacks."""

from __future__ import annotations

import re
from pathlib import Path

from fakes.schemas import PLAIN

from dq.contracts.yaml.parse import parse
from dq.registry import exporting
from dq.registry.exporting import COLUMNS, FIELDS, PARTS

PAGE = Path(__file__).parents[2] / "docs/how-to/import.md"
FORMS = ("sql", "jsonschema", "avro", "dbt", "pandera", "html")
KEYS = ("description", "required", "unique", "primaryKey", "partitioned", "enum", "logicalTypeOptions",
        "classification", "businessName", "quality")  # fmt: skip
# Where a form says a key, in the words of the page.
WORDS = {
    (): "",
    (COLUMNS,): "columns",
    (COLUMNS, FIELDS): "fields too",
    (COLUMNS, FIELDS, PARTS): "everywhere",
}
EXTRA = ("variant", "interval", "map<int,string>")


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def said() -> str:
    shelf = exporting.load()
    rows = []
    for key in KEYS:
        cells = []
        for form in FORMS:
            words = shelf[form].supported
            assert words is not None
            known = tuple(where for where in (COLUMNS, FIELDS, PARTS) if key in words.properties[where])
            cells.append(WORDS.get(known) or ("parts too" if known else ""))
        rows.append([f"`{key}`", *cells])
    return table(["What", *(f"`{form}`" for form in FORMS)], rows)


def types() -> str:
    shelf = exporting.load()
    rows = []
    for kind in [*PLAIN, *EXTRA]:
        text = (
            "apiVersion: v3.2.0\nkind: DataContract\nid: a\nversion: 1.0.0\nstatus: draft\n"
            f"schema: [{{name: t, properties: [{{name: c, physicalType: '{kind}'}}]}}]\n"
        )
        contract = parse(text.encode(), "a.odcs.yaml").contract
        assert contract is not None
        lost = [shelf[form].write(contract, contract.objects).unsupported for form in FORMS[:5]]
        if any(lost):
            cells = [re.sub(r".* (is|are) written as ", "", one[0]) if one else "" for one in lost]
            rows.append([f"`{kind}`", *cells])
    return table(["Type", *(f"`{form}`" for form in FORMS[:5])], rows)


def test_the_page_says_what_each_form_has_words_for() -> None:
    assert said() in PAGE.read_text("utf-8"), said()


def test_the_page_says_which_types_become_others() -> None:
    assert types() in PAGE.read_text("utf-8"), types()


def test_every_form_that_tells_what_it_lacks_is_in_the_table() -> None:
    assert {one.id for one in exporting.load().values() if one.supported is not None} == set(FORMS)

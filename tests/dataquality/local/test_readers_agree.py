"""`dq sample` and `dq check` read odd CSV and JSON files alike, and neither passes what it cannot see."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes.reach import anywhere

from dq.contracts.access.data_location import text_format
from dq.contracts.model import Contract
from dq.contracts.outcome import ReadError
from dq.contracts.yaml.parse import parse
from dq.dataquality import sample
from dq.dataquality.check import check
from dq.dataquality.report import Report
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CONTRACT = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
servers: [{server: lake, type: local, path: '%s', format: %s%s}]
schema:
  - name: orders
    customProperties: [{property: dataset, vendor: dq, value: {additionalColumns: forbid}}]
    properties:
      - {name: id, logicalType: integer, required: true, unique: true, logicalTypeOptions: {minimum: 1}}
      - {name: price, logicalType: number, physicalType: 'decimal(10,2)', logicalTypeOptions: {maximum: 10}}
      - {name: note, logicalType: string, physicalType: varchar, logicalTypeOptions: {maxLength: 5}}
"""
NESTED = """\
      - {name: tags, logicalType: array, items: {logicalType: integer, logicalTypeOptions: {minimum: 0}}}
      - name: place
        logicalType: object
        properties: [{name: zip, logicalType: string, required: true}, {name: at, logicalType: timestamp}]
"""
UNREADABLE = "unreadable"
ID_TEXT = "id columns fail, id required pass, id unique pass, id bounds error"
PRICE_TEXT = "price columns fail, price bounds error"


def csv(body: str | bytes, otherwise: str = "", terms: str = "") -> tuple[str, bytes, str, str]:
    return "csv", body.encode() if isinstance(body, str) else body, otherwise, terms


def json(body: str | bytes, otherwise: str = "", terms: str = "") -> tuple[str, bytes, str, str]:
    return "json", body.encode() if isinstance(body, str) else body, otherwise, terms


def nested(tags: str, place: str, otherwise: str = "") -> tuple[str, bytes, str, str]:
    body = f'{{"id": 1, "price": 1, "note": "a", "tags": {tags}, "place": {place}}}\n'
    return "nested", body.encode(), otherwise, ""


# What is odd -> the format, the bytes, what does not pass, and the server's terms.
CASES = {
    "csv plain": csv("id,price,note\n1,1.50,a\n2,,b\n"),
    "csv crlf": csv("id,price,note\r\n1,1.50,a\r\n2,,b\r\n"),
    "csv old mac line ends": csv("id,price,note\r1,1.50,a\r2,,b\r"),
    "csv two line ends, data first": csv("id,price,note\n1,1.50,a\r\n2,,b\n", UNREADABLE),
    "csv two line ends, returns first": csv("id,price,note\r\n1,1.50,a\n2,,b\r\n", UNREADABLE),
    "csv no last line end": csv("id,price,note\n1,1.50,a"),
    "csv blank lines": csv("\nid,price,note\n\n1,1.50,a\n\n\n2,,b\n\n"),
    "csv header alone": csv("id,price,note\n"),
    "csv break in quotes": csv('id,price,note\n1,1.50,"a\nb"\n2,11,"c\nd"\n', "price bounds fail"),
    "csv crlf in quotes": csv('id,price,note\r\n1,1.50,"a\r\nb"\r\n2,1,"c"\r\n'),
    "csv crlf in quotes is one sign": csv('id,price,note\r\n1,1,"ab\r\ncd"\r\n'),
    "csv crlf in quotes between other ends": csv('id,price,note\n1,1,"ab\r\ncd"\n', "note lengths fail"),
    "csv open quotes in the last line": csv('id,price,note\n1,1.50,"a', UNREADABLE),
    "csv delimiter in quotes": csv('id,price,note\n1,1.50,"a,b"\n'),
    "csv doubled quotes": csv('id,price,note\n1,"1.50","5"""\n'),
    "csv doubled quotes alone": csv('id,price,note\n1,1.50,""""\n'),
    "csv quotes in the middle": csv('id,price,note\n1,1.50,a"b\n'),
    "csv text after quotes": csv('id,price,note\n1,1.50,"a"b\n', UNREADABLE),
    "csv open quotes": csv('id,price,note\n1,1.50,"a\n2,1,b\n', UNREADABLE),
    "csv backslash is a sign": csv('id,price,note\n1,1.50,"a\\"\n2,1,b\\\n'),
    "csv escaped quotes": csv('id,price,note\n1,1.50,"a\\"b"\n', "", "escape: '\\'"),
    "csv escaped escapes": csv('id,price,note\n1,1.50,"a\\\\"\n2,1,"\\n"\n', "", "escape: '\\'"),
    "csv single quotes": csv("id,price,note\n1,1.50,'a,b'\n", "", "quote: \"'\""),
    "csv without quotes": csv('id,price,note\n1,1.50,"a"\n2,1,"b\n3,1,\\\n', "", "quote: none"),
    "csv without quotes has no breaks in values": csv(
        'id,price,note\n1,1.50,"a\nb"\n', UNREADABLE, "quote: none"
    ),
    "csv quotes where none should be": csv('id,price,note\n"1",1.50,a\n', ID_TEXT, "quote: none"),
    "csv semicolons": csv("id;price;note\n1;1.50;a,b\n", "", "delimiter: ;"),
    "csv tabs": csv("id\tprice\tnote\n1\t1.50\ta,b\n", "", 'delimiter: "\\t"'),
    "csv too few values": csv("id,price,note\n1,1.50,a\n2\n", UNREADABLE),
    "csv too many values": csv("id,price,note\n1,1.50,a\n3,1,b,extra\n", UNREADABLE),
    "csv delimiter at the end": csv("id,price,note\n1,1.50,a,\n", UNREADABLE),
    "csv other order": csv("note,price,id\nabc,1.50,1\n"),
    "csv other case": csv("ID,Price,NOTE\n1,1.50,a\n"),
    "csv name twice": csv("id,id,price,note\n1,1,1.50,a\n", UNREADABLE),
    "csv name twice but for case": csv("id,ID,price,note\n1,1,1.50,a\n", UNREADABLE),
    "csv missing column": csv(
        "id,note\n1,a\n", "price columns fail, price bounds error"
    ),
    "csv column more": csv("id,price,note,ssn\n1,1.50,a,123\n", "additional_columns fail"),
    "csv column without a name": csv(",id,price,note\n0,1,1.50,a\n", "additional_columns fail"),
    "csv quoted header": csv('"id","price","note"\n1,1.50,a\n'),
    "csv spaces in the header": csv(
        "id, price,note\n1,1.50,a\n",
        "additional_columns fail, price columns fail, price bounds error",
    ),
    "csv no header": csv("1,1.50,a\n2,11,b\n", "price bounds fail", "header: false"),
    "csv mark": csv(b"\xef\xbb\xbfid,price,note\n1,1.50,a\n"),
    "csv latin": csv("id,price,note\n1,1.50,\u00e4\u00f6\n".encode("latin-1"), "", "encoding: iso-8859-1"),
    "csv utf-16": csv("id,price,note\n1,1.50,\u00e4\u00f6\n".encode("utf-16"), "", "encoding: utf-16"),
    "csv not in its encoding": csv("id,price,note\n1,1.50,\u00e4\n".encode("latin-1"), UNREADABLE),
    "csv replacement sign in the data": csv("id,price,note\n1,1.50,\ufffd\n"),
    "csv emoji": csv("id,price,note\n1,1.50,\U0001f600\U0001f600\n"),
    "csv empty text is no null": csv('id,price,note\n1,1.50,""\n"",1,a\n', ID_TEXT),
    "csv null text": csv("id,price,note\n1,\\N,a\n2,NA,b\n", PRICE_TEXT, "nullText: '\\N'"),
    "csv null text in a key": csv("id,price,note\nNA,1,a\n2,NA,b\n", "id required fail", "nullText: NA"),
    "csv spaces around a number": csv("id,price,note\n 1,1.50,a\n", ID_TEXT),
    "csv a digit too many": csv("id,price,note\n1,1.005,a\n", PRICE_TEXT),
    "csv just above the maximum": csv("id,price,note\n1,10.004,a\n", PRICE_TEXT),
    "csv zeros beyond the scale": csv("id,price,note\n1,010.00000,a\n"),
    "csv exponents": csv("id,price,note\n1,1.5e0,a\n2,.15E+1,b\n3,150e-2,c\n4,1E1,d\n"),
    "csv exponents that do not fit": csv("id,price,note\n1,1e-3,a\n2,1e99,b\n", PRICE_TEXT),
    "csv exponent of an integer": csv("id,price,note\n1e0,1,a\n", ID_TEXT),
    "csv big integers": csv("id,price,note\n9223372036854775807,1,a\n9223372036854775806,1,b\n"),
    "csv integers too big": csv("id,price,note\n9223372036854775808,1,a\n", ID_TEXT),
    "csv signs and zeros": csv("id,price,note\n+1,-0,a\n0002,+.5,b\n"),
    "csv not a number": csv("id,price,note\n1,NaN,a\n", PRICE_TEXT),
    "csv digits of other scripts": csv("id,price,note\n\u0663,1,a\n", ID_TEXT),
    "csv key twice by value": csv("id,price,note\n1,1,a\n01,1,b\n", "id unique fail"),
    "csv null sign": csv("id,price,note\n1,1,a\x00b\n"),
    "json plain": json('{"id": 1, "price": 1.5, "note": "a"}\n{"id": 2, "price": null, "note": "b"}\n'),
    "json crlf and blank lines": json('\r\n{"id": 1, "price": 1.5, "note": "a"}\r\n\r\n'),
    "json array": json('[{"id": 1, "price": 1.5, "note": "a"},\n {"id": 2, "price": 11, "note": "b"}]',
                       "price bounds fail"),
    "json array over lines": json('[\n  {\n    "id": 1,\n    "price": 1.5,\n    "note": "a"\n  }\n]\n'),
    "json array not closed": json('[{"id": 1, "price": 1.5, "note": "a"}', UNREADABLE),
    "json text after the array": json('[{"id": 1, "price": 1.5, "note": "a"}] {"id": 2}', UNREADABLE),
    "json text after the object": json('{"id": 1, "price": 1.5, "note": "a"} junk\n', UNREADABLE),
    "json two objects on a line": json('{"id": 1, "price": 1.5, "note": "a"} {"id": 2}\n', UNREADABLE),
    "json object over lines": json('{"id": 1,\n "price": 1.5, "note": "a"}\n', UNREADABLE),
    "json cut off": json('{"id": 1, "price": 1.5, "note": "a"}\n{"id": 2, "no', UNREADABLE),
    "json no object": json('{"id": 1, "price": 1.5, "note": "a"}\n3\n', UNREADABLE),
    "json single quotes": json("{'id': 1, 'price': 1.5, 'note': 'a'}\n", UNREADABLE),
    "json mark": json(b'\xef\xbb\xbf{"id": 1, "price": 1.5, "note": "a"}\n'),
    "json utf-16": json(
        '{"id": 1, "price": 1.5, "note": "\u00e4"}\n'.encode("utf-16"), "", "encoding: utf-16"
    ),
    "json not in its encoding": json('{"id": 1, "note": "\u00e4"}\n'.encode("latin-1"), UNREADABLE),
    "json key twice": json('{"id": 1, "price": 1.5, "price": 99, "note": "a"}\n', UNREADABLE),
    "json key twice but for case": json('{"id": 1, "ID": 2, "price": 1.5, "note": "a"}\n', UNREADABLE),
    "json keys of other lines in another case": json(
        '{"id": 1, "price": 1.5, "note": "a"}\n{"ID": 2, "price": 1.5, "note": "a"}\n', UNREADABLE
    ),
    "json other case": json('{"ID": 1, "Price": 11, "Note": "a"}\n', "price bounds fail"),
    "json a key more": json('{"id": 1, "price": 1.5, "note": "a", "ssn": 5}\n', "additional_columns fail"),
    "json a key that no line has": json(
        '{"id": 1, "note": "a"}\n{"id": 2}\n', "price columns fail, price bounds error"
    ),
    "json a key that one line has": json('{"id": 1, "note": "a"}\n{"id": 2, "price": 1}\n'),
    "json a digit too many": json('{"id": 1, "price": 1.005, "note": "a"}\n', PRICE_TEXT),
    "json just above the maximum": json('{"id": 1, "price": 10.004, "note": "a"}\n', PRICE_TEXT),
    "json exponents": json('{"id": 1, "price": 1.5e0, "note": "a"}\n{"id": 2, "price": 1E1, "note": "b"}\n'),
    "json number as text": json('{"id": "1", "price": 1.5, "note": "a"}\n', ID_TEXT),
    "json text as number": json('{"id": 1, "price": 1.5, "note": 5}\n', "note columns fail"),
    "json fraction of an integer": json('{"id": 1.0, "price": 1.5, "note": "a"}\n', ID_TEXT),
    "json big integers": json('{"id": 9223372036854775807, "price": 1, "note": "a"}\n'),
    "json integers too big": json('{"id": 9223372036854775808, "price": 1, "note": "a"}\n', ID_TEXT),
    "json escapes": json('{"id": 1, "price": 1.5, "note": "\\u00e4\\n\\ud83d\\ude00"}\n'),
    "json half a pair": json('{"id": 1, "price": 1.5, "note": "\\ud83d"}\n', "note columns fail"),
    "nested plain": nested("[1, 2]", '{"zip": "1", "at": "2026-01-01T00:00:00Z"}'),
    "nested empty": nested("[]", '{"zip": "1", "at": null}'),
    "nested below the minimum": nested("[1, -2]", '{"zip": "1", "at": null}', "tags[] bounds fail"),
    "nested a text in an array": nested(
        '[1, "x"]', '{"zip": "1", "at": null}',
        "tags columns fail, tags[] columns skipped, tags[] bounds error",
    ),
    "nested a key more": nested("[1]", '{"zip": "1", "at": null, "ssn": 1}', "additional_columns fail"),
    "nested a key that no object has": nested("[1]", '{"zip": "1"}', "place.at columns fail"),
    "nested null in a required field": nested("[1]", '{"zip": null, "at": null}', "place.zip required fail"),
    "nested no object at all": nested("[1]", "null"),
    "nested a time with an offset": nested("[1]", '{"zip": "1", "at": "2026-01-01 10:00:00.5+02:00"}'),
    "nested no time": nested(
        "[1]",
        '{"zip": "1", "at": "yesterday"}',
        "place columns fail, place.zip columns error, place.at columns error, place.zip required error",
    ),
    "nested key twice": nested("[1]", '{"zip": "1", "zip": "2", "at": null}', UNREADABLE),
}  # fmt: skip


def told(report: Report) -> str:
    """What does not pass, and of columns with a broken type all clauses."""
    ends = {f"{one.property} {one.check}".strip(): one.status.value for one in report.results}
    texts = {one.property for one in report.results if one.check == "columns" and "values" in one.observed}
    odd = {
        name: end
        for name, end in ends.items()
        if end != "pass" or (name.split()[0] in texts and " columns" not in name and name.startswith("id "))
    }
    return ", ".join(f"{name} {end}" for name, end in odd.items())


def ends(report: Report) -> dict[str, str]:
    return {one.clause: one.status.value for one in report.results}


def contract_of(path: Path, form: str, terms: str) -> Contract:
    custom = f", customProperties: [{{property: csv, vendor: dq, value: {{{terms}}}}}]" if terms else ""
    text = CONTRACT % (path, "csv" if form == "csv" else "json", custom)
    made = parse((text + (NESTED if form == "nested" else "")).encode(), "shop.odcs.yaml")
    assert made.contract is not None, made.findings
    return made.contract


@pytest.mark.parametrize(("form", "body", "otherwise", "terms"), CASES.values(), ids=CASES)
def test_sample_and_check_agree(
    spark: SparkSession, tmp_path: Path, form: str, body: bytes, otherwise: str, terms: str
) -> None:
    file = tmp_path / f"orders.{'csv' if form == 'csv' else 'json'}"
    file.write_bytes(body)
    made = contract_of(file, form, terms)
    one = made.objects[0]

    try:
        small = sample.check(made, one, sample.read(file, one, text_format(made.servers[0])))
    except ReadError as error:
        small = error
    try:
        whole = check(Request(made, locate(made, one, None, anywhere()), spark=spark))
    except ReadError as error:
        whole = error

    if otherwise == UNREADABLE:
        assert isinstance(small, ReadError), told(small)
        assert isinstance(whole, ReadError), told(whole)
        return
    assert isinstance(small, Report), str(small)
    assert isinstance(whole, Report), str(whole)
    assert ends(small) == ends(whole)
    assert set(told(whole).split(", ")) == set(otherwise.split(", "))

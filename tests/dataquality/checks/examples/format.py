"""Examples of the check `format`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal

from fakes.examples import Example


def _formed(kind: str, name: str, more: str = "") -> str:
    return f"properties: [{{name: v, logicalType: {kind}{more}, logicalTypeOptions: {{format: {name}}}}}]"


def _shown(name: str, good: tuple[str, ...], bad: tuple[str, ...]) -> Iterator[Example]:
    rows = tuple((text,) for text in (*good, *bad, None))
    contract = _formed("string", name)
    yield Example(f"{name}, kept", contract, "v string", tuple((text,) for text in (*good, None)), "pass")
    observed = (f"{len(bad)} of {len(rows)} rows",)
    yield Example(f"{name}, broken", contract, "v string", rows, "fail", observed)


_AS_TEXT = ", physicalType: string"
EXAMPLES = (
    *_shown(
        "email",
        ("eve@example.com", "o'hara+tag@mail.example.co.uk", "a@localhost"),
        ("", "eve", "@a.de", "a@", "a b@c.de", "a..b@c.de", "a@b_c.de", "a@-b.de", "a@b.de\n", "ž@a.de"),
    ),
    *_shown(
        "uuid",
        ("00000000-0000-0000-0000-000000000000", "F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6"),
        ("", "f81d4fae7dec11d0a76500a0c91e6bf6", "{f81d4fae-7dec-11d0-a765-00a0c91e6bf6}", "g" * 36),
    ),
    *_shown(
        "uri",
        ("https://a.de:80/p?q=1#f", "mailto:a@b.de", "urn:isbn:1", "http://[::1]/", "file:///x", "a:"),
        ("", "/p", "a.de", "http://a b", "http://a/%zz", "http://a:b/", "http://[::g]/", "x:#a#b", "1:a"),
    ),
    *_shown("hostname", ("a", "a-b.de", "1.2"), ("", "-a", "a-", "a..b", "a.", "a_b", "a" * 64)),
    *_shown("ipv4", ("0.0.0.0", "255.249.199.1"), ("", "256.0.0.1", "01.0.0.1", "1.2.3", "1.2.3.4.5")),
    *_shown(
        "ipv6",
        ("::", "::1", "1::", "1:2:3:4:5:6:7:8", "fe80::1:2", "::ffff:1.2.3.4"),
        ("", ":", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "::12345", "fe80::1%eth0", "1.2.3.4"),
    ),
    *_shown("date", ("2024-02-29", "0000-01-31"), ("", "2023-02-29", "2024-04-31", "24-01-01")),
    *_shown(
        "date-time",
        ("2024-02-29T23:59:60Z", "2026-01-01t00:00:00.123-05:30"),
        ("", "2026-01-01T00:00:00", "2026-01-01 00:00:00Z", "2026-01-01T24:00:00Z", "1900-02-29T00:00:00Z"),
    ),
    *_shown("byte", ("", "QQ==", "QUI=", "QUJD"), ("QQ", "QQ=", "Q===", "QU?D", "====")),
    Example("no rows", _formed("string", "email"), "v string", (), "pass", ("0 of 0 rows",)),
    Example("only NULL", _formed("string", "email"), "v string", ((None,),), "pass", ("0 of 1 row",)),
    Example("of any text", _formed("string", "password"), "v string", (("x",),), ""),
    Example("unknown", _formed("string", "iban"), "v string", (("x",),), ""),
    Example("a number instead", _formed("string", "email"), "v int", ((1,),), "error"),
    Example("i8", _formed("integer", "i8"), "v int", ((-128,), (127,), (None,)), "pass"),
    Example("beyond i8", _formed("integer", "i8"), "v int", ((-129,), (128,)), "fail", ("2 of 2 rows",)),
    Example("beyond u64", _formed("integer", "u64"), "v decimal(38,0)", ((Decimal(2**64),),), "fail"),
    Example("u64", _formed("integer", "u64"), "v decimal(38,0)", ((Decimal(2**64 - 1),),), "pass"),
    Example("u128", _formed("integer", "u128"), "v bigint", ((-1,), (0,)), "fail", ("1 of 2 rows",)),
    Example("i128 holds all", _formed("integer", "i128"), "v bigint", ((-(2**63),),), ""),
    Example("unknown size", _formed("integer", "int32"), "v int", ((1,),), ""),
    Example("exactness", _formed("number", "f32"), "v double", ((1e300,),), ""),
    Example("a true date", _formed("date", "dd.MM.yyyy"), "v date", ((dt.date(2026, 1, 1),),), ""),
    Example(
        "dates as texts",
        _formed("date", "dd.MM.yyyy", _AS_TEXT),
        "v string",
        (("29.02.2024",), (None,), ("29.02.2023",), ("1.1.2024",), ("2024-01-01",), ("",)),
        "fail",
        ("4 of 6 rows",),
    ),
    Example(
        "names of months",
        _formed("date", "d MMM yy", _AS_TEXT),
        "v string",
        (("29 Feb 24",), ("9 Dec 99",), ("30 Feb 24",), ("9 Dez 99",)),
        "fail",
        ("2 of 4 rows",),
    ),
    Example(
        "as the standard writes it",
        _formed("timestamp", "'yyyy-MM-ddTHH:mm:ssZ'", _AS_TEXT),
        "v string",
        (("2024-03-10T14:22:35Z",), ("2024-03-10T14:22:35+10:00",), ("2024-03-10T24:22:35Z",)),
        "fail",
        ("1 of 3 rows",),
    ),
    Example(
        "an optional part",
        _formed("timestamp", "\"yyyy-MM-dd'T'HH:mm[:ss[.SSS]]\"", _AS_TEXT),
        "v string",
        (("2024-03-10T14:22",), ("2024-03-10T14:22:35",), ("2024-03-10T14:22:35.123",)),
        "pass",
    ),
    Example(
        "times", _formed("time", "'HH:mm'"), "v string", (("23:59",), ("24:00",)), "fail", ("1 of 2 rows",)
    ),
    Example("the year of a week", _formed("date", "YYYY-MM-dd", _AS_TEXT), "v string", (("x",),), ""),
    Example(
        "items",
        "properties: [{name: v, logicalType: array,"
        " items: {logicalType: string, logicalTypeOptions: {format: ipv4}}}]",
        "v array<string>",
        ((["1.2.3.4"],), (["1.2.3.4", "x"],), ([],), (None,)),
        "fail",
        ("1 of 4 rows",),
    ),
)

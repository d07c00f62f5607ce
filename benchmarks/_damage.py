"""Damage to a contract: on the level of bytes, tokens, lines or values, and hostile words for it."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from datetime import date
from typing import Any

import yaml
from _seeds import Seed

MAX_BYTES = 200_000

UNICODE = (
    "\ufeff", "\u2028", "\u202eevil\u202c", "\u2066\u2069", "\ud7ff", "\uffff", "\U0010ffff",
    "e\u0301" * 50, "Z\u0335\u0336\u0337" * 200, "👩‍👩‍👧‍👦" * 40, "ﷺ" * 300, "İı", "ß" * 200,
    "\u00ad\u200b\u200d", "٣", "\x85", "\x7f", "\u001b]0;a\u0007", "\x1b[31m", "::error::a",
    "a\n::add-mask::b", "a\r\nb", "<script>a</script>", "]]>", "`|a|`",
)  # fmt: skip
HOSTILE: tuple[Any, ...] = (
    "", " ", "\t", "a" * 5_000, "9" * 5_000, "decimal(" + "9" * 5_000 + ")", "array<" * 200,
    "struct<" * 300, "((((((((((a+)+)+)+)+)+)+)+)+)+$", "(a|a)*" * 20, "a{" + "9" * 5_000 + "}", "[" * 900,
    "(?<" * 300, "* * * * *", "0 6 * * " + ",".join(["1-5"] * 500), "*/" + "9" * 5_000 + " * * * *",
    "P" + "9" * 5_000 + "D", "9" * 5_000 + "d", "${A:-${B:-${C}}}", "${PATH}", "{" * 500,
    "{due - 99999999d:%Y}", "%" * 500, "Europe/../../etc", "../" * 100, "/dev/stdin", "/proc/self/environ",
    "file:///etc/passwd", "http://127.0.0.1:1/", "s3://" + "/" * 999, "-" * 300, "--policy=/etc/passwd",
    "select " + "(" * 2_000, "select 1" + "+1" * 3_000, "case when 1 then 1 " * 500, "'" * 999, "/*" * 999,
    "select * from " + "(select * from " * 200, "not " * 2_000, "v3.2.0", "99999999999999999999.0.0",
    "9999-12-31", "0000-00-00", "2026-02-30T25:61:61+99:99", "NaN", "-0", "1_000", "0x1F", "1e999", "yes",
    "~", "<<", -1, 0, 2**63, -(2**70), 10**400, 1e308, -1e-320, float("inf"), float("nan"), True, None, [],
    {}, [[]], [None], {"a": {}}, [{}] * 50, date(2026, 1, 1), *UNICODE,
)  # fmt: skip
SNIPPETS = (
    b"{", b"[", b"}", b"]", b"&a ", b"*a", b"!!python/object/apply:os.system [a] ", b"!!binary ", b"!a ",
    b"- ", b": ", b"? ", b"|", b">", b"|9", b"<<: *a", b"--- ", b"...\n", b"%YAML 9.9\n", b"%TAG ! a\n",
    b"# ", b"'", b'"', b"\\x00", b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf",
    b"\xef\xbb\xbf", b"\r", b"\t", b'"\\ud800"', b'"\\0"', b'"\\L"', b"\xe2\x80\xae",
)  # fmt: skip


def damaged(draw: random.Random, all_seeds: list[Seed]) -> bytes:
    """A contract with some damage, on the level of bytes, tokens, lines or values."""
    kinds = (bytes_damaged, *[tokens_damaged] * 2, lines_damaged, *[values_damaged] * 3)
    kind = draw.choice(kinds)
    return kind(draw, draw.choice(all_seeds), all_seeds)[:MAX_BYTES]


def touched(draw: random.Random, all_seeds: list[Seed]) -> bytes:
    """A contract that can often be read: values of the same key elsewhere, and worse ones."""
    seed = draw.choice(all_seeds)
    if draw.random() < 0.3 or seed.document is None:
        return damaged(draw, all_seeds)
    document = copy.deepcopy(seed.document)
    other_path = list(_places(draw.choice(all_seeds).document))
    for _ in range(draw.randint(1, 4)):
        own_places = [
            (holder, key)
            for holder, key in _places(document)
            if not _keys(holder[key]) and (key not in ("apiVersion", "kind") or draw.random() < 0.1)
        ]
        if not own_places:
            break
        holder, key = draw.choice(own_places)
        same = [other[name] for other, name in other_path if name == key]
        hostile = draw.choice(HOSTILE)
        if same and draw.random() < 0.7:
            holder[key] = copy.deepcopy(draw.choice(same))
        else:
            holder[key] = str(hostile) if isinstance(holder[key], str) else copy.deepcopy(hostile)
    return _dumped(document)


def _dumped(document: Any) -> bytes:
    return yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True).encode()


def bytes_damaged(draw: random.Random, seed: Seed, _: list[Seed]) -> bytes:
    data = bytearray(seed.data)
    for _ in range(draw.randint(1, 8)):
        at = draw.randrange(len(data) + 1)
        match draw.randrange(5):
            case 0:
                data[at : at + draw.randint(0, 20)] = b""
            case 1:
                data[at:at] = bytes(draw.randrange(256) for _ in range(draw.randint(1, 4)))
            case 2:
                data[at:at] = draw.choice(SNIPPETS)
            case 3:
                data[at:at] = data[at // 2 : at // 2 + draw.randint(1, 300)]
            case 4:
                data[at : at + 1] = bytes([data[at] ^ (1 << draw.randrange(8))]) if at < len(data) else b"\n"
    return bytes(data)


def tokens_damaged(draw: random.Random, seed: Seed, all_seeds: list[Seed]) -> bytes:
    if not seed.tokens:
        return bytes_damaged(draw, seed, all_seeds)
    data = seed.data
    for _ in range(draw.randint(1, 4)):
        # Later places first would be needed to keep the earlier ones true; a shift is one more damage.
        start, end = draw.choice(seed.tokens)
        other = draw.choice(all_seeds)
        begin, stop = draw.choice(other.tokens) if other.tokens else (0, 0)
        hostile = str(draw.choice(HOSTILE))
        token = draw.choice((
            b"", data[start:end] * 2, other.data[begin:stop], draw.choice(SNIPPETS),
            hostile.encode("utf-8", "replace"),
            yaml.safe_dump(hostile, default_style='"', width=10**6).strip().encode(),
        ))  # fmt: skip
        data = data[:start] + token + data[end:]
    return data


def lines_damaged(draw: random.Random, seed: Seed, _: list[Seed]) -> bytes:
    lines = seed.data.splitlines(keepends=True) or [b"\n"]
    for _ in range(draw.randint(1, 5)):
        at = draw.randrange(len(lines))
        match draw.randrange(4):
            case 0:
                del lines[at : at + draw.randint(1, 3)]
            case 1:
                lines[at:at] = lines[at : at + draw.randint(1, 10)]
            case 2:
                lines[at] = b" " * draw.randint(1, 4) + lines[at]
            case 3:
                lines[at] = lines[draw.randrange(len(lines))]
        lines = lines or [b"\n"]
    return b"".join(lines)


def values_damaged(draw: random.Random, seed: Seed, all_seeds: list[Seed]) -> bytes:
    document = copy.deepcopy(seed.document)
    other = list(_places(draw.choice(all_seeds).document))
    for _ in range(draw.randint(1, 5)):
        places = list(_places(document))
        if not places:
            break
        holder, key = draw.choice(places)
        match draw.randrange(6):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                renamed = (
                    f"{key}s",
                    str(key).upper(),
                    "x" * 300,
                    str(key)[1:] or "a",
                    draw.choice(UNICODE),
                    1,
                    None,
                )
                holder[draw.choice(renamed)] = holder[key]
            case 2:
                other_path, other_place = draw.choice(places)
                # The first change may have taken it away.
                holder[key] = (
                    copy.deepcopy(other_path[other_place]) if other_place in _keys(other_path) else None
                )
            case 3 if other:
                other_path, other_place = draw.choice(other)
                holder[key] = copy.deepcopy(other_path[other_place])
            case _:
                holder[key] = copy.deepcopy(draw.choice(HOSTILE))
    return _dumped(document)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in _keys(value):
        yield value, key
        yield from _places(value[key])


def _keys(value: Any) -> list[Any]:
    return (
        list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    )

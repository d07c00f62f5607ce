"""Damaged and hostile inputs for the fuzz: contracts, policies, arguments; the same for the same number."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from _contracts import text

from dq.validators import rule_page
from dq.validators.lint import rules_of

TREE = Path(__file__).parent.parent
MAX_BYTES = 200_000
_BLOCK = re.compile(r"^```yaml[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)

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
POLICIES = (
    "profile: strict\nrules:\n  missing-owner: {severity: off}\n  file-name-not-id: {severity: critical}\n",
    *_BLOCK.findall((TREE / "docs" / "reference" / "policy.md").read_text())[:1],
    (TREE / "examples" / "registry" / "dq-policy.yaml").read_text(),
)
NAMES = (
    "fuzz.odcs.yaml", "-h.odcs.yaml", "--format=json.odcs.yaml", "a b.odcs.yaml", "a\n::error::b.odcs.yaml",
    "\u202eymal.odcs.yaml", "\x1b[31m.odcs.yaml", "é" * 60 + ".odcs.yaml", "e\u0301.odcs.yaml",
    "%0A.odcs.yaml", "[bold].odcs.yaml", "`a`|b.odcs.yaml", "<b>.odcs.yaml", "deep/" * 20 + "a.odcs.yaml",
)  # fmt: skip


# One object for each type that a partition key can have, so that a publication gets as far as it can.
_KEYS = {
    "string": ("string",), "date": ("date",), "timestamp": ("timestamp",), "boolean": ("boolean",),
    "integer": ("int", "bigint"), "number": ("decimal(10,2)",),
}  # fmt: skip
_OBJECT = """\
  - name: of_{logical}_{number}
    properties:
      - name: key
        logicalType: {logical}
        physicalType: {physical}
        partitioned: true
        partitionKeyPosition: 1
      - {{name: id, logicalType: integer, physicalType: bigint}}
"""
DELIVERED = """\
apiVersion: v3.2.0
kind: DataContract
id: delivered
version: 1.0.0
status: active
servers: [{server: lake, type: local, path: lake, format: parquet}]
schema:
""" + "".join(
    _OBJECT.format(logical=logical, physical=physical, number=number)
    for logical, types in _KEYS.items()
    for number, physical in enumerate(types)
)
# So many times as often as the short ones: they say more.
RICH = 8


@dataclass(frozen=True, slots=True)
class Seed:
    """A contract to damage: its bytes, its values where it has some, and where its tokens stand."""

    data: bytes
    document: Any
    tokens: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Input:
    """One command line, and the files that it finds in its folder."""

    words: list[str]
    files: dict[str, bytes] = field(default_factory=dict)


def seeds() -> list[Seed]:
    """Every contract of examples, tests, docs and the pages of the rules, and a generated one."""
    found = [
        file.read_text()
        for room in ("examples", "tests", "docs")
        for file in sorted((TREE / room).rglob("*.odcs.y*ml"))
    ]
    pages = [
        block for file in sorted((TREE / "docs").rglob("*.md")) for block in _BLOCK.findall(file.read_text())
    ]
    found += [block for block in pages if "apiVersion:" in block]
    rich = [_seed(one) for one in dict.fromkeys([*found, text(3, columns=12), DELIVERED])]
    shown = [rule_page.parse(rule.page) for rule in rules_of().values()]
    short = [rule_page.document(fragment)[0] for one in shown for fragment in (one.bad, one.good)]
    return [*rich * RICH, *(_seed(one) for one in dict.fromkeys(short))]


def _seed(contract: str) -> Seed:
    data = contract.encode()
    try:
        document = yaml.safe_load(contract)
        spans = [(token.start_mark.index, token.end_mark.index) for token in yaml.scan(contract)]
    except (yaml.YAMLError, ValueError):
        return Seed(data, None, ())
    # Marks count characters, and cuts are made in bytes.
    places = [len(contract[:place].encode()) for span in spans for place in span]
    pairs = zip(places[::2], places[1::2], strict=True)
    return Seed(data, document, tuple((start, end) for start, end in pairs if start < end))


def inputs(known: list[Seed], number: int) -> Input:
    """The input of this number."""
    draw = random.Random(f"dq {number}")
    (make,) = draw.choices([make for make, _ in COMMANDS], [weight for _, weight in COMMANDS])
    return make(draw, known)


def damaged(draw: random.Random, known: list[Seed]) -> bytes:
    """A contract with some damage, on the level of bytes, tokens, lines or values."""
    kind = draw.choice((_bytes, _tokens, _tokens, _lines, _values, _values, _values))
    return kind(draw, draw.choice(known), known)[:MAX_BYTES]


def touched(draw: random.Random, known: list[Seed]) -> bytes:
    """A contract that can often be read: values of the same key elsewhere, and worse ones."""
    seed = draw.choice(known)
    if draw.random() < 0.3 or seed.document is None:
        return damaged(draw, known)
    document = copy.deepcopy(seed.document)
    theirs = list(_places(draw.choice(known).document))
    for _ in range(draw.randint(1, 4)):
        mine = [
            (holder, key)
            for holder, key in _places(document)
            if not _keys(holder[key]) and (key not in ("apiVersion", "kind") or draw.random() < 0.1)
        ]
        if not mine:
            break
        holder, key = draw.choice(mine)
        same = [other[name] for other, name in theirs if name == key]
        hostile = draw.choice(HOSTILE)
        if same and draw.random() < 0.7:
            holder[key] = copy.deepcopy(draw.choice(same))
        else:
            holder[key] = str(hostile) if isinstance(holder[key], str) else copy.deepcopy(hostile)
    return _dumped(document)


def _dumped(document: Any) -> bytes:
    return yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True).encode()


def _bytes(draw: random.Random, seed: Seed, _: list[Seed]) -> bytes:
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


def _tokens(draw: random.Random, seed: Seed, known: list[Seed]) -> bytes:
    if not seed.tokens:
        return _bytes(draw, seed, known)
    data = seed.data
    for _ in range(draw.randint(1, 4)):
        # Later places first would be needed to keep the earlier ones true; a shift is one more damage.
        start, end = draw.choice(seed.tokens)
        other = draw.choice(known)
        begin, stop = draw.choice(other.tokens) if other.tokens else (0, 0)
        hostile = str(draw.choice(HOSTILE))
        token = draw.choice((
            b"", data[start:end] * 2, other.data[begin:stop], draw.choice(SNIPPETS),
            hostile.encode("utf-8", "replace"),
            yaml.safe_dump(hostile, default_style='"', width=10**6).strip().encode(),
        ))  # fmt: skip
        data = data[:start] + token + data[end:]
    return data


def _lines(draw: random.Random, seed: Seed, _: list[Seed]) -> bytes:
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


def _values(draw: random.Random, seed: Seed, known: list[Seed]) -> bytes:
    document = copy.deepcopy(seed.document)
    other = list(_places(draw.choice(known).document))
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
                theirs, there = draw.choice(places)
                # The first change may have taken it away.
                holder[key] = copy.deepcopy(theirs[there]) if there in _keys(theirs) else None
            case 3 if other:
                theirs, there = draw.choice(other)
                holder[key] = copy.deepcopy(theirs[there])
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


def _name(draw: random.Random) -> str:
    return draw.choice(NAMES) if draw.random() < 0.1 else NAMES[0]


def _word(draw: random.Random) -> str:
    """Something for a command line, which holds no NUL."""
    return str(draw.choice(HOSTILE)).replace("\0", "") or "x"


def _validate(draw: random.Random, known: list[Seed]) -> Input:
    name = _name(draw)
    files = {name: damaged(draw, known)}
    if draw.random() < 0.2:
        policy = draw.choice(POLICIES)
        kind = draw.choice((_bytes, _tokens, _values))
        files["dq-policy.yaml"] = kind(draw, _seed(policy), known)
    if draw.random() < 0.1:
        files["second.odcs.yaml"] = damaged(draw, known)
    form = draw.choice(("json", "json", "text", "github", "markdown", "sarif", "junit"))
    return Input(["validate", "--format", form, "--", *draw.choice(([name], ["."]))], files)


def _diff(draw: random.Random, known: list[Seed]) -> Input:
    seed = draw.choice(known)
    before = seed.data if draw.random() < 0.7 else touched(draw, known)
    after = touched(draw, [seed, seed, draw.choice(known)])
    words = ["diff", "before.odcs.yaml", "after.odcs.yaml", "--format", draw.choice(("text", "json"))]
    return Input(words, {"before.odcs.yaml": before, "after.odcs.yaml": after})


def _fmt(draw: random.Random, known: list[Seed]) -> Input:
    name = _name(draw)
    data = draw.choice((damaged, touched))(draw, known)
    return Input(["fmt", *draw.choice(([], ["--check"], ["--diff"])), "--", name], {name: data})


def _explain(draw: random.Random, known: list[Seed]) -> Input:
    if draw.random() < 0.03:
        return Input(["explain", "--", _word(draw).replace("/", ".")])  # no folder of this machine
    return Input(["explain", "fuzz.odcs.yaml"], {"fuzz.odcs.yaml": touched(draw, known)})


def _register(draw: random.Random, known: list[Seed]) -> Input:
    more = draw.choice(([], [], ["--check"], ["--prune"], [f"--server={_word(draw)}"]))
    files = {"fuzz.odcs.yaml": touched(draw, known)}
    if draw.random() < 0.3:
        files["second.odcs.yaml"] = touched(draw, known)
    return Input(["register", ".", *more], files)


_OBJECTS = re.findall(r"name: (of_\w+)", DELIVERED)
_VALUES = (
    "2026-05-10", "2026-05-10T06:00:00Z", "2026-05-10 06:00:00", "7", "-7", "1.50", "true", "../x", "a/b",
    "a=b", ".", "__HIVE_DEFAULT_PARTITION__", "9999999999999999999", "0001-01-01", "+1", "%2F", "${PATH}",
    "{due}",
)  # fmt: skip


def _value(draw: random.Random) -> str:
    return draw.choice(_VALUES) if draw.random() < 0.5 else _word(draw)


def _publish(draw: random.Random, known: list[Seed]) -> Input:
    words = ["publish", "fuzz.odcs.yaml"]
    if draw.random() < 0.5:
        words += [f"--object={draw.choice(_OBJECTS)}", f"--partition=key={_value(draw)}"]
        words += draw.choice(([], ["--rows=0"], ["--rows=0"], [f"--rows={_word(draw)}"]))
        return Input(words, {"fuzz.odcs.yaml": DELIVERED.encode()})
    contract = draw.choice(known).data if draw.random() < 0.6 else touched(draw, known)
    for _ in range(draw.randint(0, 3)):
        key = draw.choice(("day", "flight_date", "order_date", "region", "DAY", _word(draw)))
        words.append(f"--partition={key}={_value(draw)}")
    for option in ("--rows", "--cycle", "--as-of", "--object", "--server"):
        if draw.random() < 0.15:
            words.append(f"{option}={draw.choice((_word(draw), '2026-05-10T06:00:00Z', '10'))}")
    return Input(words, {"fuzz.odcs.yaml": contract})


# The first ones are good in every field.
_FIELDS = (
    "*",
    "1",
    "6",
    "*/5",
    "1-5",
    "1,2,3",
    "L",
    "1#2",
    "?",
    "MON",
    "60",
    "0/0",
    "-1",
    "W",
    "@daily",
    "R",
)


def _schedule(draw: random.Random, _: list[Seed]) -> Input:
    fields = _FIELDS if draw.random() < 0.4 else _FIELDS[:6]
    expression = " ".join(draw.choice(fields) for _ in range(draw.choice((5, 5, 5, 6, 1, 7))))
    words = ["schedule", "next", f"--count={draw.randint(1, 50)}"]
    if draw.random() < 0.5:
        zones = ("America/New_York", "Pacific/Apia", "Africa/Casablanca", "Australia/Lord_Howe")
        words.append(f"--tz={draw.choice((*zones, _word(draw)))}")
    if draw.random() < 0.3:
        words.append(f"--dialect={draw.choice(('unix', 'quartz', 'aws', _word(draw)))}")
    if draw.random() < 0.3:
        words.append(f"--after={draw.choice(('0001-01-01T00:00:00Z', '9999-12-31T23:59:59Z', _word(draw)))}")
    return Input([*words, "--", expression if draw.random() < 0.8 else _word(draw)])


Maker = Callable[[random.Random, list[Seed]], Input]
COMMANDS: tuple[tuple[Maker, int], ...] = (
    (_validate, 32), (_diff, 20), (_explain, 15), (_fmt, 10), (_register, 10), (_publish, 10), (_schedule, 3),
)  # fmt: skip

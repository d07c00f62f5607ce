"""Damaged and hostile inputs for the fuzz: contracts, policies, arguments; the same for the same number."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from _damage import HOSTILE, bytes_damaged, damaged, tokens_damaged, touched, values_damaged
from _seeds import BLOCK, DELIVERED, TREE, Seed, seed_of

POLICIES = (
    "profile: strict\nrules:\n  missing-owner: {severity: off}\n  file-name-not-id: {severity: critical}\n",
    *BLOCK.findall((TREE / "docs" / "reference" / "policy.md").read_text())[:1],
    (TREE / "examples" / "registry" / "dq-policy.yaml").read_text(),
)
NAMES = (
    "fuzz.odcs.yaml", "-h.odcs.yaml", "--format=json.odcs.yaml", "a b.odcs.yaml", "a\n::error::b.odcs.yaml",
    "\u202eymal.odcs.yaml", "\x1b[31m.odcs.yaml", "é" * 60 + ".odcs.yaml", "e\u0301.odcs.yaml",
    "%0A.odcs.yaml", "[bold].odcs.yaml", "`a`|b.odcs.yaml", "<b>.odcs.yaml", "deep/" * 20 + "a.odcs.yaml",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Input:
    """One command line, and the files that it finds in its folder."""

    words: list[str]
    files: dict[str, bytes] = field(default_factory=dict)


def inputs(all_seeds: list[Seed], number: int) -> Input:
    """The input of this number."""
    draw = random.Random(f"dq {number}")
    (make,) = draw.choices([make for make, _ in COMMANDS], [weight for _, weight in COMMANDS])
    return make(draw, all_seeds)


def _name(draw: random.Random) -> str:
    return draw.choice(NAMES) if draw.random() < 0.1 else NAMES[0]


def _word(draw: random.Random) -> str:
    """Something for a command line, which holds no NUL."""
    return str(draw.choice(HOSTILE)).replace("\0", "") or "x"


def _validate(draw: random.Random, all_seeds: list[Seed]) -> Input:
    name = _name(draw)
    files = {name: damaged(draw, all_seeds)}
    if draw.random() < 0.2:
        policy = draw.choice(POLICIES)
        kind = draw.choice((bytes_damaged, tokens_damaged, values_damaged))
        files["dq-policy.yaml"] = kind(draw, seed_of(policy), all_seeds)
    if draw.random() < 0.1:
        files["second.odcs.yaml"] = damaged(draw, all_seeds)
    form = draw.choice(("json", "json", "text", "github", "markdown", "sarif", "junit"))
    return Input(["validate", "--format", form, "--", *draw.choice(([name], ["."]))], files)


def _diff(draw: random.Random, all_seeds: list[Seed]) -> Input:
    seed = draw.choice(all_seeds)
    before = seed.data if draw.random() < 0.7 else touched(draw, all_seeds)
    after = touched(draw, [seed, seed, draw.choice(all_seeds)])
    words = ["diff", "before.odcs.yaml", "after.odcs.yaml", "--format", draw.choice(("text", "json"))]
    return Input(words, {"before.odcs.yaml": before, "after.odcs.yaml": after})


def _fmt(draw: random.Random, all_seeds: list[Seed]) -> Input:
    name = _name(draw)
    data = draw.choice((damaged, touched))(draw, all_seeds)
    return Input(["fmt", *draw.choice(([], ["--check"], ["--diff"])), "--", name], {name: data})


def _explain(draw: random.Random, all_seeds: list[Seed]) -> Input:
    if draw.random() < 0.03:
        return Input(["explain", "--", _word(draw).replace("/", ".")])  # no folder of this machine
    return Input(["explain", "fuzz.odcs.yaml"], {"fuzz.odcs.yaml": touched(draw, all_seeds)})


def _register(draw: random.Random, all_seeds: list[Seed]) -> Input:
    options = draw.choice(([], [], ["--check"], ["--prune"], [f"--server={_word(draw)}"]))
    files = {"fuzz.odcs.yaml": touched(draw, all_seeds)}
    if draw.random() < 0.3:
        files["second.odcs.yaml"] = touched(draw, all_seeds)
    return Input(["register", ".", *options], files)


_OBJECTS = re.findall(r"name: (of_\w+)", DELIVERED)
_VALUES = (
    "2026-05-10", "2026-05-10T06:00:00Z", "2026-05-10 06:00:00", "7", "-7", "1.50", "true", "../x", "a/b",
    "a=b", ".", "__HIVE_DEFAULT_PARTITION__", "9999999999999999999", "0001-01-01", "+1", "%2F", "${PATH}",
    "{due}",
)  # fmt: skip


def _value(draw: random.Random) -> str:
    return draw.choice(_VALUES) if draw.random() < 0.5 else _word(draw)


def _publish(draw: random.Random, all_seeds: list[Seed]) -> Input:
    words = ["publish", "fuzz.odcs.yaml"]
    if draw.random() < 0.5:
        words += [f"--object={draw.choice(_OBJECTS)}", f"--partition=key={_value(draw)}"]
        words += draw.choice(([], ["--rows=0"], ["--rows=0"], [f"--rows={_word(draw)}"]))
        return Input(words, {"fuzz.odcs.yaml": DELIVERED.encode()})
    contract = draw.choice(all_seeds).data if draw.random() < 0.6 else touched(draw, all_seeds)
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

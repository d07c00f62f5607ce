"""What a message says at each step, and that none is more than a screen, whatever strangers wrote in it.

How messages read as a whole stands in golden/, see test_golden.py.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import reduce

import pytest
from fakes.breaches import DUE, KEY, breach, recovery

from dq.alerts.channels import load
from dq.alerts.channels.slack import plain, rich
from dq.alerts.incident import Ack, Incident, IncidentState, step
from dq.alerts.message import SCREEN_LINES, SCREEN_WIDTH, duration, headline, render, text_lines
from dq.contracts.incident import Breach, Recovery, Resolution
from dq.contracts.outcome import Severity

NOW = DUE + timedelta(minutes=30)


def instant(day: int) -> str:
    return (DUE + timedelta(days=day - 1)).isoformat()


def missing(day: int, severity: Severity = Severity.ERROR, **more: object) -> Breach:
    """The delivery of that day is missing, named by its due instant as the watcher does."""
    title = f"orders is missing: day={day}"
    return replace(breach(day, severity), **{"subject": instant(day), "title": title, **more})


def came(day: int, end: Resolution = Resolution.RECOVERED, hours: float = 2) -> Recovery:
    at = DUE + timedelta(days=day - 1, hours=hours)
    title = "" if end is not Resolution.RECOVERED else f"orders came late: day={day}"
    return Recovery(KEY, instant(day), at, ((end.replace("_", " "), "its reason"),), end, title)


def after(*events: object) -> Incident:
    done = reduce(lambda last, event: step(last.incident if last else None, event, NOW), events, None)
    return done.incident


def test_the_title_is_of_what_is_still_broken():
    both, first, none = (
        after(missing(1), missing(2)),
        after(missing(1), missing(2), came(2)),
        after(missing(1), missing(2), came(2), came(1, hours=30)),
    )

    titles = [render(one, "create").title for one in (both, first, none)]

    assert titles == [
        "orders is missing: day=2 and 1 more",
        "orders is missing: day=1",
        "orders came late: day=1 (the last of 2)",
    ]
    assert [one.title for one in (both, first, none)] == [
        title.partition(" (")[0].partition(" and")[0] for title in titles
    ]


def test_after_the_end_nothing_is_missing_any_more():
    said = "\n".join(
        [
            headline(render(after(missing(1), came(1)), "create")),
            *text_lines(render(after(missing(1), came(1)), "create")),
        ]
    )

    assert said.splitlines()[0] == "RESOLVED: orders came late: day=1"
    assert "nothing" not in said
    assert "is missing" not in said
    assert "location" not in said
    assert "promised" in said


def test_what_was_given_up_still_says_where_to_look():
    broken = missing(
        1, facts=(("promised", "x"), ("found", "nothing"), ("location", "lake"), ("details", "dq status"))
    )

    labels = [label for label, _ in render(after(broken, came(1, Resolution.GIVEN_UP)), "create").facts]

    assert labels == ["promised", "given up", "location", "details"]


@pytest.mark.parametrize(
    ("mended", "said"),
    [
        ((), "4 deliveries missed their deadline so far; none has arrived yet."),
        ((2,), "4 deliveries missed their deadline so far; 3 still missing."),
        ((1, 2, 3), "4 deliveries missed their deadline so far; 1 still missing."),
    ],
)
def test_a_count_is_of_deliveries_that_missed_and_of_those_that_have_not_come(mended, said):
    incident = after(*map(missing, range(1, 5)), *(came(day, hours=100) for day in mended))

    assert render(incident, "reply:count").note == said


def test_a_delivery_that_broke_twice_counts_once():
    again = replace(missing(1), occurred_at=DUE + timedelta(hours=5))

    incident = after(missing(1), came(1), again, missing(2))

    assert incident.breaches == 3
    assert (
        render(incident, "reply:count").note
        == "2 deliveries missed their deadline so far; none has arrived yet."
    )


def test_what_is_told_of_a_whole_is_not_counted():
    half, all_of_it = (replace(breach(1), subject=name, title=name) for name in ("half", "exhausted"))

    message = render(after(half, all_of_it), "create")

    assert message.title == "exhausted"
    assert "still open" not in dict(message.facts)


def test_several_ends_are_counted():
    incident = after(missing(1), missing(2), came(1), came(2, Resolution.GIVEN_UP, hours=90))

    assert render(incident, "create").steps[-1].endswith("There were 2 in all: 1 resolved, 1 given up.")


def test_who_is_on_it_stands_there():
    assert (
        "Acknowledged by ana at 2026-05-01 08:30 UTC."
        in render(after(missing(1), Ack("ana")), "create").steps
    )


def test_only_what_is_open_calls_somebody_and_only_in_the_message_itself():
    broken = missing(1, facts=(("owner", "ana"), ("mention", "U012AB3CD S012AB3CD")))
    opened, acked, closed = after(broken), after(broken, Ack("ana")), after(broken, came(1))

    calls = [render(one, "create").mentions for one in (opened, acked, closed)]

    assert calls == [("U012AB3CD", "S012AB3CD"), (), ()]
    assert "<@U012AB3CD> <!subteam^S012AB3CD>" in str(rich(render(opened, "create")))
    assert "U012AB3CD" not in str(rich(render(closed, "update")))
    assert "U012AB3CD" not in str(plain(render(opened, "create")))


@pytest.mark.parametrize(
    "ident", ["!channel", "U1>", "here", "<@U012AB3CD>", "u012ab3cd", "U012|x", "C012AB3CD"]
)
def test_what_is_no_id_calls_nobody(ident):
    message = render(after(missing(1, facts=(("mention", ident),))), "create")

    assert "<@" not in str(rich(message))
    assert "<!" not in str(rich(message))


HOSTILE = {
    "long": "x" * 5000,
    "words": "very " * 1000,
    "wide": "\u4e2d" * 3000,
    "lines": "a\n" * 500,
    "bidi": "\u202e" * 400,
    "blank": " " * 300,
    "mixed": "\u202e@channel <!here> `" * 200,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_message_is_more_than_a_screen(name):
    text = HOSTILE[name]
    facts = [(f"{label} {text}"[:200], text) for label in range(40)]
    facts += [
        (label, text) for label in ("product", "promised", "since", "found", "blocks", "owner", "budget")
    ]
    facts += [("details", "dq status " + "y" * 230), ("runbook", "https://" + "z" * 230)]
    broken = [missing(day, facts=tuple(facts), title=text) for day in range(1, 20)]
    incident = after(*broken, Ack(text))
    told = []
    console = load()["console"].open({}, told.append).sender

    for state in (incident, after(*broken, *(came(day, hours=1000) for day in range(1, 20)))):
        message = render(state, "create", repeat=True)
        console.create("", message, "")
        console.reply(None, render(state, "reply:resolved", repeat=True), "")

    for block in told:
        rows = sum(-(-len(line) // SCREEN_WIDTH) for line in block.splitlines())
        assert rows <= SCREEN_LINES, rows
        assert "\u202e" not in block
        long = [line for line in block.splitlines()[1:] if len(line) > SCREEN_WIDTH]
        assert all("dq status" in line or "https://" in line for line in long)


def test_the_command_and_the_runbook_are_whole():
    command, runbook = "dq status " + "y" * 200, "https://wiki.example.com/" + "z" * 200
    facts = [(str(number), "word " * 60) for number in range(30)]

    message = render(after(missing(1, facts=(*facts, ("runbook", runbook), ("details", command)))), "create")

    said = text_lines(message)
    assert sum(line.endswith(f"  {command}") for line in said) == 1
    assert sum(line.endswith(f"  {runbook}") for line in said) == 1


def test_a_sign_in_a_command_does_not_end_its_box():
    message = render(after(missing(1, facts=(("details", "dq status 'a```<!channel>b'"),))), "create")

    (said,) = [
        block["text"]["text"] for block in rich(message)["attachments"][0]["blocks"] if "text" in block
    ]

    assert said == "dq status 'a```&lt;!channel&gt;b'"


def test_an_end_of_its_own_is_not_called_resolved():
    heads = {
        end: headline(render(after(missing(1), came(1, end)), "create")).partition(":")[0]
        for end in Resolution
    }

    assert heads == {
        Resolution.RECOVERED: "RESOLVED",
        Resolution.GIVEN_UP: "GIVEN UP",
        Resolution.WITHDRAWN: "WITHDRAWN",
        Resolution.EXCUSED: "EXCUSED",
        Resolution.HANDED_OVER: "HANDED OVER",
    }
    assert after(missing(1), came(1, Resolution.GIVEN_UP)).state is IncidentState.GIVEN_UP


def test_the_older_facts_of_a_store_read_on():
    incident = after(breach(1), recovery(1))

    assert render(incident, "create").title == "Orders were not delivered by 08:00"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3661, "1 h 1 min"), (90000, "1 d 1 h"), (86400, "1 d")],
)
def test_a_length_of_time_reads_well(seconds, said):
    assert duration(timedelta(seconds=seconds)) == said

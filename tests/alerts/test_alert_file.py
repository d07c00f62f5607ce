"""Files of alerts: each key once, whatever others do to the file, and without reading it ever again."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from fakes.breaches import DUE, breach

from dq.alerts.channel import LookupMiss, MessageRef, RetryableFailure, Sent
from dq.alerts.channels import load
from dq.alerts.incident import step
from dq.alerts.message import render

CREATED = render(step(None, breach(1), DUE).incident, "create")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "alerts.jsonl"


@pytest.fixture
def sender():
    return opened()


def opened():
    return load()["file"].open({}, print).sender


def keys(path):
    return [json.loads(line)["key"] for line in path.read_text().splitlines() if line.endswith("}")]


def test_a_line_costs_what_it_is_long_and_not_what_the_file_is(sender, path, monkeypatch):
    opened().create(str(path), CREATED, "key-0")
    path.write_bytes(path.read_bytes() * 5_000)
    sender.create(str(path), CREATED, "key-1")
    read = []
    really = os.read
    monkeypatch.setattr(os, "read", lambda *asked: read.append(really(*asked)) or read[-1])

    for n in range(2, 102):
        sender.create(str(path), CREATED, f"key-{n}")

    assert path.stat().st_size > 2_000_000
    assert sum(map(len, read)) < 300_000
    assert len(keys(path)) == 5_101


def test_what_another_process_wrote_meanwhile_is_known(sender, path):
    sender.create(str(path), CREATED, "key-1")
    opened().create(str(path), CREATED, "key-2")

    answers = [sender.create(str(path), CREATED, f"key-{n}") for n in (1, 2, 3)]

    assert [type(answer) for answer in answers] == [Sent] * 3
    assert keys(path) == ["key-1", "key-2", "key-3"]


@pytest.mark.parametrize("how", ["put away", "emptied", "emptied and written as far", "replaced"])
def test_a_file_that_begins_anew_is_read_anew(sender, path, how):
    sender.create(str(path), CREATED, "key-1")
    size = path.stat().st_size
    if how == "put away":
        path.rename(path.with_suffix(".1"))
    elif how == "emptied":
        os.truncate(path, 0)
    elif how == "emptied and written as far":
        path.write_text("#" * (size + 10) + "\n")
    else:
        other = path.with_suffix(".new")
        other.write_text("")
        other.replace(path)

    sender.create(str(path), CREATED, "key-1")

    assert keys(path) == ["key-1"]


def test_half_a_line_of_another_process_is_no_line(sender, path):
    sender.create(str(path), CREATED, "key-1")
    whole = path.read_text()
    with path.open("a") as file:
        file.write(whole.replace("key-1", "key-2")[:100])

    sender.create(str(path), CREATED, "key-2")
    sender.create(str(path), CREATED, "key-3")

    assert keys(path) == ["key-1", "key-2", "key-3"]


def test_a_line_that_became_whole_is_known(sender, path):
    sender.create(str(path), CREATED, "key-1")
    line = path.read_text().replace("key-1", "key-2")
    with path.open("a") as file:
        file.write(line[:100])
    sender.find(str(path), "key-2", DUE, None)
    with path.open("a") as file:
        file.write(line[100:])

    assert sender.find(str(path), "key-2", DUE, None) == Sent(MessageRef(str(path), "key-2"))


def test_a_file_that_is_not_there_holds_nothing(sender, path):
    assert sender.find(str(path), "key-1", DUE, None) == LookupMiss()


def test_a_disk_that_fills_up_in_a_line_has_not_taken_it(path):
    """A limit on the size of files ends a write as a full disk does: in the middle."""
    program = (
        "import resource, signal, sys; from pathlib import Path\n"
        f"here = Path({__file__!r}); sys.path += [str(here.parent), str(here.parents[1])]\n"
        "from test_alert_file import CREATED, opened\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"sender = opened(); sender.create({str(path)!r}, CREATED, 'key-1')\n"
        f"size = Path({str(path)!r}).stat().st_size\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, resource.RLIM_INFINITY))\n"
        f"print(type(sender.create({str(path)!r}, CREATED, 'key-2')).__name__)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        f"print(type(sender.create({str(path)!r}, CREATED, 'key-2')).__name__)\n"
    )

    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert said.stdout.split() == [RetryableFailure.__name__, Sent.__name__], said.stderr
    assert keys(path) == ["key-1", "key-2"]

"""A command and its function are one operation: on the same input they say the same."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest
from fakes.command import BEGIN, MISSED, Place, contract

import dq


def _registry(folder: Path) -> Place:
    place = Place(folder)
    place.put("registry/orders.odcs.yaml", contract("orders"))
    return place


@pytest.fixture
def twins(tmp_path: Path) -> tuple[Place, Place]:
    """Two folders of the same content: one for the command, one for the function."""
    return _registry(tmp_path / "command"), _registry(tmp_path / "function")


def test_watch_is_the_command(twins: tuple[Place, Place]) -> None:
    command, function = twins
    for at, code in ((BEGIN, 0), (MISSED, 1), (MISSED, 0)):
        ran = command.dq("watch", "registry", "--as-of", at, "--channel", "console", "--format", "json")
        outcome = dq.watch(
            "registry", channel="console", folder=function.folder, now=datetime.fromisoformat(at)
        )

        assert ran.code == code == outcome.exit_code, ran.all
        assert ran.json == json.loads(json.dumps(outcome.as_dict()))
        for text in outcome.alerts:
            assert text.splitlines()[0] in ran.err


def test_watch_says_why_nothing_is_judged(twins: tuple[Place, Place]) -> None:
    command, function = twins
    for at, code in ((MISSED, 0), (BEGIN, 3)):
        ran = command.dq("watch", "registry", "--as-of", at, "--format", "json")
        outcome = dq.watch("registry", folder=function.folder, now=datetime.fromisoformat(at))

        assert ran.code == code == outcome.exit_code, ran.all
        assert ran.json == json.loads(json.dumps(outcome.as_dict()))
    assert outcome.refused is not None


def test_watch_keeps_its_notes(twins: tuple[Place, Place]) -> None:
    command, function = twins
    for place in twins:
        place.put("registry/orders.odcs.yaml", contract("orders", status="draft"))
        place.put("registry/other.yaml", "a: 1\n")
    ran = command.dq("watch", "registry", "--as-of", BEGIN)
    outcome = dq.watch("registry", folder=function.folder, now=datetime.fromisoformat(BEGIN))

    # The function names files by the folder that it was given.
    notes = [text.replace(f"{function.folder}/", "") for text in outcome.notes]
    assert "orders is draft, so its deliveries are not judged." in notes
    assert [f"dq: {text}" for text in notes] == ran.err.splitlines()

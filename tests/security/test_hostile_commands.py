"""Sixty hostile texts in one registry, and the commands that read it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from fakes.canary import Canary
from fakes.command import Place, Ran, without_settings
from fakes.hostile_texts import VARIABLE, Canaries, hostile_texts
from fakes.strangers import contract, file_name, steering

BEFORE, AT, AFTER = "2026-05-29T09:00:00Z", "2026-05-30T09:20:00Z", "2026-05-31T09:20:00Z"
COMMANDS = [
    ("validate", "registry", *(f"--report={form}=report.{form}" for form in ("sarif", "junit", "markdown"))),
    ("validate", "registry", "--format", "github"),
    ("validate", "registry", "--format", "json"),
    ("explain", "registry"),
    ("watch", "registry", "--as-of", BEFORE, "--channel", "console"),
    ("watch", "registry", "--as-of", AT, "--channel", "console"),
    ("watch", "registry", "--as-of", AFTER, "--channel", "file:alerts.jsonl"),
    ("status", "registry", "--as-of", AFTER),
    ("status", "registry", "--as-of", AFTER, "--format", "markdown"),
    ("incidents", "--all"),
    ("incidents", "--all", "--format", "markdown"),
    ("schedule", "next", "registry"),
    ("tables", "registry"),
    ("metrics",),
    ("outbox",),
]


def in_a_process(folder: Path, words: tuple[str, ...]) -> Ran:
    """The command as a shell starts it."""
    command = [sys.executable, "-P", "-m", "dq", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    return Ran(done.returncode, done.stdout, done.stderr)


def test_no_command_evaluates_a_text_of_a_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Canary() as socket:
        canaries = Canaries(tmp_path, socket)
        canaries.prepare()
        place = tmp_path / "place"
        (place / "registry").mkdir(parents=True)
        for number, text in enumerate(hostile_texts(canaries).values()):
            document = contract(f"stranger-{number:02}", text)
            # The name of its file is the text, too.
            file = place / "registry" / f"{number:02}{file_name(text)}.odcs.yaml"
            file.write_text(yaml.safe_dump(document, sort_keys=False, width=100_000))
        for name in os.environ.keys() - without_settings().keys():
            monkeypatch.delenv(name)
        monkeypatch.setenv(VARIABLE, canaries.environment()[VARIABLE])
        monkeypatch.setenv("DQ_FILE_CHANNELS", str(place))
        printed = []
        for words in COMMANDS:
            # Fourteen more starts of Python would tell nothing more.
            done = in_a_process(place, words) if words is COMMANDS[0] else Place(place).dq(*words)
            assert done.code in (0, 1, 2, 3, 4), (words, done.err[-2000:])
            assert "Traceback" not in done.err, words
            own = words[-1] == "github"
            assert steering(done.out, own_commands=own) == [], words
            assert steering(done.err) == [], words
            printed += [done.out, done.err]

        files = [file.read_bytes() for file in place.rglob("*") if file.is_file()]
        assert canaries.disturbed(*printed, *files) == []
        assert len("".join(printed)) > 100_000
        # The strangers' deliveries were missing, and messages of it were written.
        told = dict(zip(COMMANDS, printed[::2], strict=True))
        assert sum(len(told[words]) for words in COMMANDS if words[0] == "watch") > 10_000
        assert len(told["incidents", "--all"].splitlines()) > 20

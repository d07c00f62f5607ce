"""Sixty hostile texts in one registry, and the commands that read it, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml
from fakes.canary import Canary
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


def test_no_command_evaluates_a_text_of_a_contract(tmp_path: Path) -> None:
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
        environment = {name: value for name, value in canaries.environment().items() if name[:3] != "DQ_"}
        environment |= {VARIABLE: canaries.environment()[VARIABLE], "DQ_FILE_CHANNELS": str(place)}
        printed = []
        for words in COMMANDS:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "dq", *words],
                cwd=place, env=environment, capture_output=True, text=True, timeout=300, check=False,
            )  # fmt: skip
            assert done.returncode in (0, 1, 2, 3, 4), (words, done.stderr[-2000:])
            assert "Traceback" not in done.stderr, words
            own = words[-1] == "github"
            assert steering(done.stdout, own_commands=own) == [], words
            assert steering(done.stderr) == [], words
            printed += [done.stdout, done.stderr]

        files = [file.read_bytes() for file in place.rglob("*") if file.is_file()]
        assert canaries.disturbed(*printed, *files) == []
        assert len("".join(printed)) > 100_000
        # The strangers' deliveries were missing, and messages of it were written.
        told = dict(zip(COMMANDS, printed[::2], strict=True))
        assert sum(len(told[words]) for words in COMMANDS if words[0] == "watch") > 10_000
        assert len(told["incidents", "--all"].splitlines()) > 20

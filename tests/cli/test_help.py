"""The words of the command line: every command, argument and option, with its kind and its default.

The texts of commands and options stand in docs/reference/commands.md, which a test compares with the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import typer.main
from fakes import golden

from dq.cli.main import application, names

GOLDEN = Path(__file__).parent / "golden"
REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"


def commands(command: Any, line: str = "dq") -> Iterator[tuple[str, Any]]:
    """Every command and group below one, by what is typed for it."""
    yield line, command
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from commands(inner, f"{line} {name}")


COMMANDS = dict(commands(typer.main.get_command(application(names()))))


def described(parameter: Any) -> str:
    """An argument or option in a line."""
    words = [" / ".join([*parameter.opts, *parameter.secondary_opts]), _kind(parameter)]
    words += [f"{name} {limit}" for name in ("min", "max") if (limit := getattr(parameter, name)) is not None]
    words += ["required"] if parameter.required else []
    default = getattr(parameter.default, "value", parameter.default)
    if default not in (None, False, "", ()) and not callable(default):
        words.append(f"default: {default}")
    return ", ".join(words)


def _kind(parameter: Any) -> str:
    annotation = parameter.type_descriptor.annotation if parameter.type_descriptor else str
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "|".join(str(each.value) for each in annotation)
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def test_every_command_has_its_options() -> None:
    sections = [
        "\n".join([f"{line}", *(f"    {described(each)}" for each in command.params if each.name != "help")])
        for line, command in COMMANDS.items()
    ]

    golden.compare(GOLDEN / "options.txt", "\n".join(sections) + "\n")


def test_groups_list_their_commands_as_agreed(dq, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERMINAL_WIDTH", "100")
    groups = [line for line, command in COMMANDS.items() if hasattr(command, "commands")]
    printed = [f"$ {line} --help\n{dq(*line.split()[1:], '--help').out.strip()}\n" for line in groups]

    golden.compare(GOLDEN / "help.txt", re.sub(r" +$", "", "\n".join(printed), flags=re.MULTILINE))


def test_the_reference_has_every_command() -> None:
    headings = re.findall(r"^## (dq .+)$", REFERENCE.read_text(), re.MULTILINE)

    assert sorted(headings) == sorted(line for line, one in COMMANDS.items() if not hasattr(one, "commands"))

"""The door: finds the command, imports nothing else, and turns errors into sentences and exit codes.

Exit codes, the same everywhere: 0 fine · 1 violations found · 2 usage or configuration · 3 could not
evaluate · 4 an alert could not be delivered · 70 a bug of ours · 130 interrupted.
"""

from __future__ import annotations

import ast
import gc
import importlib
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from keyword import iskeyword
from typing import Any, NamedTuple

import typer
from typer.main import get_command

from dq.cli import commands, output
from dq.cli.context import TerminalMessages
from dq.contracts.outcome import DqError, UsageError
from dq.operations.runtime.context import CONFIG, MESSAGES

BUG = 70
# Types of options in the help. Those of flags, paths and texts would only repeat the text.
_SHOWN_TYPES = dict.fromkeys(("<bool>", "<str>", "<Path>", "<list[str]>", "<list[Path]>")) | {
    "<int>": "N",
    "<int range>": "N",
}
# What typer raises for a command line that cannot be understood; it has moved between its versions.
_MISTAKE: type[Exception] = next(
    one
    for one in typer.BadParameter.__mro__
    if issubclass(one, Exception) and one.__name__ == "ClickException"
)
HELP = """Data contracts for data lakes: validate in CI, sync to a catalog, check data, and alert on late
deliveries.

To start: 'dq import' creates a contract from an existing table, 'dq init' a new one, and 'dq demo' runs
the whole pipeline on real data."""
# The panels of `dq --help`, in the order of a contract's life.
PANELS = {
    "Write": ("init", "import", "propose", "fmt", "export", "schema"),
    "Gate": ("validate", "diff", "sample", "backtest", "rules", "explain"),
    "Catalog": ("register", "repair", "link", "subscriptions"),
    "Data": ("check", "tables", "emr"),
    "Deliveries": ("publish", "watch", "cycles", "schedule"),
    "Alerts": ("incidents", "outbox"),
    "Look": ("status", "portal", "metrics", "demo"),
    "Operate": ("doctor", "store"),
}


class Group(NamedTuple):
    """Commands below another, and their modules. The name of a module stays a hidden alias until 1.0."""

    help: str
    modules: Mapping[str, str]
    default: str = ""


GROUPS = {
    "cycles": Group(
        "Recompute, audit and correct the history of deliveries.",
        {"replay": "replay", "audit": "audit", "exclude": "excuse"},
    ),
    "incidents": Group(
        "List, acknowledge and silence incidents, and test their channels. Without a command: list.",
        {"list": "incidents", "ack": "ack", "silence": "silence", "test": "test-alert"},
        default="list",
    ),
}
_PANEL_OF = {name: panel for panel, members in PANELS.items() for name in members}
# Old names of commands that are below another now.
ALIASES = {
    module: f"{group} {name}"
    for group, below in GROUPS.items()
    for name, module in below.modules.items()
    if module not in _PANEL_OF
}


def names() -> tuple[str, ...]:
    """Every command that `dq --help` lists, in its order."""
    return tuple(_PANEL_OF)


def application(wanted: Sequence[str], listed: Sequence[str] = ()) -> typer.Typer:
    """The command line with only the wanted commands imported.

    The listed ones are there to be shown and suggested, and cannot be run.
    """
    root = typer.Typer(
        name="dq",
        help=HELP,
        no_args_is_help=True,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    # A callback makes typer keep the command's name even when there is only one.
    root.callback()(_root)
    for name in listed:
        root.command(name, help=_help_of(name), rich_help_panel=_PANEL_OF.get(name))(_not_imported)
    for name in wanted:
        group = _group_of(name, *name.split()[1:]) if name.split()[0] in GROUPS else _imported(name)
        if isinstance(group, typer.Typer):
            root.add_typer(group, name=name.split()[0], rich_help_panel=_PANEL_OF[name.split()[0]])
        else:
            root.command(name, rich_help_panel=_PANEL_OF.get(name), hidden=name in ALIASES)(group)
    return root


def _imported(name: str) -> Any:
    """The function of a command, or its typer application if it has commands of its own."""
    module = importlib.import_module(f"dq.cli.commands.{_module(name)}")
    return getattr(module, "app", None) or module.command


def _group_of(name: str, *only: str) -> typer.Typer:
    """The commands below `name`, or some of them."""
    group = GROUPS[name.split()[0]]
    app = typer.Typer(help=group.help, no_args_is_help=True)
    # A callback makes typer keep the command's name even when there is only one.
    app.callback()(lambda: None)
    for below in only or group.modules:
        app.command(below)(_imported(group.modules[below]))
    return app


def _command_for(arguments: list[str]) -> Any:
    """The command line as far as these arguments need it: the command, or all of them as they are listed."""
    return _command(_named(arguments or _to_complete()))


@cache
def _command(name: str | None) -> Any:
    """Made once: a process that runs many command lines would spend a third of its time on it."""
    made = get_command(application([], names()) if name is None else application([name]))
    _help_is_ours(made)
    return made


def _help_of(name: str) -> str:
    """The help of a command from its source, so that help needs nothing that only a command needs."""
    if name in GROUPS:
        return GROUPS[name].help
    source = pkgutil.get_data(commands.__name__, f"{_module(name)}.py") or b""
    functions = {one.name: one for one in ast.parse(source).body if isinstance(one, ast.FunctionDef)}
    documented = functions.get("command") or functions.get("_group")
    return (ast.get_docstring(documented) if documented else None) or ""


def _module(name: str) -> str:
    return f"{name.replace('-', '_')}{'_' if iskeyword(name) else ''}"


def _not_imported() -> None:
    raise AssertionError("a command that is run is imported")


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        from dq.contracts.install import NAME

        output.line(f"dq {version(NAME)}")
        raise typer.Exit


def _root(
    version: bool = typer.Option(  # noqa: ARG001  # its callback does the work
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
    config: str = typer.Option(
        None, "--config", metavar="FILE", help="Settings file dq.toml (default: the value of DQ_CONFIG)."
    ),
) -> None:
    CONFIG.set(config)


def _to_complete() -> list[str]:
    """The words before the cursor, where a shell asks how they could go on."""
    asked = os.environ if "_DQ_COMPLETE" in os.environ else {}
    return (asked.get("COMP_WORDS") or asked.get("_TYPER_COMPLETE_ARGS") or "").split()[1:]


def _named(arguments: list[str]) -> str | None:
    """The command that a command line names, after the options of all commands; None if it is unknown."""
    index = _index_of_command(arguments)
    name = arguments[index] if index < len(arguments) else ""
    below = arguments[index + 1] if index + 1 < len(arguments) else ""
    if name in GROUPS and below in GROUPS[name].modules:
        return f"{name} {below}"
    return name if name in _PANEL_OF or name in ALIASES else None


def _index_of_command(arguments: Sequence[str]) -> int:
    index = 0
    while index < len(arguments) and arguments[index].startswith("--config"):
        index += 1 if "=" in arguments[index] else 2
    return index


def with_default(arguments: list[str]) -> list[str]:
    """The arguments with the default command of a group: `dq incidents 3f2a` is `dq incidents list 3f2a`."""
    index = _index_of_command(arguments) + 1
    group = GROUPS.get(arguments[index - 1]) if index <= len(arguments) else None
    following = arguments[index] if index < len(arguments) else ""
    if group is None or not group.default or following in ("-h", "--help"):
        return arguments
    # A misspelled command gets a suggestion; hexadecimal digits are an incident's id.
    may_be_id = re.fullmatch("[0-9a-f-]+", following)
    if not may_be_id and get_close_matches(following, group.modules, n=1, cutoff=0.65):
        return arguments
    return [*arguments[:index], group.default, *arguments[index:]]


def run(arguments: list[str], imported: Callable[[], None] = lambda: None) -> int:
    """Runs one command line and gives its exit code; prints what went wrong, never a secret.

    `imported` is called when the command stands there and has not begun.
    """
    before, messages = CONFIG.set(None), MESSAGES.set(TerminalMessages)
    try:
        with output.door():
            return _read_by_somebody(_run(arguments, imported))
    finally:
        CONFIG.reset(before)
        MESSAGES.reset(messages)


def _run(arguments: list[str], imported: Callable[[], None]) -> int:
    try:
        _nothing_empty(arguments)
        arguments = with_default(arguments)
        command = _command_for(arguments)
        imported()
        # Not in typer's own way, which prints what strangers wrote: file names that pre-commit hands over.
        code = command(arguments, prog_name="dq", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except _MISTAKE as error:
        return _mistaken(error)
    except typer.Abort:
        output.note("Aborted.")
        return 1
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except DqError as error:
        output.problem(error)
        return error.exit_code
    except OSError as error:
        return _refused_by_the_world(error)
    except Exception:  # noqa: BLE001  # the last guard: whatever comes here is a bug of ours
        output.aside(traceback.format_exc())
        output.note("dq: this is a bug of dq, not a mistake of yours. Please report the lines above.")
        return BUG


def _nothing_empty(arguments: list[str]) -> None:
    """Raises UsageError for an empty word: a variable that a script did not fill is no option left out.

    `--base "$BASE"` would compare with nothing, and `fmt "$FILE"` write the working folder.
    """
    before = ""
    for word in arguments:
        if not word or re.fullmatch("--[a-z-]+=", word):
            option = before.startswith("-") and before != "--"
            name = word.rstrip("=") or (before if option else "an argument")
            raise UsageError(f"{name} is empty.", "Fill the variable that it came from, or leave it out.")
        before = word


def _read_by_somebody(code: int) -> int:
    """The exit code of a command, of which nothing is "fine" that could not be printed."""
    lost = output.lost()
    return code if lost is None or code not in (0, 1) else _refused_by_the_world(lost)


def _refused_by_the_world(error: OSError) -> int:
    """Says what a disk that is full, or a folder that may not be written, answered, whoever asked."""
    where = f"{error.filename}: " if error.filename else ""
    output.note(f"dq: {where}{error.strerror or error}.")
    output.note("    Check the path, and the rights of this process.")
    return DqError.exit_code


def _mistaken(error: Any) -> int:
    """Says what is wrong with the command line; where nothing was said, its help stands there already."""
    message, context = error.format_message(), getattr(error, "ctx", None)
    if message:
        usage = context.get_usage() if context else ""
        help_ = f"{context.command_path} {context.help_option_names[0]}" if context else ""
        output.mistake(message, usage, help_)
    return int(error.exit_code)


def _help_is_ours(command: Any) -> None:
    """Lets the colours of the help through, which are typer's, to a command and those below it."""
    plain = command.format_help

    def format_help(context: Any, formatter: Any) -> None:
        below = getattr(command, "commands", {}).values()
        for element in (command, *below, *command.get_params(context)):
            _prepare_help(element)
        with output.ours():
            plain(context, formatter)

    command.format_help = format_help
    for below in getattr(command, "commands", {}).values():
        _help_is_ours(below)


@cache
def _prepare_help(element: Any) -> None:
    """Prepare the help of a command or option for the terminal, once.

    Brackets, as in `[aws]`, would be taken for a style. Lines of a paragraph are joined, since the terminal
    wraps them at its own width.
    """
    paragraphs = (getattr(element, "help", None) or "").split("\n\n")
    unwrapped = [text if text.startswith("Example:") else " ".join(text.split()) for text in paragraphs]
    element.help = output.bracketed("\n\n".join(unwrapped)) or None
    display = getattr(element, "display_type_rich", None)
    if display is not None:
        element.display_type_rich = lambda ctx: _SHOWN_TYPES.get(shown := display(ctx=ctx), shown)


def main() -> None:
    """Entry point of the `dq` script.

    The collector of cycles never looks at code, which stays, nor at what is left when the process ends: both
    together were a third of the time that one contract takes.
    """
    gc.disable()
    code = run(sys.argv[1:], _code_stays)
    gc.freeze()
    sys.exit(code)


def _code_stays() -> None:
    gc.freeze()
    gc.enable()

"""Entry point: imports only the requested command, and turns errors into messages and exit codes.

Exit codes of all commands: 0 success · 1 violations found · 2 usage or configuration · 3 could not
evaluate · 4 an alert could not be delivered · 70 a bug of dq · 130 interrupted.
"""

from __future__ import annotations

import gc
import importlib
import inspect
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
from dq.contracts.outcome import DqError, UsageError, nearest
from dq.operations.runtime.messages import CONFIG, MESSAGES

BUG_EXIT_CODE = 70
# Types of options shown in the help. Types of flags, paths and strings are left out as redundant.
_SHOWN_TYPES = dict.fromkeys(("<bool>", "<str>", "<Path>", "<list[str]>", "<list[Path]>")) | {
    "<int>": "N",
    "<int range>": "N",
}
# click's exception for usage errors; its module differs between versions of typer.
_CLICK_EXCEPTION: type[Exception] = next(
    base
    for base in typer.BadParameter.__mro__
    if issubclass(base, Exception) and base.__name__ == "ClickException"
)
HELP = """Data contracts for data lakes: validate in CI, sync to a catalog, check data, and alert on late
deliveries.

To start: 'dq import' creates a contract from an existing table, 'dq init' a new one, and 'dq demo' runs
the whole pipeline on real data."""
# The panels of `dq --help`, in the order of a contract's life.
PANELS = {
    "Write": ("init", "import", "propose", "fmt", "export", "schema"),
    "Gate": ("validate", "diff", "sample", "backtest", "rules", "explain", "codeowners"),
    "Catalog": ("discover", "register", "repair", "link", "subscribe", "subscriptions"),
    "Data": ("check", "reconcile", "tables", "erasure", "emr"),
    "Deliveries": ("publish", "watch", "cycles", "schedule"),
    "Alerts": ("incidents", "outbox"),
    "Look": ("status", "portal", "metrics", "demo"),
    "Operate": ("doctor", "store"),
}


class Group(NamedTuple):
    """Subcommands of a command, and their modules. Module names stay hidden aliases until 1.0."""

    help: str
    modules: Mapping[str, str]
    default: str = ""


GROUPS = {
    "cycles": Group(
        "Show a delivery; recompute, audit and correct the history of deliveries.",
        {"show": "cycle", "replay": "replay", "audit": "audit", "exclude": "excuse"},
    ),
    "incidents": Group(
        "List, acknowledge and silence incidents, and test their channels. Without a command: list.",
        {"list": "incidents", "ack": "ack", "silence": "silence", "test": "test-alert"},
        default="list",
    ),
}
_PANEL_OF = {name: panel for panel, members in PANELS.items() for name in members}
# Old names of commands that are subcommands now.
ALIASES = {
    module: f"{group} {name}"
    for group, below in GROUPS.items()
    for name, module in below.modules.items()
    if module not in _PANEL_OF
}


# Names of commands in other tools -> commands of dq.
_SYNONYMS = {
    "test": "'dq check' for tables, 'dq sample' for files",
    **dict.fromkeys(("scan", "run", "verify"), "'dq check'"),
    "compare": "'dq reconcile' for data, 'dq diff' for contracts",
    "lint": "'dq validate'",
    **dict.fromkeys(("plan", "apply", "sync", "deploy"), "'dq register'"),
    **dict.fromkeys(("monitor", "start"), "'dq watch'"),
    **dict.fromkeys(("create", "new"), "'dq init'"),
    "format": "'dq fmt'",
    "profile": "'dq propose'",
    **dict.fromkeys(("alerts", "alert"), "'dq incidents'"),
    "serve": "'dq portal serve'",
    "help": "'dq --help'",
    "version": "'dq --version'",
    "incidents acknowledge": "'dq incidents ack'",
    **dict.fromkeys(("incidents mute", "incidents snooze"), "'dq incidents silence'"),
}
# Commands whose argument a shell splits or expands if it is not quoted.
_UNQUOTED = {
    "dq schedule next": "Quote the expression: dq schedule next '0 6 * * *'",
    "dq schedule convert": "Quote the expression: dq schedule convert '0 6 * * *'",
}
_MAX_LISTED_OPTIONS = 8
# pydantic's texts -> ours.
_TYPE_ERRORS = {
    "Input should be a valid integer, unable to parse string as an integer": "must be a whole number.",
    "Input should be a valid number, unable to parse string as a number": "must be a number.",
    "Input should be greater than or equal to": "must be at least",
    "Input should be less than or equal to": "must be at most",
    "Value error, ": "",
}

# Docstring of a command's function, or of the callback of its subcommands.
_DOCSTRING = re.compile(r'^def (command|_group)\(.*?^    """(.*?)"""', re.DOTALL | re.MULTILINE)


def names() -> tuple[str, ...]:
    """Return all commands of `dq --help`, in its order."""
    return tuple(_PANEL_OF)


def application(names: Sequence[str], listed_names: Sequence[str] = ()) -> typer.Typer:
    """Return the application with only the commands `names` imported.

    Those of `listed_names` are shown and suggested, and cannot be run.
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
    for name in listed_names:
        root.command(name, help=_help_of(name), rich_help_panel=_PANEL_OF.get(name))(_not_imported)
    for name in names:
        group = _group_app(name, *name.split()[1:]) if name.split()[0] in GROUPS else _import_command(name)
        if isinstance(group, typer.Typer):
            root.add_typer(group, name=name.split()[0], rich_help_panel=_PANEL_OF[name.split()[0]])
        else:
            root.command(name, rich_help_panel=_PANEL_OF.get(name), hidden=name in ALIASES)(group)
    return root


def _import_command(name: str) -> Any:
    """Return the function of a command, or its typer application if it has subcommands."""
    module = importlib.import_module(f"dq.cli.commands.{_module(name)}")
    return getattr(module, "app", None) or module.command


def _group_app(name: str, *only: str) -> typer.Typer:
    """Return the application of a group with all of its subcommands, or only some."""
    group = GROUPS[name.split()[0]]
    app = typer.Typer(help=group.help, no_args_is_help=True)
    # A callback makes typer keep the command's name even when there is only one.
    app.callback()(lambda: None)
    for below in only or group.modules:
        app.command(below)(_import_command(group.modules[below]))
    return app


def _command_for(arguments: list[str]) -> Any:
    """Return the application that these arguments need: one command, or the list of all of them."""
    return _command(_command_name(arguments or _completion_words()))


@cache
def _command(name: str | None) -> Any:
    """Return the click command, cached: it takes a third of the time of a short command line."""
    command = get_command(application([], names()) if name is None else application([name]))
    _allow_help_colors(command)
    return command


def _help_of(name: str) -> str:
    """Return the help of a command from its source, so that `--help` does not import the command.

    It is the docstring of a function in the module. Parsing all modules would take a sixth of the time.
    """
    if name in GROUPS:
        return GROUPS[name].help
    source = pkgutil.get_data(commands.__name__, f"{_module(name)}.py") or b""
    docstrings = dict(_DOCSTRING.findall(source.decode()))
    return inspect.cleandoc(docstrings.get("command") or docstrings.get("_group") or "")


def _module(name: str) -> str:
    return f"{name.replace('-', '_')}{'_' if iskeyword(name) else ''}"


def _not_imported() -> None:
    raise AssertionError("a command that is run is imported")


def _version(requested: bool) -> None:
    if requested:
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


def _completion_words() -> list[str]:
    """Return the words before the cursor if a shell asks for completion, or []."""
    environment = os.environ if "_DQ_COMPLETE" in os.environ else {}
    return (environment.get("COMP_WORDS") or environment.get("_TYPER_COMPLETE_ARGS") or "").split()[1:]


def _command_name(arguments: list[str]) -> str | None:
    """Return the command that a command line names after the global options, or None if it is unknown."""
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
    """Insert the default command of a group: `dq incidents 3f2a` is `dq incidents list 3f2a`."""
    index = _index_of_command(arguments) + 1
    group = GROUPS.get(arguments[index - 1]) if index <= len(arguments) else None
    following = arguments[index] if index < len(arguments) else ""
    if group is None or not group.default or following in ("-h", "--help"):
        return arguments
    # A misspelled command gets a suggestion; hexadecimal digits are an incident's id.
    may_be_id = re.fullmatch("[0-9a-f-]+", following)
    similar = get_close_matches(following, group.modules, n=1, cutoff=0.65)
    if not may_be_id and (similar or f"{arguments[index - 1]} {following}" in _SYNONYMS):
        return arguments
    return [*arguments[:index], group.default, *arguments[index:]]


def run(arguments: list[str], imported: Callable[[], None] = lambda: None) -> int:
    """Run one command line and return its exit code. Prints errors, never secrets.

    `imported` is called after the command is imported, before it runs.
    """
    before, messages = CONFIG.set(None), MESSAGES.set(TerminalMessages)
    try:
        with output.guarded_streams():
            return _exit_code_after_output(_run(arguments, imported))
    finally:
        CONFIG.reset(before)
        MESSAGES.reset(messages)


def _run(arguments: list[str], imported: Callable[[], None]) -> int:
    try:
        _refuse_empty_arguments(arguments)
        arguments = with_default(arguments)
        command = _command_for(arguments)
        imported()
        # Without typer's standalone mode, which prints arguments unescaped, e.g. file names from pre-commit.
        code = command(arguments, prog_name="dq", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except _CLICK_EXCEPTION as error:
        return _report_usage_error(error)
    except typer.Abort:
        output.note("Aborted.")
        return 1
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except DqError as error:
        output.problem(error)
        return error.exit_code
    except OSError as error:
        return _report_ended_jvm() or _report_os_error(error)
    except Exception:  # noqa: BLE001  # the last guard: any other exception is a bug of dq
        if code := _report_ended_jvm():
            return code
        output.write_stderr(traceback.format_exc())
        output.note("dq: internal error; please report the traceback above")
        return BUG_EXIT_CODE


def _refuse_empty_arguments(arguments: list[str]) -> None:
    """Raise UsageError for an empty argument, which usually comes from an unset variable of a script.

    Otherwise `--base "$BASE"` would compare with nothing, and `fmt "$FILE"` would write the working folder.
    """
    before = ""
    for word in arguments:
        if not word or re.fullmatch("--[a-z-]+=", word):
            option = before.startswith("-") and before != "--"
            name = word.rstrip("=") or (before if option else "an argument")
            raise UsageError(f"{name} is empty.", "Set the variable it comes from, or omit it.")
        before = word


def _exit_code_after_output(code: int) -> int:
    """Return the exit code of a command; output that could not be written turns success into an error."""
    write_error = output.write_error()
    return code if write_error is None or code not in (0, 1) else _report_os_error(write_error)


def _report_ended_jvm() -> int:
    """Report that Spark's JVM has ended, after which every use of it fails; return 0 if it has not."""
    if "pyspark" not in sys.modules:
        return 0
    from dq.operations.runtime.spark import ended_jvm

    error = ended_jvm()
    if error is not None:
        output.problem(error)
    return 0 if error is None else error.exit_code


def _report_os_error(error: OSError) -> int:
    """Report an OSError, e.g. a full disk or missing permissions."""
    prefix = f"{error.filename}: " if error.filename else ""
    output.note(f"dq: {prefix}{error.strerror or error}.")
    output.note("    Check the path and the permissions of this process.")
    return DqError.exit_code


def _report_usage_error(error: Any) -> int:
    """Report a usage error. Without a message, typer has already printed the help."""
    message, context = error.format_message(), getattr(error, "ctx", None)
    if message:
        message = _with_suggestion(message, error)
        usage = context.get_usage() if context else ""
        help_ = f"{context.command_path} {context.help_option_names[0]}" if context else ""
        output.usage_error(message, usage, help_)
    return int(error.exit_code)


def _with_suggestion(message: str, error: Any) -> str:
    """Return the message of a usage error with what was probably meant."""
    path = error.ctx.command_path if getattr(error, "ctx", None) else ""
    option, possibilities = getattr(error, "option_name", None), getattr(error, "possibilities", None)
    # An option without its value has a name too, and no possibilities.
    if option and message.startswith("No such option"):
        # Without dashes, which would make any two options similar.
        options = {text.lstrip("-"): text for text in possibilities or ()}
        similar = nearest(option.lstrip("-"), options)
        hint = f"Did you mean {options[similar]!r}?" if similar else _listed_options(error.ctx)
        return f"No such option: {option}. {hint}".rstrip()
    if message.startswith("Missing ") and path:
        missing = _missing_parameters(error.ctx)
        # A second one would be reported only after the first was added.
        return f"Missing {', '.join(missing[:-1])} and {missing[-1]}." if len(missing) > 1 else message
    if match := re.match(r"No such command '(.+?)'\.", message):
        return _unknown_command(match[1], path, message, error.ctx)
    if "unexpected extra argument" in message and path in _UNQUOTED:
        return f"{message}. {_UNQUOTED[path]}"
    for text, replacement in _TYPE_ERRORS.items():
        message = message.replace(text, replacement)
    return message


def _missing_parameters(context: Any) -> list[str]:
    """Return the required arguments and options that a command line does not have.

    Those that it has are in the context: they are processed first.
    """
    return [
        parameter.get_error_hint()
        for parameter in context.command.params
        if parameter.required and parameter.name not in context.params
    ]


def _listed_options(context: Any) -> str:
    """Return the options of a command that has only a few, else ""."""
    parameters = context.command.params if context else ()
    options = [text for parameter in parameters for text in parameter.opts if text.startswith("--")]
    return f"Its options: {', '.join(options)}." if 0 < len(options) <= _MAX_LISTED_OPTIONS else ""


def _unknown_command(name: str, path: str, message: str, context: Any) -> str:
    """Return the message about an unknown command of `dq` or of the group `path`."""
    synonym = _SYNONYMS.get(f"{path} {name}".removeprefix("dq").strip())
    if synonym:
        return f"No such command {name!r}. Use {synonym}."
    if path == "dq" and ("/" in name or name.endswith((".yaml", ".yml"))):
        from dq.contracts.escaping import shell_word

        return f"No such command {name!r}. The command comes first, e.g. dq validate {shell_word(name)}"
    if path != "dq" and "Did you mean" not in message:
        return f"{message} Commands: {', '.join(context.command.list_commands(context))}."
    return message


def _allow_help_colors(command: Any) -> None:
    """Allow typer's colours in the help of a command and its subcommands."""
    original = command.format_help

    def format_help(context: Any, formatter: Any) -> None:
        below = getattr(command, "commands", {}).values()
        for element in (command, *below, *command.get_params(context)):
            _prepare_help(element)
        with output.trusted_output():
            original(context, formatter)

    command.format_help = format_help
    for below in getattr(command, "commands", {}).values():
        _allow_help_colors(below)


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
        element.display_type_rich = lambda ctx: _SHOWN_TYPES.get(type_name := display(ctx=ctx), type_name)


def main() -> None:
    """Entry point of the `dq` script.

    Imported code and objects alive at exit are excluded from garbage collection, which would take a third of
    the time of a command for one contract.
    """
    gc.disable()
    code = run(sys.argv[1:], _freeze_code)
    gc.freeze()
    sys.exit(code)


def _freeze_code() -> None:
    gc.freeze()
    gc.enable()

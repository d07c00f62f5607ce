"""All output of dq: escapes control sequences from untrusted text before it reaches terminals or CI
runners.
"""

from __future__ import annotations

import codecs
import errno
import io
import json
import math
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TextIO

import typer

from dq.contracts import outcome
from dq.contracts.outcome import DqError, escape_json_document, one_line
from dq.operations.runtime import messages

if TYPE_CHECKING:
    from dq.validators.lint import LintResult, ReportFormat, TerminalOptions


# Replacements for stdout and stderr while a command runs.
#
# Python's warnings, loggers of libraries, tracebacks and typer's help pass through them too: control
# sequences that a terminal or a CI runner would obey are shown as escapes.

# Colours are requested by a mark with a random key, which untrusted text cannot contain.
_MARK_KEY = os.urandom(8).hex()
_MARK = re.compile(rf"\x1b{_MARK_KEY}\[([0-9;]*)m")
_SGR = re.compile(r"\x1b\[([0-9;]*)m")
# Beginning of a workflow command of GitHub Actions; colons and line feeds in its properties are escaped.
_COMMAND = re.compile(r"::(?:error|warning|notice) [^\n]*?::")
_ERASE_LINE = "\r\x1b[K"
# Length of an unfinished line that is kept, to see whether the next piece turns it into a command.
_MAX_UNFINISHED_CHARS = 4_096
_PIPE_CHUNK_BYTES = 65_536


def paint(text: str, code: str) -> str:
    """Return the text with a mark that becomes this SGR code if colours are enabled, and nothing
    otherwise.
    """
    return f"\x1b{_MARK_KEY}[{code}m{text}\x1b{_MARK_KEY}[0m"


class Stream(io.TextIOBase):
    """A guarded stdout or stderr. `write` serves other code; the other methods serve this module.

    A closed pipe is not an error: further output is dropped. Other errors, e.g. a full disk, do not stop a
    command: `write_error` is the newest one.
    """

    def __init__(self, raw: TextIO | None) -> None:
        self._raw = raw  # None where the process was started without the stream
        self._lock = threading.RLock()
        self._line = ""
        self._live = False
        self._is_closed = raw is None
        self._is_trusted = False
        self.write_error: OSError | None = None

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a plain attribute there
        return getattr(self._raw, "encoding", None) or "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        return "backslashreplace"

    def isatty(self) -> bool:
        return self._raw is not None and self._raw.isatty()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        if self._raw is None:
            raise io.UnsupportedOperation("fileno")
        return self._raw.fileno()

    def flush(self) -> None:
        with self._lock:
            self._send("")

    def write(self, text: str) -> int:
        """Write the text of other code, escaped."""
        self._put(text, _SGR if self._is_trusted else _MARK)
        return len(text)

    def lines(self, text: str) -> OSError | None:
        """Write complete lines. Returns the error if they could not be written."""
        return self._put(f"{text}\n", _MARK)

    def commands(self, text: str) -> None:
        """Write lines in which workflow commands of GitHub Actions stay active."""
        with self._lock:
            for line in text.split("\n"):
                own = _COMMAND.match(line)
                if own is None:
                    self.lines(line)
                else:
                    message = outcome.escape_ci_commands(outcome.escape_block(line[own.end() :]))
                    self._send(f"{outcome.escape_block(own[0])}{message}\n")

    def live(self, text: str) -> None:
        """Replace the status line of a terminal; "" clears it."""
        with self._lock:
            self._send(_ERASE_LINE + outcome.escape_ci_commands(outcome.one_line(text)))
            self._live = bool(text)

    @contextmanager
    def trusted(self) -> Iterator[None]:
        """Let `write` pass colours of typer and rich; the caller has escaped untrusted text."""
        self._is_trusted = True
        try:
            yield
        finally:
            self._is_trusted = False

    def end(self) -> None:
        """Flush; redirect a broken stream to devnull, so that Python's own flush at exit cannot fail."""
        if self._raw is None:
            return
        try:
            self._raw.flush()
        except (OSError, ValueError):
            self._is_closed = True
        if self._is_closed:
            with suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._raw.fileno())
                os.close(nowhere)

    def _put(self, text: str, colors: re.Pattern[str]) -> OSError | None:
        with self._lock:
            pending_text = outcome.escape_ci_commands(self._line + self._visible(text, colors))
            new_text = pending_text[len(self._line) :]
            line = pending_text.rpartition("\n")[2]
            # The prefix keeps the tail of a long line from being taken for the beginning of a command.
            self._line = line if len(line) <= _MAX_UNFINISHED_CHARS else f"x{line[-_MAX_UNFINISHED_CHARS:]}"
            write_error = self._send(_ERASE_LINE + new_text if self._live else new_text)
            self._live = False
            return write_error

    def _visible(self, text: str, colors: re.Pattern[str]) -> str:
        if "\x1b" not in text:
            return outcome.escape_block(text)
        # Text between the marks alternates with the codes of the marks.
        pieces = colors.split(text)
        sgr = "\x1b[{}m" if self._colored() else ""
        return "".join(
            sgr.format(piece) if number % 2 else outcome.escape_block(piece)
            for number, piece in enumerate(pieces)
        )

    def _colored(self) -> bool:
        """Return True if colours are enabled: on a terminal, unless the environment overrides it."""
        if os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
            return True
        return self.isatty() and os.environ.get("TERM") != "dumb"

    def _send(self, text: str) -> OSError | None:
        if self._raw is None or self._is_closed:
            return None
        if not self.encoding.lower().startswith("utf"):
            text = text.encode(self.encoding, "backslashreplace").decode(self.encoding)
        try:
            self._raw.write(text)
            self._raw.flush()
        except OSError as error:
            # Windows reports a closed pipe as EINVAL.
            if not isinstance(error, BrokenPipeError) and error.errno != errno.EINVAL:
                self.write_error = error
                return error
            self._is_closed = True
        return None


def stream(err: bool) -> Stream:
    """Return the guarded stream, or a new one if none is installed, e.g. in a direct call of a function."""
    now = sys.stderr if err else sys.stdout
    return now if isinstance(now, Stream) else Stream(now)


def relay(read: int, target: int) -> threading.Thread:
    """Copy the output of another program from a pipe to the descriptor `target`, escaped; closes both."""

    def copy() -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        with os.fdopen(target, "w", encoding="utf-8") as raw, os.fdopen(read, "rb", buffering=0) as pipe:
            writer = Stream(raw)
            while piece := pipe.read(_PIPE_CHUNK_BYTES):
                writer.write(decoder.decode(piece))

    thread = threading.Thread(target=copy, daemon=True)
    thread.start()
    return thread


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Guard stdout and stderr within the block."""
    before = sys.stdout, sys.stderr
    out, err = stream(err=False), stream(err=True)
    sys.stdout, sys.stderr = out, err
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        out.end()
        err.end()


# Printing.
#
# Results go to stdout, everything else to stderr; machine formats are one document on stdout. Text from
# contracts, file names and data is escaped; only colours requested here reach a terminal, and only
# `commands` writes lines that a CI runner obeys.

_COLORS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "white": "37"}
# A rewritten status line must fit on one line of the terminal.
_WIDTH = 100
_DRAIN_SECONDS = 2.0


class Format(StrEnum):
    """Output format of a command."""

    TEXT = "text"
    JSON = "json"


class PageFormat(StrEnum):
    """Output format of a command whose result may go to a page or a comment."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


class ResultFormat(StrEnum):
    """Output format of check results."""

    TEXT = "text"
    JSON = "json"
    OORS = "oors"


FORMAT = typer.Option(Format.TEXT, "--format", help="Output format.")
PAGE_FORMAT = typer.Option(PageFormat.TEXT, "--format", help="Output format.")
COMMENT_FORMAT = typer.Option(PageFormat.TEXT, "--format", help="Output format.")
RESULT_FORMAT = typer.Option(
    ResultFormat.TEXT,
    "--format",
    help="Output format; oors is Bitol's Open Observability Results Standard, one JSON document per line.",
)
AS_OF = typer.Option(None, "--as-of", help="Evaluate as of this time, e.g. 2026-05-01T06:00:00Z.")


@contextmanager
def child_output() -> Iterator[None]:
    """Send the output of programs started in the block to stderr, escaped, until they end."""
    try:
        out, err, target = os.dup(1), os.dup(2), os.dup(2)
    except OSError:  # dq itself was started without them
        yield
        return
    read, write = os.pipe()
    thread = relay(read, target)
    stream(err=False).flush()
    for descriptor in (1, 2):
        os.dup2(write, descriptor)
    os.close(write)
    failed = True
    try:
        yield
        failed = False
    finally:
        for original, descriptor in ((out, 1), (err, 2)):
            os.dup2(original, descriptor)
            os.close(original)
        if failed:
            # Show the program's last output before the error message.
            thread.join(_DRAIN_SECONDS)


def line(text: str = "") -> None:
    """Print one line of a result on stdout; line breaks in it are escaped."""
    stream(err=False).lines(_single_line(text))


def note(text: str = "") -> None:
    """Print one line that is not part of the result on stderr."""
    stream(err=True).lines(_single_line(text))


def notes(items: Iterable[object]) -> None:
    """Print one line on stderr for each item, e.g. each finding."""
    for item in items:
        note(str(item))


def block(text: str) -> OSError | None:
    """Print a multi-line result on stdout, e.g. a report.

    Returns the error if it could not be written.
    """
    return stream(err=False).lines(text)


def write_stderr(text: str) -> OSError | None:
    """Print a multi-line text on stderr. Returns the error if it could not be written."""
    return stream(err=True).lines(text)


def write_error() -> OSError | None:
    """Return the newest error of writing output, or None. A closed pipe is not an error."""
    return stream(err=False).write_error or stream(err=True).write_error


def commands(text: str) -> None:
    """Print a report with workflow commands of GitHub Actions."""
    stream(err=False).commands(text)


def as_json(value: Any) -> None:
    """Print the result as one JSON document."""
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), indent=2, ensure_ascii=False, default=str)
    block(escape_json_document(text))


def problem(error: DqError, about: str = "") -> None:
    """Print an error and its hint on stderr."""
    note(f"dq: {about}{error.message}")
    for text in (*error.details, error.hint):
        if text:
            note(f"    {text}")


def usage_error(message: str, usage: str = "", help_option: str = "") -> None:
    """Print a usage error on stderr: usage, help option, message."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    with trusted_output(err=True):
        console = Console(stderr=True, highlight=False)
        if usage:
            console.print(Text(one_line(usage), "bold yellow"))
        if help_option:
            console.print(Text(f"Try '{one_line(help_option)}' for help.", "dim"))
        console.print(Panel(Text(one_line(message)), title="Error", title_align="left", border_style="red"))


def trusted_output(*, err: bool = False) -> AbstractContextManager[None]:
    """Let colours of typer and rich pass within the block; the caller has escaped untrusted text."""
    return stream(err).trusted()


def bracketed(text: str) -> str:
    """Escape brackets for typer's help, which would take them for a style."""
    from rich.markup import escape

    return escape(text)


def styled(text: str, fg: str = "", *, bold: bool = False) -> str:
    """Return the text with a colour, which is dropped if colours are disabled."""
    return paint(text, ";".join(code for code in (_COLORS.get(fg, ""), "1" if bold else "") if code))


def report(form: ReportFormat, linted: LintResult) -> None:
    """Print findings in one of the report formats on stdout."""
    text = form.render(linted, screen()).rstrip("\n")
    commands(text) if form.emits_commands else block(text)


def screen() -> TerminalOptions:
    """Return width and colour function of the terminal, for reports."""
    from dq.validators.lint import TerminalOptions

    return TerminalOptions(paint, shutil.get_terminal_size((100, 24)).columns)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], indent: str = "  ") -> None:
    """Print a table; columns are as wide as their widest cell, the last one is not padded."""
    from rich.cells import cell_len, set_cell_size

    cells = [[one_line(cell) for cell in row] for row in (header, *rows)]
    widths = [max(cell_len(row[index]) for row in cells) for index in range(len(header))]
    for number, row in enumerate(cells):
        padded = [set_cell_size(cell, width) for cell, width in zip(row, widths, strict=True)]
        text = (indent + "  ".join(padded)).rstrip()
        line(styled(text, bold=True) if number == 0 else text)


MAX_DELIVERIES = 10
"""Most deliveries not on time of one SLO that text output lists; the newest ones."""


def mark(good: bool | None) -> str:
    """Return a coloured mark: yes, no, or unknown for None."""
    if good is None:
        return styled("?", fg="yellow")
    return styled("✓", fg="green") if good else styled("✗", fg="red")


def is_live() -> bool:
    """Return True if stderr is a terminal, where a line can be rewritten."""
    return stream(err=True).isatty()


def live(text: str) -> None:
    """Replace the status line on the terminal; "" clears it."""
    from rich.cells import cell_len, set_cell_size

    visible_text = one_line(text)
    width = min(_WIDTH, shutil.get_terminal_size((_WIDTH, 24)).columns)
    stream(err=True).live(
        visible_text if cell_len(visible_text) <= width else set_cell_size(visible_text, width - 1) + "…"
    )


@contextmanager
def step(what: str, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Report a long step and its duration on stderr.

    On a terminal the line is rewritten; otherwise one line is written at the end.
    """
    terminal = is_live()
    if terminal:
        live(f"  … {what}")
    started = clock()
    try:
        yield
    except BaseException:
        if terminal:
            live("")
            note(f"  … {what}")
        raise
    elapsed = f"{clock() - started:.1f} s"
    note(f"  {mark(True)} {what} ({elapsed})" if terminal else f"  done: {what} ({elapsed})")


def _single_line(text: str) -> str:
    """Escape line breaks and tabs; multi-line text goes through `block`."""
    return text.replace("\n", r"\n").replace("\t", r"\t") if "\n" in text or "\t" in text else text


def _finite(value: Any) -> Any:
    """Return the value with strings for numbers that JSON does not have, e.g. NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, list | tuple) else value


@dataclass(slots=True)
class Progress(messages.Progress):
    """Progress of an activity on `total` pieces, updated by several threads."""

    total: int
    activity: str
    clock: Callable[[], float] = time.monotonic
    live: bool = field(default_factory=is_live)
    _running: list[str] = field(default_factory=list)
    _done: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def step(self, item: str) -> Iterator[None]:
        """Report one piece as running within the block, and as done afterwards."""
        started = self.clock()
        with self._lock:
            self._running.append(item)
            self._draw()
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(item)
                self._done += 1
                if not self.live:
                    note(f"  done: {self.activity} {item} ({self.clock() - started:.1f} s)")
                self._draw()

    def close(self) -> None:
        """Clear the status line."""
        if self.live:
            live("")

    def _draw(self) -> None:
        if self.live:
            running = f"; {self.activity} {', '.join(self._running)}" if self._running else ""
            live(f"  … {self._done} of {self.total} done{running}")

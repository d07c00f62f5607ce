"""The one way out: whatever is printed passes here, and nothing that a stranger wrote steers its reader."""

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
from dq.contracts.outcome import DqError, in_json, one_line
from dq.operations.runtime import context

if TYPE_CHECKING:
    from dq.validators.lint import Linted, ReportFormat, Screen


# What stands in for stdout and stderr while a command runs, so that nobody can write past the door.
#
# Python's warnings, the loggers of libraries, tracebacks and typer's help go the same way as what dq itself
# prints: what could steer a terminal or a CI runner is shown. Only `cli.terminal.output` uses this.

# A colour is asked for by a mark that no text of others can hold: they do not know the key.
_KEY = os.urandom(8).hex()
_MARK = re.compile(rf"\x1b{_KEY}\[([0-9;]*)m")
_SGR = re.compile(r"\x1b\[([0-9;]*)m")
# What a report for GitHub begins its own lines with; colons and line feeds in the properties are escaped.
_COMMAND = re.compile(r"::(?:error|warning|notice) [^\n]*?::")
_WIPE = "\r\x1b[K"
# So much of an unfinished line is kept to see whether its next piece makes a command of it.
_KEPT = 4_096
_PIECE = 65_536


def paint(text: str, code: str) -> str:
    """The text with a mark that becomes this SGR code where colours are shown, and nothing elsewhere."""
    return f"\x1b{_KEY}[{code}m{text}\x1b{_KEY}[0m"


class Stream(io.TextIOBase):
    """One of the two streams. `write` is for all who know nothing of it, the rest for `cli.terminal.output`.

    A reader who has gone away (a closed pipe) is no failure: what is written for nobody is dropped. Nor does
    a disk that is full, or a terminal that hung up, keep a command from its work: `lost` is the newest reason
    why something could not be written.
    """

    def __init__(self, raw: TextIO | None) -> None:
        self._raw = raw  # None where the process was started without the stream
        self._lock = threading.RLock()
        self._line = ""
        self._live = False
        self._gone = raw is None
        self._ours = False
        self.lost: OSError | None = None

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
        """Shows what others write."""
        self._put(text, _SGR if self._ours else _MARK)
        return len(text)

    def lines(self, text: str) -> OSError | None:
        """One or more whole lines of ours; gives why they could not be written, if so."""
        return self._put(f"{text}\n", _MARK)

    def commands(self, text: str) -> None:
        """Lines of ours that a runner of GitHub may take for the commands that they are."""
        with self._lock:
            for line in text.split("\n"):
                own = _COMMAND.match(line)
                if own is None:
                    self.lines(line)
                else:
                    rest = outcome.inert(outcome.block(line[own.end() :]))
                    self._send(f"{outcome.block(own[0])}{rest}\n")

    def live(self, text: str) -> None:
        """Writes over the last line of a terminal what will be written over in its turn; "" wipes it."""
        with self._lock:
            self._send(_WIPE + outcome.inert(outcome.one_line(text)))
            self._live = bool(text)

    @contextmanager
    def ours(self) -> Iterator[None]:
        """Meanwhile `write` gets colours from typer or rich, and of strangers only what is clean already."""
        self._ours = True
        try:
            yield
        finally:
            self._ours = False

    def end(self) -> None:
        """The command has ended: nothing that is left may fail, or change the exit code, when Python ends."""
        if self._raw is None:
            return
        try:
            self._raw.flush()
        except (OSError, ValueError):
            self._gone = True
        if self._gone:
            with suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._raw.fileno())
                os.close(nowhere)

    def _put(self, text: str, colors: re.Pattern[str]) -> OSError | None:
        with self._lock:
            whole = outcome.inert(self._line + self._shown(text, colors))
            shown = whole[len(self._line) :]
            line = whole.rpartition("\n")[2]
            # One that is cut does not begin with what is kept of it.
            self._line = line if len(line) <= _KEPT else f"x{line[-_KEPT:]}"
            lost = self._send(_WIPE + shown if self._live else shown)
            self._live = False
            return lost

    def _shown(self, text: str, colors: re.Pattern[str]) -> str:
        if "\x1b" not in text:
            return outcome.block(text)
        # The pieces between the marks, and by turns the code of each mark.
        pieces = colors.split(text)
        sgr = "\x1b[{}m" if self._colored() else ""
        return "".join(
            sgr.format(one) if number % 2 else outcome.block(one) for number, one in enumerate(pieces)
        )

    def _colored(self) -> bool:
        """Whether colours are shown: on a terminal, unless the user's environment says otherwise."""
        if os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
            return True
        return self.isatty() and os.environ.get("TERM") != "dumb"

    def _send(self, text: str) -> OSError | None:
        if self._raw is None or self._gone:
            return None
        if not self.encoding.lower().startswith("utf"):
            text = text.encode(self.encoding, "backslashreplace").decode(self.encoding)
        try:
            self._raw.write(text)
            self._raw.flush()
        except OSError as error:
            # Windows has its own word for a pipe that nobody reads.
            if not isinstance(error, BrokenPipeError) and error.errno != errno.EINVAL:
                self.lost = error
                return error
            self._gone = True
        return None


def stream(err: bool) -> Stream:
    """The stream that stands in now; a new one where none does, as when a part of a command is called."""
    now = sys.stderr if err else sys.stdout
    return now if isinstance(now, Stream) else Stream(now)


def relay(read: int, to: int) -> threading.Thread:
    """Shows on the descriptor `to` what another program writes into a pipe, until it ends; closes both."""

    def copy() -> None:
        words = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        with os.fdopen(to, "w", encoding="utf-8") as raw, os.fdopen(read, "rb", buffering=0) as pipe:
            shown = Stream(raw)
            while piece := pipe.read(_PIECE):
                shown.write(words.decode(piece))

    thread = threading.Thread(target=copy, daemon=True)
    thread.start()
    return thread


@contextmanager
def door() -> Iterator[None]:
    """Until the end of the block, whoever writes to stdout or stderr writes through here."""
    before = sys.stdout, sys.stderr
    out, err = stream(err=False), stream(err=True)
    sys.stdout, sys.stderr = out, err
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        out.end()
        err.end()


# The door for output: whatever is printed passes here, and nothing that a stranger wrote steers its reader.
#
# Results go to stdout, all else to stderr; machines get one document on stdout and nothing besides. What a
# contract, a file's name or the data say is shown as `contracts.printable` says; only colours that are
# asked
# for here reach a terminal, and only `commands` begins lines that a CI runner obeys.

_COLORS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "white": "37"}
# What is rewritten on a terminal must stay one of its lines, however wide the terminal is.
_WIDTH = 100
_LAST_WORDS_SECONDS = 2.0


class Format(StrEnum):
    """How a command prints its result."""

    TEXT = "text"
    JSON = "json"


class PageFormat(StrEnum):
    """How a command prints what people also want on a page or in a comment."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


class ResultFormat(StrEnum):
    """How a command prints what checks found."""

    TEXT = "text"
    JSON = "json"
    OORS = "oors"


FORMAT = typer.Option(Format.TEXT, "--format", help="Output format.")
PAGE_FORMAT = typer.Option(PageFormat.TEXT, "--format", help="Output format.")
COMMENT_FORMAT = typer.Option(PageFormat.TEXT, "--format", help="Output format.")
RESULT_FORMAT = typer.Option(
    ResultFormat.TEXT,
    "--format",
    help="Output format; oors is Bitol's Open Observability Results Standard, one JSON a line.",
)
AS_OF = typer.Option(None, "--as-of", help="Evaluate as of this time, e.g. 2026-05-01T06:00:00Z.")


@contextmanager
def others() -> Iterator[None]:
    """A program that is started meanwhile writes, for all its life, through here on stderr."""
    try:
        out, err, to = os.dup(1), os.dup(2), os.dup(2)
    except OSError:  # dq itself was started without them
        yield
        return
    read, write = os.pipe()
    thread = relay(read, to)
    stream(err=False).flush()
    for descriptor in (1, 2):
        os.dup2(write, descriptor)
    os.close(write)
    failed = True
    try:
        yield
        failed = False
    finally:
        for kept, descriptor in ((out, 1), (err, 2)):
            os.dup2(kept, descriptor)
            os.close(kept)
        if failed:
            # What it said in the end comes before what is said of it.
            thread.join(_LAST_WORDS_SECONDS)


def line(text: str = "") -> None:
    """One line of a result, on stdout; a line break in it is shown."""
    stream(err=False).lines(_one(text))


def note(text: str = "") -> None:
    """One line that is not part of the result, on stderr."""
    stream(err=True).lines(_one(text))


def notes(several: Iterable[object]) -> None:
    """A line on stderr for each, such as for each finding of what could not be read."""
    for one in several:
        note(str(one))


def block(text: str) -> OSError | None:
    """Lines of a result that are several by our own making: a report, a page.

    Gives why they could not be written, if so.
    """
    return stream(err=False).lines(text)


def aside(text: str) -> OSError | None:
    """The same on stderr."""
    return stream(err=True).lines(text)


def lost() -> OSError | None:
    """Why something of what was printed could not be written, if so; a reader who went away is no reason."""
    return stream(err=False).lost or stream(err=True).lost


def commands(text: str) -> None:
    """A report of which a runner of GitHub takes the lines for the commands that they are."""
    stream(err=False).commands(text)


def as_json(value: Any) -> None:
    """The result as one JSON document."""
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), indent=2, ensure_ascii=False, default=str)
    block(in_json(text))


def problem(error: DqError, about: str = "") -> None:
    """What went wrong in the world, and how to mend it, on stderr."""
    note(f"dq: {about}{error.message}")
    for text in (*error.details, error.mend):
        if text:
            note(f"    {text}")


def mistake(message: str, usage: str = "", help_option: str = "") -> None:
    """A command line that cannot be understood, on stderr: its usage, where to read more, what is wrong."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    with ours(err=True):
        console = Console(stderr=True, highlight=False)
        if usage:
            console.print(Text(one_line(usage), "bold yellow"))
        if help_option:
            console.print(Text(f"Try '{one_line(help_option)}' for help.", "dim"))
        console.print(Panel(Text(one_line(message)), title="Error", title_align="left", border_style="red"))


def ours(*, err: bool = False) -> AbstractContextManager[None]:
    """Meanwhile colours of typer and rich are ours; whoever says so has cleaned what strangers say in it."""
    return stream(err).ours()


def bracketed(text: str) -> str:
    """The text for typer's help, which would take what stands in brackets for a style."""
    from rich.markup import escape

    return escape(text)


def styled(text: str, fg: str = "", *, bold: bool = False) -> str:
    """The text with a colour, for what is printed here; where colours are not shown it is just the text."""
    return paint(text, ";".join(code for code in (_COLORS.get(fg, ""), "1" if bold else "") if code))


def report(form: ReportFormat, linted: Linted) -> None:
    """Findings in one of the formats, on stdout."""
    text = form.render(linted, screen()).rstrip("\n")
    commands(text) if form.steers else block(text)


def screen() -> Screen:
    """The reader's screen, as reports want to know it."""
    from dq.validators.lint import Screen

    return Screen(paint, shutil.get_terminal_size((100, 24)).columns)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], indent: str = "  ") -> None:
    """Columns as wide as their widest cell; the last one is not padded."""
    from rich.cells import cell_len, set_cell_size

    cells = [[one_line(cell) for cell in row] for row in (header, *rows)]
    widths = [max(cell_len(row[index]) for row in cells) for index in range(len(header))]
    for number, row in enumerate(cells):
        padded = [set_cell_size(cell, width) for cell, width in zip(row, widths, strict=True)]
        text = (indent + "  ".join(padded)).rstrip()
        line(styled(text, bold=True) if number == 0 else text)


def mark(good: bool | None) -> str:
    """A coloured mark: yes, no, or could not tell."""
    if good is None:
        return styled("?", fg="yellow")
    return styled("✓", fg="green") if good else styled("✗", fg="red")


def is_live() -> bool:
    """Whether stderr is a terminal, where a line can be written over."""
    return stream(err=True).isatty()


def live(text: str) -> None:
    """Says on a terminal how far things are, over what was said so before; "" wipes it."""
    from rich.cells import cell_len, set_cell_size

    shown = one_line(text)
    width = min(_WIDTH, shutil.get_terminal_size((_WIDTH, 24)).columns)
    stream(err=True).live(shown if cell_len(shown) <= width else set_cell_size(shown, width - 1) + "…")


@contextmanager
def step(what: str, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Says what is going on while it takes long, and how long it took, on stderr.

    On a terminal the line is rewritten; elsewhere one line is written at the end.
    """
    terminal = is_live()
    if terminal:
        live(f"  … {what}")
    begun = clock()
    try:
        yield
    except BaseException:
        if terminal:
            live("")
            note(f"  … {what}")
        raise
    took = f"{clock() - begun:.1f} s"
    note(f"  {mark(True)} {what} ({took})" if terminal else f"  done: {what} ({took})")


def _one(text: str) -> str:
    """On one line: what is several lines by our own making goes through `block`."""
    return text.replace("\n", r"\n").replace("\t", r"\t") if "\n" in text or "\t" in text else text


def _finite(value: Any) -> Any:
    """The value with texts for the numbers that JSON does not have, such as a NaN in the data."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, list | tuple) else value


@dataclass(slots=True)
class Progress(context.Progress):
    """Told by many threads what begins and ends; `total` is how many pieces there are."""

    total: int
    clock: Callable[[], float] = time.monotonic
    live: bool = field(default_factory=is_live)
    _running: list[str] = field(default_factory=list)
    _done: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """One piece, from its beginning to its end, however it ends."""
        begun = self.clock()
        with self._lock:
            self._running.append(what)
            self._draw()
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(what)
                self._done += 1
                if not self.live:
                    note(f"  done: checking {what} ({self.clock() - begun:.1f} s)")
                self._draw()

    def close(self) -> None:
        """Wipes the line, so that what follows stands alone."""
        if self.live:
            live("")

    def _draw(self) -> None:
        if self.live:
            live(f"  … {self._done} of {self.total} checked; now {', '.join(self._running)}")

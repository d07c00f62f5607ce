"""What stands in for stdout and stderr while a command runs, so that nobody can write past the door.

Python's warnings, the loggers of libraries, tracebacks and typer's help go the same way as what dq itself
prints: what could steer a terminal or a CI runner is shown. Only `cli.terminal.output` uses this.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from dq.contracts.shared import wording

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
                    rest = wording.inert(wording.block(line[own.end() :]))
                    self._send(f"{wording.block(own[0])}{rest}\n")

    def live(self, text: str) -> None:
        """Writes over the last line of a terminal what will be written over in its turn; "" wipes it."""
        with self._lock:
            self._send(_WIPE + wording.inert(wording.one_line(text)))
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
            whole = wording.inert(self._line + self._shown(text, colors))
            shown = whole[len(self._line) :]
            line = whole.rpartition("\n")[2]
            # One that is cut does not begin with what is kept of it.
            self._line = line if len(line) <= _KEPT else f"x{line[-_KEPT:]}"
            lost = self._send(_WIPE + shown if self._live else shown)
            self._live = False
            return lost

    def _shown(self, text: str, colors: re.Pattern[str]) -> str:
        if "\x1b" not in text:
            return wording.block(text)
        # The pieces between the marks, and by turns the code of each mark.
        pieces = colors.split(text)
        sgr = "\x1b[{}m" if self._colored() else ""
        return "".join(
            sgr.format(one) if number % 2 else wording.block(one) for number, one in enumerate(pieces)
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
def standing_in() -> Iterator[None]:
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

"""A location as text, taken apart: a local path or a URI, and what no location may hold whoever allows it."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from dq.contracts.shared.fault import TextFault

# Hadoop's three names for one store.
FAMILIES = {"s3a": "s3", "s3n": "s3"}
# Here a container stands before the host, as in abfss://container@account.dfs.core.windows.net.
_CONTAINERS = frozenset({"abfs", "abfss", "wasb", "wasbs"})
# Where a host is a machine and no bucket.
HOSTED = frozenset({"hdfs", "webhdfs", "swebhdfs", *_CONTAINERS})

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):(.*)", re.DOTALL)
_HOST = re.compile(r"[A-Za-z0-9._\-]*(:[0-9]{1,5})?")
_CONTAINER = re.compile(r"[A-Za-z0-9$._\-]+@[A-Za-z0-9._\-]+")
_GLOB = re.compile(r"[*?\[\]{}]")
_HIDDEN_SIGNS = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_MOST_ALTERNATIVES = 64
_PLAIN = "Write a plain path, such as lake/orders or s3://bucket/orders."


@dataclass(frozen=True, slots=True)
class Address:
    """A location. `scheme` is "" for a local path, whose first segment is "/" when it is absolute.

    `s3a` and `s3n` are `s3`; `host` is a bucket, a machine, or `container@account`.
    """

    scheme: str
    host: str
    segments: tuple[str, ...]

    def __str__(self) -> str:
        if not self.scheme:
            return "/".join(self.segments).replace("//", "/", 1) or "."
        return "/".join((f"{self.scheme}://{self.host}", *self.segments))

    def below(self, root: Address) -> bool:
        """Whether it is the root or lies in it, by whole segments."""
        return (self.scheme, self.host) == (root.scheme, root.host) and self.segments[
            : len(root.segments)
        ] == root.segments


# What no location may hold: a code, how it is recognised, what to say of it.
_REFUSED: tuple[tuple[str, str, str], ...] = (
    ("LOCATION_QUERY", r"[?#]", "has a '?' or '#', behind which settings of the connection can stand"),
    ("LOCATION_BACKSLASH", r"\\", "has a backslash"),
    ("LOCATION_HOME", r"^~", "begins with '~', which dq does not replace"),
    ("LOCATION_SPACE", r"^\s|\s$", "begins or ends with a space"),
    ("LOCATION_HOST", r"^//", "begins with '//', where some would read a host"),
)


def is_uri(text: str) -> bool:
    """Whether a text begins with a scheme; one letter is a drive of Windows."""
    return _SCHEME.fullmatch(text) is not None


def is_remote(place: str) -> bool:
    """Whether a place is a URI of another file system than this machine's."""
    return re.match(r"(?!file:)[a-z][a-z0-9+.\-]+://", place, re.IGNORECASE) is not None


def parse(text: str) -> Address | TextFault:
    """The location in `text`; a fault where it could mean something else to one of its readers.

    A `file:` URL is a local path. Patterns (`*`, `[…]`, `{a,b}`) are kept; one that could climb is refused.
    """
    if any(unicodedata.category(sign) in _HIDDEN_SIGNS for sign in text):
        return TextFault("LOCATION_CONTROL", "has a character that cannot be seen", _PLAIN)
    for code, pattern, said in _REFUSED:
        if re.search(pattern, text):
            return TextFault(code, said, _PLAIN)
    match = _SCHEME.fullmatch(text)
    if match is None:
        if ":" in text.split("/")[0]:
            return TextFault("LOCATION_SCHEME", "has a colon where a scheme would end", _PLAIN)
        return _climbing(text) or Address("", "", _local(text))
    scheme, rest = match[1].lower(), match[2]
    if scheme == "file":
        return _file(rest)
    if not rest.startswith("//"):
        return TextFault("LOCATION_HOST", f"needs '//' behind '{scheme}:'", _PLAIN)
    host, _, path = rest[2:].partition("/")
    shape = _CONTAINER if scheme in _CONTAINERS else _HOST
    if not shape.fullmatch(host) or (":" in host and scheme not in HOSTED):
        return TextFault("LOCATION_HOST", f"names {host!r}, which is no plain bucket or host", _PLAIN)
    if not host and scheme != "hdfs":
        return TextFault("LOCATION_HOST", "names no bucket or host", _PLAIN)
    wrong = _climbing(path)
    if wrong is not None:
        return wrong
    segments = tuple(path.rstrip("/").split("/")) if path.strip("/") else ()
    if any(segment in ("", ".", "..") for segment in segments):
        return TextFault("LOCATION_STEP", "has an empty step, '.' or '..' between two slashes", _PLAIN)
    known = host.lower() if scheme in HOSTED else host
    return Address(FAMILIES.get(scheme, scheme), known, segments)


def _file(rest: str) -> Address | TextFault:
    host, path = "", rest
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        path = slash + path
    if host not in ("", "localhost") or not path.startswith("/") or path.startswith("//") or "%" in path:
        return TextFault("LOCATION_FILE_URL", "is a 'file:' URL with a host, an escape or no path", _PLAIN)
    return _climbing(path) or Address("", "", _local(path))


def _local(path: str) -> tuple[str, ...]:
    steps = tuple(step for step in path.split("/") if step not in ("", "."))
    return ("/", *steps) if path.startswith("/") else steps


def _climbing(path: str) -> TextFault | None:
    """A fault for `..` in what escapes stand for, and behind or inside of a pattern."""
    for reading in _readings(path):
        if reading is None:
            return TextFault("LOCATION_ESCAPES", "is escaped over and over", _PLAIN)
        if any(unicodedata.category(sign) in _HIDDEN_SIGNS for sign in reading) or "\\" in reading:
            return TextFault("LOCATION_ESCAPES", "hides a character in an escape", _PLAIN)
        if reading != path and (".." in reading.split("/") or re.search("[?#]", reading)):
            return TextFault("LOCATION_ESCAPES", "hides '..', '?' or '#' in an escape", _PLAIN)
    first = _GLOB.search(path)
    if first is None:
        return None
    spelt = alternatives(path)
    if spelt is None:
        return TextFault("LOCATION_PATTERN", "has a pattern that is too long or not closed", _PLAIN)
    start = path.rfind("/", 0, first.start()) + 1
    if any(".." in one[start:].split("/") or one[start:].startswith("/") for one in spelt):
        return TextFault("LOCATION_PATTERN", "climbs with '..' in or behind a pattern", _PLAIN)
    if re.search(r"\[[^\]]*[/.^!]", path):
        return TextFault("LOCATION_PATTERN", "has a set of characters that takes dots or slashes", _PLAIN)
    return None


def _readings(path: str) -> Iterator[str | None]:
    """The path as it is, and with its percent escapes taken away again and again; None after four times."""
    for _ in range(5):
        yield path
        plain = unquote(path, errors="surrogateescape")
        if plain == path:
            return
        path = plain
    yield None


def alternatives(pattern: str) -> list[str] | None:
    """A pattern with every `{a,b}` written out, as Hadoop does; None for too many and for open braces."""
    done, todo = [], [pattern]
    while todo:
        text = todo.pop()
        close = text.find("}")
        start = text.rfind("{", 0, close if close >= 0 else len(text))
        if close < 0 and start < 0:
            done.append(text)
        elif close < 0 or start < 0 or len(todo) + len(done) > _MOST_ALTERNATIVES:
            return None
        else:
            words = text[start + 1 : close].split(",")
            todo += [text[:start] + word + text[close + 1 :] for word in words]
    return done


def has_pattern(segment: str) -> bool:
    """Whether a file system would take this step for a pattern."""
    return _GLOB.search(segment) is not None


def fixed(segments: tuple[str, ...]) -> tuple[str, ...]:
    """The steps before the first pattern."""
    return tuple(itertools.takewhile(lambda step: not has_pattern(step), segments))

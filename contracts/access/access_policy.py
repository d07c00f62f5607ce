"""What contracts may name: lake roots, hosts, variables, and addresses that all programs read alike."""

from __future__ import annotations

import itertools
import os
import re
import unicodedata
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

from dq.contracts.outcome import TextFault, UsageError

# What contracts may name: the operator's lake roots, hosts and variables, and locations taken apart.

# A location as text, taken apart: a local path or a URI, and what no location may hold whoever allows it.

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


# What contracts may name: the operator's lake roots, hosts and variables.
#
# A contract is written by whoever proposes one. Its place is compared with the roots after everything in it
# is filled in and every link is followed; its variables are the listed ones. Without settings that is
# narrow: local files in the registry's folder and the working folder, no variable, no host.

# So many entries of a folder are looked through for links; more is no folder of a registry.
_MOST_ENTRIES = 200_000


class PlaceTerms(Protocol):
    """What stands for the variables of a place, and which places are allowed."""

    def value(self, name: str, default: str | None, /) -> str | TextFault: ...

    def vouch(self, text: str) -> str | TextFault: ...


@dataclass(frozen=True, slots=True)
class Reach:
    """What contracts may name.

    `folder` is that of relative paths. Local data lies in one of `folders`, other data below one of `roots`
    or on one of `hosts`. `narrow`: nobody chose the folders, so that what is hidden in them is not data.
    `variables` are the listed ones that are set; `withheld` names what else is set. `unseen`: the disk is not
    asked, so that every local place passes; none of them may be opened.
    """

    folder: Path
    folders: tuple[Path, ...]
    roots: tuple[Address, ...] = ()
    hosts: tuple[str, ...] = ()
    narrow: bool = False
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    withheld: frozenset[str] = field(default=frozenset(), repr=False)
    unseen: bool = False

    def value(self, name: str, default: str | None) -> str | TextFault:
        """What stands for `${name:-default}`; never the value of a variable that is not listed.

        A variable that is set and not listed is a fault also where there is a default: with it, another
        place than the one that was meant would be looked at.
        """
        if name in self.withheld:
            return TextFault(
                "VARIABLE_WITHHELD",
                f"names the variable {name}, which is set, and which contracts may not name",
                f"Allow it: DQ_VARS={name}, or vars in dq.toml. Or unset it, for the default to hold.",
            )
        # As in a shell, `:-` also stands in for a variable that is set and empty.
        value = self.variables.get(name) or default
        if value is None:
            return TextFault(
                "VARIABLE_UNSET",
                f"needs the variable {name}, which is not set",
                f"Set it and allow it (DQ_VARS={name} {name}=… dq …), or write ${{{name}:-default}}.",
            )
        return value

    def vouch(self, text: str) -> str | TextFault:
        """The place, fit for every reader: a local path or a URI; else why it may not be used."""
        address = parse(text)
        if isinstance(address, TextFault):
            return address
        if address.scheme:
            return self._remote(text, address)
        return (None if self.unseen else self._outside(address)) or str(address)

    def above(self, place: str, mounts: Collection[str] = ()) -> str:
        """The nearest folder or mount above a local place by its letters alone, else its parent."""
        path = Path(os.path.normpath(self.folder / place.removeprefix("file://")))
        known = {*map(str, self.folders), *mounts}
        above = (str(one) for one in (path, *path.parents))
        return next((one for one in above if one in known), str(path.parent))

    def _remote(self, text: str, address: Address) -> str | TextFault:
        # The container before it is the account's own matter.
        host = address.host.rpartition("@")[2]
        hosted = address.scheme in HOSTED and any(fnmatchcase(host, known.lower()) for known in self.hosts)
        if hosted or any(address.below(root) for root in self.roots):
            scheme, colon, rest = text.partition(":")
            return scheme.lower() + colon + rest.rstrip("/")
        known = ", ".join(map(str, self.roots))
        said = (
            f"lies below none of the lake roots {known}" if known else "is not local, and no lake root is set"
        )
        return TextFault("OUT_OF_REACH", said, _allow(f"{address.scheme}://{address.host}"))

    def _outside(self, address: Address) -> TextFault | None:
        """Why a local path may not be used: read by its letters, as Hadoop does, and by its links."""
        known = fixed(address.segments)
        written = self.folder.joinpath(*known)
        for path in (os.path.normpath(written), written):
            wrong = self._refused(os.path.realpath(path), str(address))
            if wrong is not None:
                return wrong
        rest = address.segments[len(known) :]
        if self.narrow and any(step.startswith(".") or "[" in step for step in rest):
            return _hidden()
        return None

    def _refused(self, real: str, said: str) -> TextFault | None:
        # Texts and no paths: a watcher asks this for every file that it looks at.
        inside = [rest for folder in self.folders if (rest := _below(real, str(folder))) is not None]
        if inside and not self.narrow:
            return None
        if any(not any(step.startswith(".") for step in Path(rest).parts) for rest in inside):
            return None
        if inside:
            return _hidden()
        where = "outside of the registry and the working folder" if self.narrow else "below no lake root"
        return TextFault("OUT_OF_REACH", f"lies {where}, or a link leads there", _allow(said))

    def leads_out(self, path: str) -> TextFault | None:
        """Why a folder or file below a vouched place may not be used: a link on the way to it."""
        if is_remote(path):
            return None
        return self._refused(os.path.realpath(self.folder / path), path)

    def contents(self, text: str) -> TextFault | None:
        """Why what a local place holds may not be read: a link in it that leads out.

        Asked for what Spark will read, and only where nobody chose the folders: a checkout may hold links.
        """
        address = parse(text)
        if not self.narrow or isinstance(address, TextFault) or address.scheme:
            return None
        places = [self.folder / text]
        if any(map(has_pattern, address.segments)):
            spelt = alternatives(str(address)) or []
            places = [path for one in spelt for path in _matching(self.folder, one)]
        for seen, path in enumerate(link for place in places for link in _links(place)):
            if seen > _MOST_ENTRIES:
                return TextFault("OUT_OF_REACH", "holds too many files to look through", _allow(text))
            if path is not None:
                wrong = self._refused(os.path.realpath(path), text)
                if wrong is not None:
                    return wrong
        return None


def _hidden() -> TextFault:
    mend = "Allow its folder: DQ_LAKE_ROOTS=…, or lake_roots in dq.toml."
    return TextFault("OUT_OF_REACH", "is hidden, or a link leads to what is", mend)


def _links(place: Path) -> Iterator[Path | None]:
    """The place itself and every link in it; None for what is no link."""
    yield place
    for folder, names, files in os.walk(place):
        for name in (*names, *files):
            path = Path(folder, name)
            yield path if path.is_symlink() else None


def _matching(folder: Path, pattern: str) -> Iterator[Path]:
    """What a pattern of Hadoop matches, and what is hidden, which it matches too."""
    whole = folder / re.sub(r"\*+", "*", pattern)
    return Path(whole.anchor).glob(str(whole.relative_to(whole.anchor)))


def _allow(root: str) -> str:
    return f"Allow it: DQ_LAKE_ROOTS={root}, or lake_roots in dq.toml."


def _below(real: str, folder: str) -> str | None:
    """What follows the folder in a real path; None where it does not lie in it."""
    if real == folder:
        return ""
    start = folder.rstrip(os.sep) + os.sep
    return real[len(start) :] if real.startswith(start) else None


def reach(
    folder: Path,
    roots: Sequence[str] | None = None,
    *,
    registries: Sequence[Path] = (),
    hosts: Sequence[str] = (),
    names: Collection[str] = (),
    environment: Mapping[str, str] | None = None,
    resolve: Callable[[Sequence[Path]], Sequence[str]] = lambda paths: [*map(os.path.realpath, paths)],
) -> Reach:
    """The reach of contracts when `folder` is the working folder.

    `roots` are folders and URI prefixes. Without them they are `folder` and the `registries`, but never the
    root of the file system. `names` are the variables of `environment` that may be named. `resolve` follows
    the links in these folders. Raises UsageError for a root that is no place.
    """
    given = environment or {}
    chosen = [Address("", "", (str(one),)) for one in (folder, *registries)]
    if roots is not None:
        chosen = [_root(one) for one in roots]
    local = [Path(one) for one in resolve([folder / str(one) for one in chosen if not one.scheme])]
    return Reach(
        folder,
        tuple(one for one in dict.fromkeys(local) if roots is not None or one != Path(one.anchor)),
        tuple(one for one in chosen if one.scheme),
        tuple(hosts),
        roots is None,
        {name: given[name] for name in names if name in given},
        frozenset(name for name, value in given.items() if value and name not in names),
    )


def _root(text: str) -> Address:
    if not is_uri(text):
        return Address("", "", (text,))
    made = parse(text)
    if isinstance(made, TextFault) or any(map(has_pattern, made.segments)):
        said = made.message if isinstance(made, TextFault) else "is a pattern"
        raise UsageError(f"the lake root {text!r} {said}.", "Write it like s3://bucket/prefix or /data.")
    return made


# Addresses of the web, taken only where every program reads the same host in them.
#
# The WHATWG's URL standard, RFC 3986 and their many readers part ways at users, backslashes, blanks, empty
# labels and odd spellings of numbers. Whoever checks a host, sends to one or shows a link asks here.

HTTPS = frozenset({"https"})
WEB = frozenset({"https", "http"})
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_PORTS = {"https": 443, "http": 80, "wss": 443, "ws": 80}

_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_\-]{0,61}[A-Za-z0-9_])?"
_ADDRESS = re.compile(
    rf"(?P<scheme>[a-z]+)://(?:(?P<name>{_LABEL}(?:\.{_LABEL})*)|\[(?P<six>[0-9A-Fa-f:.]+)\])"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<rest>[/?#].*)?"
)
# In the path and behind it: what ends an address in a text, or is a slash to some.
_NEVER = frozenset('\\"<>`^{|}')
_LONGEST_NAME = 253
# The WHATWG's standard takes such a last label for a number, and the whole for an IPv4 address.
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")


@dataclass(frozen=True, slots=True)
class WebAddress:
    """An address whose `host`, in lower case, is the same to all readers; `rest` is what follows it."""

    scheme: str
    host: str
    port: int
    rest: str

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK

    @property
    def has_usual_port(self) -> bool:
        return self.port == _PORTS.get(self.scheme)

    @property
    def authority(self) -> str:
        """The host, with its port where that is not the usual one of the scheme."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.has_usual_port else f"{host}:{self.port}"


def web_address(text: str, schemes: Container[str] = HTTPS) -> WebAddress | None:
    """The address that a text is, or None where it is none of these schemes, or is read in several ways."""
    match = _ADDRESS.fullmatch(text) if text.isprintable() and " " not in text else None
    if match is None or match["scheme"] not in schemes:
        return None
    rest = match["rest"] or ""
    host = _host(match["name"], match["six"])
    port = int(match["port"]) if match["port"] else _PORTS[match["scheme"]]
    if host is None or not 0 < port < 65_536 or _NEVER & set(rest):
        return None
    return WebAddress(match["scheme"], host, port, rest)


def _host(name: str | None, six: str | None) -> str | None:
    try:
        if name is None:
            return IPv6Address(six or "").compressed
        if _NUMBER.fullmatch(name.rpartition(".")[2]):
            return str(IPv4Address(name))
    except AddressValueError:
        return None
    return name.lower() if len(name) <= _LONGEST_NAME else None

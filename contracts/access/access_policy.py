"""Access policy of contracts: allowed lake roots, hosts and variables, and parsing of locations and URLs."""

from __future__ import annotations

import itertools
import os
import re
import unicodedata
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

from dq.contracts.outcome import UsageError, ValueProblem

# Parsing of locations, which are local paths or URIs, and syntax that is never allowed in them.

# Hadoop's three names for one store.
FAMILIES = {"s3a": "s3", "s3n": "s3"}
# Schemes with a container before the host, as in abfss://container@account.dfs.core.windows.net.
_CONTAINERS = frozenset({"abfs", "abfss", "wasb", "wasbs"})
# Schemes whose host is a machine instead of a bucket.
HOSTED = frozenset({"hdfs", "webhdfs", "swebhdfs", *_CONTAINERS})

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):(.*)", re.DOTALL)
_HOST = re.compile(r"[A-Za-z0-9._\-]*(:[0-9]{1,5})?")
_CONTAINER = re.compile(r"[A-Za-z0-9$._\-]+@[A-Za-z0-9._\-]+")
_GLOB = re.compile(r"[*?\[\]{}]")
_HIDDEN_SIGNS = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_MAX_ALTERNATIVES = 64
_PLAIN_HINT = "Write a plain path, e.g. lake/orders or s3://bucket/orders."


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

    def is_below(self, root: Address) -> bool:
        """Return True if it is the root or is below it, by whole segments."""
        return (self.scheme, self.host) == (root.scheme, root.host) and self.segments[
            : len(root.segments)
        ] == root.segments


# Syntax that is never allowed in a location: code, pattern, message.
_INVALID: tuple[tuple[str, str, str], ...] = (
    ("LOCATION_QUERY", r"[?#]", "has a '?' or '#', which can introduce connection settings"),
    ("LOCATION_BACKSLASH", r"\\", "has a backslash"),
    ("LOCATION_HOME", r"^~", "begins with '~', which dq does not expand"),
    ("LOCATION_SPACE", r"^\s|\s$", "begins or ends with a space"),
    ("LOCATION_HOST", r"^//", "begins with '//', which some readers take for a host"),
)


def is_uri(text: str) -> bool:
    """Return True if a text begins with a scheme; a single letter is a Windows drive."""
    return _SCHEME.fullmatch(text) is not None


def is_remote(location: str) -> bool:
    """Return True if a location is a URI of a file system other than this machine's."""
    return re.match(r"(?!file:)[a-z][a-z0-9+.\-]+://", location, re.IGNORECASE) is not None


def parse_location(text: str) -> Address | ValueProblem:
    """Parse a location; return a problem if programs could interpret it differently.

    A `file:` URL is a local path. Patterns (`*`, `[…]`, `{a,b}`) are kept, but must not allow path traversal.
    """
    if any(unicodedata.category(sign) in _HIDDEN_SIGNS for sign in text):
        return ValueProblem("LOCATION_CONTROL", "has an invisible character", _PLAIN_HINT)
    for code, pattern, message in _INVALID:
        if re.search(pattern, text):
            return ValueProblem(code, message, _PLAIN_HINT)
    match = _SCHEME.fullmatch(text)
    if match is None:
        if ":" in text.split("/")[0]:
            return ValueProblem("LOCATION_SCHEME", "has a colon where a scheme would end", _PLAIN_HINT)
        return _traversal_problem(text) or Address("", "", _local(text))
    scheme, remainder = match[1].lower(), match[2]
    if scheme == "file":
        return _file(remainder)
    if not remainder.startswith("//"):
        return ValueProblem("LOCATION_HOST", f"needs '//' after '{scheme}:'", _PLAIN_HINT)
    host, _, path = remainder[2:].partition("/")
    host_pattern = _CONTAINER if scheme in _CONTAINERS else _HOST
    if not host_pattern.fullmatch(host) or (":" in host and scheme not in HOSTED):
        return ValueProblem(
            "LOCATION_HOST", f"names {host!r}, which is not a plain bucket or host", _PLAIN_HINT
        )
    if not host and scheme != "hdfs":
        return ValueProblem("LOCATION_HOST", "names no bucket or host", _PLAIN_HINT)
    problem = _traversal_problem(path)
    if problem is not None:
        return problem
    segments = tuple(path.rstrip("/").split("/")) if path.strip("/") else ()
    if any(segment in ("", ".", "..") for segment in segments):
        return ValueProblem(
            "LOCATION_STEP", "has an empty segment, '.' or '..' between two slashes", _PLAIN_HINT
        )
    normalized_host = host.lower() if scheme in HOSTED else host
    return Address(FAMILIES.get(scheme, scheme), normalized_host, segments)


def _file(remainder: str) -> Address | ValueProblem:
    host, path = "", remainder
    if remainder.startswith("//"):
        host, slash, path = remainder[2:].partition("/")
        path = slash + path
    if host not in ("", "localhost") or not path.startswith("/") or path.startswith("//") or "%" in path:
        return ValueProblem(
            "LOCATION_FILE_URL", "is a 'file:' URL with a host, an escape or no path", _PLAIN_HINT
        )
    return _traversal_problem(path) or Address("", "", _local(path))


def _local(path: str) -> tuple[str, ...]:
    steps = tuple(step for step in path.split("/") if step not in ("", "."))
    return ("/", *steps) if path.startswith("/") else steps


def _traversal_problem(path: str) -> ValueProblem | None:
    """Return a problem for `..` in percent escapes, or after or in a pattern, else None."""
    for decoded in _decodings(path):
        if decoded is None:
            return ValueProblem("LOCATION_ESCAPES", "is escaped several times", _PLAIN_HINT)
        if any(unicodedata.category(sign) in _HIDDEN_SIGNS for sign in decoded) or "\\" in decoded:
            return ValueProblem("LOCATION_ESCAPES", "hides a character in an escape", _PLAIN_HINT)
        if decoded != path and (".." in decoded.split("/") or re.search("[?#]", decoded)):
            return ValueProblem("LOCATION_ESCAPES", "hides '..', '?' or '#' in an escape", _PLAIN_HINT)
    first = _GLOB.search(path)
    if first is None:
        return None
    expanded = alternatives(path)
    if expanded is None:
        return ValueProblem("LOCATION_PATTERN", "has a pattern that is too long or unclosed", _PLAIN_HINT)
    start = path.rfind("/", 0, first.start()) + 1
    if any(
        ".." in alternative[start:].split("/") or alternative[start:].startswith("/")
        for alternative in expanded
    ):
        return ValueProblem("LOCATION_PATTERN", "uses '..' in or after a pattern", _PLAIN_HINT)
    if re.search(r"\[[^\]]*[/.^!]", path):
        return ValueProblem(
            "LOCATION_PATTERN", "has a character set that matches dots or slashes", _PLAIN_HINT
        )
    return None


def _decodings(path: str) -> Iterator[str | None]:
    """Yield the path, and with its percent escapes decoded repeatedly; None after four times."""
    for _ in range(5):
        yield path
        decoded = unquote(path, errors="surrogateescape")
        if decoded == path:
            return
        path = decoded
    yield None


def alternatives(pattern: str) -> list[str] | None:
    """Return a pattern with every `{a,b}` expanded as in Hadoop, or None for too many or unbalanced
    braces.
    """
    expanded, pending = [], [pattern]
    while pending:
        text = pending.pop()
        close = text.find("}")
        start = text.rfind("{", 0, close if close >= 0 else len(text))
        if close < 0 and start < 0:
            expanded.append(text)
        elif close < 0 or start < 0 or len(pending) + len(expanded) > _MAX_ALTERNATIVES:
            return None
        else:
            words = text[start + 1 : close].split(",")
            pending += [text[:start] + word + text[close + 1 :] for word in words]
    return expanded


def has_pattern(segment: str) -> bool:
    """Return True if a file system would interpret this segment as a pattern."""
    return _GLOB.search(segment) is not None


def segments_before_pattern(segments: tuple[str, ...]) -> tuple[str, ...]:
    """Return the segments before the first pattern."""
    return tuple(itertools.takewhile(lambda step: not has_pattern(step), segments))


# Access policy: the operator's lake roots, hosts and variables.
#
# Contracts are untrusted. A location is compared with the roots after all placeholders are replaced and all
# links are resolved; only listed variables are available. The default is restrictive: local files in the
# registry's folder and the working folder, no variables, no hosts.

# Maximum number of entries of a folder that are checked for links.
_MAX_ENTRIES = 200_000


class LocationPolicy(Protocol):
    """Values of the variables in locations, and validation of locations."""

    def value(self, name: str, default: str | None, /) -> str | ValueProblem: ...

    def validate(self, text: str) -> str | ValueProblem: ...


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """Locations, hosts and variables that contracts may use.

    Attributes:
        folder: Base of relative paths.
        folders: Allowed folders of local data.
        roots: Allowed prefixes of other data.
        hosts: Allowed hosts, as patterns.
        is_default: True if the folders were not configured; hidden files in them are then not data.
        variables: Listed variables that are set.
        forbidden_variables: Names of other variables that are set.
        offline: True if the disk is not accessed: every local location is accepted, and none may be opened.
    """

    folder: Path
    folders: tuple[Path, ...]
    roots: tuple[Address, ...] = ()
    hosts: tuple[str, ...] = ()
    is_default: bool = False
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    forbidden_variables: frozenset[str] = field(default=frozenset(), repr=False)
    offline: bool = False

    def value(self, name: str, default: str | None) -> str | ValueProblem:
        """Return the value of `${name:-default}`; never the value of a variable that is not listed.

        A variable that is set but not listed is a problem even with a default, because the default could
        refer to another location than intended.
        """
        if name in self.forbidden_variables:
            return ValueProblem(
                "VARIABLE_WITHHELD",
                f"uses the variable {name}, which is set but not allowed in contracts",
                f"Allow it with DQ_VARS={name} or vars in dq.toml, or unset it to use the default.",
            )
        # As in a shell, `:-` also replaces a variable that is set and empty.
        value = self.variables.get(name) or default
        if value is None:
            return ValueProblem(
                "VARIABLE_UNSET",
                f"needs the variable {name}, which is not set",
                f"Set and allow it (DQ_VARS={name} {name}=… dq …), or write ${{{name}:-default}}.",
            )
        return value

    def validate(self, text: str) -> str | ValueProblem:
        """Return the normalized location, a local path or a URI, or the reason why it is not allowed."""
        address = parse_location(text)
        if isinstance(address, ValueProblem):
            return address
        if address.scheme:
            return self._remote(text, address)
        return (None if self.offline else self._local_problem(address)) or str(address)

    def nearest_root(self, location: str, mounts: Collection[str] = ()) -> str:
        """Return the nearest root or mount above a local location, without resolving links, else its
        parent.
        """
        path = Path(os.path.normpath(self.folder / location.removeprefix("file://")))
        roots = {*map(str, self.folders), *mounts}
        parents = (str(parent) for parent in (path, *path.parents))
        return next((parent for parent in parents if parent in roots), str(path.parent))

    def _remote(self, text: str, address: Address) -> str | ValueProblem:
        # The container before the host is not restricted.
        host = address.host.rpartition("@")[2]
        is_allowed_host = address.scheme in HOSTED and any(
            fnmatchcase(host, host_pattern.lower()) for host_pattern in self.hosts
        )
        if is_allowed_host or any(address.is_below(root) for root in self.roots):
            scheme, colon, remainder = text.partition(":")
            return scheme.lower() + colon + remainder.rstrip("/")
        root_names = ", ".join(map(str, self.roots))
        message = (
            f"is outside the lake roots {root_names}"
            if root_names
            else "is not local, and no lake root is set"
        )
        return ValueProblem("OUT_OF_REACH", message, _allow_hint(f"{address.scheme}://{address.host}"))

    def _local_problem(self, address: Address) -> ValueProblem | None:
        """Return why a local path is not allowed, both without and with links resolved, or None."""
        fixed_segments = segments_before_pattern(address.segments)
        joined = self.folder.joinpath(*fixed_segments)
        for path in (os.path.normpath(joined), joined):
            problem = self._path_problem(os.path.realpath(path), str(address))
            if problem is not None:
                return problem
        remaining = address.segments[len(fixed_segments) :]
        if self.is_default and any(step.startswith(".") or "[" in step for step in remaining):
            return _hidden_problem()
        return None

    def _path_problem(self, real_path: str, location: str) -> ValueProblem | None:
        # Strings instead of paths for speed: the watcher calls this for every file.
        relative_paths = [
            relative
            for folder in self.folders
            if (relative := _relative_to(real_path, str(folder))) is not None
        ]
        if relative_paths and not self.is_default:
            return None
        if any(not any(step.startswith(".") for step in Path(relative).parts) for relative in relative_paths):
            return None
        if relative_paths:
            return _hidden_problem()
        location_text = (
            "outside the registry and the working folder" if self.is_default else "outside all lake roots"
        )
        return ValueProblem(
            "OUT_OF_REACH", f"is {location_text}, or a link leads there", _allow_hint(location)
        )

    def link_problem(self, path: str) -> ValueProblem | None:
        """Return why a path below a validated location is not allowed (a link leads out of the roots), or
        None.
        """
        if is_remote(path):
            return None
        return self._path_problem(os.path.realpath(self.folder / path), path)

    def contents_problem(self, text: str) -> ValueProblem | None:
        """Return why the content of a local location may not be read (a link in it leads out), or None.

        Only checked for data that Spark reads and with the default policy: a checkout may contain links.
        """
        address = parse_location(text)
        if not self.is_default or isinstance(address, ValueProblem) or address.scheme:
            return None
        paths = [self.folder / text]
        if any(map(has_pattern, address.segments)):
            expanded = alternatives(str(address)) or []
            paths = [path for alternative in expanded for path in _matches(self.folder, alternative)]
        for count, path in enumerate(link for start in paths for link in _links(start)):
            if count > _MAX_ENTRIES:
                return ValueProblem("OUT_OF_REACH", "contains too many files to scan", _allow_hint(text))
            if path is not None:
                problem = self._path_problem(os.path.realpath(path), text)
                if problem is not None:
                    return problem
        return None


def _hidden_problem() -> ValueProblem:
    hint = "Allow its folder with DQ_LAKE_ROOTS=… or lake_roots in dq.toml."
    return ValueProblem("OUT_OF_REACH", "is hidden, or links to something hidden", hint)


def _links(location: Path) -> Iterator[Path | None]:
    """Yield the location itself, and for each entry below it the path of a link or None."""
    yield location
    folders = [str(location)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            # A table has tens of thousands of files: the entries know their type without a request each.
            for entry in entries:
                yield Path(entry.path) if entry.is_symlink() else None
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)


def _matches(folder: Path, pattern: str) -> Iterator[Path]:
    """Yield the matches of a Hadoop pattern, which include hidden files."""
    full_pattern = folder / re.sub(r"\*+", "*", pattern)
    return Path(full_pattern.anchor).glob(str(full_pattern.relative_to(full_pattern.anchor)))


def _allow_hint(root: str) -> str:
    return f"Allow it with DQ_LAKE_ROOTS={root} or lake_roots in dq.toml."


def _relative_to(real_path: str, folder: str) -> str | None:
    """Return a real path relative to the folder, or None if it is not below it."""
    if real_path == folder:
        return ""
    start = folder.rstrip(os.sep) + os.sep
    return real_path[len(start) :] if real_path.startswith(start) else None


def build_access_policy(
    folder: Path,
    roots: Sequence[str] | None = None,
    *,
    registries: Sequence[Path] = (),
    hosts: Sequence[str] = (),
    names: Collection[str] = (),
    environment: Mapping[str, str] | None = None,
    resolve: Callable[[Sequence[Path]], Sequence[str]] = lambda paths: [*map(os.path.realpath, paths)],
) -> AccessPolicy:
    """Return the access policy with `folder` as the working folder.

    Args:
        roots: Folders and URI prefixes; by default `folder` and the `registries`, but never the root of the
            file system.
        names: Variables of `environment` that contracts may use.
        resolve: Resolves the links in folders.

    Raises:
        UsageError: A root is not a valid location.
    """
    variables = environment or {}
    addresses = [Address("", "", (str(path),)) for path in (folder, *registries)]
    if roots is not None:
        addresses = [_root(root) for root in roots]
    local_folders = [
        Path(path) for path in resolve([folder / str(address) for address in addresses if not address.scheme])
    ]
    return AccessPolicy(
        folder,
        tuple(
            path for path in dict.fromkeys(local_folders) if roots is not None or path != Path(path.anchor)
        ),
        tuple(address for address in addresses if address.scheme),
        tuple(hosts),
        roots is None,
        {name: variables[name] for name in names if name in variables},
        frozenset(name for name, value in variables.items() if value and name not in names),
    )


def _root(text: str) -> Address:
    if not is_uri(text):
        return Address("", "", (text,))
    address = parse_location(text)
    if isinstance(address, ValueProblem) or any(map(has_pattern, address.segments)):
        problem = address.message if isinstance(address, ValueProblem) else "is a pattern"
        raise UsageError(f"the lake root {text!r} {problem}.", "Write e.g. s3://bucket/prefix or /data.")
    return address


# Web URLs, accepted only if every program sees the same host in them.
#
# The WHATWG URL standard, RFC 3986 and their implementations differ on users, backslashes, blanks, empty
# labels and unusual spellings of numbers. All code that checks a host, sends to one or shows a link uses
# this.

HTTPS = frozenset({"https"})
WEB = frozenset({"https", "http"})
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_PORTS = {"https": 443, "http": 80, "wss": 443, "ws": 80}

_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_\-]{0,61}[A-Za-z0-9_])?"
_ADDRESS = re.compile(
    rf"(?P<scheme>[a-z]+)://(?:(?P<name>{_LABEL}(?:\.{_LABEL})*)|\[(?P<six>[0-9A-Fa-f:.]+)\])"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<rest>[/?#].*)?"
)
# Not allowed in and after the path: ends a URL in a text, or is a slash to some programs.
_FORBIDDEN = frozenset('\\"<>`^{|}')
_MAX_NAME_LENGTH = 253
# The WHATWG standard interprets such a last label as a number, and the host as an IPv4 address.
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")


@dataclass(frozen=True, slots=True)
class WebAddress:
    """A URL with an unambiguous `host`, in lower case; `suffix` is the path and everything after it."""

    scheme: str
    host: str
    port: int
    suffix: str

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK

    @property
    def has_usual_port(self) -> bool:
        return self.port == _PORTS.get(self.scheme)

    @property
    def authority(self) -> str:
        """The host, with its port unless that is the default of the scheme."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.has_usual_port else f"{host}:{self.port}"


def web_address(text: str, schemes: Container[str] = HTTPS) -> WebAddress | None:
    """Parse a URL; return None if it has another scheme or is ambiguous."""
    match = _ADDRESS.fullmatch(text) if text.isprintable() and " " not in text else None
    if match is None or match["scheme"] not in schemes:
        return None
    suffix = match["rest"] or ""
    host = _host(match["name"], match["six"])
    port = int(match["port"]) if match["port"] else _PORTS[match["scheme"]]
    if host is None or not 0 < port < 65_536 or _FORBIDDEN & set(suffix):
        return None
    return WebAddress(match["scheme"], host, port, suffix)


def _host(name: str | None, six: str | None) -> str | None:
    try:
        if name is None:
            return IPv6Address(six or "").compressed
        if _NUMBER.fullmatch(name.rpartition(".")[2]):
            return str(IPv4Address(name))
    except AddressValueError:
        return None
    return name.lower() if len(name) <= _MAX_NAME_LENGTH else None

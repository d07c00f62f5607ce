"""Installation of dq, commands to install extras, and discovery of plug-ins."""

from __future__ import annotations

import hashlib
import importlib
import os
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from dq.contracts.outcome import MissingTool, one_line

# Installation of dq, and the commands for extras that messages show.
#
# Package metadata is imported on demand: it is a tenth of the startup time.

NAME = "dq-contracts"


@cache
def release() -> str:
    """Return the version of dq, or "" if it is not installed."""
    from importlib import metadata

    try:
        return metadata.version(NAME)
    except metadata.PackageNotFoundError:  # a checkout that is only on the path
        return ""


def fingerprint(packages: Iterable[ModuleType]) -> bytes:
    """Return the SHA-256 of the source of these packages, of Python's version, and of the names and versions
    of all installed packages; b"" if the source is not in files.

    Equal for two installations of the same code, in whichever folders. Raises OSError.
    """
    digest = hashlib.sha256(sys.version.encode())
    for folder in dict.fromkeys(sys.path):
        with suppress(OSError), os.scandir(folder or ".") as entries:
            for name in sorted(entry.name for entry in entries if entry.name.endswith(_METADATA)):
                digest.update(f"{name}\0".encode("utf-8", "surrogateescape"))
    for package in packages:
        sources = sorted(Path(package.__path__[0]).rglob("*.py"))
        if not sources:
            return b""
        for source in sources:
            data = source.read_bytes()
            digest.update(f"{source.name}\0{len(data)}\0".encode())
            digest.update(data)
    return digest.digest()


_METADATA = (".dist-info", ".egg-info")


def install_command(*extras: str) -> str:
    """Return the command that installs these extras from dq's origin: a checkout, Git, a wheel or an index.

    pip and uv record the origin in the package's metadata (PEP 610), except for an index.
    """
    return f"pip install {_requirement(extras)}"


@contextmanager
def require_extras(subject: str, *extras: str) -> Iterator[None]:
    """Raise MissingTool if an import in the block fails because extras are missing or broken.

    `subject` begins the message, e.g. `Parquet needs pyarrow`.
    """
    try:
        yield
    except ImportError as error:
        is_missing = isinstance(error, ModuleNotFoundError)
        reason = "is not installed" if is_missing else f"cannot be loaded ({one_line(str(error))})"
        raise MissingTool(f"{subject}, which {reason}.", install_command(*extras)) from error


def upgrade_command() -> str:
    """Return the command that upgrades dq from its origin."""
    return f"pip install --upgrade {_requirement(())}"


def _requirement(extras: tuple[str, ...]) -> str:
    extras_text = f"[{','.join(extras)}]" if extras else ""
    origin = _origin()
    if origin is None:
        return _quoted(NAME + extras_text)
    url = _without_password(origin["url"])
    if origin.get("dir_info", {}).get("editable"):
        return f"--editable {_quoted(unquote(urlsplit(url).path) + extras_text)}"
    vcs = origin.get("vcs_info")
    if vcs:
        url = f"{vcs['vcs']}+{url}@{vcs.get('requested_revision') or vcs['commit_id']}"
    return _quoted(f"{NAME}{extras_text} @ {url}")


def pinned_requirement(*extras: str) -> str:
    """Return a line of a requirements file for other machines: this version, or the commit it is from."""
    extras_text = f"[{','.join(extras)}]" if extras else ""
    vcs = (_origin() or {}).get("vcs_info")
    if vcs is None:
        return f"{NAME}{extras_text}=={release()}"
    url = _without_password((_origin() or {})["url"])
    return f"{NAME}{extras_text} @ {vcs['vcs']}+{url}@{vcs['commit_id']}"


def _origin() -> dict[str, Any] | None:
    import json
    from importlib import metadata

    try:
        note = metadata.distribution(NAME).read_text("direct_url.json")
    except metadata.PackageNotFoundError:  # a checkout that is only on the path
        return None
    return json.loads(note) if note else None


def _without_password(url: str) -> str:
    """Return the URL without credentials; the user `git` of SSH is kept."""
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=parts.netloc if user == "git" else host))


def _quoted(text: str) -> str:
    import shlex

    # The Windows shell only supports double quotes.
    return f'"{text}"' if os.name == "nt" else shlex.quote(text)


# Plug-in discovery: packages with one plug-in per module.


class Plugin(Protocol):
    """A plug-in: any object with an id that is unique in its package."""

    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=Plugin)


class PluginError(Exception):
    """A module defines no plug-in, or two modules define the same id: a bug of the plug-in's author."""


def load_plugins(package: ModuleType, attribute: str, kind: type[T]) -> dict[str, T]:
    """Return every plug-in of a package by id, in the order of the ids.

    Each module of `package` (except those that start with an underscore) must define `attribute`, an
    instance of `kind`, or its plural, a tuple of them: `RULE` or `RULES`. A subpackage that defines neither
    is a group of such modules. Raises PluginError for a module without one, and for duplicate ids.
    """
    items: dict[str, T] = {}
    for module in _modules(package, attribute):
        for item in _plugins(module, attribute) or (None,):
            if not isinstance(item, kind):
                raise PluginError(f"{module.__name__} does not define {attribute} of type {kind.__name__}")
            if item.id in items:
                raise PluginError(f"{module.__name__} defines {item.id!r}, which another file also defines")
            items[item.id] = item
    return dict(sorted(items.items()))


def _plugins(module: ModuleType, attribute: str) -> tuple[object, ...]:
    """Return what a module defines, unchecked: nothing if it has neither `attribute` nor its plural."""
    if hasattr(module, attribute):
        return (getattr(module, attribute),)
    return tuple(getattr(module, f"{attribute}S", ()))


# Cached: modules do not change while a process runs, and each contract needs several plug-in packages.
@cache
def _modules(package: ModuleType, attribute: str) -> tuple[ModuleType, ...]:
    modules: list[ModuleType] = []
    for _, name, is_package in pkgutil.iter_modules(package.__path__):
        if not name.startswith("_"):
            module = importlib.import_module(f"{package.__name__}.{name}")
            is_group = is_package and not _plugins(module, attribute)
            modules += _modules(module, attribute) if is_group else (module,)
    return tuple(modules)

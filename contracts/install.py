"""How this dq was installed, the commands that add to it, and how plug-ins are found."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from dq.contracts.outcome import MissingTool, one_line

# How this dq was installed, and the commands that add to it: the one place that messages take them from.
#
# What reads the metadata of packages is imported when somebody asks: it is a tenth of a start.

NAME = "dq-contracts"


@cache
def release() -> str:
    """The version of this dq; the empty text where it was never installed."""
    from importlib import metadata

    try:
        return metadata.version(NAME)
    except metadata.PackageNotFoundError:  # a checkout that is only on the path
        return ""


def install_command(*extras: str) -> str:
    """The command that installs these extras, from where this dq came: a checkout, Git, a wheel or an index.

    pip and uv note the origin beside the package (PEP 610); what came from an index has no note.
    """
    return f"pip install {_requirement(extras)}"


@contextmanager
def needing(who: str, *extras: str) -> Iterator[None]:
    """Around the import of what extras bring: where it is not there, or broken, MissingTool says so.

    `who` begins its sentence, such as `Parquet needs pyarrow`.
    """
    try:
        yield
    except ImportError as error:
        gone = isinstance(error, ModuleNotFoundError)
        why = "is not installed" if gone else f"cannot be loaded ({one_line(str(error))})"
        raise MissingTool(f"{who}, which {why}.", install_command(*extras)) from error


def upgrade_command() -> str:
    """The command that takes a newer dq from where this one came."""
    return f"pip install --upgrade {_requirement(())}"


def _requirement(extras: tuple[str, ...]) -> str:
    named = f"[{','.join(extras)}]" if extras else ""
    origin = _origin()
    if origin is None:
        return _quoted(NAME + named)
    url = _without_password(origin["url"])
    if origin.get("dir_info", {}).get("editable"):
        return f"--editable {_quoted(unquote(urlsplit(url).path) + named)}"
    vcs = origin.get("vcs_info")
    if vcs:
        url = f"{vcs['vcs']}+{url}@{vcs.get('requested_revision') or vcs['commit_id']}"
    return _quoted(f"{NAME}{named} @ {url}")


def _origin() -> dict[str, Any] | None:
    import json
    from importlib import metadata

    try:
        note = metadata.distribution(NAME).read_text("direct_url.json")
    except metadata.PackageNotFoundError:  # a checkout that is only on the path
        return None
    return json.loads(note) if note else None


def _without_password(url: str) -> str:
    """The URL with no user but Git's own of SSH, which is no secret."""
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=parts.netloc if user == "git" else host))


def _quoted(text: str) -> str:
    import shlex

    # The shell of Windows knows double quotes only.
    return f'"{text}"' if os.name == "nt" else shlex.quote(text)


# Shelves: folders in which one file is one thing, discovered and never listed by hand.


class Item(Protocol):
    """What lies on a shelf: anything with an id that is unique there."""

    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=Item)


class BrokenShelf(Exception):
    """A file on a shelf defines no item, or two files define the same id: a fault of the one who added it."""


def load(package: ModuleType, attribute: str, kind: type[T]) -> dict[str, T]:
    """Every item on the shelf by id, in the order of the file names.

    Each module of `package` (but those that start with an underscore) must define `attribute`, an
    instance of `kind`; a package in it that defines none is a group of such modules. Raises BrokenShelf for
    a file without one, and for twins.
    """
    items: dict[str, T] = {}
    for module in _modules(package, attribute):
        item = getattr(module, attribute, None)
        if not isinstance(item, kind):
            raise BrokenShelf(f"{module.__name__} defines no {attribute} of type {kind.__name__}")
        if item.id in items:
            raise BrokenShelf(f"{module.__name__} defines {item.id!r}, which another file defines too")
        items[item.id] = item
    return items


# No file is laid on a shelf while a process runs, and each contract asks for several shelves.
@cache
def _modules(package: ModuleType, attribute: str) -> tuple[ModuleType, ...]:
    found: list[ModuleType] = []
    for _, name, is_package in pkgutil.iter_modules(package.__path__):
        if not name.startswith("_"):
            module = importlib.import_module(f"{package.__name__}.{name}")
            is_group = is_package and not hasattr(module, attribute)
            found += _modules(module, attribute) if is_group else (module,)
    return tuple(sorted(found, key=lambda module: module.__name__.rpartition(".")[2]))

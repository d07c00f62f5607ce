"""Shelves: folders in which one file is one thing, discovered and never listed by hand."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType
from typing import Protocol, TypeVar


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

"""SHELF: one file per catalog, and how one is opened."""

from __future__ import annotations

import sys
from types import ModuleType

from dq.contracts import install
from dq.contracts.outcome import UsageError, suggestion
from dq.registry.catalog import Catalog, CatalogKind, CatalogSettings

# The package itself: a shelf is asked for by its package.
_SHIPPED = sys.modules[__name__]


def catalogs(package: ModuleType = _SHIPPED) -> dict[str, CatalogKind]:
    """The catalogs on the shelf by id."""
    return install.load(package, "CATALOG", CatalogKind)


def open_catalog(name: str, settings: CatalogSettings) -> Catalog:
    """The catalog of this id. Raises UsageError for an unknown one and for a setting that it misses."""
    kinds = catalogs()
    if name not in kinds:
        mend = suggestion(name, kinds, f"Choose one of {', '.join(kinds)}.")
        raise UsageError(f"There is no catalog {name!r}.", mend)
    return kinds[name].open(settings)

"""SHELF: plug-ins, one file per catalog, and the function that opens one."""

from __future__ import annotations

import sys
from types import ModuleType

from dq.contracts import install
from dq.contracts.outcome import UsageError, suggestion
from dq.registry.catalog import Catalog, CatalogKind, CatalogSettings

# The package itself, from which plug-ins are loaded.
_SHIPPED = sys.modules[__name__]


def catalogs(package: ModuleType = _SHIPPED) -> dict[str, CatalogKind]:
    """Return the catalog plug-ins by id."""
    return install.load_plugins(package, "CATALOG", CatalogKind)


def open_catalog(name: str, settings: CatalogSettings) -> Catalog:
    """Open the catalog with this id. Raises UsageError for an unknown id or a missing setting."""
    kinds = catalogs()
    if name not in kinds:
        hint = suggestion(name, kinds, f"Choose one of {', '.join(kinds)}.")
        raise UsageError(f"Unknown catalog {name!r}.", hint)
    return kinds[name].open(settings)

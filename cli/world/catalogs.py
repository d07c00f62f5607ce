"""The catalog that a command names, opened."""

from __future__ import annotations

from collections.abc import Mapping

from dq.cli.world.environment import World
from dq.cli.world.spark import session
from dq.registry.catalog import Catalog, CatalogSettings
from dq.registry.catalogs import open_catalog
from dq.store.engine import Store

_ICEBERG = "PYICEBERG_CATALOG__DEFAULT__"


def opened(world: World, store: Store | None, name: str, role: str, account: str) -> Catalog:
    """The catalog of this id. Raises UsageError for an unknown one, and for what it misses."""
    settings = CatalogSettings(
        store, lambda: session(world, hive=True), role, account, iceberg_properties(world.environment)
    )
    return open_catalog(name, settings)


def iceberg_properties(environment: Mapping[str, str]) -> dict[str, str]:
    """What the environment says of pyiceberg's catalog `default`, by pyiceberg's own rule for names.

    Its file is not read: it may lie in the working folder, which may be a stranger's checkout.
    """
    return {
        name[len(_ICEBERG) :].lower().replace("__", ".").replace("_", "-"): value
        for name, value in environment.items()
        if name.upper().startswith(_ICEBERG)
    }

"""Options that say which catalog a command writes to, and how it is opened."""

from __future__ import annotations

from collections.abc import Mapping

import typer

from dq.cli.world.environment import World
from dq.cli.world.spark import session
from dq.registry.catalog import Catalog, CatalogSettings
from dq.registry.catalogs import open_catalog
from dq.store.engine import Store

CATALOG: str = typer.Option(
    "local", "--catalog", help="Which catalog: local (in the state store), hive, glue or iceberg."
)
ROLE: str = typer.Option("", "--role-arn", help="In AWS: the role to take on, as of another account.")
ACCOUNT: str = typer.Option(
    "", "--catalog-id", help="In AWS: the account whose catalog it is, where it is not one's own."
)

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

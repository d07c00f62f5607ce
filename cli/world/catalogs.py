"""Options that say which catalog a command writes to, and how it is opened."""

from __future__ import annotations

import typer

from dq.cli.world.environment import World
from dq.cli.world.spark import session
from dq.registry.catalog import Catalog, CatalogSettings
from dq.registry.catalogs import open_catalog
from dq.store.engine import Store

CATALOG: str = typer.Option(
    "local", "--catalog", help="Which catalog: local (in the state store), hive or glue."
)
ROLE: str = typer.Option("", "--role-arn", help="In AWS: the role to take on, as of another account.")
ACCOUNT: str = typer.Option(
    "", "--catalog-id", help="In AWS: the account whose catalog it is, where it is not one's own."
)


def opened(world: World, store: Store, name: str, role: str, account: str) -> Catalog:
    """The catalog of this id. Raises UsageError for an unknown one, and for what it misses."""
    settings = CatalogSettings(store, lambda: session(world, hive=True), role, account)
    return open_catalog(name, settings)

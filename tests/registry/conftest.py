"""What the tests of this room share: a store, Glue behind its strict shim, and an Iceberg REST catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import iceberg
from fakes.glue import GlueShim, serving
from fakes.iceberg import RestProxy

from dq.operations.runtime.spark import iceberg_properties
from dq.registry.aws.client import Rate, connect
from dq.registry.aws.glue import Glue
from dq.registry.aws.lake_formation import LakeFormation, connect_lake
from dq.registry.catalog import Catalog, CatalogSettings
from dq.registry.catalogs import open_catalog
from dq.store.engine import Store, open_store

QUICK = Rate(10_000, 10_000)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = open_store(f"sqlite:///{tmp_path}/state.db")
    yield made
    made.close()


@pytest.fixture(scope="session")
def glue_server() -> Iterator[GlueShim]:
    with serving() as shim:
        yield shim


@pytest.fixture(scope="session")
def glue_catalog(glue_server: GlueShim) -> Iterator[Glue]:
    """One client for all: making one reads AWS's models for a second."""
    with pytest.MonkeyPatch.context() as patch:
        _point(patch, glue_server)
        yield Glue(connect(rates={"read": QUICK, "write": QUICK}))


def _point(patch: pytest.MonkeyPatch, shim: GlueShim) -> None:
    for name, text in shim.environment.items():
        patch.setenv(name, text)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_GLUE", "AWS_REGION"):
        patch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def lake_formation(glue_server: GlueShim) -> Iterator[LakeFormation]:
    with pytest.MonkeyPatch.context() as patch:
        _point(patch, glue_server)
        yield connect_lake(account="123456789012", rates={"read": QUICK, "write": QUICK})


@pytest.fixture
def glue(glue_server: GlueShim, monkeypatch: pytest.MonkeyPatch) -> GlueShim:
    """Makes Glue empty, and an environment in which boto3 finds no other."""
    _point(monkeypatch, glue_server)
    glue_server.reset()
    return glue_server


@pytest.fixture(scope="session")
def iceberg_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestProxy]:
    with iceberg.serving(tmp_path_factory.mktemp("iceberg")) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def iceberg_catalog(iceberg_server: RestProxy) -> Catalog:
    properties = iceberg_properties(iceberg_server.environment)
    return open_catalog("iceberg", CatalogSettings(iceberg=properties))

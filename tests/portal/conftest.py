"""What the tests of the portal share: one mesh, one site of it, one browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fakes import browser, portal_mesh
from fakes.portal_mesh import PortalMesh
from fakes.strangers import quiet_environment
from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PortalMesh]:
    """Two hundred products in every state; to be looked at, and never changed."""
    with quiet_environment():
        yield portal_mesh.made(tmp_path_factory.mktemp("mesh"))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with browser.browser() as running:
        yield running

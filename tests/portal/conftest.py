"""What the tests of the portal share: one mesh, one site of it, one browser, and every page opened once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import browser, portal_mesh, portal_pages
from fakes.portal_mesh import AS_OF, PortalMesh
from fakes.portal_pages import Seen
from fakes.strangers import quiet_environment
from playwright.sync_api import Browser, Page


@pytest.fixture(scope="session")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PortalMesh]:
    """Two hundred products in every state; to be looked at, and never changed."""
    with quiet_environment():
        yield portal_mesh.made(tmp_path_factory.mktemp("mesh"))


@pytest.fixture(scope="session")
def site(mesh: PortalMesh) -> Path:
    """The portal of the mesh as of its last watch; to be looked at, and never changed."""
    built = mesh.dq("portal", "build", "site", "registry", "--as-of", AS_OF)
    assert built.code == 3, built.err  # some contracts cannot be read, and have pages that say so
    return mesh.folder / "site"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with browser.browser() as running:
        yield running


@pytest.fixture(scope="session")
def seen(chromium: Browser, site: Path) -> list[Seen]:
    """Every page of the site, as a telephone shows it."""
    return portal_pages.crawl(chromium, site, AS_OF)


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A window of its own on a desk, by a clock that shows when the mesh was watched last."""
    context = chromium.new_context(viewport={"width": 1200, "height": 900})
    shown = context.new_page()
    shown.clock.set_fixed_time(AS_OF)
    shown.set_default_timeout(120_000)
    yield shown
    context.close()

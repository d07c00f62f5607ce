"""Pictures of the portal: a small mesh, played by the real watcher, as the browser of the tests shows it."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from fakes.browser import browser
from fakes.portal_mesh import AS_OF, made
from fakes.portal_products import LONG, NOW, MeshProduct, document, products
from fakes.strangers import quiet_environment
from playwright.sync_api import Browser

from dq.registry.table_coverage import Coverage, DiscoveryRun, UncoveredTable, record_run
from dq.store.engine import open_store

# What each product is called, whose it is, and how it delivers.
PRODUCTS = (
    ("Carrier invoices", "finance", "late at times"),
    ("Parcels", "logistics", "in time"),
    ("Customs declarations", "logistics", "late today"),
    ("Payments", "finance", "in grace"),
    ("Stock levels", "logistics", "missing for days"),
    ("Web sessions", "sales", "unreadable"),
    ("Orders", "sales", "in time"),
    ("Support tickets", "sales", "budget nearly spent"),
    ("Campaign clicks", "sales", "budget spent"),
    ("Returns", "sales", "in time"),
    ("Salaries", "people", "excused"),
    ("Claims", "finance", "acknowledged"),
    ("Meter readings", "logistics", "given up"),
)
INPUTS = {"Returns": ["orders"], "Customs declarations": ["parcels", "stock-levels"]}
# Pictures for the page about the portal: name, page, whether it is dark, size, and what is at the top of it.
SHOWN = (
    ("portal-today", "index.html", False, (1280, 940), ""),
    ("portal-late", "products/customs-declarations/index.html", False, (1280, 580), ""),
    ("portal-product", "products/carrier-invoices/index.html", False, (1280, 860), "#promises"),
    ("portal-column", "products/carrier-invoices/index.html#c2", False, (1280, 420), "#c2"),
    ("portal-domain", "domains/finance.html", True, (1280, 1180), ""),
    ("portal-incidents", "incidents/index.html", False, (1280, 620), ""),
    ("portal-coverage", "domains/index.html", False, (1280, 700), "#coverage"),
    ("portal-find", "find.html?q=amount", False, (1280, 620), ""),
    ("portal-phone", "products/stock-levels/index.html", True, (360, 760), ""),
)
SIZES = {"desktop": (1280, 900, False), "dark": (1280, 900, True), "phone": (360, 740, False)}
SCREENS = {
    "today": "index.html",
    "find": "find.html?q={product}",
    "domains": "domains/index.html",
    "domain": "domains/{domain}.html",
    "incidents": "incidents/index.html",
    "changes": "changes.html",
    "product": "products/{product}/index.html",
    "incident": "incidents/{incident}",
}
MAX_BYTES = 120_000


def portal(pictures: Path) -> None:
    """Writes the pictures of docs/how-to/portal.md."""
    with tempfile.TemporaryDirectory() as name, quiet_environment():
        mesh = made(Path(name), list(_products()))
        _record_discoveries(mesh.url)
        built = mesh.dq("portal", "build", "site", "registry", "--as-of", AS_OF)
        assert built.code == 0, built.err
        with browser() as running:
            for picture, page, dark, size, top in SHOWN:
                file = pictures / f"{picture}.png"
                _shoot(running, mesh.folder / "site", page, size, dark=dark, top=top, at=AS_OF, file=file)
                assert file.stat().st_size <= MAX_BYTES, f"{file} has {file.stat().st_size:,} bytes"


def screens(site: Path, pictures: Path, at: str, *, full_page: bool = True) -> None:
    """Writes each screen of a site as a desk, a dark desk and a telephone show it, to look at."""
    product = max(site.glob("products/*/index.html"), key=lambda file: file.stat().st_size).parent.name
    domain = max(site.glob("domains/*.html"), key=lambda file: file.stat().st_size).stem
    incidents = [file for file in site.glob("incidents/*.html") if file.stem != "index"]
    names = {
        "product": product,
        "domain": domain,
        "incident": incidents[0].name if incidents else "index.html",
    }
    pictures.mkdir(parents=True, exist_ok=True)
    with browser() as running:
        for screen, page in SCREENS.items():
            for size, (width, height, dark) in SIZES.items():
                file = pictures / f"{screen}-{size}.png"
                _shoot(
                    running,
                    site,
                    page.format(**names),
                    (width, height),
                    dark=dark,
                    at=at,
                    file=file,
                    full_page=full_page,
                )


def sheet(site: Path, picture: Path, at: str) -> None:
    """Writes one picture with the top of each screen of a site, in all sizes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        screens(site, folder, at, full_page=False)
        rows = "".join(
            f"<p>{screen}</p>" + "".join(f'<img src="{screen}-{size}.png">' for size in SIZES)
            for screen in SCREENS
        )
        style = (
            "body { margin: 12px; font: 15px sans-serif } p { margin: 10px 0 3px }"
            " img { height: 210px; margin-right: 10px; border: 1px solid #999 }"
        )
        (folder / "sheet.html").write_text(f"<style>{style}</style>{rows}")
        with browser() as running:
            shown = running.new_page(viewport={"width": 760, "height": 900})
            shown.goto((folder / "sheet.html").as_uri())
            shown.screenshot(path=picture, full_page=True)


def sixty(folder: Path) -> Path:
    """Builds the site of sixty products in all states, and gives its folder."""
    with quiet_environment():
        mesh = made(folder, products(60))
        _record_discoveries(mesh.url)
        built = mesh.dq("portal", "build", "site", "registry", "--as-of", AS_OF)
        assert built.code in (0, 3), built.err
    return mesh.folder / "site"


def _shoot(
    running: Browser, site: Path, page: str, size: tuple[int, int], *, dark: bool, at: str, file: Path,
    top: str = "", full_page: bool = False,
) -> None:  # fmt: skip
    context = running.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    shown = context.new_page()
    shown.clock.set_fixed_time(at)
    path, mark, suffix = next((parts for mark in "?#" if (parts := page.partition(mark))[1]), (page, "", ""))
    shown.goto(f"{(site / path).as_uri()}{mark}{suffix}")
    if page.startswith("find.html"):
        shown.locator("#found li").first.wait_for()
    if top:
        shown.evaluate("top => document.querySelector(top).parentElement.scrollIntoView()", top)
    shown.screenshot(path=file, full_page=full_page)
    context.close()


def _record_discoveries(url: str) -> None:
    """Writes what `dq discover` counted in six weeks: each week some tables more have a contract."""
    store = open_store(url)
    for week in range(6):
        counts = {"finance": (9, 3 + week, 1), "logistics": (14, 5 + week, 2), "sales": (20, 4 + 2 * week, 0)}
        domains = tuple(
            Coverage(name, tables, covered, drafts) for name, (tables, covered, drafts) in counts.items()
        )
        uncovered = UncoveredTable("lake.sales.baskets", "sales", "web", "iceberg", 8_000_000_000, 412)
        at = NOW - timedelta(days=7 * (5 - week) + 1)
        record_run(store, DiscoveryRun(at, ("s3://lake",), 0, domains, (), (), (uncovered,)))


def _products() -> Iterator[MeshProduct]:
    for number, (title, domain, history) in enumerate(PRODUCTS):
        id_ = title.lower().replace(" ", "-")
        description = {
            "purpose": f"{title} of all our companies, one row each, whole for each day.",
            "usage": "Read by day.",
        }
        inputs = INPUTS.get(title)
        custom_properties = {"customProperties": [{"property": "inputs", "value": inputs}]} if inputs else {}
        written = document(
            number, id_, domain, name=title, dataProduct=id_, description=description, **custom_properties
        )
        marks = frozenset({"checked before"} if number == 0 else ())
        yield replace(MeshProduct(id_, f"long/{id_}.odcs.yaml", written, history, marks=marks), days=LONG)


if __name__ == "__main__":
    # `_portal.py FOLDER [SITE AS_OF]`: each screen of a site, or of sixty products, into a folder to look at,
    # and all of them in `all.png`.
    if sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            site, at = (Path(sys.argv[2]), sys.argv[3]) if sys.argv[2:] else (sixty(Path(folder)), AS_OF)
            screens(site, Path(sys.argv[1]), at)
            sheet(site, Path(sys.argv[1]) / "all.png", at)
    else:
        portal(Path(__file__).parent / "pictures")

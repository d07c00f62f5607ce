"""Pictures of the portal: a small mesh, played by the real watcher, as the browser of the tests shows it."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from fakes.browser import browser
from fakes.portal_mesh import AS_OF, made
from fakes.portal_products import LONG, MeshProduct, document
from fakes.strangers import quiet_environment

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
# A picture, its page, whether it is dark, and its size.
SHOWN = (
    ("portal-today", "index.html", False, (1000, 760)),
    ("portal-product", "products/carrier-invoices/index.html", False, (1000, 1270)),
    ("portal-phone", "products/stock-levels/index.html", True, (390, 760)),
)


def portal(pictures: Path) -> None:
    """Writes the pictures."""
    with tempfile.TemporaryDirectory() as name, quiet_environment():
        mesh = made(Path(name), list(_products()))
        built = mesh.dq("portal", "build", "site", "registry", "--as-of", AS_OF)
        assert built.code == 0, built.err
        with browser() as running:
            for picture, page, dark, (width, height) in SHOWN:
                shown = running.new_page(
                    viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
                )
                shown.clock.set_fixed_time(AS_OF)
                shown.goto((mesh.folder / "site" / page).as_uri())
                shown.screenshot(path=pictures / f"{picture}.png")


def _products() -> Iterator[MeshProduct]:
    for number, (title, domain, fate) in enumerate(PRODUCTS):
        id_ = title.lower().replace(" ", "-")
        said = {
            "purpose": f"{title} of all our companies, one row each, whole for each day.",
            "usage": "Read by day.",
        }
        more = {"customProperties": [{"property": "inputs", "value": ["orders"]}]} if number == 9 else {}
        written = document(number, id_, domain, name=title, dataProduct=id_, description=said, **more)
        yield replace(MeshProduct(id_, f"long/{id_}.odcs.yaml", written, fate), days=LONG)


if __name__ == "__main__":
    portal(Path(__file__).parent / "pictures")

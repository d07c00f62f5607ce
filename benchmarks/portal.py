"""What the portal costs: a build of ten thousand products with ninety cycles each, and what readers load.

The full form does a hundred thousand as well, to see that it grows with their number and no faster. Builds
are whole processes, as a scheduler starts them; their memory is the peak that the system counted. Searches
are timed in a headless Chromium, from the last key to the first answer on the screen.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import _portal_registry as registry
from _report import arguments, finish
from playwright.sync_api import sync_playwright

from dq.store.engine import open_store

AS_OF = f"{registry.NOW:%FT%TZ}"
SEARCHES = ("invo", "customer", "parcel stock", "team-7", "orders-000008", "salary region", "zzz")


def measured(folder: Path, count: int, *, browser: bool) -> dict[str, float]:
    """Seconds, megabytes and kilobytes for one registry."""
    registry.write(folder / "registry", count)
    store = f"sqlite:///{folder / 'store.db'}"
    registry.fill(open_store(store), count)
    build = _builder(folder, store)
    whole, memory = build()
    again, _ = build()
    one = random.Random(count).randrange(count)
    registry.file(folder / "registry", one).write_text(registry.text(one, minor=1), "utf-8")
    changed, _ = build()
    site = folder / "site"
    products = [_loaded(file) for file in site.glob("products/*/index.html")]
    assert len(products) == count, (len(products), count)
    found = {
        "build_seconds": whole,
        "build_megabytes": memory,
        "unchanged_seconds": again,
        "one_changed_seconds": changed,
        "first_page_kilobytes": _loaded(site / "index.html"),
        "product_page_kilobytes_at_most": max(products),
        "site_megabytes": sum(file.stat().st_size for file in site.rglob("*") if file.is_file()) / 1e6,
    }
    if browser:
        found["search_milliseconds_at_most"] = _search(site / "find.html")
    return found


def _builder(folder: Path, store: str) -> Callable[[], tuple[float, float]]:
    """Builds once, as a process of its own; gives its seconds and its peak of memory in megabytes."""
    dq = str(Path(sys.executable).parent / "dq")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DQ_")}
    log, domains = folder / "build.log", sorted(map(str, (folder / "registry").glob("*/")))

    def build() -> tuple[float, float]:
        # What was written before is on the disk then, and does not keep it busy.
        os.sync()
        before = time.perf_counter()
        with log.open("w") as said:
            # A folder holds 50,000 contracts at most; those of each domain are named.
            words = [dq, "portal", "build", str(folder / "site"), *domains, "--as-of", AS_OF]
            child = subprocess.Popen(words, env={**kept, "DQ_STORE_URL": store}, stdout=said, stderr=said)
            _, code, used = os.wait4(child.pid, 0)
        took = time.perf_counter() - before
        child.returncode = os.waitstatus_to_exitcode(code)
        assert child.returncode == 0, log.read_text()[-2000:]
        return took, _megabytes(used)

    return build


def _megabytes(used: resource.struct_rusage) -> float:
    return used.ru_maxrss / (1024 if sys.platform == "linux" else 1024 * 1024)


def _loaded(page: Path) -> float:
    """Kilobytes of a page. What all pages share (style, script) is loaded once, and counted by itself."""
    return page.stat().st_size / 1000


def _search(page: Path) -> float:
    """The longest of the medians over some searches, in milliseconds."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        shown = browser.new_page()
        shown.goto(page.as_uri())
        took = [statistics.median(shown.evaluate(_TIMED, words) for _ in range(5)) for words in SEARCHES]
        browser.close()
    for words, each in zip(SEARCHES, took, strict=True):
        print(f"search {words!r}: {each:.1f} ms")
    return max(took)


# Waits for an answer to the words: the line that tells how many there are changes.
_TIMED = """words => new Promise(done => {
    const input = document.querySelector('input[type=search]'), told = document.getElementById('told');
    input.value = '';
    input.dispatchEvent(new Event('input', {bubbles: true}));
    setTimeout(() => {
        const begun = performance.now();
        new MutationObserver((_, one) => {
            one.disconnect();
            document.getElementById('found').getBoundingClientRect();
            done(performance.now() - begun);
        }).observe(told, {childList: true, characterData: true, subtree: true});
        input.value = words;
        input.dispatchEvent(new Event('input', {bubbles: true}));
    }, 300);
})"""


def main() -> int:
    args = arguments(__doc__ or "", products="how many products, instead of ten thousand")
    count = args.products or (300 if args.quick else 10_000)
    with tempfile.TemporaryDirectory() as name:
        metrics = {"products": float(count), **measured(Path(name), count, browser=True)}
    goals = {
        "build_seconds": ("<", 60.0 * max(count / 10_000, 0.1)),
        "build_megabytes": ("<", 500.0),
        "unchanged_seconds": ("<", 5.0),
        "one_changed_seconds": ("<", 2.0),
        "first_page_kilobytes": ("<", 100.0),
        "product_page_kilobytes_at_most": ("<", 60.0),
        "search_milliseconds_at_most": ("<", 100.0),
    }
    if not args.quick and not args.products:
        with tempfile.TemporaryDirectory() as name:
            many = measured(Path(name), 10 * count, browser=False)
        metrics |= {f"{what}_of_{10 * count}": value for what, value in many.items()}
        metrics["seconds_for_each_product_against_those_of_fewer"] = (
            many["build_seconds"] / 10 / metrics["build_seconds"]
        )
        goals["seconds_for_each_product_against_those_of_fewer"] = ("<", 1.3)
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())

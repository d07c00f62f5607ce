"""Cost of the portal: a build of ten thousand products with ninety cycles each, and what readers load.

Three sites of a quarter, half and all of up to 1,600 products tell what a further product costs, and that it
costs the same if there are many. The full form does a hundred thousand as well. Builds are whole processes,
as a scheduler starts them; their memory is the peak that the system counted. Searches are timed in a headless
Chromium, from the last key to the first answer on the screen. Beside them, a process by hand reads the
contracts with PyYAML and the store with SQLAlchemy, and writes a page of JSON for each product; and a loop in
the same browser looks for the words in the texts of all contracts, and shows them.

With `--against COMMIT`, the code of that commit builds a site of the same products in turns with this one,
with the packages that are installed.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import _portal_registry as registry
from _cost import Cost, cost
from _report import arguments, finish
from fakes import browser

from dq.store.engine import open_store

AS_OF = f"{registry.NOW:%FT%TZ}"
SEARCHES = ("invo", "customer", "parcel stock", "team-7", "orders-000008", "salary region", "zzz")


BY_HAND = """
import json, sys, yaml
from pathlib import Path
from sqlalchemy import create_engine, text
registry, store, pages = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
products = {}
for file in registry.glob("*/*.odcs.yaml"):
    contract = yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader)
    products[contract["id"]] = {"contract": contract, "rows": []}
with create_engine(store).connect() as connection:
    for table in ("cycle", "check_run", "incident"):
        for row in connection.execute(text(f"SELECT * FROM {table}")):
            products[row.contract]["rows"].append(list(row))
pages.mkdir()
for name, product in products.items():
    (pages / f"{name}.json").write_text(json.dumps(product, default=str))
"""


def measured(folder: Path, count: int, *, searches: bool) -> dict[str, float]:
    """Seconds, megabytes and kilobytes for one registry."""
    registry.write(folder / "registry", count)
    store = f"sqlite:///{folder / 'store.db'}"
    registry.fill(open_store(store), count)
    build = _builder(folder, store)
    os.sync()
    by_hand = cost([sys.executable, "-c", BY_HAND, str(folder / "registry"), store, str(folder / "plain")])
    first = build()
    unchanged = build()
    number = random.Random(count).randrange(count)
    registry.file(folder / "registry", number).write_text(registry.text(number, minor=1), "utf-8")
    changed = build()
    site = folder / "site"
    products = [_loaded(file) for file in site.glob("products/*/index.html")]
    assert len(products) == count, (len(products), count)
    figures = {
        "by_hand_seconds": by_hand.wall,
        "build_seconds": first.wall,
        "build_megabytes": first.megabytes,
        "unchanged_seconds": unchanged.wall,
        "one_changed_seconds": changed.wall,
        "build_cpu_over_by_hand": first.cpu / by_hand.cpu,
        "unchanged_cpu_over_by_hand": unchanged.cpu / by_hand.cpu,
        "one_changed_cpu_over_by_hand": changed.cpu / by_hand.cpu,
        "first_page_kilobytes": _loaded(site / "index.html"),
        "product_page_kilobytes_at_most": max(products),
        "largest_page_kilobytes": max(_loaded(file) for file in site.rglob("*.html")),
        "site_megabytes": sum(file.stat().st_size for file in site.rglob("*") if file.is_file()) / 1e6,
    }
    if searches:
        texts = [file.read_text("utf-8").lower() for file in folder.glob("registry/*/*.odcs.yaml")]
        figures |= _search(site / "find.html", texts)
    return figures


def growth(folder: Path, count: int) -> dict[str, float]:
    """CPU time of a further product, in milliseconds: of the last half of them, and over those before.

    Each build is one process on one processor, so that its start is the same for any number of products.
    """
    costs = {}
    for size in (count // 4, count // 2, count):
        place = folder / str(size)
        registry.write(place / "registry", size)
        store = f"sqlite:///{place / 'store.db'}"
        registry.fill(open_store(store), size)
        domains = sorted(map(str, (place / "registry").glob("*/")))
        words = ["portal", "build", str(place / "site"), *domains, "--as-of", AS_OF]
        costs[size] = cost([sys.executable, "-c", _ON_ONE_PROCESSOR, *words], DQ_STORE_URL=store).cpu
        print(f"growth: {size:,} products in {costs[size]:.2f} s of a processor")
    quarter, half, full = costs.values()
    early, late = (
        (larger - fewer) / (count // part) for fewer, larger, part in ((quarter, half, 4), (half, full, 2))
    )
    return {"cpu_milliseconds_a_product": 1000 * late, "late_product_over_early": late / early}


def _builder(folder: Path, store: str) -> Callable[[], Cost]:
    """Builds once, as a process of its own."""
    dq = str(Path(sys.executable).parent / "dq")
    domains = sorted(map(str, (folder / "registry").glob("*/")))

    def build() -> Cost:
        # What was written before is on the disk then, and does not keep it busy.
        os.sync()
        # A folder holds 50,000 contracts at most; those of each domain are named.
        return cost(
            [dq, "portal", "build", str(folder / "site"), *domains, "--as-of", AS_OF], DQ_STORE_URL=store
        )

    return build


def _loaded(page: Path) -> float:
    """Kilobytes of a page. What all pages share (style, script) is loaded once, and counted by itself."""
    return page.stat().st_size / 1000


def _search(page: Path, texts: list[str]) -> dict[str, float]:
    """The longest of the medians over some searches, in milliseconds, and as a multiple of one by hand."""
    if not any(map(shutil.which, browser.NAMES)):
        print("searches are left out: no Chromium is installed.")
        return {}
    with browser.browser() as running:
        shown = running.new_page()
        shown.goto(page.as_uri())
        took = [statistics.median(shown.evaluate(_TIMED, words) for _ in range(5)) for words in SEARCHES]
        by_hand = [
            statistics.median(shown.evaluate(_TIMED_BY_HAND, [words, texts]) for _ in range(5))
            for words in SEARCHES
        ]
    for words, seconds, plain in zip(SEARCHES, took, by_hand, strict=True):
        print(f"search {words!r}: {seconds:.1f} ms, by hand {plain:.1f} ms")
    return {
        "search_milliseconds_at_most": max(took),
        "search_by_hand_milliseconds_at_most": max(by_hand),
        "search_over_by_hand": max(took) / max(by_hand),
    }


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


# Waits for further keys as long as the page does.
_TIMED_BY_HAND = """([words, texts]) => new Promise(done => {
    const begun = performance.now(), found = document.getElementById('found'), terms = words.split(' ');
    setTimeout(() => {
        found.textContent = '';
        for (const text of texts.filter(text => terms.every(term => text.includes(term))).slice(0, 50)) {
            const item = document.createElement('li');
            item.textContent = text.slice(0, 200);
            found.appendChild(item);
        }
        found.getBoundingClientRect();
        done(performance.now() - begun);
    }, 60);
})"""


_FILL = """
import sys
from pathlib import Path
import _portal_registry
from dq.store.engine import open_store
folder, count = Path(sys.argv[1]), int(sys.argv[2])
_portal_registry.write(folder / "registry", count)
_portal_registry.fill(open_store(f"sqlite:///{folder / 'store.db'}"), count)
"""
_MAIN = "from dq.cli.main import main; main()"
_ON_ONE_PROCESSOR = f"import os; os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}}); {_MAIN}"
_REPOSITORY = Path(__file__).parent.parent
_ROUNDS = 3


def against(folder: Path, count: int, commit: str) -> dict[str, float]:
    """Processor seconds of builds by this code over those by the code of another commit, medians of some."""
    tree = folder / "tree"
    git = ["git", "-C", str(_REPOSITORY), "worktree"]
    subprocess.run([*git, "add", "--detach", str(tree), commit], check=True, capture_output=True)
    try:
        sides = [_Side(folder / "now", _REPOSITORY), _Side(folder / "then", tree)]
        for side in sides:
            # The first build of few products only compiles the modules.
            side.fill(20)
            side.build()
            side.fill(count)
        turns = [[side.build_anew() for side in sides] for _ in range(_ROUNDS)]
        repeated = [[side.build() for side in sides] for _ in range(_ROUNDS)]
    finally:
        subprocess.run([*git, "remove", "--force", str(tree)], check=True, capture_output=True)
    for name, costs in (("build", turns), ("unchanged", repeated)):
        for now, then in costs:
            print(f"{name}: {now.cpu:.2f} s of processors now, {then.cpu:.2f} s at {commit}")
    return {
        f"{name}_cpu_over_{commit}": statistics.median(now.cpu for now, _ in costs)
        / statistics.median(then.cpu for _, then in costs)
        for name, costs in (("build", turns), ("unchanged", repeated))
    }


class _Side:
    """The code of a checkout, with a registry, a store and a site of its own."""

    def __init__(self, folder: Path, checkout: Path) -> None:
        self.folder, self.checkout = folder, checkout
        packages = folder / "packages" / "dq"
        packages.mkdir(parents=True)
        project = tomllib.loads((checkout / "pyproject.toml").read_text("utf-8"))
        folders: dict[str, str] = project["tool"]["setuptools"]["package-dir"]
        for entry in (checkout / folders.pop("dq")).iterdir():
            (packages / entry.name).symlink_to(entry)
        for package, source in folders.items():
            (packages / package.removeprefix("dq.")).symlink_to(checkout / source)

    def fill(self, count: int) -> None:
        """Writes so many contracts, and what watching and checking left of them."""
        for name in ("registry", "site", "store.db"):
            path = self.folder / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        self._run(["-c", _FILL, str(self.folder), str(count)])

    def build_anew(self) -> Cost:
        shutil.rmtree(self.folder / "site", ignore_errors=True)
        return self.build()

    def build(self) -> Cost:
        domains = sorted(map(str, (self.folder / "registry").glob("*/")))
        os.sync()
        return self._run(
            ["-c", _MAIN, "portal", "build", str(self.folder / "site"), *domains, "--as-of", AS_OF]
        )

    def _run(self, words: list[str]) -> Cost:
        paths = f"{self.folder / 'packages'}{os.pathsep}{self.checkout / 'benchmarks'}"
        store = f"sqlite:///{self.folder / 'store.db'}"
        return cost([sys.executable, *words], PYTHONPATH=paths, DQ_STORE_URL=store)


def main() -> int:
    args = arguments(
        __doc__ or "",
        products="how many products, instead of ten thousand",
        against={"help": "a commit to compare with", "metavar": "COMMIT"},
    )
    count = args.products or (300 if args.quick else 10_000)
    with tempfile.TemporaryDirectory() as name:
        metrics = {"products": float(count), **measured(Path(name), count, searches=True)}
    with tempfile.TemporaryDirectory() as name:
        metrics |= growth(Path(name), min(count, 1_600))
    goals = {
        "late_product_over_early": ("<", 1.2),
        "build_cpu_over_by_hand": ("<", 11.0),
        "build_megabytes": ("<", 500.0),
        # Of few products it is the start of a command over the start of Python.
        "unchanged_cpu_over_by_hand": ("<", 0.3 if count >= 10_000 else 1.4),
        "one_changed_cpu_over_by_hand": ("<", 0.3 if count >= 10_000 else 1.4),
        "first_page_kilobytes": ("<", 100.0),
        "product_page_kilobytes_at_most": ("<", 60.0),
        "largest_page_kilobytes": ("<", 150.0),
        **({"search_over_by_hand": ("<", 1.5)} if "search_over_by_hand" in metrics else {}),
    }
    if args.against:
        with tempfile.TemporaryDirectory() as name:
            metrics |= against(Path(name), count, args.against)
        goals[f"build_cpu_over_{args.against}"] = ("<", 1.3)
        goals[f"unchanged_cpu_over_{args.against}"] = ("<", 1.05)
    if not args.quick and not args.products and not args.against:
        with tempfile.TemporaryDirectory() as name:
            many = measured(Path(name), 10 * count, searches=False)
        metrics |= {f"{what}_of_{10 * count}": value for what, value in many.items()}
        metrics["seconds_for_each_product_against_those_of_fewer"] = (
            many["build_seconds"] / 10 / metrics["build_seconds"]
        )
        goals["seconds_for_each_product_against_those_of_fewer"] = ("<", 1.3)
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())

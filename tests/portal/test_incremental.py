"""A site that was built again and again says what one says that is built anew: nothing is out of date."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fakes import portal_mesh
from fakes.command import Place, contract
from fakes.portal_mesh import PortalMesh
from fakes.portal_products import FATES, NOW, MeshProduct, document
from fakes.strangers import quiet_environment
from fakes.work import bytes_read

from dq.alerts.record import record
from dq.alerts.route import CONSOLE
from dq.contracts.access.files import FileRef, file_stamps
from dq.contracts.check_result import CheckResult, Status
from dq.contracts.metrics import UNUSUAL
from dq.contracts.outcome import Location, Severity
from dq.contracts.slo import read_slos
from dq.contracts.yaml.parse import parse
from dq.dataquality import results
from dq.dataquality.delivery.cycle_store import Excuse
from dq.dataquality.delivery.replay import apply_excuses
from dq.store.engine import Store, open_store

# When a page was made, which it says itself, and the one figure that grows with every minute.
_WHEN = re.compile(
    rb'<p id="as-of">.*?</p>|"as_of":"[^"]*"|"availability":[^,]*|<b>[^<]*</b> <span>of the time,'
)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> PortalMesh:
    """One product of each fate, as of the last watch, and its site."""
    with quiet_environment():
        mesh = portal_mesh.made(tmp_path_factory.mktemp("small"), list(_one_of_each()))
        _built(mesh, "site", NOW)
        return mesh


def _one_of_each() -> list[MeshProduct]:
    return [
        MeshProduct(f"p{number}", f"long/p{number}.odcs.yaml", document(number, f"p{number}", "sales"), fate)
        for number, fate in enumerate(FATES)
    ]


def _built(place: Place, site: str, at: object, code: int = 0) -> int:
    """How many products were made anew."""
    ran = place.dq("portal", "build", site, "registry", "--as-of", f"{at:%FT%TZ}", "--format", "json")
    assert ran.code == code, ran.err
    return int(ran.json["rendered"])


def _pages(site: Path) -> dict[str, bytes]:
    """What the site says, without what it says of builds."""
    return {
        path: _WHEN.sub(b"", file.read_bytes())
        for file in sorted(site.rglob("*"))
        if file.is_file()
        and not (path := file.relative_to(site).as_posix()).startswith((".dq-portal", "changes"))
    }


# Minutes after the first build at which the site is built again: a cycle came due and is in
# grace, is missed, and weeks later misses leave their window; with a tick of the watcher before it, or none.
@pytest.mark.parametrize("watched", [False, True], ids=["nobody watches", "somebody watches"])
def test_what_is_built_again_says_what_is_built_anew(small: PortalMesh, watched: bool) -> None:
    with quiet_environment():
        for minutes in (21 * 60 + 5, 22 * 60, 31 * 24 * 60):
            at = NOW + timedelta(minutes=minutes) + timedelta(days=40 if watched else 0)
            if watched:
                told = small.dq("watch", "registry", "--as-of", f"{at:%FT%TZ}", "--channel", "console")
                assert told.code in (0, 1, 3), told.err
            anew = f"anew-{minutes}-{watched}"

            _built(small, "site", at)
            _built(small, anew, at)

            again, fresh = _pages(small.folder / "site"), _pages(small.folder / anew)
            assert set(again) == set(fresh)
            assert [path for path, said in again.items() if said != fresh[path]] == [], minutes


def _named(place: Place, name: str, text: str) -> None:
    place.put(f"registry/{name}.odcs.yaml", contract(name) + text)


# What a person does to a registry of `one` to `four`, and how many products are made anew by it.
CHANGES = {
    "nothing": (lambda place: None, 0),
    "a title": (lambda place: _named(place, "one", "name: Ones of us\ndomain: all\n"), 1),
    "an owner and words": (lambda place: _named(place, "two", "team: {name: twos}\ntags: [new]\n"), 1),
    "one less and one more": (
        lambda place: (place.folder / "registry/three.odcs.yaml").rename(
            place.folder / "registry/a.odcs.yaml"
        ),
        1,
    ),
    "an input": (
        lambda place: _named(
            place, "four", "customProperties: [{property: inputs, vendor: dq, value: [two]}]\n"
        ),
        2,
    ),
    "one that cannot be read": (lambda place: _named(place, "four", "name: [1]\n"), 2),
}


def test_what_changes_of_contracts_changes_what_it_should_and_nothing_else(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.put("registry/dq-policy.yaml", "{}")
    for name in ("one", "two", "three", "four"):
        _named(place, name, "domain: all\n")
    _built(place, "site", NOW)

    for what, (change, rendered) in CHANGES.items():
        change(place)
        code = 3 if "cannot" in what else 0
        assert _built(place, "site", NOW, code) == rendered, what
        _built(place, f"after {what}", NOW, code)
        again, anew = (_pages(tmp_path / name) for name in ("site", f"after {what}"))
        assert again == anew, what


def test_only_a_file_that_was_written_is_read_again_even_if_it_got_its_old_time_back(
    small: PortalMesh,
) -> None:
    file = small.folder / "registry" / small.products[0].file
    text, long = file.read_text(), f"# {500_000 * 'x'}\n"
    file.write_text(text + long)
    was = file.stat()

    def build() -> tuple[int, int]:
        """How many products were made anew, and how much was read."""
        # A file that was written within three seconds is read in any case.
        while file_stamp(file) == "":
            time.sleep(0.1)
        before = bytes_read()
        return _built(small, "stamped", NOW), bytes_read() - before

    build()
    same, read = build()
    file.touch()
    touched, read_then = build()
    file.write_text(text.replace("1.0.0", "1.0.9") + long)
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    changed, _ = build()
    file.write_text(text)

    assert (same, touched, changed) == (0, 0, 1)
    assert read < read_then - len(long) / 2
    assert (file_stamp(file), file_stamp(file.parent)) == ("", "")


def file_stamp(file: Path) -> str:
    return next(file_stamps([FileRef(file.parent, file.name)]))


# All that a page may show, each changed by itself in the morning; builds are as of the same evening.
_MORNING, _EVENING = datetime(2026, 5, 12, 8, tzinfo=UTC), datetime(2026, 5, 12, 20, tzinfo=UTC)
_UNUSUAL = "    quality: [{type: custom, engine: dq, implementation: {check: unusual}}]\n    properties:\n"
_INPUTS = "customProperties: [{property: inputs, vendor: dq, value: [orders]}]\n"
_WAIVER = (
    "waivers: [{rule: missing-owner, contract: orders, path: team, reason: Soon, by: ana, expires: %s}]\n"
)
_SUBSCRIPTION = """\
contract: orders
major: 1
consumer: {team: billing, account: "123456789012", contact: "#billing"}
purpose: The invoices.
startDate: 2026-05-01
endDate: %s
approvers: [ana]
"""


def _watched(place: Place, at: datetime) -> None:
    told = place.dq("watch", "registry", "--as-of", f"{at:%FT%TZ}", "--channel", "console")
    assert told.code in (0, 1, 3), told.err


def _came(place: Place, name: str, day: int, at: datetime) -> None:
    marker = place.put(f"lake/{name}/day=2026-05-{day}/_SUCCESS", "")
    os.utime(marker, (at.timestamp(),) * 2)


def _late(place: Place, at: datetime) -> None:
    _came(place, "sales", 11, at)
    _watched(place, at)


def _store(place: Place) -> Store:
    return open_store(f"sqlite:///{place.folder / '.dq' / 'store.db'}")


def _checked(place: Place, at: datetime, status: Status) -> None:
    """One run of the rule of orders, and the alert if it failed, as `dq check` leaves them."""
    result = CheckResult(
        UNUSUAL, "schema[0].quality[0]", "orders", "", status, Severity.ERROR, "480 rows", "900 to 1100 rows",
        "rowCount 480 is unusual", Location("registry/orders.odcs.yaml", 1, 1), value=0.001,
    )  # fmt: skip
    with _store(place).write() as tx:
        results.save_run(
            tx, contract="orders", object="orders", version="1.0.0", scope="day=2026-05-11",
            results=[result], jobs=1, now=at,
        )  # fmt: skip
        event = results.verdict("orders", "orders", "day=2026-05-11", [result], at)
        if event is not None:
            record(tx, event, [CONSOLE], at)


def _ran(place: Place, at: datetime, *words: str) -> None:
    ran = place.dq(*words, "--by", "ana", "--channel", "console", "--as-of", f"{at:%FT%TZ}")
    assert ran.code == 0, ran.err


def _excused(place: Place, at: datetime) -> None:
    parsed = parse((place.folder / "registry" / "orders.odcs.yaml").read_bytes(), "orders").contract
    assert parsed is not None
    [slo], _ = read_slos(parsed)
    excuse = Excuse(slo.key, datetime(2026, 5, 11, 6, tzinfo=UTC), at, "ana", "planned")
    with _store(place).write() as tx:
        apply_excuses(tx, {slo.key: slo}, [excuse], at, lambda tx, event: record(tx, event, [CONSOLE], at))


def _said(place: Place, site: str) -> dict[str, bytes]:
    """What a site says, with the waivers of its page of changes, which else tells of earlier builds."""
    changes = (place.folder / site / "changes.html").read_bytes()
    return _pages(place.folder / site) | {"waivers": changes[changes.index(b'<h2 id="waivers"') :]}


INPUTS: dict[str, Callable[[Place, datetime], object]] = {
    "nothing": lambda place, at: None,
    "a tick": _watched,
    "a check that passed": lambda place, at: _checked(place, at, Status.PASS),
    "a check that failed": lambda place, at: _checked(place, at, Status.FAIL),
    "an acknowledgement": lambda place, at: _ran(place, at, "incidents", "ack", "registry/sales.odcs.yaml"),
    "an answer": lambda place, at: _ran(
        place, at, "incidents", "ack", "registry/orders.odcs.yaml", "--not-real"
    ),
    "a silence": lambda place, at: _ran(
        place, at, "silence", "sales", "--for", "2h", "--reason", "the lake moves"
    ),
    "the end of a silence": lambda place, at: _ran(place, at, "silence", "sales", "--end"),
    "a late delivery": _late,
    "an excluded delivery": _excused,
    "a waiver": lambda place, at: place.put("registry/dq-policy.yaml", _WAIVER % "2026-06-01"),
    "another end of a waiver": lambda place, at: place.put("registry/dq-policy.yaml", _WAIVER % "2026-05-20"),
    "a subscription": lambda place, at: place.put(
        "registry/subscriptions/billing.yaml", _SUBSCRIPTION % "2026-05-12"
    ),
    "another purpose": lambda place, at: place.put(
        "registry/subscriptions/billing.yaml", (_SUBSCRIPTION % "2026-05-12").replace("invoices", "reports")
    ),
    "a contract": lambda place, at: _named(place, "stock", "name: Stock of all\n"),
    "a contract that another is made from": lambda place, at: _named(place, "orders", "domain: wholesale\n"),
}


def test_whatever_changes_the_site_says_what_one_says_that_is_built_anew(tmp_path: Path) -> None:
    place, at = Place(tmp_path), _MORNING
    place.put("registry/dq-policy.yaml", "{}")
    place.put("registry/orders.odcs.yaml", contract("orders", **{"    properties:\n": _UNUSUAL}))
    place.put("registry/sales.odcs.yaml", contract("sales") + _INPUTS)
    _named(place, "stock", "")
    place.put("lake/stock/.keep", "")
    _watched(place, _MORNING - timedelta(days=2))
    for day in (10, 11):
        _came(place, "orders", day, datetime(2026, 5, day + 1, 5, tzinfo=UTC))
    _came(place, "sales", 10, datetime(2026, 5, 11, 5, tzinfo=UTC))
    _watched(place, _MORNING)
    _built(place, "site", _EVENING)
    before, silent = _said(place, "site"), []

    for what, change in INPUTS.items():
        at += timedelta(minutes=1)
        change(place, at)
        _built(place, "site", _EVENING)
        shutil.rmtree(tmp_path / "anew", ignore_errors=True)
        _built(place, "anew", _EVENING)
        again, anew = _said(place, "site"), _said(place, "anew")
        assert [path for path in again.keys() | anew.keys() if again.get(path) != anew.get(path)] == [], what
        silent += [what] if again == before else []
        before = again
    shutil.rmtree(tmp_path / "anew")
    for site in ("site", "anew"):
        _built(place, site, _EVENING + timedelta(days=1, minutes=-1))
    ended = "products/orders/index.html"

    assert silent == ["nothing"]
    assert b"billing" in before[ended]
    assert b"billing" not in _said(place, "site")[ended]
    assert _said(place, "site")[ended] == _said(place, "anew")[ended]

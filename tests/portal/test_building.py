"""dq portal build: what is written, what stays, and what is never touched."""

from __future__ import annotations

import json
import os
import re
import shutil
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from fakes.command import BEGIN, Place, contract

from dq.contracts.subscriptions import read
from dq.portal.output import OWN, Site, load, save

NOW, LATER = "2026-05-12T08:00:00Z", "2026-05-12T08:05:00Z"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Orders came twice, sales once of twice; a third contract cannot be read."""
    place = Place(tmp_path_factory.mktemp("building"))
    place.put("registry/dq-policy.yaml", "{}")
    place.put("registry/orders.odcs.yaml", contract("orders") + "domain: shop\n")
    inputs = "customProperties: [{property: inputs, vendor: dq, value: [orders]}]\n"
    place.put("registry/sales.odcs.yaml", contract("sales") + "domain: shop\n" + inputs)
    (place.folder / "lake").mkdir()
    assert place.dq("watch", "registry", "--as-of", BEGIN, "--channel", "console").code == 0
    for name, days in (("orders", (10, 11)), ("sales", (10,))):
        for day in days:
            marker = place.put(f"lake/{name}/day=2026-05-{day}/_SUCCESS", "")
            os.utime(marker, (datetime(2026, 5, day + 1, 5, tzinfo=UTC).timestamp(),) * 2)
    place.dq("watch", "registry", "--as-of", NOW, "--channel", "console")
    place.put(
        "registry/odd.odcs.yaml",
        "apiVersion: v3.2.0\nkind: DataContract\nid: odd\nversion: 1.0.0\nname: [1]\n",
    )
    return place


@pytest.fixture
def place(made: Place, tmp_path: Path) -> Place:
    shutil.copytree(made.folder, tmp_path / "copy")
    return Place(tmp_path / "copy")


def built(place: Place, *more: str, at: str = NOW):
    return place.dq("portal", "build", "site", "registry", "--as-of", at, "--format", "json", *more)


def site(place: Place, path: str) -> str:
    return (place.folder / "site" / path).read_text()


def files(place: Place) -> set[str]:
    root = place.folder / "site"
    return {str(one.relative_to(root)) for one in root.rglob("*") if one.is_file() and OWN not in one.parts}


def test_what_cannot_be_read_has_a_page_that_says_where_and_the_exit_code_is_3(place: Place) -> None:
    ran = built(place)

    assert ran.code == 3
    assert ran.json["states"] == {"late": 1, "unchecked": 1, "unreadable": 1}
    assert "registry/odd.odcs.yaml:5:" in site(place, "index.html")
    assert any("odd.odcs.yaml:5:" in one["at"] for one in ran.json["problems"])
    assert "cannot be read" in site(place, "products/odd/index.html")


def test_status_json_says_what_dq_status_says(place: Place) -> None:
    built(place)
    said = place.dq("status", "registry", "--as-of", NOW, "--format", "json").json

    for one in said["deliveries"]:
        page = json.loads(site(place, f"products/{one['contract']}/status.json"))
        mine = page["deliveries"][0]
        assert {**mine, "cycles": None} == {**one, "cycles": None}
        assert mine["cycles"] == [
            {name: cycle[name] for name in ("due_at", "status", "delivered_at", "source")}
            for cycle in one["cycles"]
        ]
        assert page["complete_through"] == [
            standing for standing in said["complete_through"] if standing["contract"] == one["contract"]
        ]
        assert page["incidents"] == [
            row for row in said["incidents"] if row["key"].startswith(f"{one['contract']}/")
        ]


def test_a_second_build_writes_nothing_and_a_changed_contract_only_its_own_pages(place: Place) -> None:
    built(place)
    again = built(place).json
    place.put("registry/sales.odcs.yaml", contract("sales", "1.1.0") + "domain: shop\n")
    changed = built(place)

    assert (again["rendered"], again["written"], again["removed"]) == (0, 0, 0)
    # Orders loses what is made from it.
    assert changed.json["rendered"] == 2
    assert "1.0.0 → 1.1.0" in site(place, "changes.html").replace("<bdi>", "").replace("</bdi>", "")


def test_what_the_watcher_learns_changes_one_product(place: Place) -> None:
    built(place)
    marker = place.put("lake/sales/day=2026-05-11/_SUCCESS", "")
    os.utime(marker, (datetime(2026, 5, 12, 8, 2, tzinfo=UTC).timestamp(),) * 2)
    place.dq("watch", "registry", "--as-of", LATER, "--channel", "console")

    ran = built(place, at=LATER).json

    assert ran["rendered"] == 1
    assert (
        json.loads(site(place, "products/sales/status.json"))["deliveries"][0]["cycles"][-1]["status"]
        == "late"
    )
    assert "Resolved incidents" in site(place, "index.html")


def test_a_page_is_made_again_when_a_miss_leaves_the_window_and_nothing_else_happens(place: Place) -> None:
    built(place)

    ran = built(place, at="2026-08-11T08:00:00Z")

    assert ran.json["rendered"] == 2
    assert json.loads(site(place, "products/sales/status.json"))["deliveries"][0]["bad"] == 0


def test_a_page_stays_while_only_the_time_it_is_as_of_would_differ(place: Place) -> None:
    built(place, at="2026-05-12T08:01:00Z")
    before = {path: site(place, path) for path in files(place)}

    ran = built(place, at="2026-05-12T08:02:00Z").json

    written = {path for path in files(place) if site(place, path) != before[path]}
    assert written == {"as-of.js"}
    assert (ran["rendered"], ran["written"]) == (0, len(written))


def test_pages_of_what_is_gone_are_removed_and_files_of_others_stay(place: Place) -> None:
    built(place)
    (place.folder / "registry" / "odd.odcs.yaml").unlink()
    (place.folder / "site" / "CNAME").write_text("data.example.com\n")
    (place.folder / "site" / "products" / "odd" / "mine.txt").write_text("mine\n")

    ran = built(place)

    assert ran.code == 0
    assert "products/odd/index.html" not in files(place)
    assert {"CNAME", "products/odd/mine.txt"} <= files(place)


def test_a_folder_of_others_is_refused_and_left_as_it_is(place: Place) -> None:
    place.put("site/index.html", "mine")

    ran = built(place)

    assert ran.code == 2
    assert "is not a portal" in ran.err
    assert files(place) == {"index.html"}


def test_no_link_is_followed_out_of_the_site(place: Place) -> None:
    outside = place.folder / "outside"
    outside.mkdir()
    built(place)
    shutil.rmtree(place.folder / "site" / "products")
    (place.folder / "site" / "products").symlink_to(outside)

    ran = built(place)

    assert ran.code == 3
    assert "is a link" in ran.err
    assert list(outside.iterdir()) == []


def test_what_cannot_be_put_there_is_named(place: Place) -> None:
    built(place)
    (place.folder / "site" / "find.html").unlink()
    (place.folder / "site" / "find.html").mkdir()

    ran = built(place)

    assert ran.code == 3
    assert "site/find.html: Is a directory" in ran.err


def test_a_site_inside_of_the_registry_is_none_of_its_contracts(place: Place) -> None:
    first, again = (
        place.dq("portal", "build", "registry/site", "registry", "--as-of", NOW, "--format", "json").json
        for _ in range(2)
    )

    assert (first["products"], again["products"], again["written"]) == (3, 3, 0)


def test_one_bad_contract_stops_no_other_and_fills_no_page(tmp_path: Path) -> None:
    place, columns = (
        Place(tmp_path),
        "".join(
            f"      - {{name: c{number}, logicalType: string, required: true, description: One of many.}}\n"
            for number in range(3000)
        ),
    )
    place.put(
        "registry/wide.odcs.yaml", contract("wide", **{"      - {name: id,": f"{columns}      - {{name: id,"})
    )
    place.put(
        "registry/prose.odcs.yaml",
        contract("prose") + f"description: {{purpose: {'much to say ' * 80_000}}}\n",
    )
    place.put("registry/huge.odcs.yaml", contract("huge") + f"# {'x' * 5_000_000}\n")
    odd = ("shop", "Shop", "SHOP", "con", "nul.x", "../x", "a/b", ".", "é", "e\u0301", "x" * 300, "%2e%2e")
    for number, name in enumerate(odd):
        text = contract(f"t{number}", **{f"id: t{number}\n": f"id: {json.dumps(name)}\n"})
        place.put(f"registry/{number}.odcs.yaml", f"{text}domain: {json.dumps(name)}\n")

    ran = built(place)

    pages = [one for one in files(place) if one.startswith("products/") and one.endswith("index.html")]
    assert (ran.code, ran.json["products"], ran.json["states"]["unreadable"]) == (3, len(odd) + 3, 1)
    assert len({page.lower() for page in pages}) == len(odd) + 3
    assert max(len(site(place, page)) for page in pages) < 150_000
    assert {one.name for one in tmp_path.iterdir()} == {"registry", "site", ".dq"}


def test_while_another_build_writes_this_one_says_so(place: Place) -> None:
    import fcntl

    built(place)
    with (place.folder / "site" / OWN / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)

        ran = built(place)

    assert ran.code == 3
    assert "Another build is writing" in ran.err


def test_a_build_that_was_killed_leaves_nothing_behind_for_ever(place: Place) -> None:
    built(place)
    # It had begun to write the pages of a product that was removed since.
    place.put("site/products/ghost/index.html", "half")
    held = Site(place.folder / "site")
    state = load(held)
    state.contracts.clear()
    state.files += ["products/ghost/index.html", "../../registry/orders.odcs.yaml"]
    save(held, state)
    half = place.put(f"site/{OWN}/new-1", "half")

    ran = built(place)

    assert ran.json["rendered"] == 3
    assert "products/ghost/index.html" not in files(place)
    assert (place.folder / "registry" / "orders.odcs.yaml").exists()
    assert not half.exists()


def test_a_product_links_to_what_it_is_made_from_and_back(place: Place) -> None:
    built(place)

    assert 'href="../../products/orders/index.html"' in site(place, "products/sales/index.html")
    assert 'href="../../products/sales/index.html"' in site(place, "products/orders/index.html")


def test_of_two_files_that_are_one_contract_the_first_keeps_its_page(place: Place) -> None:
    built(place)
    place.put("registry/thief.odcs.yaml", contract("orders", "1.2.0"))

    ran = built(place)

    assert ran.json["states"]["unreadable"] == 2
    assert "1.0.0" in site(place, "products/orders/index.html")
    assert any(one["rule"] == "duplicate-contract" for one in ran.json["problems"])


def test_a_silent_watcher_is_told_in_the_page_itself(place: Place) -> None:
    ran = built(place, "--tick", "1m", at="2026-05-12T08:03:00Z")

    assert ran.json["stale"] is True
    assert "Watcher not running" in site(place, "index.html")
    assert '"heard": "2026-05-12T08:00:00Z"' in site(place, "as-of.js")


def test_without_any_contract_the_pages_say_what_to_do(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "registry").mkdir()

    ran = built(place)

    assert ran.code == 3
    assert "contains no contract" in ran.err


@pytest.mark.parametrize(
    ("folder", "editor", "names"),
    [
        (
            "https://github.com/acme/contracts/tree/main/registry",
            "https://github.com/acme/contracts/new/main/registry",
            {"filename", "value"},
        ),
        (
            "https://github.com/acme/tree/tree/main/tree//",
            "https://github.com/acme/tree/new/main/tree",
            {"filename", "value"},
        ),
        (
            "https://gitlab.com/acme/data/contracts/-/tree/release/1/registry/",
            "https://gitlab.com/acme/data/contracts/-/new/release/1/registry",
            {"file_name"},
        ),
    ],
)
def test_a_product_links_to_a_new_subscription_in_the_registry(
    place: Place, monkeypatch: pytest.MonkeyPatch, folder: str, editor: str, names: set[str]
) -> None:
    monkeypatch.setenv("DQ_REGISTRY_URL", folder)

    built(place)

    page = site(place, "products/orders/index.html")
    [link] = re.findall(r'<a href="([^"]*)">Subscribe</a>', page)
    url = urlsplit(unescape(link))
    query = parse_qs(url.query)
    assert f"{url.scheme}://{url.netloc}{url.path}" == editor
    assert set(query) == names
    [file] = query.get("filename") or query["file_name"]
    assert file == "subscriptions/orders/TEAM.yaml"
    [text] = [unescape(shown) for shown in re.findall(r"<pre>(contract: [^<]*)</pre>", page)]
    assert query.get("value", [text]) == [text]
    # Filled in, it is a subscription; as it is, it is none.
    filled = text.replace("team: ", "team: billing").replace("purpose:", "purpose: The invoices.")
    filled = filled.replace("[]", "[orders.id]").replace("startDate:", "startDate: 2026-05-01")
    subscription, findings = read(filled.encode(), file)
    assert (findings, subscription and subscription.contract) == ([], "orders")
    assert read(text.encode(), file)[1]


def test_a_product_whose_text_is_too_long_for_a_link_shows_the_text_alone(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DQ_REGISTRY_URL", "https://github.com/acme/contracts/tree/main/registry")
    name = "\u00e4" * 400
    file = place.folder / "registry" / "orders.odcs.yaml"
    file.write_text(file.read_text().replace("id: orders", f"id: {name}"))

    built(place)

    pages = [file.read_text() for file in place.folder.glob("site/products/*/index.html")]
    (page,) = [page for page in pages if f'<pre>contract: "{name}' in unescape(page)]
    assert "Subscribe: create <code>subscriptions/" in page


def test_without_the_page_of_the_registry_there_is_no_such_link(place: Place) -> None:
    built(place)

    assert "Subscribe" not in site(place, "products/orders/index.html")


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/acme/contracts",
        "https://github.com/acme/contracts/tree/",
        "https://github.com/acme/contracts/tree/main?tab=readme-ov-file",
        "https://github.com/acme/contracts/tree/main/registry#readme",
        "https://github.com/acme/contracts/blob/main/tree/registry",
        "https://gitlab.com/acme/data/contracts/tree/main",
        "https://ana:hunter2@github.com/acme/contracts/tree/main",
        "javascript:/tree/alert(1)",
    ],
)
def test_a_registry_page_that_is_none_is_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("DQ_REGISTRY_URL", url)

    ran = built(place)

    assert ran.code == 2
    assert "Copy it from the browser" in ran.err
    assert "hunter2" not in ran.all


@pytest.mark.parametrize("tick", ["0s", "never"])
def test_a_tick_that_is_no_length_of_time_is_refused(place: Place, tick: str) -> None:
    ran = built(place, "--tick", tick)

    assert ran.code == 2
    assert "--tick" in ran.err


def test_waivers_that_end_soon_stand_among_the_changes(place: Place) -> None:
    lines = [
        f"  - {{rule: missing-owner, contract: {name}, path: team, reason: Soon, by: ana, expires: {day}}}\n"
        for name, day in (("orders", "2026-06-01"), ("sales", "2026-09-01"))
    ]
    place.put("registry/dq-policy.yaml", "waivers:\n" + "".join(lines))
    built(place)
    known = site(place, "changes.html")
    place.put("registry/dq-policy.yaml", "waivers: [nonsense]\n")
    ran = built(place)

    assert "until 2026-06-01, given by" in known
    assert "until 2026-09-01" not in known
    assert "the policy is invalid" in ran.err
    assert "its waivers are unknown" in site(place, "changes.html")


def test_t42_a_rule_that_the_contract_has_is_not_advised(place: Place) -> None:
    text = contract("sales").replace(
        "schema:\n  - name: sales\n",
        "schema:\n  - name: sales\n    quality: [{metric: rowCount, mustBeGreaterThan: 0}]\n",
    )
    assert "rowCount" in text
    place.put("registry/sales.odcs.yaml", text)
    built(place)

    orders, sales = (site(place, f"products/{name}/index.html") for name in ("orders", "sales"))

    assert "Add a <code>rowCount</code> rule" in orders
    assert "Add a <code>rowCount</code> rule" not in sales
    assert "They appear after the first <code>dq check</code>" in sales


def page_of(tmp_path: Path, text: str, name: str = "orders") -> str:
    """The page of the only product of a registry, with the text of each element on its own line."""
    place = Place(tmp_path)
    place.put(f"registry/{name}.odcs.yaml", text)
    assert place.dq("portal", "build", "site", "registry").code == 0
    return unescape(re.sub("<[^>]*>", "\n", site(place, f"products/{name}/index.html")))


VARIABLES = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: "${LAKE_ROOT:-lake}/{object}", format: parquet}
  - {server: raw, type: s3, location: "s3://${RAW_BUCKET}/{object}", format: parquet}
  - {server: sales, type: databricks, host: h, catalog: main, schema: "${SALES:-sales}"}
  - {server: other, type: databricks, host: h, catalog: main, schema: "${OTHER}"}
schema: [{name: orders, properties: [{name: id, logicalType: integer}]}]
"""


def test_lines_to_read_have_the_default_of_a_variable_or_say_what_to_replace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_ROOT", "/srv/other")
    monkeypatch.setenv("RAW_BUCKET", "other-bucket")

    page = page_of(tmp_path, VARIABLES)

    lines = re.findall(r"spark\..*|SELECT .*", page)
    assert lines == [
        'spark.read.format("parquet").load("lake/orders")',
        'spark.read.format("parquet").load("s3://<RAW_BUCKET>/orders")',
        "SELECT * FROM main.sales.orders",
        'spark.table("main.sales.orders")',
    ]
    assert "lake is the default of the variable LAKE_ROOT. Use its value instead where it is set." in page
    assert "Replace <RAW_BUCKET> with the value of the variable RAW_BUCKET: the contract has no" in page
    assert "OTHER with" not in page
    assert "/srv/other" not in page
    assert "other-bucket" not in page


LIMITS = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, required: true, logicalTypeOptions: {minimum: 5, maximum: 90}}
      - {name: state, logicalType: string, enum: [{value: open}, {value: paid}]}
      - {name: note, logicalType: string}
"""


def test_columns_that_were_never_checked_show_the_limits_of_the_contract(tmp_path: Path) -> None:
    page = page_of(tmp_path, LIMITS)

    schema = re.sub(r"\s+", " ", page[page.index("\nColumns\n") : page.index("Incidents of")])
    for limit in ("minimum , expected at least 5", "maximum , expected at most 90"):
        assert limit in schema
    assert "enum , expected one of 'open', 'paid'" in schema
    assert "required , expected no NULL" in schema

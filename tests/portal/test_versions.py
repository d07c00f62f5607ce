"""What each version broke: as `dq diff` says it, asked once, and never fine where Git cannot tell."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from fakes.command import Place, contract
from fakes.strangers import TEXTS
from fragments.registry import Registry

NOW = "2026-05-12T08:00:00Z"
ID = "      - {name: id, logicalType: integer, physicalType: bigint}\n"
MORE = f"{ID}      - {{name: amount, logicalType: number, physicalType: 'decimal(9,2)'}}\n"
ORDERS, SALES = "orders.odcs.yaml", "deep/sales.odcs.yaml"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def registry(place: Place) -> Registry:
    """Orders lost a column with a major version; sales got one; stock was written and never changed."""
    made = Registry(place.folder / "registry")
    made.commit({ORDERS: contract("orders", "1.2.0", **{ID: MORE}), "dq-policy.yaml": "{}"}, "2026-01-05")
    made.commit({ORDERS: contract("orders", "1.3.0", **{ID: MORE}) + "tags: [a]\n"}, "2026-02-05")
    made.commit({SALES: contract("sales"), "stock.odcs.yaml": contract("stock")}, "2026-02-06")
    made.commit({ORDERS: contract("orders", "2.0.0") + "tags: [a]\n"}, "2026-03-05")
    made.commit({SALES: contract("sales", "1.1.0", **{ID: MORE})}, "2026-03-06")
    return made


def built(place: Place, site: str = "site", *more: str, code: int = 0) -> dict[str, object]:
    ran = place.dq("portal", "build", site, "registry", "--as-of", NOW, "--format", "json", *more)
    assert ran.code == code, ran.err
    told: dict[str, object] = ran.json
    return told


def text(html: str) -> str:
    return unescape(" ".join(re.sub(r"<[^>]*>", " ", html).split()))


def page(place: Place, product: str, site: str = "site") -> str:
    """What the product's page says of its versions."""
    html = (place.folder / site / "products" / product / "index.html").read_text()
    return text(html[html.index('id="versions"') :].partition("<section")[0])


def rows(place: Place, product: str, site: str = "site") -> list[str]:
    """The same, row by row."""
    html = (place.folder / site / "products" / product / "index.html").read_text()
    section = html[html.index('id="versions"') : html.index("</section>", html.rindex('class="version"'))]
    return [text(f"<{one}") for one in section.split('li class="version"')[1:]]


def changed(place: Place, site: str = "site") -> str:
    return text((place.folder / site / "changes.html").read_text())


def pages(place: Place, site: str) -> dict[str, bytes]:
    root = place.folder / site
    every = (one for one in root.rglob("*") if one.is_file() and ".dq-portal" not in one.parts)
    return {one.relative_to(root).as_posix(): one.read_bytes() for one in every}


def test_each_version_says_what_it_broke_and_when(place: Place, registry: Registry) -> None:
    built(place)

    orders = rows(place, "orders@2")
    assert re.match(
        r"1\.3\.0 → 2\.0\.0 in force breaking change new major version orders\.amount: column removed",
        orders[0],
    )
    assert "column-removed" in orders[0]
    assert "committed 2026-03-05" in orders[0]
    assert re.match(r"1\.2\.0 → 1\.3\.0 compatible committed 2026-02-05", orders[1])
    assert re.match(r"1\.2\.0 first version committed 2026-01-05", orders[2])
    assert len(orders) == 3
    assert "1.0.0 → 1.1.0 in force compatible" in page(place, "sales")
    assert re.match(r"1\.0\.0 in force first version", rows(place, "stock")[0])


def test_a_page_says_of_a_change_what_dq_diff_says(place: Place, registry: Registry) -> None:
    built(place)
    before, after = (registry.repo.commit(f"HEAD~{back}").hexsha for back in (2, 1))
    for name, commit in (("before", before), ("after", after)):
        (place.folder / f"{name}.odcs.yaml").write_text(registry.repo.git.show(f"{commit}:{ORDERS}") + "\n")
    said = place.dq(
        "diff", "before.odcs.yaml", "after.odcs.yaml", "--today", "2026-03-05", "--format", "json"
    ).json

    matter = [one for one in said["changes"] if one["verdict"] != "ok"]
    assert said["compatibility"] == "break"
    row = rows(place, "orders@2")[0]
    for one in matter:
        assert one["message"] in row
        assert one["rule"] in row


def test_the_changes_of_all_stand_on_one_page_newest_first(place: Place, registry: Registry) -> None:
    built(place)

    said = changed(place)
    order = ["1.0.0 → 1.1.0 compatible", "1.3.0 → 2.0.0 breaking change", "1.2.0 → 1.3.0 compatible"]
    places = [said.index(one) for one in order]
    assert places == sorted(places)
    assert "unknown" not in said


def test_a_change_within_a_version_is_told_and_one_of_comments_is_not(
    place: Place, registry: Registry
) -> None:
    registry.commit({SALES: contract("sales", "1.1.0", **{ID: ""})}, "2026-03-07")
    registry.commit({SALES: contract("sales", "1.1.0", **{ID: ""}) + "# a word\n"}, "2026-03-08")

    built(place)

    said = rows(place, "sales")
    assert re.match(r"within 1\.1\.0 in force breaking change version not bumped", said[0])
    assert len(said) == 3


def test_what_is_not_committed_is_judged_too(place: Place, registry: Registry) -> None:
    registry.write(SALES, contract("sales", "1.2.0", **{ID: ""}))
    built(place)
    loose = rows(place, "sales")[0], changed(place)
    registry.commit({}, "2026-04-01")
    built(place)
    built(place, "anew")

    assert re.match(r"1\.1\.0 → 1\.2\.0 in force breaking change .*not committed", loose[0])
    assert "1.1.0 → 1.2.0 breaking change" in loose[1]
    assert "committed 2026-04-01" in rows(place, "sales")[0]
    assert pages(place, "site") == pages(place, "anew")


def test_line_breaks_of_windows_are_no_change(place: Place, registry: Registry) -> None:
    file = registry.folder / SALES
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))

    built(place)

    assert "not committed" not in page(place, "sales")


# --- what is kept between builds


def _moved(one: Registry) -> None:
    one.repo.git.mv(SALES, "sales.odcs.yaml")
    one.commit({}, "2026-04-01")


def _moved_and_changed(one: Registry) -> None:
    one.commit({SALES: None, "s/sales.odcs.yaml": contract("sales", "1.2.0")}, "2026-04-01")


def _all_moved(one: Registry) -> None:
    texts = {name: (one.folder / name).read_text() for name in (ORDERS, SALES, "stock.odcs.yaml")}
    gone: dict[str, str | bytes | None] = dict.fromkeys(texts)
    one.commit(
        {**gone, **{f"all/{n.rpartition('/')[2]}": t + "# x\n" for n, t in texts.items()}}, "2026-04-01"
    )


def _came_and_went(one: Registry) -> None:
    one.commit({"new.odcs.yaml": contract("new"), "stock.odcs.yaml": None}, "2026-04-01")
    one.commit({"stock.odcs.yaml": contract("stock", "3.0.0")}, "2026-04-02")


def _broken_for_a_day(one: Registry) -> None:
    one.commit({SALES: "id: [\n"}, "2026-04-01")
    one.commit({SALES: contract("sales", "1.2.0")}, "2026-04-02")


def _many(one: Registry) -> None:
    for number in range(25):
        one.commit({SALES: contract("sales", f"1.{number + 2}.0") + f"tags: [t{number}]\n"}, "2026-04-01")


def _rewritten(one: Registry) -> None:
    one.repo.git.reset("--hard", "HEAD~2")
    one.commit({SALES: contract("sales", "1.5.0")}, "2026-04-01")


def _merged(one: Registry) -> None:
    one.branch("side")
    one.commit({SALES: contract("sales", "1.2.0")}, "2026-04-01")
    one.commit({SALES: contract("sales", "1.3.0")}, "2026-04-02")
    one.repo.git.checkout("-q", "main")
    one.commit({"stock.odcs.yaml": contract("stock", "1.1.0")}, "2026-04-02")
    one.repo.git.merge("-q", "--no-ff", "side", "-m", "merge")


LATER = {
    "moved": (_moved, "sales", r"1\.0\.0 → 1\.1\.0 in force compatible"),
    "moved and changed": (_moved_and_changed, "sales", r"1\.1\.0 → 1\.2\.0 in force breaking change"),
    "all moved and changed": (_all_moved, "orders@2", r"1\.3\.0 → 2\.0\.0 in force breaking change"),
    "came and went": (_came_and_went, "stock@3", r"3\.0\.0 in force first version"),
    "could not be read for a day": (
        _broken_for_a_day,
        "sales",
        r"1\.2\.0 in force compatibility unknown",
    ),
    "many": (_many, "sales", r"1\.25\.0 → 1\.26\.0 in force compatible"),
    "rewritten": (_rewritten, "sales", r"1\.0\.0 → 1\.5\.0 in force compatible"),
    "merged": (_merged, "sales", r"1\.1\.0 → 1\.3\.0 in force breaking change"),
}


@pytest.mark.parametrize("what", LATER)
def test_a_later_build_says_what_one_says_that_is_built_anew(
    place: Place, registry: Registry, what: str
) -> None:
    do, product, said = LATER[what]
    built(place)

    do(registry)
    built(place)
    built(place, "anew")

    assert re.match(said, rows(place, product)[0]), rows(place, product)
    again, anew = pages(place, "site"), pages(place, "anew")
    assert {path for path in again if again[path] != anew.get(path)} == set()
    assert again.keys() == anew.keys()


def test_without_news_in_git_nothing_is_judged_and_nothing_written(place: Place, registry: Registry) -> None:
    built(place)
    kept = place.folder / "site" / ".dq-portal" / "versions.jsonl"
    before = kept.read_bytes()

    again = built(place)

    assert (again["rendered"], again["written"]) == (0, 0)
    assert kept.read_bytes() == before
    # Each step was judged, so that the next build has nothing to ask.
    assert [one for one in before.splitlines()[2:] if b"odcs" in one and b", null]" in one] == []


@pytest.mark.parametrize("damage", ["half", "none"])
def test_what_was_kept_of_versions_may_be_lost(place: Place, registry: Registry, damage: str) -> None:
    built(place)
    kept = place.folder / "site" / ".dq-portal" / "versions.jsonl"
    data = kept.read_bytes()
    if damage == "none":
        kept.unlink()
    else:
        kept.write_bytes(data[: len(data) // 2])

    assert built(place)["written"] == 0
    assert kept.read_bytes() == data


# --- where Git cannot tell


def _no_repository(place: Place) -> None:
    shutil.rmtree(place.folder / "registry" / ".git")


def _no_commit(place: Place) -> None:
    _no_repository(place)
    subprocess.run(["git", "init", "-q", str(place.folder / "registry")], check=True)


def _astray(place: Place) -> None:
    _no_repository(place)
    place.put("registry/.git", "gitdir: /nowhere/at/all")


def _damaged(place: Place) -> None:
    git = place.folder / "registry" / ".git"
    for one in (git / "objects").glob("??/*"):
        one.chmod(0o600)
        one.write_bytes(b"nothing")


UNKNOWN = {
    "no repository": (_no_repository, "the registry is not a Git repository", False),
    "no commit": (_no_commit, "Git history not readable", True),
    "leads astray": (_astray, "Git history not readable", True),
    "damaged": (_damaged, "Git history not readable", True),
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_where_git_cannot_tell_no_page_says_that_nothing_broke(
    place: Place, registry: Registry, what: str
) -> None:
    do, reason, noted = UNKNOWN[what]
    built(place)
    do(place)

    told = built(place)

    for product in ("orders@2", "sales", "stock"):
        assert f"Compatibility of versions unknown: {reason}" in page(place, product)
        assert "compatible" not in page(place, product)
        assert "in force" in page(place, product)
    assert reason in changed(place)
    assert "compatible" not in changed(place)
    assert bool(told["unjudged"]) is noted
    assert str(place.folder) not in "".join(
        one.decode("utf-8", "replace") for one in pages(place, "site").values()
    )


def test_what_lies_before_a_shallow_history_is_not_known(
    place: Place, registry: Registry, tmp_path: Path
) -> None:
    (tmp_path / "shallow").mkdir()
    shallow = Place(tmp_path / "shallow")
    subprocess.run(
        ["git", "clone", "-q", "--depth", "2", registry.folder.as_uri(), str(shallow.folder / "registry")],
        check=True,
    )
    built(shallow)
    cut = {one: rows(shallow, one)[0] for one in ("orders@2", "sales", "stock")}
    subprocess.run(["git", "fetch", "-q", "--unshallow"], cwd=shallow.folder / "registry", check=True)
    built(shallow)

    reason = "compatibility unknown The history of this clone is truncated (shallow clone)."
    assert re.match(r"1\.0\.0 → 1\.1\.0 in force compatible", cut["sales"])
    assert cut["orders@2"].startswith(f"2.0.0 in force {reason}")
    assert cut["stock"].startswith(f"1.0.0 in force {reason}")
    assert re.match(r"1\.3\.0 → 2\.0\.0 in force breaking change", rows(shallow, "orders@2")[0])


def test_a_file_that_git_does_not_know_yet_is_told_as_such(place: Place, registry: Registry) -> None:
    registry.write("new.odcs.yaml", contract("new"))

    built(place)

    assert "unknown: Git does not know this file yet" in page(place, "new")
    assert "1.0.0 → 1.1.0 in force compatible" in page(place, "sales")


def test_files_that_a_clone_left_out_are_not_said_to_be_fine(
    place: Place, registry: Registry, tmp_path: Path
) -> None:
    registry.repo.git.config("uploadpack.allowFilter", "true")
    partial = Place(tmp_path / "partial")
    partial.folder.mkdir()
    subprocess.run(
        [
            "git",
            "clone",
            "-q",
            "--filter=blob:none",
            registry.folder.as_uri(),
            str(partial.folder / "registry"),
        ],
        check=True,
    )

    built(partial)

    assert "unknown: Git" in page(partial, "orders@2") or "unknown Git" in page(partial, "orders@2")
    assert "compatible" not in page(partial, "orders@2")


# --- what strangers committed


def test_hostile_texts_of_old_versions_are_text(place: Place, registry: Registry) -> None:
    texts = list(TEXTS.values())
    for start in range(0, len(texts), 10):
        quoted = [json.dumps(one) for one in texts[start : start + 10]]
        columns = "".join(f"      - {{name: {one}, logicalType: string}}\n" for one in quoted)
        made = contract("sales", f"{start + 2}.0.0", **{ID: columns})
        registry.commit({SALES: f"{made}name: {quoted[0]}\n"})
    registry.commit({SALES: contract("sales", "99.0.0")})

    built(place)

    html = (place.folder / "site/products/sales@99/index.html").read_text()
    assert html.count("<code>column-removed</code>") > 20
    seen = Elements()
    seen.feed(html)
    assert seen.scripts == ["../../as-of.js", "../../static/portal.js"]
    assert not seen.tags & {"img", "iframe", "style", "object", "form", "base"}
    assert not [name for name in seen.attributes if name.startswith("on")]
    assert not re.search("[\\x00-\\x08\\x1b\\u202e]", html)


class Elements(HTMLParser):
    """What a page is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.scripts: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "script":
            self.scripts.append(dict(attrs).get("src"))


@pytest.mark.parametrize("when", [0, 253402300799, 9_000_000_000_000], ids=["1970", "9999", "far away"])
def test_a_commit_may_claim_any_time(place: Place, registry: Registry, when: int) -> None:
    registry.write(SALES, contract("sales", "1.2.0"))
    registry.repo.git.add("--all")
    day = {"GIT_AUTHOR_DATE": f"@{when} +0000", "GIT_COMMITTER_DATE": f"@{when} +0000"}
    made = subprocess.run(
        ["git", "commit", "-q", "-m", "odd"],
        cwd=registry.folder,
        env={**day, "HOME": "/nowhere"},
        check=False,
    )
    if made.returncode:
        pytest.skip("this Git refuses such a time")

    built(place)

    assert re.match(r"1\.1\.0 → 1\.2\.0 in force breaking change", rows(place, "sales")[0])

"""A site that was built again and again says what one says that is built anew: nothing is out of date."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path

import pytest
from fakes import portal_mesh
from fakes.command import Place, contract
from fakes.portal_mesh import PortalMesh
from fakes.portal_products import FATES, NOW, MeshProduct, document
from fakes.strangers import quiet_environment

# When a page was made, which it says itself, and the one figure that grows with every minute.
_WHEN = re.compile(rb'<p id="as-of">.*?</p>|"as_of":"[^"]*"|"present":[^,]*|<dt>There</dt><dd><b>[^<]*')


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


def test_a_file_that_was_given_its_old_time_back_is_read_again(small: PortalMesh) -> None:
    file = small.folder / "registry" / small.products[0].file
    whole, was = file.read_text(), file.stat()
    _built(small, "looked", NOW)
    same = _built(small, "looked", NOW)

    file.write_text(whole.replace("1.0.0", "1.0.9"))
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    other = _built(small, "looked", NOW)
    file.write_text(whole)

    assert file.stat().st_size == was.st_size
    assert (same, other) == (0, 1)

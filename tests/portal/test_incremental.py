"""A site that was built again and again says what one says that is built anew: nothing is out of date."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from fakes import portal_mesh
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


def _built(mesh: PortalMesh, site: str, at: object) -> None:
    built = mesh.dq("portal", "build", site, "registry", "--as-of", f"{at:%FT%TZ}")
    assert built.code == 0, built.err


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

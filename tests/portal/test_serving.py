"""dq portal serve: on the loopback, the site's own files and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from dq.contracts.outcome import UsageError
from dq.portal.output import OWN
from dq.portal.preview import PortalServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PortalServer]:
    folder = tmp_path_factory.mktemp("serving")
    (folder / "secret.txt").write_text("secret")
    root = folder / "site"
    (root / OWN).mkdir(parents=True)
    (root / OWN / "state.jsonl").write_text("secret")
    (root / "products" / "a b").mkdir(parents=True)
    (root / "index.html").write_text("<p>today</p>")
    (root / "products" / "a b" / "index.html").write_text("<p>product</p>")
    (root / "link.txt").symlink_to(folder / "secret.txt")
    with PortalServer(root) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def asked(
    server: PortalServer, path: str, host: str = "127.0.0.1", method: str = "GET"
) -> tuple[int, bytes, str]:
    connection = HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    connection.putrequest(method, path, skip_host=True)
    if host:
        connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    found = (answer.status, answer.read(), answer.getheader("Content-Type") or "")
    connection.close()
    return found


@pytest.mark.parametrize("path", ["/", "/index.html", "/index.html?x=1"])
def test_a_page_is_given(server: PortalServer, path: str) -> None:
    assert asked(server, path) == (200, b"<p>today</p>", "text/html; charset=utf-8")


def test_a_folder_gives_its_page(server: PortalServer) -> None:
    assert asked(server, "/products/a%20b/")[1] == b"<p>product</p>"


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "//etc/passwd", "/link.txt",
        f"/{OWN}/state.jsonl", f"/{OWN}/", "/products/", "/products", "/nothing", "/%00",
        "/./%2e%2e/secret.txt",
        f"/x/../{OWN}/state.jsonl", f"/./{OWN}/state.jsonl", "/\\..\\secret.txt", "/%ff",
    ],
)  # fmt: skip
def test_nothing_else_is(server: PortalServer, path: str) -> None:
    status, body, _ = asked(server, path)

    assert status == 404
    assert b"secret" not in body


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80", "", "localhost.evil:1"]
)
def test_under_another_name_nothing_is(server: PortalServer, host: str) -> None:
    assert asked(server, "/", host)[0] == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:8000"])
def test_under_names_of_the_loopback_it_is(server: PortalServer, host: str) -> None:
    assert asked(server, "/", host)[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_can_be_changed(server: PortalServer, method: str) -> None:
    assert asked(server, "/index.html", method=method)[0] == 501


def test_what_is_no_portal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a portal"):
        PortalServer(tmp_path)


@pytest.mark.parametrize("port", [-1, 65_536])
def test_what_is_no_port_is_refused(tmp_path: Path, port: int) -> None:
    (tmp_path / OWN).mkdir()

    with pytest.raises(UsageError, match="cannot use port"):
        PortalServer(tmp_path, port)

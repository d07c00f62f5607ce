"""Whom the client of an Iceberg catalog trusts: the operator's environment, no folders and no tables."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fakes.iceberg import RestAnswer, RestProxy

from dq.contracts.outcome import ReadError, UsageError
from dq.operations.runtime.spark import iceberg_properties
from dq.registry import iceberg


@contextmanager
def answering(status: int, body: str) -> Iterator[RestProxy]:
    """A catalog that gives one answer to everything."""
    proxy = RestProxy(0)
    proxy.answer = lambda call, forward: RestAnswer(status, body.encode())  # type: ignore[method-assign]
    yield proxy
    proxy.close()


def address(proxy: RestProxy) -> str:
    return proxy.environment["PYICEBERG_CATALOG__DEFAULT__URI"]


def test_the_variables_are_pyiceberg_s_of_its_default_catalog() -> None:
    found = iceberg_properties(
        {
            "PYICEBERG_CATALOG__DEFAULT__URI": "https://a",
            "PYICEBERG_CATALOG__DEFAULT__REST__SIGV4_ENABLED": "true",
            "PYICEBERG_CATALOG__OTHER__URI": "https://b",
            "HOME": "/root",
        }
    )

    assert found == {"uri": "https://a", "rest.sigv4-enabled": "true"}


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("", "is missing"),
        ("catalog.example.com", "is invalid"),
        ("file:///etc/passwd", "is invalid"),
        ("https://me:secret@catalog.example.com", "contains a user or password"),
    ],
)
def test_an_address_that_is_none_is_told_without_its_secrets(uri: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        iceberg.connect({"uri": uri})

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, "", "refused to open the catalog: UnauthorizedError"),
        (403, '{"error": {"message": "No.", "type": "Forbidden", "code": 403}}', "Forbidden: No."),
        (404, "<html>", "refused to open the catalog: RESTError 404"),
        (200, "<html>", "is not an Iceberg catalog"),
        (200, "[]", "is not an Iceberg catalog"),
        (500, "", "refused to open the catalog: ServerError"),
    ],
)
def test_what_answers_wrongly_is_one_sentence(status: int, body: str, said: str) -> None:
    with answering(status, body) as proxy, pytest.raises(ReadError, match=said) as caught:
        iceberg.connect({"uri": address(proxy), "token": "s3cret"})

    assert "\n" not in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_nobody_there_is_one_sentence() -> None:
    with pytest.raises(ReadError, match="did not answer when asked to open the catalog"):
        iceberg.connect({"uri": "http://127.0.0.1:1"})


def test_a_catalog_that_never_answers_is_waited_for_only_so_long() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()

        with pytest.raises(ReadError, match="did not answer"):
            iceberg.connect({"uri": f"http://127.0.0.1:{silent.getsockname()[1]}"}, read_seconds=0.2)


STRANGE = """
catalog:
  default:
    uri: http://127.0.0.1:9
    py-catalog-impl: this.Catalog
"""
OPEN = """
from dq.registry.catalog import CatalogSettings
from dq.registry.catalogs import open_catalog
from dq.contracts.outcome import DqError

try:
    open_catalog("iceberg", CatalogSettings())
except DqError as error:
    print(error.exit_code, error)
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (STRANGE, "2 The address of the Iceberg catalog is missing"),
        ("a: [1", "2 A file .pyiceberg.yaml cannot"),
    ],
)
def test_a_file_of_pyiceberg_in_the_working_folder_opens_nothing(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text(text)

    # In a process of its own: pyiceberg looks for it once, when it is imported.
    done = subprocess.run(
        [sys.executable, "-c", OPEN], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout.startswith(said), done.stderr

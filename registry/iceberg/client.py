"""The client of an Iceberg REST catalog, and what that answers instead of what was asked, as sentences.

It asks for metadata alone. What a table says of itself is its writers' word, and never decides which code
reads its files here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from pyiceberg import exceptions as errors
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.io import FileIO, InputFile, OutputFile
from requests import Session
from requests.exceptions import RequestException

from dq.contracts.access.access_policy import WEB, web_address
from dq.contracts.shared.outcome import Unreadable, UsageError

_CONNECT_SECONDS = 10.0
_SHOWN = 300
_DELEGATION = "X-Iceberg-Access-Delegation"
UNKNOWN = (RequestException, errors.CommitStateUnknownException, errors.ServerError)
"""After these nobody can tell whether what was sent has been done."""

_WHO = (errors.UnauthorizedError, errors.ForbiddenError, errors.OAuthError, errors.AuthorizationExpiredError)
_REFUSED = (
    errors.RESTError,
    errors.CommitFailedException,
    errors.NoSuchTableError,
    errors.NoSuchNamespaceError,
    errors.ValidationError,
    NotImplementedError,
)


class _NoFiles(FileIO):
    """No way to any file: pyiceberg would take the class that a table's own properties name."""

    def new_input(self, location: str) -> InputFile:
        raise NotImplementedError(location)

    def new_output(self, location: str) -> OutputFile:
        raise NotImplementedError(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        raise NotImplementedError(location)


class MetadataCatalog(RestCatalog):
    """pyiceberg's REST catalog, with time limits, and without files and the credentials for them."""

    def __init__(self, properties: Mapping[str, str], read_seconds: float) -> None:
        self._read_seconds = read_seconds
        # Its name is none that a database could have: pyiceberg takes it away in front of one.
        super().__init__("dq-register", **properties)

    def _create_session(self) -> Session:
        session = super()._create_session()
        session.headers.pop(_DELEGATION, None)
        # requests waits for ever, unless it is told with each call.
        limited = partial(session.request, timeout=(_CONNECT_SECONDS, self._read_seconds))
        session.request = limited  # type: ignore[method-assign]
        return session

    def _load_file_io(self, properties: Any = None, location: str | None = None) -> FileIO:
        return _NoFiles()


def connect(properties: Mapping[str, str], read_seconds: float = 60.0) -> tuple[MetadataCatalog, str]:
    """Opens the catalog, and says which it is: its address and warehouse, without credentials.

    Raises UsageError without an address, Unreadable when the catalog does not answer.
    """
    address = properties.get("uri", "")
    if web_address(address, WEB) is None:
        if "@" in address.partition("://")[2].partition("/")[0]:
            raise UsageError(
                "The address of the Iceberg catalog holds a user or a password.",
                "Set PYICEBERG_CATALOG__DEFAULT__CREDENTIAL or …__TOKEN instead.",
            )
        raise UsageError(
            "It is no address of a catalog." if address else "The address of the Iceberg catalog is missing.",
            "Set PYICEBERG_CATALOG__DEFAULT__URI=https://catalog.example.com.",
        )
    with explained("open the catalog"):
        made = MetadataCatalog({"snapshot-loading-mode": "refs", **properties}, read_seconds)
    warehouse = properties.get("warehouse", "")
    return made, f"iceberg:{address.rstrip('/')}{f'#{warehouse}' if warehouse else ''}"


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turns the catalog's errors into Unreadable while doing `what`."""
    try:
        yield
    except _WHO as error:
        raise Unreadable(
            f"The Iceberg catalog refused to {what}: {_line(error)}",
            "Look at the credentials; docs/how-to/iceberg.md says which it needs.",
        ) from error
    except _REFUSED as error:
        raise Unreadable(
            f"The Iceberg catalog refused to {what}: {_line(error)}", "Mend that, then run again."
        ) from error
    except RequestException as error:
        raise Unreadable(
            f"The Iceberg catalog did not answer when asked to {what}: {_line(error)}",
            "Try again; nothing is done twice.",
        ) from error
    except ValueError as error:
        # pydantic's, of an answer that is none of Iceberg's.
        raise Unreadable(
            f"What answers at the address of the Iceberg catalog is none: {_line(error)}",
            "Look at the address.",
        ) from error


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:_SHOWN] if lines else type(error).__name__

"""What AWS and the way to it answer instead of what was asked, as sentences; and what is not known after."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore import exceptions as aws
from botocore.parsers import ResponseParserError

from dq.contracts.shared.errors import Unreadable, UsageError

ABSENT, THERE = "EntityNotFoundException", "AlreadyExistsException"
"""The codes by which Glue and Lake Formation say that something is not there, or is there already."""

_SERVER_ERROR = 500
_SHOWN = 300
# Nobody can tell whether what was sent has arrived.
_UNKNOWN_CODES = frozenset({"InternalServiceException", "OperationTimeoutException", "InternalFailure"})
_PERMIT = "Give the role this permission; docs/reference/privileges.md has what each duty needs."
_CREDENTIALS = "Look at the credentials of this machine."
_SET_UP = "Set region and credentials as for the AWS command line."
_MENDS = {
    **dict.fromkeys(("AccessDeniedException", "AccessDenied", "AuthorizationError"), _PERMIT),
    **dict.fromkeys(("ExpiredTokenException", "ExpiredToken"), "Log in to AWS again."),
    **dict.fromkeys(
        ("Throttling", "ThrottlingException", "TooManyRequestsException", "RequestLimitExceeded"),
        "Wait, then run again, with fewer runs at a time.",
    ),
    **dict.fromkeys(("UnrecognizedClientException", "InvalidClientTokenId"), _CREDENTIALS),
}
_PAGE = re.compile(rb"\s*<(!doctype\s+html|html)\b", re.IGNORECASE)


class AnsweredByPage(aws.BotoCoreError):  # type: ignore[misc]  # botocore has no types
    """A page for people where AWS should have answered: of a proxy, or of a wrong endpoint."""

    fmt = "a web page came back, as from a proxy or a wrong endpoint"


_SETTINGS = (
    aws.NoCredentialsError,
    aws.PartialCredentialsError,
    aws.CredentialRetrievalError,
    aws.NoRegionError,
    aws.ProfileNotFound,
    aws.InvalidRegionError,
    aws.ConfigParseError,
    aws.TokenRetrievalError,
    aws.SSOError,
)


def refuse_pages(response_dict: Mapping[str, Any], **_: Any) -> None:
    """Raises AnsweredByPage; for botocore's event `before-parse`, whose parsers take a page for an answer."""
    if _PAGE.match(response_dict.get("body") or b""):
        raise AnsweredByPage


def code_of(error: BaseException) -> str:
    """AWS's code of an error, or ""."""
    if not isinstance(error, aws.ClientError):
        return ""
    return str(error.response.get("Error", {}).get("Code", ""))


def unless(code: str, call: Callable[..., Any], **asked: Any) -> Any:
    """What AWS answers; None for an error with this code, by which it says that it is so already, or is not
    there."""
    try:
        return call(**asked)
    except aws.ClientError as error:
        if code_of(error) != code:
            raise
        return None


def is_unknown(error: BaseException) -> bool:
    """Whether a write may have arrived although this came back."""
    if isinstance(error, aws.ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= _SERVER_ERROR or code_of(error) in _UNKNOWN_CODES
    return isinstance(error, (aws.HTTPClientError, aws.IncompleteReadError, ResponseParserError))


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turns AWS's errors into ours while doing `what`: UsageError for settings, Unreadable for the rest."""
    try:
        yield
    except _SETTINGS as error:
        raise UsageError(f"AWS cannot be asked to {what}: {_line(error)}", _SET_UP) from error
    except aws.ClientError as error:
        mend = _MENDS.get(code_of(error), "Fix that, then run again.")
        raise Unreadable(f"AWS refused to {what}: {_line(error)}", mend) from error
    except (aws.BotoCoreError, aws.HTTPClientError, ResponseParserError) as error:
        raise Unreadable(
            f"AWS did not answer when asked to {what}: {_line(error)}", "Try again; nothing is done twice."
        ) from error


@contextmanager
def opening(what: str) -> Iterator[None]:
    """The same while clients are made: for an address or a number that is none botocore has ValueError."""
    with explained(f"open {what}"):
        try:
            yield
        except ValueError as error:
            raise UsageError(f"AWS cannot be asked to open {what}: {_line(error)}", _SET_UP) from error


def _line(error: BaseException) -> str:
    # A refused signature comes with the whole request, headers included, on the lines below.
    line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    shown = line[:_SHOWN]
    return shown if shown.endswith((".", "!", "?")) else f"{shown}."

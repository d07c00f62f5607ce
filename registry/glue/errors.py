"""What AWS and the way to it answer instead of what was asked, as sentences; and what is not known after."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore import exceptions as aws

from dq.contracts.shared.errors import Unreadable, UsageError

_SERVER_ERROR = 500
_SHOWN = 300
# Nobody can tell whether what was sent has arrived.
_UNKNOWN_CODES = frozenset({"InternalServiceException", "OperationTimeoutException", "InternalFailure"})
_MENDS = {
    "AccessDeniedException": "Give the role this permission; docs/how-to/register.md has the whole policy.",
    "AccessDenied": "Give the role this permission; docs/how-to/register.md has the whole policy.",
    "ExpiredTokenException": "Log in to AWS again.",
    "ExpiredToken": "Log in to AWS again.",
    "UnrecognizedClientException": "Look at the credentials of this machine.",
    "InvalidClientTokenId": "Look at the credentials of this machine.",
}
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


def code_of(error: BaseException) -> str:
    """AWS's code of an error, or ""."""
    if not isinstance(error, aws.ClientError):
        return ""
    return str(error.response.get("Error", {}).get("Code", ""))


def is_unknown(error: BaseException) -> bool:
    """Whether a write may have arrived although this came back."""
    if isinstance(error, aws.ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= _SERVER_ERROR or code_of(error) in _UNKNOWN_CODES
    return isinstance(error, (aws.HTTPClientError, aws.IncompleteReadError))


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turns AWS's errors into ours while doing `what`: UsageError for settings, Unreadable for the rest."""
    try:
        yield
    except _SETTINGS as error:
        raise UsageError(
            f"AWS cannot be asked to {what}: {_line(error)}",
            "Set region and credentials as for the AWS command line.",
        ) from error
    except aws.ClientError as error:
        mend = _MENDS.get(code_of(error), "Mend that, then run again.")
        raise Unreadable(f"AWS refused to {what}: {_line(error)}", mend) from error
    except (aws.BotoCoreError, aws.HTTPClientError) as error:
        raise Unreadable(
            f"AWS did not answer when asked to {what}: {_line(error)}", "Try again; nothing is done twice."
        ) from error


def _line(error: BaseException) -> str:
    # A refused signature comes with the whole request, headers included, on the lines below.
    line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return line[:_SHOWN]

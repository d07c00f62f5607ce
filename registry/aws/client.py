"""AWS clients: credentials, rate limits, request checks and error translation."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import boto3
import botocore.session
from botocore import exceptions as aws
from botocore.config import Config
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
from botocore.loaders import Loader, create_loader
from botocore.parsers import ResponseParserError

from dq.contracts.outcome import ReadError, UsageError
from dq.registry.aws.glue_requests import refuse

# Errors of AWS and of the network, as sentences, and those that leave the outcome unknown.

NOT_FOUND, ALREADY_EXISTS = "EntityNotFoundException", "AlreadyExistsException"
"""Error codes of Glue and Lake Formation for a resource that does not exist, or exists already."""

_SERVER_ERROR = 500
_SHOWN = 300
# After these it is unknown whether the request was executed.
_UNKNOWN_CODES = frozenset({"InternalServiceException", "OperationTimeoutException", "InternalFailure"})
_PERMIT = "Grant the role this permission; docs/reference/privileges.md lists what each duty needs."
_CREDENTIALS = "Check the credentials of this machine."
_SET_UP = "Set region and credentials as for the AWS command line."
_HINTS = {
    **dict.fromkeys(("AccessDeniedException", "AccessDenied", "AuthorizationError"), _PERMIT),
    **dict.fromkeys(("ExpiredTokenException", "ExpiredToken"), "Log in to AWS again."),
    **dict.fromkeys(
        ("Throttling", "ThrottlingException", "TooManyRequestsException", "RequestLimitExceeded"),
        "Wait, then run again, with fewer runs at a time.",
    ),
    **dict.fromkeys(("UnrecognizedClientException", "InvalidClientTokenId"), _CREDENTIALS),
}
_HTML_PAGE = re.compile(rb"\s*<(!doctype\s+html|html)\b", re.IGNORECASE)


class HtmlResponseError(aws.BotoCoreError):  # type: ignore[misc]  # botocore has no types
    """An HTML page instead of an API response, e.g. from a proxy or a wrong endpoint."""

    fmt = "received a web page, e.g. from a proxy or a wrong endpoint"


_SETTINGS_ERRORS = (
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


def reject_html(response_dict: Mapping[str, Any], **_: Any) -> None:
    """Raise HtmlResponseError for an HTML page, which botocore would parse as a response.

    Handler of botocore's event `before-parse`.
    """
    if _HTML_PAGE.match(response_dict.get("body") or b""):
        raise HtmlResponseError


def error_code(error: BaseException) -> str:
    """Return AWS's code of an error, or "" if it has none."""
    if not isinstance(error, aws.ClientError):
        return ""
    return str(error.response.get("Error", {}).get("Code", ""))


def call_ignoring(code: str, call: Callable[..., Any], **arguments: Any) -> Any:
    """Call AWS and return the response, or None if it fails with this error code."""
    try:
        return call(**arguments)
    except aws.ClientError as error:
        if error_code(error) != code:
            raise
        return None


def is_outcome_unknown(error: BaseException) -> bool:
    """Return True if a write may have been executed in spite of this error."""
    if isinstance(error, aws.ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= _SERVER_ERROR or error_code(error) in _UNKNOWN_CODES
    return isinstance(error, (aws.HTTPClientError, aws.IncompleteReadError, ResponseParserError))


@contextmanager
def explained(action: str) -> Iterator[None]:
    """Turn AWS errors during `action` into UsageError (settings) or ReadError (all others)."""
    try:
        yield
    except _SETTINGS_ERRORS as error:
        raise UsageError(f"Cannot call AWS to {action}: {_line(error)}", _SET_UP) from error
    except aws.ClientError as error:
        hint = _HINTS.get(error_code(error), "Fix that, then run again.")
        raise ReadError(f"AWS refused to {action}: {_line(error)}", hint) from error
    except (aws.BotoCoreError, aws.HTTPClientError, ResponseParserError) as error:
        raise ReadError(
            f"AWS did not answer when asked to {action}: {_line(error)}", "Try again; it is safe to retry."
        ) from error


@contextmanager
def opening(service: str) -> Iterator[None]:
    """Same as `explained`, while clients are created: botocore raises ValueError for invalid settings."""
    with explained(f"open {service}"):
        try:
            yield
        except ValueError as error:
            raise UsageError(f"Cannot call AWS to open {service}: {_line(error)}", _SET_UP) from error


def _line(error: BaseException) -> str:
    # A signature error has the whole request, including headers, on the following lines.
    line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    text = line[:_SHOWN]
    return text if text.endswith((".", "!", "?")) else f"{text}."


# Rate limits for families of operations: token buckets.


@dataclass(frozen=True, slots=True)
class Rate:
    """Limit of calls per second on average, and of `burst` calls at once."""

    per_second: float
    burst: int


@dataclass(slots=True)
class TokenBucket:
    """Token bucket, initially full; `take` waits for a token. Thread-safe."""

    rate: Rate
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    _tokens: float = field(init=False)
    _refilled_at: float = field(init=False)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._tokens, self._refilled_at = float(self.rate.burst), self.clock()

    def take(self) -> None:
        """Take one token. Waiting threads get their tokens one after the other, not all at once."""
        with self._lock:
            now = self.clock()
            self._tokens = (
                min(self.rate.burst, self._tokens + (now - self._refilled_at) * self.rate.per_second) - 1
            )
            self._refilled_at = now
            wait = -self._tokens / self.rate.per_second
        if wait > 0:
            self.pause(wait)


# AWS clients: credentials, rate limits, and the guards that check each request before it is sent.
#
# Endpoints, regions and credentials are found by boto3's own chain: environment, profiles, roles of
# machines and of OIDC, `AWS_ENDPOINT_URL`.

# AWS publishes no rates. These leave room for the crawlers and queries of the same account.
RATES = {"read": Rate(10, 100), "write": Rate(5, 50)}
_READS = ("Get", "BatchGet", "Search", "List", "Describe")
_ROLE_PARTS = 6
# Raises UsageError for a request that AWS would reject. Gets botocore's model of the operation.
Guard = Callable[[Any, Mapping[str, Any]], None]
# A retry after a first attempt that did succeed is detected by reading back.
ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class Connection:
    """A Glue client. `id` identifies the catalog by account and region; `catalog` is passed to every call."""

    client: Any
    id: str
    catalog: Mapping[str, str]


def connect(
    role_arn: str = "",
    catalog_id: str = "",
    *,
    rates: Mapping[str, Rate] = RATES,
    attempts: int = ATTEMPTS,
    read_timeout: float = 60,
) -> Connection:
    """Open Glue, as `role_arn` and on the catalog of the account `catalog_id`, if set.

    Raises UsageError for an invalid role and without a region or credentials, ReadError when AWS does not
    answer.
    """
    if role_arn and (len(role_arn.split(":")) != _ROLE_PARTS or ":role/" not in role_arn):
        raise UsageError(
            f"--role-arn {role_arn!r} is not the ARN of a role.",
            "Write arn:aws:iam::123456789012:role/registrar.",
        )
    with opening("Glue"):
        session = aws_session(role_arn, {"glue": refuse})
        client = rate_limited_client(session, "glue", rates, attempts=attempts, read_timeout=read_timeout)
        account = catalog_id or (role_arn.split(":")[4] if role_arn else "")
        account = account or account_of(session)
    catalog = {"CatalogId": catalog_id} if catalog_id else {}
    return Connection(client, f"glue:{account}:{client.meta.region_name}", catalog)


def aws_session(role_arn: str, guards: Mapping[str, Guard]) -> boto3.Session:
    """Return a session, as the role if set. The guard of a service checks each request to it."""
    session = new_session()
    if role_arn:
        session = as_role(session, role_arn)
    session.events.register("before-parse", reject_html)
    for service, guard in guards.items():
        session.events.register(f"provide-client-params.{service}.*", partial(guarded, guard))
    return session


def new_session(
    core_session: botocore.session.Session | None = None, region: str | None = None
) -> boto3.Session:
    """Return a new session that shares AWS's service models with the other sessions of this process."""
    core_session = core_session or botocore.session.get_session()
    models = _models(core_session.get_config_variable("data_path"))
    core_session.register_component("data_loader", models)
    session = boto3.Session(botocore_session=core_session, region_name=region)
    # Each session adds the folder of boto3 to them.
    models.search_paths[:] = dict.fromkeys(models.search_paths)
    return session


@cache
def _models(folders: str | None) -> Loader:
    """Return the loader that caches service models: loading them per session takes longer than a request."""
    return create_loader(folders)


def guarded(guard: Guard, params: Mapping[str, Any], model: Any, **_: Any) -> None:
    """Pass a request to a guard. Handler of botocore's event `provide-client-params`."""
    guard(model, params)


def rate_limited_client(
    session: boto3.Session,
    service: str,
    rates: Mapping[str, Rate],
    *,
    attempts: int = ATTEMPTS,
    read_timeout: float = 60,
) -> Any:
    """Return a client limited to the rates of `read` and `write`; without rates it is not limited."""
    config = Config(
        retries={"mode": "adaptive", "total_max_attempts": attempts},
        connect_timeout=10,
        read_timeout=read_timeout,
        user_agent_extra="dq-register",
    )
    client = session.client(service, config=config)
    buckets = {family: TokenBucket(rate) for family, rate in rates.items()}

    def wait(event_name: str, **_: Any) -> None:
        buckets["read" if event_name.split(".")[-1].startswith(_READS) else "write"].take()

    if buckets:
        client.meta.events.register(f"before-send.{service}.*", wait)
    return client


def account_of(session: boto3.Session) -> str:
    """Return the account of the session's credentials."""
    return str(rate_limited_client(session, "sts", {}).get_caller_identity()["Account"])


def as_role(session: boto3.Session, role_arn: str) -> boto3.Session:
    """Return a session of the role, with credentials that are refreshed during a long run."""
    region = session.region_name

    def create(*names: Any, **options: Any) -> Any:
        return session.client(*names, **({"region_name": region} | options))

    fetcher = AssumeRoleCredentialFetcher(
        create,
        session.get_credentials(),
        role_arn,
        extra_args={"RoleSessionName": "dq-register"},
    )
    core_session = botocore.session.get_session()
    core_session._credentials = DeferredRefreshableCredentials(
        method="assume-role", refresh_using=fetcher.fetch_credentials
    )
    return new_session(core_session, region)

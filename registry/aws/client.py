"""Clients of AWS: credentials, rate limits, a look at each request, and errors as sentences."""

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

from dq.contracts.outcome import Unreadable, UsageError
from dq.registry.aws.glue_requests import refuse

# What AWS and the way to it answer instead of what was asked, as sentences; and what is not known after.

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


# How often a family of operations may be called: token buckets, refilled as time goes by.


@dataclass(frozen=True, slots=True)
class Rate:
    """So many calls a second in the long run, and `burst` of them at once."""

    per_second: float
    burst: int


@dataclass(slots=True)
class Bucket:
    """A bucket of tokens, full at first; `take` waits until there is one. For many threads."""

    rate: Rate
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    _tokens: float = field(init=False)
    _at: float = field(init=False)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._tokens, self._at = float(self.rate.burst), self.clock()

    def take(self) -> None:
        """Takes one token. Who comes when there is none is served in turn, not all at once."""
        with self._lock:
            now = self.clock()
            self._tokens = min(self.rate.burst, self._tokens + (now - self._at) * self.rate.per_second) - 1
            self._at = now
            wait = -self._tokens / self.rate.per_second
        if wait > 0:
            self.pause(wait)


# Clients of AWS: whose credentials, how often it may call, and who looks at each request before it goes.
#
# Endpoints, regions and credentials are found by boto3's own chain: environment, profiles, roles of
# machines and of OIDC, `AWS_ENDPOINT_URL`.

# AWS publishes no rates; these are polite beside the crawlers and queries of the same account.
RATES = {"read": Rate(10, 100), "write": Rate(5, 50)}
_READS = ("Get", "BatchGet", "Search", "List", "Describe")
_ROLE_PARTS = 6
# Raises UsageError for a request of an operation, by botocore's model of it, that AWS would refuse.
Guard = Callable[[Any, Mapping[str, Any]], None]
# A retry that is sent though the first one arrived is found by reading back.
ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class Connection:
    """A client of Glue. `id` is the catalog: its account and region. `catalog` is given to every call."""

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
    """Opens Glue as the role, if one is named, and on the catalog of the account `catalog_id`, if any.

    Raises UsageError without a region or credentials and for a role that is none, Unreadable when AWS does
    not answer.
    """
    if role_arn and (len(role_arn.split(":")) != _ROLE_PARTS or ":role/" not in role_arn):
        raise UsageError(
            f"--role-arn {role_arn!r} is no role.", "Write arn:aws:iam::123456789012:role/registrar."
        )
    with opening("Glue"):
        session = aws_session(role_arn, {"glue": refuse})
        client = polite(session, "glue", rates, attempts=attempts, read_timeout=read_timeout)
        account = catalog_id or (role_arn.split(":")[4] if role_arn else "")
        account = account or account_of(session)
    catalog = {"CatalogId": catalog_id} if catalog_id else {}
    return Connection(client, f"glue:{account}:{client.meta.region_name}", catalog)


def aws_session(role_arn: str, guards: Mapping[str, Guard]) -> boto3.Session:
    """A session as the role, if one is named; the guard of a service looks at each request to it."""
    session = new_session()
    if role_arn:
        session = as_role(session, role_arn)
    session.events.register("before-parse", refuse_pages)
    for service, guard in guards.items():
        session.events.register(f"provide-client-params.{service}.*", partial(guarded, guard))
    return session


def new_session(made: botocore.session.Session | None = None, region: str | None = None) -> boto3.Session:
    """A session of its own that shares AWS's models with all others of this process."""
    made = made or botocore.session.get_session()
    models = _models(made.get_config_variable("data_path"))
    made.register_component("data_loader", models)
    session = boto3.Session(botocore_session=made, region_name=region)
    # Each session adds the folder of boto3 to them.
    models.search_paths[:] = dict.fromkeys(models.search_paths)
    return session


@cache
def _models(folders: str | None) -> Loader:
    """What reads the models and keeps them: read for each session they take longer than what is asked."""
    return create_loader(folders)


def guarded(guard: Guard, params: Mapping[str, Any], model: Any, **_: Any) -> None:
    """Shows a request to a guard; for botocore's event `provide-client-params`."""
    guard(model, params)


def polite(
    session: boto3.Session,
    service: str,
    rates: Mapping[str, Rate],
    *,
    attempts: int = ATTEMPTS,
    read_timeout: float = 60,
) -> Any:
    """A client that calls no more often than the rates of `read` and `write` allow; none are no limit."""
    config = Config(
        retries={"mode": "adaptive", "total_max_attempts": attempts},
        connect_timeout=10,
        read_timeout=read_timeout,
        user_agent_extra="dq-register",
    )
    client = session.client(service, config=config)
    buckets = {family: Bucket(rate) for family, rate in rates.items()}

    def wait(event_name: str, **_: Any) -> None:
        buckets["read" if event_name.split(".")[-1].startswith(_READS) else "write"].take()

    if buckets:
        client.meta.events.register(f"before-send.{service}.*", wait)
    return client


def account_of(session: boto3.Session) -> str:
    """The account whose credentials a session has."""
    return str(polite(session, "sts", {}).get_caller_identity()["Account"])


def as_role(session: boto3.Session, role_arn: str) -> boto3.Session:
    """A session of the role, whose credentials renew themselves while a long run goes on."""
    region = session.region_name

    def create(*names: Any, **options: Any) -> Any:
        return session.client(*names, **({"region_name": region} | options))

    fetcher = AssumeRoleCredentialFetcher(
        create,
        session.get_credentials(),
        role_arn,
        extra_args={"RoleSessionName": "dq-register"},
    )
    made = botocore.session.get_session()
    made._credentials = DeferredRefreshableCredentials(
        method="assume-role", refresh_using=fetcher.fetch_credentials
    )
    return new_session(made, region)

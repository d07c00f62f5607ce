"""Clients of AWS: whose credentials, how often it may call, and who looks at each request before it goes.

Endpoints, regions and credentials are found by boto3's own chain: environment, profiles, roles of machines
and of OIDC, `AWS_ENDPOINT_URL`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
from botocore.loaders import Loader, create_loader

from dq.contracts.shared.errors import UsageError
from dq.registry.glue.errors import opening, refuse_pages
from dq.registry.glue.rates import Bucket, Rate
from dq.registry.glue.validation import refuse

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
        session.events.register(f"provide-client-params.{service}.*", partial(_guarded, guard))
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


def _guarded(guard: Guard, params: Mapping[str, Any], model: Any, **_: Any) -> None:
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

"""What a registry is called in catalogs: the mark by which dq knows its tables again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dq.cli.gating.gate import policy_of, written
from dq.contracts.access.data_location import server_in
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import UsageError
from dq.validators.git.repository import remote_name
from dq.validators.lint import rules_of
from dq.validators.policy.policy import Policy


def registry_name(root: Path) -> str:
    """The policy's `registry`, else the remote `origin` of the Git repository, else the folder's name.

    The first two are the same in every checkout. Raises UsageError for a policy that cannot be understood.
    """
    return _policy(root).registry or remote_name(root) or root.name


def server_choice(
    root: Path, server: str | None, environment: str | None
) -> Callable[[Contract], str | None]:
    """Which server of a contract is meant: this one, that of the environment, else its only one.

    The environment's odd servers are those of the policy. Raises UsageError for both at once and as
    `registry_name`, and what it gives does as `server_in`.
    """
    if environment is None:
        return lambda _: server
    if server is not None:
        raise UsageError("--server and --env both say which server.", "Choose one of the two.")
    named = _policy(root).servers.get(environment, {})
    return lambda contract: server_in(contract, environment, named)


def _policy(root: Path) -> Policy:
    return policy_of(written(root, None), rules_of())

"""What a registry is called in catalogs: the mark by which dq knows its tables again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dq.cli.gating.gate import policy_of, written
from dq.validators.git.remote import remote_name
from dq.validators.lint import rules_of
from dq.validators.policy.policy import Policy


def registry_name(root: Path) -> str:
    """The policy's `registry`, else the remote `origin` of the Git repository, else the folder's name.

    The first two are the same in every checkout. Raises UsageError for a policy that cannot be understood.
    """
    return _policy(root).registry or remote_name(root) or root.name


def servers_in(root: Path, environment: str) -> Mapping[str, str]:
    """What the policy calls the servers of an environment, by contract; raises as `registry_name`."""
    return _policy(root).servers.get(environment, {})


def _policy(root: Path) -> Policy:
    return policy_of(written(root, None), rules_of())

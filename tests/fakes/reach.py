"""A reach that allows every local place, the bucket names of the tests, and the variables that are given."""

from __future__ import annotations

from pathlib import Path

from dq.contracts.access.access_policy import AccessPolicy, build_access_policy

BUCKETS = ("s3://b", "s3://bucket", "s3://lake", "foo://bucket")


def anywhere(folder: Path | None = None, **variables: str) -> AccessPolicy:
    """The whole machine and the buckets of the tests, as an operator would have to allow them by name."""
    roots = ["/", *BUCKETS]
    return build_access_policy(folder or Path.cwd(), roots, names=variables, environment=variables)

"""Where a domain's tables and files are, as resources of policies in a stack."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from dq.registry.landing.privileges import Bounded

Node = dict[str, Any]

# What a policy written into a role has room for, beside the rest.
_MOST_FOLDERS = 20


@dataclass(frozen=True, slots=True)
class Domain:
    """What is published together: its topic, databases, and the folders of its tables in S3.

    `name` is "" for a topic of all domains. `markers` are the names of the files that say that a delivery
    is complete. `readers` are the accounts that subscribe.
    """

    name: str
    topic: str
    databases: Sequence[str] = ()
    folders: Sequence[str] = ()
    markers: Sequence[str] = ()
    readers: Sequence[str] = ()


def own(service: str, rest: str) -> Node:
    """The ARN of something in the stack's own account and region."""
    return {"Fn::Sub": f"arn:${{AWS::Partition}}:{service}:${{AWS::Region}}:${{AWS::AccountId}}:{rest}"}


def glue_places(databases: Iterable[str]) -> list[Node]:
    """The catalog, these databases, and all of their tables."""
    names = [_literal(one) for one in sorted(set(databases))]
    named = [part for one in names for part in (f"database/{one}", f"table/{one}/*")]
    return [own("glue", one) for one in ("catalog", *named)]


def file_arns(folders: Iterable[str], pattern: str) -> list[Node]:
    """What matches the pattern below these folders `s3://bucket/path`."""
    return [_bucket_arn("/".join((*map(_literal, way), pattern))) for way in _ways(folders)]


def bucket_places(folders: Iterable[str]) -> list[Bounded]:
    """The buckets of these folders, each to be listed below them alone."""
    by_bucket: dict[str, list[str]] = {}
    for bucket, *path in _ways(folders):
        by_bucket.setdefault(bucket, []).append("/".join(map(_for_iam, path)))
    return [
        Bounded(_bucket_arn(_literal(bucket)), _below(paths) if all(paths) else {})
        for bucket, paths in sorted(by_bucket.items())
    ]


def _below(paths: Iterable[str]) -> Node:
    return {"StringLike": {"s3:prefix": [part for one in paths for part in (one, f"{one}/*")]}}


def logical(name: str) -> str:
    """A logical id of letters and digits alone, another one for each name."""
    return re.sub("[^A-Za-z0-9]", lambda found: f"x{ord(found[0]):02x}", name)


def _ways(folders: Iterable[str]) -> list[list[str]]:
    """Bucket and path of each folder that lies in no other; those of a bucket in one where they are many."""
    ways = sorted({tuple(re.sub("^s3[an]?://", "", one).rstrip("/").split("/")) for one in folders})
    outer = list(_outer(ways))
    if len(outer) <= _MOST_FOLDERS:
        return [list(one) for one in outer]
    buckets = sorted({one[0] for one in outer})
    return [_common([one for one in outer if one[0] == bucket]) for bucket in buckets]


def _outer(ways: list[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    kept: tuple[str, ...] = ()
    for one in ways:
        if not kept or one[: len(kept)] != kept:
            kept = one
            yield one


def _common(ways: list[tuple[str, ...]]) -> list[str]:
    return [steps[0] for steps in takewhile(lambda steps: len(set(steps)) == 1, zip(*ways, strict=False))]


def _for_iam(text: str) -> str:
    """A name as a policy reads it: a contract must not widen a role by a pattern in it."""
    return re.sub("[*?$]", lambda found: f"${{{found[0]}}}", text)


def _literal(text: str) -> str:
    """The same inside of Fn::Sub."""
    return _for_iam(text).replace("${", "${!")


def _bucket_arn(way: str) -> Node:
    return {"Fn::Sub": f"arn:${{AWS::Partition}}:s3:::{way}"}

"""Handlers of AWS Lambda functions that run dq: `dq.aws.handler` watches deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dq.aws.watcher_handler import handler

__all__ = ["handler"]


def __getattr__(name: str) -> object:
    # Imported when Lambda looks it up: the consumer's function does without the watcher.
    if name == "handler":
        from dq.aws.watcher_handler import handler

        return handler
    raise AttributeError(f"module 'dq.aws' has no attribute {name!r}")

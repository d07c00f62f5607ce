"""What the tests of contracts share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dq.contracts.outcome import Finding
from dq.contracts.parse import Parsed, parse

HEAD = "apiVersion: {api}\nkind: DataContract\nid: orders\nversion: 1.0.0\nstatus: active\n"

Read = Callable[..., Parsed]


def spots(findings: list[Finding]) -> list[tuple[int, int, str]]:
    """Line, column and rule of each finding."""
    return [(one.at.line, one.at.column, one.rule) for one in findings]


@pytest.fixture
def read() -> Read:
    """A contract whose sixth line is the first of the text."""

    def run(text: str, api: str = "v3.2.0") -> Parsed:
        return parse((HEAD.format(api=api) + text).encode(), "orders.odcs.yaml")

    return run

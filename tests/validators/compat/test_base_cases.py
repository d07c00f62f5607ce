"""The rows of the compatibility cases that are about the base, each in a real repository."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes.cases import cases
from fragments.compat import TODAY, document, text
from fragments.registry import Registry

from dq.validators.compat.classification import Mode
from dq.validators.compat.comparison import DiffTerms
from dq.validators.git.base import compare_with_base, open_base
from dq.validators.git.repository import BaseRefInvalid, BaseUnavailable

CASES: list[dict[str, Any]] = cases("compat-cases.yaml")["cases"]
MODES = ("FORWARD", "BACKWARD", "FULL")
FILE = "orders.odcs.yaml"

Row = Mapping[str, Any]


def rows(*keys: str) -> list[Any]:
    return [
        pytest.param(row, id=row["id"])
        for row in CASES
        if isinstance(row["before"], dict) and any(key in row["before"] for key in keys)
    ]


@pytest.mark.parametrize("row", rows("base", "ref"))
def test_a_base_that_cannot_be_read_is_its_error_with_its_exit_code(
    row: Row, registry: Registry, shallow: Callable[[str], Path]
) -> None:
    registry.commit({FILE: text(document({}))})
    registry.branch("feature")
    registry.commit({FILE: text(document({}, version="1.0.1"))})
    folder = shallow("feature")

    with pytest.raises((BaseUnavailable, BaseRefInvalid)) as refused:
        open_base(folder, str(row["before"].get("base", row["before"].get("ref"))))

    assert (refused.value.rule, refused.value.exit_code) == (row["rule"], row["after"]["exit"])
    assert refused.value.hint


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("row", rows("merge_base"))
def test_the_branch_is_compared_with_where_it_left(row: Row, mode: str, registry: Registry) -> None:
    before = row["before"]
    registry.commit({FILE: text(document(before["merge_base"]))})
    registry.branch("feature")
    registry.commit({FILE: text(document(row["after"])), "README.md": "feature"})
    registry.repo.git.checkout("-q", "main")
    registry.commit({FILE: text(document(before["base_tip"]))})
    registry.repo.git.checkout("-q", "feature")

    found = compare_with_base(open_base(registry.folder, "main"), DiffTerms(today=TODAY, mode=Mode(mode)))

    rules = {one.rule for one in found.changes if one.rule != "version-bump-ok"}
    assert rules == (set() if row["rule"] == "no-change" else {row["rule"]})
    assert found.verdict.value == row["verdict"][mode]

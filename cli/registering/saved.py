"""A plan kept in a file: what was seen and agreed on is applied, and what has moved since is not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from dq.contracts.access.files import read, write
from dq.contracts.shared.outcome import DqError, UsageError
from dq.registry.diff import Action, CatalogPlan

_FORM = "dq register plan 1"


def save(file: Path, plan: CatalogPlan, registry: str, catalog: str) -> None:
    """Writes down what the plan would do to which state of each table."""
    document = {
        "form": _FORM,
        "registry": registry,
        "catalog": catalog,
        "actions": {".".join(action.key): _row(action) for action in plan.actions if action.writes},
    }
    write(file, (json.dumps(document, indent=2, sort_keys=True) + "\n").encode())


def agreed(file: Path, plan: CatalogPlan, registry: str, catalog: str) -> tuple[CatalogPlan, list[DqError]]:
    """Of a plan that was made now, what the file says as well, and an error for each table that differs.

    A table that is as it should be by now is no difference. Raises UsageError for a file that is no plan, or
    one for another registry or catalog.
    """
    wanted = _actions(file, registry, catalog)
    kept: list[Action] = []
    stale: list[DqError] = []
    for action in plan.actions:
        if not action.writes or wanted.get(".".join(action.key)) == _row(action):
            kept.append(action)
        else:
            known = ".".join(action.key) in wanted
            stale.append(_stale(action, "it has moved since" if known else "it is not in the plan"))
    return replace(plan, actions=tuple(kept)), stale


def _row(action: Action) -> dict[str, str]:
    return {"kind": action.kind, "grade": action.grade, "does": action.fingerprint}


def _stale(action: Action, why: str) -> DqError:
    return DqError(f"{'.'.join(action.key)}: {why}, so it is left alone.", "Make the plan anew with --out.")


def _actions(file: Path, registry: str, catalog: str) -> dict[str, Any]:
    try:
        document = json.loads(read(file))
    except ValueError as error:
        raise UsageError(f"{file} is no JSON.", _MEND) from error
    if not isinstance(document, dict) or document.get("form") != _FORM:
        raise UsageError(f"{file} is no plan of this version of dq.", _MEND)
    for what, here in (("registry", registry), ("catalog", catalog)):
        if document.get(what) != here:
            there = document.get(what)
            raise UsageError(f"{file} is a plan for the {what} {there!r}, and this is {here!r}.", _MEND)
    actions = document.get("actions")
    return actions if isinstance(actions, dict) else {}


_MEND = "Make it with: dq register … --out plan.json"

"""Values of YAML to one of our models, and everything that is wrong with their form, all at once.

Parts that do not fit are cut out one by one and the rest is typed.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dq.contracts.model import Contract
from dq.contracts.node import Node
from dq.contracts.shared.outcome import Finding, mistake
from dq.contracts.shared.source_map import MAX_DEPTH, PLACE, Place
from dq.contracts.shared.spelling import nearest
from dq.contracts.type_errors import explain

N = TypeVar("N", bound=Node)

# More mistakes of form than anyone reads at once; the rest is cut out all the same.
MAX_FINDINGS = 1_000
# With more errors of form than this, a file is none of ours.
MAX_ERRORS = 20_000

# Keys without which a document has no identity; a stand-in lets the rest be read all the same.
_ROOT_STAND_INS: dict[str, Any] = {"id": "", "version": "", "kind": "DataContract"}


def typed(model: type[N], top: dict[str, Any]) -> tuple[N | None, list[Finding], set[str]]:
    """`top` as a `model`, the findings about its form, and the paths that were cut out to get there.

    `top` is changed. None is given when the root itself cannot be typed.
    """
    findings: list[Finding] = []
    cut: set[str] = set()
    # Each round cuts at least one part away, and every part lies at most MAX_DEPTH deep.
    for _ in range(MAX_DEPTH):
        try:
            return model.model_validate(top), findings, cut
        except ValidationError as error:
            details = error.errors(include_url=False)
            if len(details) > MAX_ERRORS:
                return None, [*findings, _hopeless(top, len(details))], cut
        removals: list[tuple[Any, int | str]] = []
        rootless = False
        misspelt = _misspelt(details)
        lists = Counter(one["loc"][:-1] for one in details if one["type"] in _NO_MAPPING)
        for detail in details:
            steps = _steps(top, detail["loc"])
            if _is_date_as_text(detail, steps):
                continue
            holder, key, index = _spot(steps)
            path = holder.below(key if index is None else f"{key}[{index}]")
            missing = detail["type"] == "missing"
            if (listed := detail["loc"][:-1]) in lists and lists[listed] == len(steps[-1][0]) > 1:
                # One mistake: the whole list is written in another form.
                steps, path, index = steps[:-1], holder.below(key), None
                if path in cut:
                    continue
            if path not in cut and len(findings) < MAX_FINDINGS and not (missing and misspelt(detail)):
                findings.append(explain(detail, model, holder, key, index))
                if len(findings) == MAX_FINDINGS:
                    findings[-1] = replace(
                        findings[-1], message=f"{findings[-1].message} More are not listed."
                    )
            cut.add(path)
            if missing and len(steps) == 1:
                # The rest is looked at all the same: the key may be misspelt, which is said of its twin.
                rootless = rootless or detail["loc"][0] not in _ROOT_STAND_INS
                continue
            if missing:
                # What lacks a key goes as a whole.
                cut.add(steps[-1][0][PLACE].path)
            removals.append(steps[-2] if missing else steps[-1])
        if rootless:
            return None, findings, cut
        _remove(removals)
        for key, stand_in in _ROOT_STAND_INS.items():
            if key in cut and model is Contract:
                top.setdefault(key, stand_in)
    return None, findings, cut


# pydantic's errors for what is no mapping where the model has one.
_NO_MAPPING = ("model_type", "model_attributes_type", "dict_type")


def _is_date_as_text(detail: ErrorDetails, steps: list[tuple[Any, int | str]]) -> bool:
    """Puts the text back that YAML took for a date, where ODCS has text: its own examples are not quoted."""
    container, key = steps[-1]
    if detail["type"] != "string_type" or not isinstance(detail.get("input"), dt.date):
        return False
    written = container[PLACE].raw.get(key) if isinstance(container, dict) else None
    container[key] = written or detail["input"].isoformat()
    return True


def _misspelt(details: list[ErrorDetails]) -> Callable[[ErrorDetails], bool]:
    """Answers whether a key that is missing stands beside an unknown one that reads like it."""
    unknown: dict[tuple[int | str, ...], list[str]] = {}
    for detail in details:
        if detail["type"] == "extra_forbidden":
            unknown.setdefault(detail["loc"][:-1], []).append(str(detail["loc"][-1]))
    return lambda missing: any(
        written == "$ref" or nearest(written, [str(missing["loc"][-1])])
        for written in unknown.get(missing["loc"][:-1], ())
    )


def _steps(top: dict[str, Any], loc: tuple[int | str, ...]) -> list[tuple[Any, int | str]]:
    """The way to a place as (container, key) pairs; pydantic's union tags are not part of it."""
    steps: list[tuple[Any, int | str]] = []
    here: Any = top
    for part in loc:
        written = isinstance(here, dict) and part in here
        if isinstance(part, str) and part.startswith("~") and not written:
            continue
        steps.append((here, part))
        inside = isinstance(here, (dict, list)) and (part in here if isinstance(here, dict) else True)
        here = here[part] if inside else None
    return steps


def _hopeless(top: dict[str, Any], count: int) -> Finding:
    message = f"{count:,} values or keys are not those of a contract; perhaps it is another kind of file."
    mend = "Compare it with a contract that 'dq init' writes."
    return mistake("not-a-contract", message, mend, top[PLACE].at())


def _spot(steps: list[tuple[Any, int | str]]) -> tuple[Place, str, int | None]:
    """The mapping that a place is in, the key there, and the index if it is about an item of a list."""
    holder, key = steps[-1]
    if isinstance(holder, dict):
        return holder[PLACE], str(key), None
    mapping, list_key = next(step for step in reversed(steps) if isinstance(step[0], dict))
    return mapping[PLACE], str(list_key), int(key)


def _remove(removals: list[tuple[Any, int | str]]) -> None:
    """Takes the parts out; items of one list from the back, so that indices stay true."""
    indices: dict[int, tuple[list[Any], set[int]]] = {}
    for holder, key in removals:
        if isinstance(holder, dict):
            if key in holder:
                place: Place = holder[PLACE]
                place.cut = {**(place.cut or {}), str(key): holder.pop(key)}
        else:
            indices.setdefault(id(holder), (holder, set()))[1].add(int(key))
    for items, gone in indices.values():
        for index in sorted(gone, reverse=True):
            del items[index]

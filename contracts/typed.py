"""Values of YAML to one of our models, and everything that is wrong with their form, all at once."""

from __future__ import annotations

import datetime as dt
import json
import re
import typing
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dq.contracts.model import MAX_DEPTH, PLACE, Contract, Node, Place
from dq.contracts.shared import document_kind
from dq.contracts.shared.outcome import Finding, Location, mistake
from dq.contracts.shared.wording import nearest, one_of, suggestion

# Errors of form in the reader's words: what pydantic found, said with the text that stands in the file.

# pydantic's error type -> what the value must be, and an example of it.
_WANTED = {
    "string_type": ("text", "some text"),
    "bool_type": ("true or false", "true"),
    "int_type": ("a whole number", "1"),
    "int_from_float": ("a whole number", "1"),
    "float_type": ("a number", "1.5"),
    "list_type": ("a list", "[…]"),
    "dict_type": ("a mapping", "{…}"),
    "model_type": ("a mapping", "{…}"),
    "model_attributes_type": ("a mapping", "{…}"),
    "union_tag_invalid": ("a mapping or a list", "[…]"),
    "date_type": ("a date", "2027-01-31"),
    "finite_number": ("a finite number", "1.5"),
}


# A number that YAML 1.1 takes for text in some spellings.
_EXPONENT = re.compile(r"[-+]?[0-9]{1,20}(\.[0-9]{0,20})?[eE][-+]?[0-9]{1,2}")


def read_as(value: object) -> str:
    """The kind of value that YAML gave, in a reader's words."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"{str(value).lower()} (true or false)"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, dt.date):
        return "a date"
    if isinstance(value, str):
        return f"the text {value!r}" if len(value) < 40 else "a text"
    return "a list" if isinstance(value, list) else "a mapping"


def spelled(number: float) -> str:
    """Return a number as YAML 1.1 and 1.2 both read it: `1.0e-06`, where Python writes `1e-06`."""
    if isinstance(number, int):
        return str(number)
    short = f"{number:.15g}"
    return with_point(short if float(short) == number else repr(number))


def with_point(text: str) -> str:
    """Return a float as Python writes it with a point before its exponent, which YAML 1.1 asks for."""
    return text if "e" not in text or "." in text else text.replace("e", ".0e")


def empty(holder: Place, key: str) -> Finding:
    """The finding for a key without a value, which stands at the key where nothing is written."""
    at, key_at = holder.at(key), holder.at_key(key)
    mend = f"Give '{key}' a value, or remove it."
    written = at.line == key_at.line and at.column > key_at.column + len(key) + 1
    if not written:
        mend += " What begins with '#' is a comment to YAML, unless it stands in quotes."
    return mistake("wrong-type", f"{key} is empty.", mend, at if written else key_at, holder.below(key))


def explain(
    detail: ErrorDetails, model: type[Node], holder: Place, key: str | int, index: int | None
) -> Finding:
    """The finding for one error of form.

    `holder` is the mapping that the error is in, `key` the key there and `index` the place in its list,
    if it is about an item.
    """
    kind, value = detail["type"], detail.get("input")
    name = f"{key}[{index}]" if index is not None else str(key)
    path = holder.below(name)
    at = holder.at(str(key), index)
    if index is None and isinstance(value, dict | list):
        # What is written below its key begins with something that is not meant.
        at = min(at, holder.at_key(str(key)), key=lambda one: one.line)
    if kind == "extra_forbidden":
        return _unknown_key(model, detail["loc"], holder, str(key), value, path)
    if kind == "missing":
        what = holder.path or _named(model)
        return mistake("missing-key", f"{what} needs {key!r}.", f"Add '{key}: …'.", holder.at(), path)
    if kind in ("literal_error", "enum"):
        return _wrong_word(detail, name, value, at, path)
    if value is None:
        if index is None:
            return empty(holder, str(key))
        return mistake("wrong-type", f"{name} is empty.", "Remove the empty item.", at, path)
    if kind not in _WANTED:
        # Our own validators raise with a whole clause, which pydantic prefixes.
        said = detail["msg"].removeprefix("Value error, ")
        return mistake("wrong-type", f"{name}: {said}.", "Run 'dq schema' to see what fits.", at, path)
    wanted, example = _WANTED[kind]
    if index is None and isinstance(detail["loc"][-1], int):
        first = next(iter(_required(model, detail["loc"])), "…")
        # Quoted, as JSON is YAML: a bare 01 would be read as a number.
        short = isinstance(value, (str, int)) and len(str(value)) < 40
        shown = json.dumps(value, ensure_ascii=False) if short else "…"
        message = f"every item of {name} must be a mapping, not {read_as(value)}."
        return mistake("wrong-type", message, f"Write {name}: [{{{first}: {shown}}}, …].", at, path)
    # An item is written without the key of its list.
    begin = f"{key}: " if index is None else ""
    raw = holder.raw.get(str(key)) if index is None else None
    if kind == "string_type" and isinstance(value, (bool, int, float, dt.date)):
        written = raw or _yaml(value)
        message = f"{name} must be text, and YAML reads {written} as {read_as(value)}."
        return mistake("wrong-type", message, f'Quote it: {begin}"{written}".', at, path)
    message = f"{name} must be {wanted}, not {read_as(value)}."
    mend = f"Write {begin}{example}."
    if wanted == "a mapping" and isinstance(value, str) and "purpose" in keys_at(model, detail["loc"]):
        text = json.dumps(value, ensure_ascii=False) if len(value) < 80 else "…"
        mend = f"Write {begin}{{purpose: {text}}}."
    if isinstance(value, str) and kind in ("bool_type", "int_type", "float_type"):
        message = f"{name} must be {wanted}, and {value!r} is text."
        if _looks_right(kind, value):
            mend = f"Remove the quotes: {begin}{value}."
        elif kind == "float_type" and _EXPONENT.fullmatch(value):
            mend = f"Write {begin}{spelled(float(value))}."
    return mistake("wrong-type", message, mend, at, path)


def _unknown_key(
    model: type[Node], loc: tuple[int | str, ...], holder: Place, key: str, value: object, path: str
) -> Finding:
    known = sorted(keys_at(model, loc[:-1]))
    where = holder.path or _named(model)
    hint = nearest(key, known)
    if key == "$ref":
        mend = "ODCS has no $ref: write the element out, or share it with a YAML anchor."
    elif translated := document_kind.hint(key, value, known, holder.keys):
        mend = translated
    elif hint and hint != key and _is_meant(key.lower(), hint.lower()):
        mend = f"Did you mean {hint!r}?"
    elif inside := _that_hold(model, loc, key):
        mend = f"It stands under {inside!r}."
    elif "customProperties" in known:
        mend = "Put what is your own under 'customProperties'."
    else:
        mend = f"It takes {', '.join(known)}."
    return mistake("unknown-key", f"{where} has no key {key!r}.", mend, holder.at_key(key), path)


def _that_hold(model: type[Node], loc: tuple[int | str, ...], key: str) -> str | None:
    """The one key at this place whose value has the unknown one, if there is just one."""
    found = {
        info.alias or name
        for one in _models(model, loc[:-1])
        for name, info in one.model_fields.items()
        if any(key in keys_at(inner) for inner in _node_types(info.annotation))
    }
    return found.pop() if len(found) == 1 else None


def _is_meant(key: str, hint: str) -> bool:
    return key.startswith(hint) or _differ(key, hint) <= (len(hint) + 1) // 3


def _differ(one: str, other: str) -> int:
    """How many signs have to be added, taken away, exchanged or swapped to make one word of the other."""
    earlier: list[int] = []
    before = list(range(len(other) + 1))
    for row, sign in enumerate(one, 1):
        after = [row]
        for column, theirs in enumerate(other, 1):
            after.append(min(before[column] + 1, after[-1] + 1, before[column - 1] + (sign != theirs)))
            if row > 1 < column and sign == other[column - 2] and theirs == one[row - 2]:
                after[column] = min(after[column], earlier[column - 2] + 1)
        earlier, before = before, after
    return before[-1]


def _wrong_word(detail: ErrorDetails, name: str, value: Any, at: Location, path: str) -> Finding:
    expected = str(detail.get("ctx", {}).get("expected", ""))
    words = [word.strip("' ") for word in expected.replace(" or ", ", ").split(",")]
    shown = f"{value!r}" if isinstance(value, str) else read_as(value)
    mend = suggestion(value, words, f"Write {one_of(words)}.")
    return mistake("unknown-value", f"{name} is {shown}, which is not one that it can have.", mend, at, path)


def _named(model: type[Node]) -> str:
    """What a document of this model is called: its title, else its name."""
    return model.model_config.get("title") or f"the {model.__name__.lower()}"


def keys_at(model: type[Node], loc: tuple[int | str, ...] = ()) -> set[str]:
    """Every key that a mapping at this place may have, as written in the file."""
    return {info.alias or name for one in _models(model, loc) for name, info in one.model_fields.items()} - {
        PLACE
    }


def _required(model: type[Node], loc: tuple[int | str, ...]) -> list[str]:
    """The keys that a mapping at this place needs."""
    fields = [item for one in _models(model, loc) for item in one.model_fields.items()]
    return [info.alias or name for name, info in fields if info.is_required() and info.alias != PLACE]


def _models(model: type[Node], loc: tuple[int | str, ...]) -> list[type[Node]]:
    models = [model]
    for part in loc:
        if isinstance(part, int) or part.startswith("~"):
            continue
        models = [
            inner
            for one in models
            for name, info in one.model_fields.items()
            if (info.alias or name) == part
            for inner in _node_types(info.annotation)
        ]
    return models


def _node_types(annotation: Any) -> list[type[Node]]:
    if isinstance(annotation, type) and issubclass(annotation, Node):
        return [annotation]
    return [found for inner in typing.get_args(annotation) for found in _node_types(inner)]


def _yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _looks_right(kind: str, value: str) -> bool:
    if kind == "bool_type":
        return value in ("true", "false")
    return value.replace(".", "", kind == "float_type").lstrip("-").isdigit()


# Values of YAML to one of our models, and everything that is wrong with their form, all at once.
#
# Parts that do not fit are cut out one by one and the rest is typed.

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

"""The names that other people's code holds on to: those of `dq`, of `dq.airflow`, and of what is plugged in.

golden/public-names.txt has each with its signature, or with its fields and methods; `make goldens` writes it.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import tomllib
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from fakes import golden
from pydantic import BaseModel

import dq
from dq.alerts import channel
from dq.dataquality.clauses import kind, plugins
from dq.registry import catalog, exporting, importing
from dq.validators import lint, rule

ROOT = Path(__file__).parent.parent
# What a file on a shelf is made of, by the shelf.
PLUGGED = {
    "dq.checks": (plugins.RuleInput, plugins.Broken, plugins.Question, plugins.Measure),
    "alerts/channels": (
        *(channel.Channel, channel.Capabilities, channel.ChannelSetting, channel.ChannelHealth),
        *(channel.Sender, channel.UpdatingSender, channel.ReconcilingSender),
        *(channel.Sent, channel.RetryableFailure, channel.UnconfirmedSend, channel.PermanentFailure),
    ),
    "dataquality/checks": (kind.CheckKind,),
    "registry/catalogs": (catalog.CatalogKind, catalog.CatalogSettings, catalog.Catalog),
    "registry/importing/kinds": (importing.ImportKind,),
    "registry/exporting": (exporting.ExportKind,),
    "validators/reports": (lint.ReportFormat,),
    "validators/rules": (rule.Rule, rule.Violation),
}


def public(name: str) -> bool:
    return not name.startswith("_")


def of_function(name: str, function: Any) -> str:
    """A signature, with its annotations as they are written."""
    signature = inspect.signature(function)
    parts: list[str] = []
    for each in signature.parameters.values():
        if each.kind is each.KEYWORD_ONLY and "*" not in parts and not any(p.startswith("*") for p in parts):
            parts.append("*")
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        kind_ = "" if each.annotation is each.empty else f": {_type(each.annotation)}"
        default = "" if each.default is each.empty else f" = {_default(each.default)}"
        parts.append(f"{stars}{each.name}{kind_}{default}")
    gives = (
        "" if signature.return_annotation is signature.empty else f" -> {_type(signature.return_annotation)}"
    )
    return f"{name}({', '.join(parts)}){gives}"


def _type(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    return getattr(annotation, "__forward_arg__", None) or getattr(annotation, "__name__", str(annotation))


def _default(value: Any) -> str:
    if callable(value):
        return "…"
    return str(value) if isinstance(value, Enum) else repr(value)


def of_class(cls: type) -> Iterator[str]:
    """Its fields or values, its properties and its methods, those of bases of ours too."""
    bases = [base.__name__ for base in cls.__bases__ if base is not object]
    yield f"class {cls.__name__}({', '.join(bases)})" if bases else f"class {cls.__name__}"
    if issubclass(cls, Enum):
        yield from (f"    {each.name} = {each.value!r}" for each in cls)
        return
    if dataclasses.is_dataclass(cls):
        for each in dataclasses.fields(cls):
            default = "" if each.default is dataclasses.MISSING else f" = {_default(each.default)}"
            default = " = …" if each.default_factory is not dataclasses.MISSING else default
            yield f"    {each.name}: {_type(each.type)}{default}"
    elif issubclass(cls, tuple):
        yield from (f"    {name}: {_type(kind_)}" for name, kind_ in cls.__annotations__.items())
    elif issubclass(cls, BaseModel):
        for name, info in cls.model_fields.items():
            # The place in the file has a key that no file can have.
            if (info.alias or name).isprintable():
                yield f"    {name} ({info.alias})" if info.alias else f"    {name}"
    elif issubclass(cls, Exception):
        yield f"    {of_function('__init__', cls.__init__)}"
    members = {
        name: member
        for base in reversed(cls.__mro__)
        if base.__module__.partition(".")[0] == "dq"
        for name, member in vars(base).items()
        if public(name)
    }
    for name, member in sorted(members.items()):
        if isinstance(member, property):
            yield f"    {name}: {_type(inspect.signature(member.fget).return_annotation)}  (property)"
        elif isinstance(member, staticmethod | classmethod):
            yield f"    {of_function(name, member.__func__)}  ({type(member).__name__})"
        elif inspect.isfunction(member):
            yield f"    {of_function(name, member)}"


def of_airflow() -> Iterator[str]:
    """Its classes as they are written: Airflow is no part of this environment."""
    folder = ROOT / "api" / "airflow"
    classes = {
        node.name: node
        for file in sorted(folder.glob("*.py"))
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.ClassDef)
    }
    for name, node in sorted(classes.items()):
        yield f"class {name}({', '.join(map(ast.unparse, node.bases))})"
        for each in node.body:
            if isinstance(each, ast.FunctionDef) and (public(each.name) or each.name == "__init__"):
                gives = f" -> {ast.unparse(each.returns)}" if each.returns else ""
                yield f"    {each.name}({ast.unparse(each.args)}){gives}"
            elif isinstance(each, ast.Assign):
                yield f"    {ast.unparse(each)}"


def entry_points() -> Iterator[str]:
    """The commands and the groups of entry points that are declared; where they lead is nobody's business."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for group, entries in {"scripts": project["scripts"], **project["entry-points"]}.items():
        yield from (f"{group}: {name}" for name in entries)
    yield f"group of checks: {plugins.GROUP}"


def names() -> Iterator[str]:
    for name in sorted(dq.__all__):
        value = getattr(dq, name)
        yield f"\n# dq.{name}"
        yield from of_class(value) if inspect.isclass(value) else [of_function(name, value)]
    yield "\n# dq.airflow"
    yield from of_airflow()
    yield "\n# entry points"
    yield from entry_points()
    for shelf, classes in PLUGGED.items():
        yield f"\n# {shelf}"
        for cls in classes:
            yield from of_class(cls)


def test_public_names_are_as_agreed() -> None:
    golden.compare(Path(__file__).parent / "golden" / "public-names.txt", "\n".join(names()).lstrip() + "\n")


def test_a_type_checker_sees_the_names_that_are_there() -> None:
    """Those imported for type checkers, those of `__all__` and those that are found are the same."""
    (block,) = (
        node
        for node in ast.parse((ROOT / "api" / "__init__.py").read_text()).body
        if isinstance(node, ast.If)
    )
    seen = {
        alias.asname or alias.name
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert seen == set(dq.__all__) == set(dq._HOMES)

"""The page of the Python interface."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import dq


def python() -> Iterator[str]:
    """The Python interface: every name of `dq`, with its signature and text."""
    yield "# Python\n"
    yield "The names that `import dq` provides. They are imported lazily, and no state is kept between calls."
    yield "The names on this page are stable within a major version; all other names may change.\n"
    for name in dq.__all__:
        one = getattr(dq, name)
        yield f"## dq.{name}\n"
        if inspect.isfunction(one):
            yield f"```text not-run\n{_signature(name, one)}\n```\n"
        said = inspect.getdoc(one) or ""
        # A dataclass without a text of its own has its fields there.
        yield "" if said.startswith(f"{name}(") else f"{said}\n"


def _signature(name: str, one: Any) -> str:
    """As it is written, an argument a line where it is long."""
    signature = inspect.signature(one)
    parts: list[str] = []
    for each in signature.parameters.values():
        if each.kind is each.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        default = "" if each.default is each.empty else f" = {each.default!r}"
        parts.append(f"{each.name}: {each.annotation}{default}")
    line = f"{name}({', '.join(parts)}) -> {signature.return_annotation}"
    if len(line) <= 100:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f") -> {signature.return_annotation}"

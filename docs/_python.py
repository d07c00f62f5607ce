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
        member = getattr(dq, name)
        yield f"## dq.{name}\n"
        if inspect.isfunction(member):
            yield f"```text not-run\n{_signature(name, member)}\n```\n"
        docstring = inspect.getdoc(member) or ""
        # A dataclass without a text of its own has its fields there.
        yield "" if docstring.startswith(f"{name}(") else f"{docstring}\n"


def _signature(name: str, member: Any) -> str:
    """As it is written, an argument a line where it is long."""
    signature = inspect.signature(member)
    parts: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parts.append(f"{parameter.name}: {parameter.annotation}{default}")
    line = f"{name}({', '.join(parts)}) -> {signature.return_annotation}"
    if len(line) <= 100:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f") -> {signature.return_annotation}"

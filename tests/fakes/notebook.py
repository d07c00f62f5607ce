"""A notebook run cell by cell in this process, with what a person would see below each."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from typing import Any


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with what its cells give now: what they print, and their last value as HTML."""
    names: dict[str, Any] = {"__name__": "__main__"}
    return {**notebook, "cells": [
        cell if cell["cell_type"] != "code" else {**cell, "outputs": list(_given(cell, names))}
        for cell in notebook["cells"]
    ]}  # fmt: skip


def _given(cell: dict[str, Any], names: dict[str, Any]) -> Iterator[dict[str, Any]]:
    body = ast.parse("".join(cell["source"])).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    printed, value = StringIO(), None
    with redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    if printed.getvalue():
        yield {"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(True)}
    if hasattr(value, "_repr_html_"):
        shown = {"text/html": value._repr_html_().splitlines(True), "text/plain": [repr(value)]}
        yield {
            "data": shown,
            "execution_count": cell["execution_count"],
            "metadata": {},
            "output_type": "execute_result",
        }

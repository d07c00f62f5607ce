"""The texts of all errors that the code raises, as they are written: golden/errors.txt, by `make goldens`.

Modules, classes and variables do not stand in it, so that a move or a rename changes nothing there. What
rules say is in tests/validators/golden/findings.txt.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from fakes import golden

ROOT = Path(__file__).parent.parent
FOLDERS = (
    *("alerts", "api", "cli", "contracts", "dataquality", "lake"),
    *("operations", "portal", "registry", "store", "validators"),
)


def template(node: ast.AST) -> str:
    """The text of a literal with `{}` for what is put in; "" for another node."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(template(part) or "{}" for part in node.values)
    return ""


def texts(node: ast.AST) -> Iterator[str]:
    """The texts of a sentence's length in an expression."""
    text = template(node)
    if " " in text.strip():
        yield text
    elif not text:
        for inner in ast.iter_child_nodes(node):
            yield from texts(inner)


def test_errors_say_what_is_agreed() -> None:
    trees = (ast.parse(file.read_text("utf-8")) for name in FOLDERS for file in (ROOT / name).rglob("*.py"))
    raised = {
        text.replace("\n", "\\n")
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and node.exc is not None
        for text in texts(node.exc)
    }

    golden.compare(Path(__file__).parent / "golden" / "errors.txt", "\n".join(sorted(raised)) + "\n")

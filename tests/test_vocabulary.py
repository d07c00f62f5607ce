"""Names, docstrings, messages and pages use the field's words; pages and templates too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Pronouns, participles, adverbs and private metaphors: the role of a value in a sentence, not what it is.
BANNED_NAMES = frozenset(
    """one told given asked known heard found said kept wanted others rest made here there mine theirs ours
    held seen lost gone way ways whole few some most more each mend world shelf desk errand lookout crew
    fate lever tell hears says asks anew again beside apart alone""".split()  # noqa: SIM905  # read more easily than a list
)
STILTED_SUMMARY = re.compile(r"^(What|Whether|How|Which|Where|Whom?|When)\b")
STILTED_PROSE = re.compile(
    r"\b(mends?|mended|anew|whoever|whom|any more|no more|is told|are told|stands? (there|twice|in)|of which|"
    r"so that nobody|as ever|(?<!there )is no (?!longer)[a-z]+)\b|; None (for|where|while|when)\b",
    re.IGNORECASE,
)
PACKAGES = (
    "alerts", "api", "benchmarks", "cli", "contracts", "dataquality", "docs", "examples", "lake",
    "operations", "portal", "registry", "store", "validators",
)  # fmt: skip


def bound_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def docstrings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def strings(tree: ast.AST) -> Iterator[str]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return (node.value for node in nodes if isinstance(node.value, str))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_uses_the_words_of_the_field(package):
    trees = {str(file): ast.parse(file.read_text("utf-8")) for file in (ROOT / package).rglob("*.py")}

    assert trees
    assert [
        (file, name)
        for file, tree in trees.items()
        for name in bound_names(tree)
        if name.strip("_").lower() in BANNED_NAMES
    ] == []
    assert [
        (file, text)
        for file, tree in trees.items()
        for text in docstrings(tree)
        if STILTED_SUMMARY.search(text)
    ] == []
    assert [
        (file, text) for file, tree in trees.items() for text in strings(tree) if STILTED_PROSE.search(text)
    ] == []


def test_pages_and_templates_are_in_plain_english():
    pages = [page for page in (ROOT / "docs").rglob("*.md") if "decisions" not in page.parts]
    pages += [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
        *(ROOT / "portal" / "templates").iterdir(),
    ]
    prose = {
        str(page): re.sub(r"```.*?```|`[^`]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
        for page in pages
    }

    assert [
        (page, match.group()) for page, text in prose.items() for match in STILTED_PROSE.finditer(text)
    ] == []

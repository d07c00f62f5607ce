"""The reference pages are what the code says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def test_the_reference_is_what_the_code_says(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)  # as for the program, which has its other modules beside it
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)

    stale = [path.name for path, text in generate.pages().items() if path.read_text() != text]

    assert stale == [], "run 'make docs'"

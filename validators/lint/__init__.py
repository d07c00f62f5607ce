"""From files to findings: the rules of the shelf on one contract, on many, and what a report of them is."""

from __future__ import annotations

from dq.validators.lint.run import Linted, Rules, lint, lint_files, lint_paths, rules_of

__all__ = ["Linted", "Rules", "lint", "lint_files", "lint_paths", "rules_of"]

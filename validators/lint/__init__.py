"""From files to findings: the rules of the shelf on one contract, on many, and what a report of them is."""

from __future__ import annotations

from dq.validators.lint.run import Linted as Linted
from dq.validators.lint.run import Rules as Rules
from dq.validators.lint.run import lint as lint
from dq.validators.lint.run import lint_files as lint_files
from dq.validators.lint.run import lint_paths as lint_paths
from dq.validators.lint.run import rules_of as rules_of

"""`dq.validate`: the gate from Python.

Prints nothing, starts no process and keeps no state between calls: suitable for threads and web services.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.outcome import Finding, UsageError, nearest
from dq.contracts.yaml.parse import TEXT
from dq.operations.gate import lint_registry, official_schema, unenforced
from dq.operations.registry_files import parse_policy, read_policy_text
from dq.operations.runtime.context import runtime_context
from dq.validators.lint import lint_files, load_rules

if TYPE_CHECKING:
    from dq.validators.compat.classification import Mode


def validate(
    contracts: Path | str | Iterable[Path | str],
    *,
    base: str | None = None,
    mode: str | None = None,
    policy: Path | str | None = None,
    today: date | None = None,
    official: bool = False,
) -> list[Finding]:
    """Return all findings of `dq validate`, sorted by file and location; empty if there are none.

    `contracts` is a file, a folder, several of them, or the text of one contract: a `str` with a line break
    is text, and has no subscriptions. `base` is a Git reference: only differences are checked, including the
    consumers they break; `mode` is then the required compatibility: FORWARD (readers), BACKWARD (writers),
    FULL or NONE. `policy` is a file; by default that of the registry, with `base` the base's, and for a text
    the default policy. `today` is the date in UTC for waivers and deprecations, by default the current date.
    A finding blocks if `severity.blocks` is true. With `official`, the official JSON Schema of ODCS is
    checked too: rule `official-schema`.

    Raises ReadError for a path that does not exist or has no contract and for a base that cannot be read,
    and UsageError for an invalid policy and for an official schema that is not installed. Problems of a
    contract are never raised.
    """
    day = today or datetime.now(UTC).date()
    policy_file = Path(policy) if policy is not None else None
    if mode is not None and base is None:
        raise UsageError(f"mode {mode} needs a base.", "Pass e.g. base='origin/main'.")
    if isinstance(contracts, str) and "\n" in contracts:
        if base is not None:
            raise UsageError("a contract text cannot be compared with a base.", "Pass files or folders.")
        rules = load_rules()
        parsed_policy = parse_policy(
            read_policy_text(Path(), policy_file) if policy_file is not None else None, rules
        )
        files = [(TEXT, contracts.encode("utf-8", "surrogatepass"))]
        linted = lint_files(
            files,
            rules=rules,
            policy=parsed_policy,
            today=day,
            unenforced=unenforced,
            official=official_schema(official),
        )
        return list(linted.findings)
    listed = [contracts] if isinstance(contracts, Path | str) else contracts
    paths = [Path(path) for path in listed]
    if not paths:
        raise UsageError("no contract given.", "Pass one or more files or folders.")
    if base is None:
        return list(lint_registry(paths, policy_file, day, 1, official=official).findings)
    # Imported here because it pulls in Git and the comparison of contracts.
    from dq.operations.pull_request import lint_pull_request

    context = replace(runtime_context(None, paths), as_of=datetime.combine(day, time(), UTC))
    return list(
        lint_pull_request(
            context, paths, base, parse_mode(mode), policy_file, official=official
        ).linted.findings
    )


def parse_mode(text: str | None) -> Mode | None:
    """Parse a mode in upper or lower case. Raises UsageError if unknown."""
    if text is None:
        return None
    from dq.validators.compat.classification import Mode

    words = [mode.value for mode in Mode]
    if text.upper() in words:
        return Mode(text.upper())
    hint = nearest(text, words)
    raise UsageError(
        f"unknown mode {text!r}.",
        f"Did you mean {hint}?" if hint else f"Choose one of {', '.join(words)}.",
    )

"""`dq.validate`: the gate from Python.

Nothing is printed, no process is begun and nothing is kept between two calls: for threads and web services.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.outcome import Finding, UsageError, nearest
from dq.contracts.yaml.parse import TEXT
from dq.operations.gate import judge, official_schema, policy_of, unenforced, written
from dq.operations.runtime.context import here
from dq.validators.lint import lint_files, rules_of

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
    """Every finding that `dq validate` has, sorted by file and place; none is good news.

    `contracts` is a file, a folder, several of them, or the text of one contract: a `str` with a line break
    is text, of which nobody knows who consumes it. `base` is a reference of Git: only what differs from it is
    judged, and whom the changes break; `mode` is then whom they may not break: FORWARD (readers), BACKWARD
    (writers), FULL or NONE. `policy` is a file; without it that of the registry counts, with `base` the
    base's, and for a text the default. `today` is the date in UTC that waivers and deprecations are judged
    by; the present one by default. Whether a finding blocks, its `severity.blocks` says. With `official`, the
    official JSON Schema of ODCS judges too: rule `official-schema`.

    Raises Unreadable for a path that does not exist or holds no contract and for a base that cannot be read,
    and UsageError for a policy that cannot be understood and for an official schema that is not installed.
    What is wrong with a contract is never raised.
    """
    day = today or datetime.now(UTC).date()
    policy_file = Path(policy) if policy is not None else None
    if mode is not None and base is None:
        raise UsageError(f"mode {mode} judges no change without a base.", "Name one: base='origin/main'.")
    if isinstance(contracts, str) and "\n" in contracts:
        if base is not None:
            raise UsageError("a text has no base to compare with.", "Give files or folders.")
        rules = rules_of()
        law = policy_of(written(Path(), policy_file) if policy_file is not None else None, rules)
        files = [(TEXT, contracts.encode("utf-8", "surrogatepass"))]
        linted = lint_files(
            files,
            rules=rules,
            policy=law,
            today=day,
            unenforced=unenforced,
            official=official_schema(official),
        )
        return list(linted.findings)
    listed = [contracts] if isinstance(contracts, Path | str) else contracts
    paths = [Path(path) for path in listed]
    if not paths:
        raise UsageError("no contract was given.", "Give a file, a folder, or several.")
    if base is None:
        return list(judge(paths, policy_file, day, 1, official=official).findings)
    # All that reads Git and judges changes comes with it.
    from dq.operations.pull_request import compared

    context = replace(here(None, paths), as_of=datetime.combine(day, time(), UTC))
    return list(compared(context, paths, base, mode_of(mode), policy_file, official=official).linted.findings)


def mode_of(text: str | None) -> Mode | None:
    """The mode of this name, in upper or lower case. Raises UsageError for another text."""
    if text is None:
        return None
    from dq.validators.compat.classification import Mode

    words = [mode.value for mode in Mode]
    if text.upper() in words:
        return Mode(text.upper())
    hint = nearest(text, words)
    raise UsageError(
        f"there is no mode {text!r}.",
        f"Did you mean {hint}?" if hint else f"Choose one of {', '.join(words)}.",
    )

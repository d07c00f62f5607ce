"""The gate from Python: `dq.validate("registry")`, `dq.diff("old.yaml", "new.yaml")`.

Nothing is printed, no process is begun and nothing is kept between two calls: for threads and web services.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dq.cli.gating.gate import judge, policy_of, written
from dq.cli.gating.unenforced import unenforced
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import Finding, UsageError
from dq.contracts.yaml.parse import TEXT, read
from dq.validators.lint import lint_files, rules_of

if TYPE_CHECKING:
    from dq.validators.compat import Comparison


def validate(
    contracts: Path | str | Iterable[Path | str],
    *,
    policy: Path | str | None = None,
    today: date | None = None,
) -> list[Finding]:
    """Every finding that `dq validate` has, sorted by file and place; none is good news.

    `contracts` is a file, a folder, several of them, or the text of one contract: a `str` with a line break
    is text, of which nobody knows who consumes it. `policy` is a file; without it that of the registry
    counts, and for a text the default. `today` is the date in UTC that waivers and deprecations are judged
    by; the present one by default. Whether a finding blocks, its `severity.blocks` says.

    Raises Unreadable for a path that does not exist or holds no contract, and UsageError for a policy that
    cannot be understood. What is wrong with a contract is never raised.
    """
    day = today or datetime.now(UTC).date()
    given = Path(policy) if policy is not None else None
    if isinstance(contracts, str) and "\n" in contracts:
        rules = rules_of()
        made = policy_of(written(Path(), given) if given is not None else None, rules)
        files = [(TEXT, contracts.encode("utf-8", "surrogatepass"))]
        return list(lint_files(files, rules=rules, policy=made, today=day, unenforced=unenforced).findings)
    paths = [Path(contracts)] if isinstance(contracts, Path | str) else [Path(one) for one in contracts]
    if not paths:
        raise UsageError("no contract was given.", "Give a file, a folder, or several.")
    return list(judge(paths, given, day, processes=1).findings)


def diff(
    before: Contract | Path | str | None, after: Contract | Path | str | None, *, today: date | None = None
) -> Comparison:
    """What changed between two versions of a contract, whom it breaks, and whether its version says so.

    Each is a file, a text, one already read, or None for a contract that is not there. The comparison's
    `verdict` is what `dq diff` exits by, `changes` are the judged changes, and `as_dict()` is its JSON.
    `today` is the date in UTC; the present one by default.

    Raises Unreadable for a file that cannot be read, and BrokenContract for one that has errors.
    """
    from dq.validators.compat import DiffTerms
    from dq.validators.compat import diff as judged

    old, new = (read(one) if one is not None else None for one in (before, after))
    return judged(old, new, DiffTerms(today or datetime.now(UTC).date()))

"""`dq.validate` and `dq.diff`: contracts judged by rules and policy."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.access.files import POLICY_FILE, Absent, exists
from dq.contracts.access.files import read as read_file
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import Finding, Unreadable, UsageError
from dq.contracts.yaml.parse import TEXT
from dq.contracts.yaml.parse import read as read_contract
from dq.operations.runtime.context import registry_root
from dq.operations.subscriptions import gathered, split
from dq.operations.unenforced import unenforced
from dq.validators.lint import Linted, Rules, lint_files, lint_paths, rules_of
from dq.validators.policy.policy import DEFAULT, Policy

if TYPE_CHECKING:
    from dq.validators.compat import Comparison


# What the gate commands share: the rules on the shelf, the policy, and the base to compare with.


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """The findings of a run, and with a base the judged changes, which are among the findings too.

    `root` is the registry's folder, from which the findings name files.
    """

    linted: Linted
    root: Path
    comparison: Comparison | None = None


def judge(paths: list[Path], policy_file: Path | None, today: date, processes: int) -> Linted:
    """Everything that is wrong with the contracts at these paths, and with who consumes them.

    A policy that cannot be understood is a mistake of configuration: what a gate without its policy says
    is worth nothing. Raises UsageError for it, with every finding.
    """
    rules = rules_of()
    root = registry_root(paths[0])
    policy = policy_of(written(root, policy_file), rules)
    contracts, _ = split(paths, root)
    return lint_paths(
        contracts,
        root=root,
        rules=rules,
        policy=policy,
        today=today,
        processes=processes,
        unenforced=unenforced,
        subscriptions=gathered(root, paths),
    )


def written(root: Path, file: Path | None) -> tuple[str, bytes] | None:
    """The policy as it stands on disk, with the name that messages give it; None when there is none."""
    if file is None:
        return (POLICY_FILE, read_file(POLICY_FILE, root=root)) if exists(POLICY_FILE, root) else None
    name = str(file.relative_to(root) if file.is_relative_to(root) else file)
    try:
        return name, read_file(file)
    except Absent as error:
        raise Unreadable(f"{file} does not exist.", "Check the path given as --policy.") from error


def policy_of(written: tuple[str, bytes] | None, rules: Rules) -> Policy:
    """The policy in a named text; the default where there is none. Raises UsageError for its mistakes.

    A schema of custom properties that cannot be used is left out: its finding is one of every run.
    """
    if written is None:
        return DEFAULT
    # Imported here: many registries have no policy, and its forms take time to make.
    from dq.validators.policy.file import read

    name, data = written
    policy, wrong = read(data, name, rules, _rules_of_changes() if b"waivers" in data else ())
    schemas = tuple(one for one in wrong if one.path.startswith("customProperties."))
    others = [one for one in wrong if one not in schemas]
    if others:
        raise UsageError("the policy cannot be understood:", details=[str(one) for one in others])
    return replace(policy, unusable_schemas=schemas) if schemas else policy


def _rules_of_changes() -> Collection[str]:
    """The rules of compatibility, which only a waiver can name; all that judges changes comes with them."""
    from dq.validators.compat.rules import RULES

    return RULES


# The gate from Python: `dq.validate("registry")`, `dq.diff("old.yaml", "new.yaml")`.
#
# Nothing is printed, no process is begun and nothing is kept between two calls: for threads and web
# services.


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

    old, new = (read_contract(one) if one is not None else None for one in (before, after))
    return judged(old, new, DiffTerms(today or datetime.now(UTC).date()))

"""`dq.codeowners`: write CODEOWNERS of a registry from the teams of its contracts."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from os.path import relpath
from pathlib import Path

from dq.contracts.access.discovery import SUBSCRIPTIONS
from dq.contracts.access.files import FileMissing, FileRef, read, write
from dq.contracts.escaping import codeowners_pattern
from dq.contracts.model import Contract
from dq.contracts.outcome import Finding, ReadError, UsageError, one_line
from dq.contracts.subscriptions import Subscription, approvers
from dq.operations.registry_files import load
from dq.operations.runtime.context import call_context, registry_root
from dq.operations.subscriptions import load_subscriptions
from dq.validators.git.approvals import CODEOWNERS_FILES, codeowner
from dq.validators.git.repository import find_repository
from dq.validators.rules.subscriptions.subscription_without_approver import CLASSES

BEGIN, END = "# BEGIN dq codeowners (generated; do not edit)", "# END dq codeowners"


@dataclass(frozen=True, slots=True)
class CodeownersOutcome:
    """The file with its new text, and whether that differs from the current one.

    `findings` are contracts and subscriptions that cannot be read; then nothing is written. `notes` name
    contracts without an owner that CODEOWNERS can name.
    """

    file: Path
    text: str
    changed: bool
    check: bool = False
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code of `dq codeowners`: 1 the file would change (--check), 3 a file cannot be read."""
        return 3 if self.findings else int(self.check and self.changed)

    def as_dict(self) -> dict[str, object]:
        """Return the output of `dq codeowners --format json` as JSON values."""
        return {
            "file": str(self.file),
            "changed": self.changed,
            "findings": [finding.as_dict() for finding in self.findings],
            "notes": list(self.notes),
        }


def codeowners(
    path: Path | str = ".",
    *,
    organization: str = "",
    check: bool = False,
    folder: Path | str | None = None,
) -> CodeownersOutcome:
    """Write the owners of a registry's contracts and subscriptions into CODEOWNERS, as `dq codeowners` does.

    `path` is a folder or file of the registry, in a Git repository. A team's name without `@` becomes a team
    of the `organization`; without one, teams are left out. Lines outside the marked block are kept. With
    `check`, nothing is written. `folder` replaces the working folder.

    Raises UsageError outside a Git repository, for several files CODEOWNERS and for a damaged block.
    """
    context, (place,) = call_context(path, folder)
    root = registry_root(place)
    repo = find_repository(root)
    if repo is None:
        raise UsageError(f"{place} is not in a Git repository.", "Run it in a clone of the registry.")
    file = _existing_file(repo.top)
    loaded = load([root], context.note)
    subscriptions, findings = load_subscriptions(root)
    findings = [*loaded.findings, *findings]
    before = _text(repo.top, file)
    prefix = Path(relpath(root, repo.top)).as_posix()
    contracts = {Path(relpath(contract.file, root)).as_posix(): contract for contract in loaded.contracts}
    lines, notes = _lines(
        contracts, subscriptions, "" if prefix == "." else prefix, organization, context.now().date()
    )
    after = _with_block(before, lines, file)
    changed = not findings and after != before
    if changed and not check:
        write(repo.top / file, after.encode())
    return CodeownersOutcome(
        repo.top / file, after, changed, check, tuple(findings), (*context.messages.notes, *notes)
    )


def _existing_file(top: Path) -> str:
    """Return the name of CODEOWNERS below the repository's top; the the top's own if there is none."""
    existing = [name for name in CODEOWNERS_FILES if _text(top, name)]
    if len(existing) > 1:
        raise UsageError(f"there are several files: {', '.join(existing)}.", "Keep one of them.")
    return existing[0] if existing else "CODEOWNERS"


def _text(top: Path, name: str) -> str:
    try:
        return read(FileRef(top, name)).decode("utf-8")
    except FileMissing:
        return ""
    except UnicodeDecodeError as error:
        raise ReadError(f"{name} is not UTF-8.", "Save it as UTF-8.") from error


def _with_block(text: str, lines: Sequence[str], file: str) -> str:
    """Return the text with the marked block replaced, or added at the end."""
    block = "\n".join((BEGIN, *lines, END)) + "\n"
    begins, ends = (
        [match.start() for match in re.finditer(rf"^{re.escape(mark)}$", text, re.MULTILINE)]
        for mark in (BEGIN, END)
    )
    if not begins and not ends:
        return f"{text.rstrip()}\n\n{block}" if text.strip() else block
    if len(begins) != 1 or len(ends) != 1 or ends[0] < begins[0]:
        hint = f"Keep one line '{BEGIN}' and one line '{END}' after it, or remove both."
        raise UsageError(f"the block of dq in {file} is damaged.", hint)
    return text[: begins[0]] + block + text[ends[0] + len(END) :].removeprefix("\n")


def _lines(
    contracts: Mapping[str, Contract],
    subscriptions: Iterable[Subscription],
    prefix: str,
    organization: str,
    today: date,
) -> tuple[list[str], list[str]]:
    """Return the lines of the block by domain, and a note for each contract without a line.

    Only people and roles own contracts with classified columns, unless they have none: the team's name would
    let each member approve.
    """
    by_domain: dict[str, list[str]] = defaultdict(list)
    for file, contract in contracts.items():
        by_domain[contract.domain or ""].append(file)
    own_files: dict[str, list[Subscription]] = defaultdict(list)
    for subscription in subscriptions:
        own_files[subscription.contract].append(subscription)
    lines: list[str] = []
    notes: list[str] = []
    for domain in sorted(by_domain):
        rows: list[tuple[str, str]] = []
        for file in sorted(by_domain[domain]):
            contract = contracts[file]
            owners = _owners(contract, organization, today)
            if not owners:
                notes.append(f"{file} has no owner that CODEOWNERS can name, so it has no line.")
                continue
            for path in (file, *_subscription_paths(contract, own_files[contract.id])):
                try:
                    rows.append((codeowners_pattern(posixpath.join(prefix, path)), " ".join(owners)))
                except UsageError as error:
                    notes.append(f"{file}: {error.what}")
        if rows:
            title = re.sub(r"[^\w .-]", "_", one_line(domain))
            lines += [f"# domain {title}" if title else "# without a domain"]
            lines += [f"{pattern} {owners}" for pattern, owners in dict.fromkeys(rows)]
    return lines, notes


def _subscription_paths(contract: Contract, subscriptions: Iterable[Subscription]) -> Iterator[str]:
    """Yield the folder of the contract's subscriptions, and the subscriptions elsewhere."""
    folder = f"{SUBSCRIPTIONS}/{contract.id}/"
    if "/" not in contract.id:
        yield folder
    yield from sorted(own.file for own in subscriptions if not own.file.startswith(folder))


def _owners(contract: Contract, organization: str, today: date) -> list[str]:
    team = getattr(contract.team, "name", None) or ""
    names = approvers(contract, today)
    owners = {
        name: owner
        for name in names
        if (owner := codeowner(f"@{organization}/{name}" if name == team and organization else name))
        and (name != team or organization or name.startswith("@"))
    }
    people = [owner for name, owner in owners.items() if name != team]
    classified = any(
        (prop.classification or "").lower() in CLASSES.default
        for schema_object in contract.objects
        for prop in schema_object.walk()
    )
    return people if classified and people else list(owners.values())

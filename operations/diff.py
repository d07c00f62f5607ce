"""`dq.diff`: changes between two versions of a contract, and the consumers they break."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from dq.contracts.access.discovery import YAML
from dq.contracts.access.files import FileMissing, FileRejected, list_files
from dq.contracts.access.files import read as read_file
from dq.contracts.model import Contract
from dq.contracts.outcome import ReadError
from dq.contracts.subscriptions import Subscription
from dq.contracts.subscriptions import read as read_subscription
from dq.contracts.yaml.parse import TEXT, parse, read
from dq.operations.registry_files import parse_policy, read_policy_text
from dq.operations.runtime.context import registry_root
from dq.operations.runtime.messages import MESSAGES
from dq.operations.subscriptions import Content, contents
from dq.operations.validate import parse_mode
from dq.validators.compat.classification import DEFAULT_ENGINES
from dq.validators.compat.classified_change import Comparison
from dq.validators.compat.comparison import DiffTerms
from dq.validators.compat.comparison import diff as compare
from dq.validators.git.base import bytes_at
from dq.validators.policy.policy import Policy


def diff(
    before: Contract | Path | str | None,
    after: Contract | Path | str | None,
    *,
    mode: str | None = None,
    engines: Sequence[str] = DEFAULT_ENGINES,
    table_format: str | None = None,
    subscriptions: Path | str | None = None,
    today: date | None = None,
) -> Comparison:
    """Compare two versions of a contract: changes, broken consumers, and the required version.

    Each is a file, a text, a loaded contract, or None for a missing one. The comparison's `verdict` gives the
    exit code of `dq diff`, `changes` are the classified changes, and `as_dict()` is its JSON. `mode` is the
    required compatibility: FORWARD, BACKWARD, FULL or NONE, by default the contract's; `engines` read the
    data, which is stored in a `table_format`, e.g. iceberg-v3. `subscriptions` is the folder of subscription
    files, by default that of the registry around `after`, whose policy applies to changes that affect none of
    them. `today` is a date in UTC, by default the current.

    Raises ReadError for a file that cannot be read, BrokenContract for one that has errors, and UsageError
    for an invalid policy.
    """
    old, new = (read(version) if version is not None else None for version in (before, after))
    consumers, are_unclear = _subscriptions(subscriptions, new)
    terms = DiffTerms(
        today=today or datetime.now(UTC).date(),
        mode=parse_mode(mode),
        engines=tuple(engines),
        format=table_format,
        subscriptions=tuple(consumers),
        subscriptions_incomplete=are_unclear,
    )
    if consumers and new is not None and new.file != TEXT:
        terms = terms.with_unneeded(_policy(registry_root(Path(new.file))).unneeded_changes)
    return compare(old, new, terms)


def _policy(root: Path) -> Policy:
    return parse_policy(read_policy_text(root, None))


def read_version(location: str) -> Contract:
    """Return the contract in a file, or in a file at a Git reference (`REF:path`), as far as it is readable.

    Raises ReadError if there is none.
    """
    ref, colon, path = location.partition(":")
    try:
        data = read_file(Path(location))
    except FileMissing:
        if not (colon and path):
            hint = "Pass a file, or REF:path of a file in Git."
            raise ReadError(f"{location} does not exist.", hint) from None
        data = bytes_at(Path(), ref, path)
    parsed = parse(data, location)
    if parsed.contract is None:
        finding = parsed.findings[0]
        raise ReadError(f"{finding.at}: {finding.message}", finding.hint)
    return parsed.contract


def _subscriptions(folder: Path | str | None, after: Contract | None) -> tuple[list[Subscription], bool]:
    """Return the subscriptions, and True if some file cannot be read. Each such file gives a note.

    They come from the files of `folder`, or of the registry around the new version.
    """
    if folder is not None:
        files: dict[str, Content] = {str(file): read_file(file) for file in list_files(Path(folder), YAML)}
    elif after is None or after.file == TEXT:
        return [], False
    else:
        files = contents(registry_root(Path(after.file)))
    consumers: list[Subscription] = []
    are_unclear, messages = False, MESSAGES.get()()
    for name, data in files.items():
        if isinstance(data, FileRejected):
            raise data
        subscription, findings = read_subscription(data, name)
        fault = next((finding for finding in findings if finding.severity.blocks), None)
        if fault is not None:
            are_unclear = True
            messages.note(f"{fault.at}: {fault.message} The subscription is ignored.")
        elif subscription is not None:
            consumers.append(subscription)
    return consumers, are_unclear

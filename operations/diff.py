"""`dq.diff`: what changed between two versions of a contract, and whom that breaks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from dq.contracts.access.discovery import YAML
from dq.contracts.access.files import Absent, FileRefused, listed
from dq.contracts.access.files import read as read_file
from dq.contracts.model import Contract
from dq.contracts.outcome import Unreadable
from dq.contracts.subscriptions import Subscription
from dq.contracts.subscriptions import read as read_subscription
from dq.contracts.yaml.parse import TEXT, parse, read
from dq.operations.runtime.context import MESSAGES, registry_root
from dq.operations.subscriptions import Content, contents
from dq.operations.validate import mode_of
from dq.validators.compat.classification import DEFAULT_ENGINES
from dq.validators.compat.classified_change import Comparison
from dq.validators.compat.comparison import DiffTerms
from dq.validators.compat.comparison import diff as compare
from dq.validators.git.base import bytes_at


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
    """What changed between two versions of a contract, whom it breaks, and whether its version says so.

    Each is a file, a text, one already read, or None for a contract that is not there. The comparison's
    `verdict` is what `dq diff` exits by, `changes` are the judged changes, and `as_dict()` is its JSON.
    `mode` is whom a change may not break: FORWARD, BACKWARD, FULL or NONE, by default as the contract says;
    `engines` read the data, which lies in a `table_format` such as iceberg-v3. `subscriptions` is the folder
    that says who consumes what, by default that of the registry around `after`. `today` is the date in UTC;
    the present one by default.

    Raises Unreadable for a file that cannot be read, and BrokenContract for one that has errors.
    """
    old, new = (read(given) if given is not None else None for given in (before, after))
    consumers, are_unclear = _subscriptions(subscriptions, new)
    terms = DiffTerms(
        today=today or datetime.now(UTC).date(),
        mode=mode_of(mode),
        engines=tuple(engines),
        format=table_format,
        subscriptions=tuple(consumers),
        unclear=are_unclear,
    )
    return compare(old, new, terms)


def version_of(place: str) -> Contract:
    """The contract in a file, or in a file of a reference of Git (`REF:path`), as far as it can be read.

    Raises Unreadable where there is none.
    """
    ref, colon, path = place.partition(":")
    try:
        data = read_file(Path(place))
    except Absent:
        if not (colon and path):
            mend = "Name a file, or REF:path of a file in Git."
            raise Unreadable(f"{place} does not exist.", mend) from None
        data = bytes_at(Path(), ref, path)
    parsed = parse(data, place)
    if parsed.contract is None:
        first = parsed.findings[0]
        raise Unreadable(f"{first.at}: {first.message}", first.mend)
    return parsed.contract


def _subscriptions(folder: Path | str | None, after: Contract | None) -> tuple[list[Subscription], bool]:
    """Who consumes what, and whether files do not tell, each of which is a note.

    By the files of this folder, else of the registry around the new version.
    """
    if folder is not None:
        files: dict[str, Content] = {str(file): read_file(file) for file in listed(Path(folder), YAML)}
    elif after is None or after.file == TEXT:
        return [], False
    else:
        files = contents(registry_root(Path(after.file)))
    consumers: list[Subscription] = []
    are_unclear, messages = False, MESSAGES.get()()
    for name, data in files.items():
        if isinstance(data, FileRefused):
            raise data
        subscription, findings = read_subscription(data, name)
        fault = next((finding for finding in findings if finding.severity.blocks), None)
        if fault is not None:
            are_unclear = True
            messages.note(f"{fault.at}: {fault.message} The subscription is left out.")
        elif subscription is not None:
            consumers.append(subscription)
    return consumers, are_unclear

"""What is added to an event before it is sent: whom to ask, where to look, who waits for the data."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dq.alerts.incident import Facts
from dq.alerts.message import COMMAND, MAX_VALUE, MENTION, OWNER, PRODUCT, RUNBOOK, SINCE
from dq.contracts.access.access_policy import is_uri
from dq.contracts.access.files import FileRefused, named, read
from dq.contracts.escaping import shell
from dq.contracts.lineage import DataObject, consumers, inputs
from dq.contracts.model import Contract, CustomProperty
from dq.contracts.shared.outcome import Breach, Recovery, Severity, first_of
from dq.contracts.yaml.parse import parse
from dq.dataquality.results import check_runs
from dq.operations.runtime.context import World, written_instant

# Whom a broken product blocks, also where the contracts of those were not read in this tick.

_NAMED = 4
# So many contracts are read for it in one run, which tells of what is broken and must not wait for long.
_MOST_READ = 200


class Blocking:
    """The contracts of a run, and the files of those that were not read; they are read where it matters."""

    def __init__(self, contracts: Iterable[Contract], resting: Mapping[str, str]) -> None:
        self._known = list(contracts)
        self._files = list(resting)
        self._texts: dict[str, bytes] | None = None
        self._declared: dict[DataObject, frozenset[DataObject]] | None = None
        self._asked: set[str] = set()
        self._left = _MOST_READ

    def line(self, contract: Contract, one: str) -> str:
        """Who is made from an object, the nearest first; empty for nobody that is known."""
        me = (contract.key, one)
        names = _names(contract)
        while self._read(names):
            # Who is made from those that were just read may rest as well.
            names = [name for known in self._known for name in _names(known) if self._uses(known, me)]
        found = consumers(self._inputs(), me)
        own = {other.key: other for other in self._known}
        by_key: dict[str, list[str]] = {}
        for key, user in found:
            by_key.setdefault(key, []).append(user)
        said = [
            f"{key}/{users[0]}" if len(own[key].objects) > 1 and len(users) == 1 else key
            for key, users in by_key.items()
        ]
        return first_of(said, _NAMED)

    def _inputs(self) -> Mapping[DataObject, frozenset[DataObject]]:
        if self._declared is None:
            self._declared = inputs(self._known)
        return self._declared

    def _uses(self, known: Contract, me: DataObject) -> bool:
        return any(key == known.key for key, _ in consumers(self._inputs(), me))

    def _read(self, names: Iterable[str]) -> bool:
        """Reads the files that rest and hold one of the names; whether any of them was read."""
        new = {name for name in names if name not in self._asked}
        self._asked |= new
        if not new or not self._files or self._left < 1:
            return False
        if self._texts is None:
            self._texts = {file: text for file in self._files if (text := _text(file))}
        wanted = re.compile(b"|".join(re.escape(name.encode()) for name in sorted(new)))
        candidates = [file for file, text in self._texts.items() if wanted.search(text)][: self._left]
        self._left -= len(candidates)
        read = [parse(self._texts.pop(file), file).contract for file in candidates]
        self._known += [contract for contract in read if contract is not None]
        self._declared = None
        return bool(candidates)


def _names(contract: Contract) -> list[str]:
    """By what others may name a contract or one of its objects."""
    own = [contract.id, Path(contract.file).name]
    return own + [name for one in contract.objects for name in (one.name, one.id, one.physical_name) if name]


def _text(file: str) -> bytes:
    try:
        return read(named(Path(file)))
    except FileRefused:
        return b""


# What helps whoever is woken: what it is, whom it blocks, who owns it, and where to look closer.

Help = Callable[[Contract, Breach], Breach]

_LOOKED_IN = "looked in"
# Slack's ids of people and of user groups.
_SLACK_ID = re.compile("[UWS][A-Z0-9]{5,20}")
_MOST_MENTIONS = 3


def helper(
    world: World,
    contracts: Iterable[Contract],
    server: str | None = None,
    resting: Mapping[str, str] | None = None,
) -> Help:
    """What adds the lines of help to a breach of one of the contracts.

    `server` is what the command was given as `--server`: whoever looks closer has to look there too.
    `resting` are the files of contracts that were not read, by file: they may be made from one of these.
    """
    blocking = Blocking(contracts, resting or {})

    def helped(contract: Contract, event: Breach) -> Breach:
        said = tuple((label, _place(world, label, value)) for label, value in event.facts)
        # A budget that is used up keeps nobody from working.
        waits = SINCE in dict(event.facts) or event.key.group == check_runs.GROUP
        blocks = blocking.line(contract, event.key.object) if waits else ""
        more = (("blocks", blocks), *_people(contract), *_mentions(world, contract, event.severity))
        command = (COMMAND, _command(world, contract, event, server))
        facts = ((PRODUCT, _product(contract)), *said, *more, command)
        return replace(event, facts=tuple((label, value) for label, value in facts if value))

    return helped


def of_platform(world: World, event: Breach | Recovery) -> Breach | Recovery:
    """What the platform team is told, with paths as seen from the folder of the command, and a command."""
    facts = tuple((label, _nearer(world, value)) for label, value in event.facts)
    title = _nearer(world, event.title)
    if isinstance(event, Recovery):
        return replace(event, title=title, facts=facts)
    roots = [_undashed(_relative(world, root)) for root in world.registries]
    return replace(event, title=title, facts=(*facts, (COMMAND, _said(world, ["status", *roots]))))


def _nearer(world: World, text: str) -> str:
    """The text without the way to the folder of the command; the folder itself is the working folder."""
    folder = re.escape(str(world.folder))
    within = re.sub(rf"(?<!\S){folder}/(?=\S)", "", text)
    return re.sub(rf"(?<!\S){folder}(?=\s|$)", "the watcher's folder", within)


def _product(contract: Contract) -> str:
    """The contract's name and what it is for, as far as it says so: the first line of each."""
    purpose = (contract.description.purpose if contract.description else None) or ""
    said = [text.strip().splitlines()[0] for text in (contract.name or "", purpose) if text.strip()]
    return ": ".join(said)


def _people(contract: Contract) -> Facts:
    owner = next((one.username for one in contract.members() if (one.role or "").lower() == "owner"), "")
    runbook = next((one.url for one in contract.authoritative_definitions if one.type == "runbook"), "")
    if len(runbook) > MAX_VALUE:
        runbook = f"see the contract {contract.id}: the address is too long to be shown"
    return (OWNER, owner), (RUNBOOK, runbook)


def _mentions(world: World, contract: Contract, severity: Severity) -> Facts:
    """The ids that Slack can call, of owners and of support entries, for what is bad enough."""
    least = world.settings.mentions
    if least == "off" or severity.rank < Severity(least).rank:
        return ()
    owners = [one for one in contract.members() if (one.role or "").lower() == "owner"]
    named = [one.custom("slack") for one in (*owners, *contract.support)]
    ids = dict.fromkeys(found for one in named if (found := _slack_id(one)))
    return ((MENTION, " ".join([*ids][:_MOST_MENTIONS])),)


def _slack_id(custom: CustomProperty | None) -> str:
    value = custom.value if custom is not None else None
    return value if isinstance(value, str) and _SLACK_ID.fullmatch(value) else ""


def _place(world: World, label: str, value: str) -> str:
    """A path where data was looked for, as seen from the folder of the command."""
    if label != _LOOKED_IN or is_uri(value) or not value.startswith("/"):
        return value
    return _relative(world, Path(value))


def _command(world: World, contract: Contract, event: Breach, server: str | None) -> str:
    """The command that shows more, for a shell in the folder in which this one ran."""
    file = Path(_relative(world, Path(contract.file)))
    words = _words(contract, event, server, file)
    # Whoever is woken pastes it, and a stranger may have named the file: one may begin with a dash.
    said = _said(world, words)
    if len(said) <= MAX_VALUE:
        return said
    # Cut, it would do something else; the folder shows the same among others.
    shorter = [_said(world, ["status", _undashed(str(one))]) for one in file.parents]
    return next((one for one in shorter if len(one) <= MAX_VALUE), "dq status")


def _said(world: World, words: Sequence[str]) -> str:
    config = ["--config", _relative(world, world.settings.file)] if world.settings.file else []
    # A replay alerts of an instant: today's clock would tell another story.
    as_of = ["--as-of", written_instant(world.as_of)] if world.as_of else []
    return shell(["dq", *config, *words, *as_of])


def _words(contract: Contract, event: Breach, server: str | None, file: Path) -> Sequence[str]:
    if event.key.group != check_runs.GROUP:
        return ["status", _undashed(str(file))]
    one = ["--object", event.key.object] if len(contract.objects) > 1 else []
    part = ["--all"] if event.subject == check_runs.TABLE else ["--partition", event.subject]
    return ["check", _undashed(str(file)), *one, *part, *(["--server", server] if server else [])]


def _undashed(file: str) -> str:
    return f"./{file}" if file.startswith("-") else file


def _relative(world: World, path: Path) -> str:
    """The path as seen from the folder of the command; another machine's folders are nobody's business."""
    # Behind a link `..` leads elsewhere than the text says.
    if not path.is_absolute() or ".." in path.parts:
        return str(path)
    shared = os.path.commonpath([world.folder, path])
    return str(path) if shared == os.path.sep else os.path.relpath(path, world.folder)

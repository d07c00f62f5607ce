"""What helps whoever is woken: what it is, whom it blocks, who owns it, and where to look closer."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dq.alerts.incident import Facts
from dq.alerts.message import COMMAND, MAX_VALUE, MENTION, OWNER, PRODUCT, RUNBOOK, SINCE
from dq.cli.alerting.blocking import Blocking
from dq.cli.world.environment import World, written_instant
from dq.contracts.access.access_policy import is_uri
from dq.contracts.escaping import shell
from dq.contracts.model import Contract, CustomProperty
from dq.contracts.shared.outcome import Breach, Recovery, Severity
from dq.dataquality.results import check_runs

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

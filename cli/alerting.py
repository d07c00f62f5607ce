"""Who hears of what: routes from contracts, channels from the environment, and the draining of the outbox."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import typer
from sqlalchemy import Connection

from dq.alerts import channels
from dq.alerts.channel import Open, Setting
from dq.alerts.deliver import Drained, drain
from dq.alerts.record import record
from dq.alerts.route import Route
from dq.cli import show
from dq.cli.world import World
from dq.contracts import extension
from dq.contracts.errors import DqError, UsageError
from dq.contracts.model import Contract
from dq.contracts.outcome import Breach, Recovery, Severity
from dq.store.engine import Store

FROM_CONTRACT = "contract"
# Scopes of ODCS support channels that want to hear of breaches; an entry without a scope does too.
_HEARING = (None, "notifications", "issues")


def routes(contract: Contract, channel: str) -> list[Route]:
    """Who is told of this contract's breaches: its support channels, or one `channel[:target]` for all."""
    known = channels.load()
    if channel != FROM_CONTRACT:
        name, _, target = channel.partition(":")
        return [Route(name, target)]
    found = []
    for support in contract.support:
        if support.tool in known and support.scope in _HEARING:
            terms, _ = extension.route(support)
            severities = frozenset(Severity(word) for word in terms.severities)
            found.append(Route(support.tool, support.channel, severities))
    return found


def teller(
    world: World, contracts: Iterable[Contract], channel: str
) -> Callable[[Connection, Breach | Recovery], None]:
    """What the watcher calls inside its transaction: adds who to ask and where to look, and records it."""
    known = (FROM_CONTRACT, *channels.load())
    if channel.partition(":")[0] not in known:
        # Now, and not in the night when the first alert has to go there.
        raise UsageError(f"there is no channel {channel!r}.", f"Choose one of {', '.join(known)}.")
    by_id = {contract.id: contract for contract in contracts}

    def tell(tx: Connection, event: Breach | Recovery) -> None:
        contract = by_id[event.key.contract]
        if isinstance(event, Breach):
            event = replace(event, facts=(*event.facts, *_help(contract, event)))
        record(tx, event, routes(contract, channel), world.now())

    return tell


def _help(contract: Contract, event: Breach) -> list[tuple[str, str]]:
    owner = next((one.username for one in contract.members() if (one.role or "").lower() == "owner"), None)
    facts = [("owner", owner)] if owner else []
    runbook = next((one.url for one in contract.authoritative_definitions if one.type == "runbook"), None)
    if runbook:
        facts.append(("runbook", runbook))
    # A contract's file may have been named by an absolute path; the reader's folder is another one.
    file = Path(contract.file).name
    look = "dq check" if event.key.group == "quality" else "dq status"
    return [*facts, ("look closer", f"{look} {file}")]


def send(world: World, store: Store, write: Callable[[str], object]) -> Drained:
    """Sends what the outbox holds through every channel that is set up; `write` is the console's."""
    opened: dict[str, Open] = {}
    for name, channel in channels.load().items():
        settings = {
            one.name: value for one in channel.settings if (value := _setting(world, one)) is not None
        }
        try:
            opened[name] = channel.open(settings, write)
        except DqError:
            # One that is not set up matters only when something waits for it; then drain says so.
            continue
    return drain(store, opened, world.now, jitter=random.random)


def _setting(world: World, one: Setting) -> str | None:
    """A channel's setting from its variable; a secret may stand in a file that `<VARIABLE>_FILE` names."""
    file = world.environment.get(f"{one.variable}_FILE") if one.secret else None
    if file is None:
        settings = world.environment if one.secret else world.settings.variables()
        return settings.get(one.variable)
    try:
        return Path(file).read_text().strip()
    except OSError as error:
        raise UsageError(
            f"{one.variable}_FILE={file} cannot be read: {error.strerror}.", "Mend the path."
        ) from error


def report(drained: Drained) -> int:
    """Says what could not be sent; the exit code that follows: 4 when something was given up, else 0."""
    for dead in drained.dead:
        show.note(f"dq: the {dead.operation} of {dead.lane} could not be delivered: {dead.reason}")
    for name, reason in drained.broken.items():
        show.note(f"dq: nothing can be sent through {name}: {reason}")
    return 4 if drained.dead or drained.broken else 0


CHANNEL = typer.Option(
    FROM_CONTRACT,
    "--channel",
    help="Who is told: contract (its support channels), console, slack:#channel, or file:alerts.jsonl.",
)

"""`dq.build_portal`: the site of a registry, and the waivers of its policy that end soon."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

from dq.contracts.outcome import DqError, Finding
from dq.contracts.subscriptions import Subscription
from dq.operations.gate import policy_of, written
from dq.operations.key_ownership import settled
from dq.operations.registry_files import Loaded
from dq.operations.runtime.context import World, called, processors, registry_root
from dq.operations.subscriptions import load_subscriptions
from dq.portal.output import PortalRequest, PortalSummary, WaiverEnd
from dq.store.engine import Store
from dq.validators.lint import rules_of

SOON = timedelta(days=30)


def ending(root: Path, today: date) -> list[WaiverEnd]:
    """Those that end within 30 days, and those that have ended; the first to end first.

    Raises UsageError for a policy that cannot be understood, and Unreadable for one that cannot be read.
    """
    policy = written(root, None)
    if policy is None:
        return []
    found = [one for one in policy_of(policy, rules_of()).waivers if one.expires <= today + SOON]
    return [
        WaiverEnd(f"{one.rule} in {one.contract}", one.expires.isoformat(), one.by, one.reason)
        for one in sorted(found, key=lambda one: (one.expires, one.contract, one.rule))
    ]


@dataclass(frozen=True, slots=True)
class PortalOutcome:
    """What a build did; `findings` are subscriptions that cannot be used, `policies` those not understood."""

    summary: PortalSummary
    findings: tuple[Finding, ...] = ()
    policies: tuple[tuple[Path, DqError], ...] = ()

    @property
    def exit_code(self) -> int:
        """0 built, 3 a contract could not be read: its page says why."""
        return 3 if self.summary.problems else 0

    def as_dict(self) -> dict[str, object]:
        """What `dq portal build --format json` prints."""
        return self.summary.as_dict()


def build_portal(
    out: Path | str,
    paths: Path | str | Sequence[Path | str] = ".",
    *,
    tick: timedelta = timedelta(minutes=15),
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> PortalOutcome:
    """Write the portal of these contracts into the folder `out`, as `dq portal build` does.

    `out` is a new or an empty folder, or a portal's own. `tick` is how often `dq watch` runs; pages say when
    it is silent. `folder` stands for the working folder, where settings and store are, and from which
    relative paths lead, that of `out` too. `now` is an aware instant, by default the present one.

    Raises UsageError for a folder that holds other files and for what does not fit, MissingTool without
    Jinja, and Unreadable for a path without contracts.
    """
    world, places = called(paths, folder, now)
    site = Path(out) if folder is None else Path(folder) / out
    with closing(world.store()) as store:
        return run(world, store, site, places, tick)


def run(
    world: World,
    store: Store,
    out: Path,
    paths: Sequence[Path],
    tick: timedelta,
    progress: Callable[[str, int, int], None] = lambda _what, _done, _all: None,
) -> PortalOutcome:
    """The operation itself. Raises as `build_portal`."""
    from dq.portal.build import build

    subscriptions: list[Subscription] = []
    findings: list[Finding] = []
    for root in world.registries or (registry_root(paths[0]),):
        agreed, wrong = load_subscriptions(root)
        subscriptions += agreed
        findings += wrong
    waivers: list[WaiverEnd] = []
    policies: list[tuple[Path, DqError]] = []
    for root in world.registries:
        try:
            waivers += ending(root, world.now().date())
        except DqError as error:
            policies.append((root, error))

    def settle(keys: Mapping[str, str]) -> list[Finding]:
        return settled(world, store, Loaded([], [], resting=keys)).findings

    request = PortalRequest(
        out,
        tuple(paths),
        store,
        world.store_url(),
        world.now(),
        tick,
        settle,
        subscriptions,
        None if policies else waivers,
        workers=processors(),
        progress=progress,
        as_of=world.as_of,
    )
    return PortalOutcome(build(request), tuple(findings), tuple(policies))

"""`dq.build_portal`: build the site of a registry, including its expiring waivers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

from dq.contracts.access.discovery import find
from dq.contracts.access.files import printable_path
from dq.contracts.escaping import shell_word
from dq.contracts.outcome import DqError, Finding, ReadError, UsageError
from dq.contracts.subscriptions import Approval
from dq.operations.key_ownership import resolve_key_owners
from dq.operations.registry_files import LoadedContracts, parse_policy, read_policy_text
from dq.operations.runtime.context import RuntimeContext, call_context, processors, registry_root
from dq.operations.subscriptions import load_approvals, load_subscriptions
from dq.portal.formatting import new_file_page
from dq.portal.output import OWN, PortalRequest, PortalSummary, WaiverEnd
from dq.store.engine import Store

SOON = timedelta(days=30)


def expiring_waivers(root: Path, today: date) -> list[WaiverEnd]:
    """Return the waivers that expire within 30 days or have expired, earliest first.

    Raises UsageError for an invalid policy, and ReadError for one that cannot be read.
    """
    policy = read_policy_text(root, None)
    if policy is None:
        return []
    expiring = [waiver for waiver in parse_policy(policy).waivers if waiver.expires <= today + SOON]
    return [
        WaiverEnd(
            f"{waiver.rule} in {waiver.contract}",
            waiver.expires.isoformat(),
            waiver.approved_by,
            waiver.reason,
        )
        for waiver in sorted(expiring, key=lambda waiver: (waiver.expires, waiver.contract, waiver.rule))
    ]


@dataclass(frozen=True, slots=True)
class PortalOutcome:
    """Result of a build; `findings` are unusable subscriptions, `policies` invalid policies with their
    errors.
    """

    summary: PortalSummary
    findings: tuple[Finding, ...] = ()
    policies: tuple[tuple[Path, DqError], ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code: 0 built, 3 a contract could not be read; its page shows the reason."""
        return 3 if self.summary.problems else 0

    def as_dict(self) -> dict[str, object]:
        """Return the output of `dq portal build --format json` as JSON values."""
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

    `out` is a new or an empty folder, or an earlier portal. `tick` is the interval of `dq watch`; pages warn
    if it does not run. `folder` replaces the working folder, which has settings and store, and is the base of
    relative paths, including `out`. `now` is an aware instant, by default the current time.

    Raises UsageError for a folder with other files and for invalid arguments, MissingTool without
    Jinja, and ReadError for a path without contracts.
    """
    context, places = call_context(paths, folder, now)
    site = Path(out) if folder is None else Path(folder) / out
    with closing(context.store()) as store:
        return run(context, store, site, places, tick)


def _require_output_folder(out: Path, paths: Sequence[Path]) -> None:
    """Raise UsageError if `out` has contracts and `paths` none: the arguments are probably swapped."""
    if not out.is_dir() or (out / OWN).is_dir() or not _has_contracts(out):
        return
    by_default = list(paths) == [Path()]
    if by_default or not _has_contracts(paths[0]):
        site = "site" if by_default else shell_word(str(paths[0]))
        raise UsageError(
            f"{printable_path(out)} contains contracts and cannot be the output folder; nothing was written.",
            f"The output folder comes first: dq portal build {site} {shell_word(str(out))}",
        )


def _has_contracts(path: Path) -> bool:
    try:
        return bool(find([path]))
    except DqError:
        return False


def _registry_url(context: RuntimeContext) -> str:
    url = context.settings.registry_url
    if url and new_file_page(url) is None:
        # It may contain a token, so it is not shown.
        raise UsageError(
            "registry_url is not the page of a branch's folder on GitHub or GitLab, without '?' and '#'.",
            "Copy it from the browser, e.g. https://github.com/acme/contracts/tree/main/registry.",
        )
    return url


def run(
    context: RuntimeContext,
    store: Store,
    out: Path,
    paths: Sequence[Path],
    tick: timedelta,
    progress: Callable[[str, int, int], None] = lambda _what, _done, _all: None,
) -> PortalOutcome:
    """Run the operation. Raises as `build_portal`."""
    from dq.portal.build import build
    from dq.portal.product import ConsumerFacts

    _require_output_folder(out, paths)
    registry_url = _registry_url(context)
    consumers: list[ConsumerFacts] = []
    findings: list[Finding] = []
    for root in context.registries or (registry_root(paths[0]),):
        subscriptions, root_findings = load_subscriptions(root)
        findings += root_findings
        approvals: Mapping[str, Approval] = {}
        # An invalid policy is reported below, with the waivers.
        with suppress(UsageError, ReadError):
            approvals = load_approvals(root, subscriptions, context.now().date())
        consumers += (ConsumerFacts(own, approvals.get(own.file)) for own in subscriptions)
    waivers: list[WaiverEnd] = []
    policies: list[tuple[Path, DqError]] = []
    for root in context.registries:
        try:
            waivers += expiring_waivers(root, context.now().date())
        except DqError as error:
            policies.append((root, error))

    def resolve_duplicates(keys: Mapping[str, str]) -> list[Finding]:
        return resolve_key_owners(context, store, LoadedContracts([], [], skipped=keys)).findings

    request = PortalRequest(
        out,
        tuple(paths),
        store,
        context.store_url(),
        context.now(),
        tick,
        resolve_duplicates,
        consumers,
        None if policies else waivers,
        workers=processors(),
        progress=progress,
        as_of=context.as_of,
        registry_url=registry_url,
        accepted_alarms=context.settings.unusual_false_alarms,
    )
    return PortalOutcome(build(request), tuple(findings), tuple(policies))

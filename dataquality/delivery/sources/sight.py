"""Whether a place can be seen: nothing can be missing from one that is not there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from dq.contracts.shared.errors import DqError
from dq.contracts.slo import Slo
from dq.dataquality.delivery.cycle import DeliveryPlace
from dq.dataquality.delivery.sources.evidence import Evidence
from dq.lake.storage import Files

_LOOKED_AT = ("marker", "commit", "file")


@dataclass(frozen=True, slots=True)
class Sight:
    """One tick's view of places, each looked at once.

    `delivered` are the SLOs that ever had a delivery, by key.
    """

    delivered: Collection[tuple[str, str, str]]
    known: dict[tuple[str, str, str], str] = field(default_factory=dict)
    roots: dict[str, bool] = field(default_factory=dict)

    def lost(self, slo: Slo, place: DeliveryPlace, files: Files) -> Evidence | None:
        """Unreadable evidence when nothing found there means nothing; None when the place can be seen.

        A folder that is gone (a mount, a link that leads nowhere, a bucket) holds no proof that a delivery is
        missing. Before the first delivery a table has no folder, so then its lake root must be there.
        """
        source = next((one for one in slo.delivery.evidence if one in _LOOKED_AT), None)
        if source is None:
            return None
        if slo.key not in self.known:
            self.known[slo.key] = self._problem(slo, place.path.rstrip("/"), files)
        problem = self.known[slo.key]
        return Evidence(source, readable=False, problem=problem) if problem else None

    def _problem(self, slo: Slo, path: str, files: Files) -> str:
        try:
            if files.holds(path):
                return ""
            if slo.key in self.delivered:
                return f"{path} is gone, where deliveries have been"
            root = files.root(path)
            if root not in self.roots:
                self.roots[root] = files.holds(root)
            return "" if self.roots[root] else f"{root} is not there"
        except DqError as error:
            return error.message.rstrip(".")
        except Exception as error:  # noqa: BLE001  # as with every probe: no storage may end a tick
            return type(error).__name__

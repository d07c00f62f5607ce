"""What is to be seen of every open cycle, looked for side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from dq.contracts.schedule.cycle import Partition
from dq.contracts.shared.data_formats import LAKEHOUSE
from dq.dataquality.delivery.cycle import CycleWindow, Receipts, Sighting
from dq.dataquality.delivery.sources.commit_evidence import delivered
from dq.dataquality.delivery.sources.commit_history import CommitHistory, SeenCommits
from dq.dataquality.delivery.sources.evidence import Evidence
from dq.dataquality.delivery.sources.glance import glance
from dq.dataquality.delivery.sources.lookout import Errand, Lookout, Silence
from dq.dataquality.delivery.sources.presence import presence, presence_in_log
from dq.dataquality.delivery.sources.probe import look
from dq.dataquality.delivery.sources.sight import Sight
from dq.dataquality.delivery.sources.snapshot import window_of
from dq.lake.storage import Files, SilentFiles

if TYPE_CHECKING:
    from dq.dataquality.delivery.cycle import Kept, Watched

ANY_TIME = CycleWindow(None, None, None)


@dataclass(frozen=True, slots=True)
class View:
    """What all looks of a tick share."""

    now: datetime
    roots: Mapping[tuple[str, str, str], str]
    receipts: Mapping[tuple[str, str], Receipts]
    history: CommitHistory
    sight: Sight

    def all(self, lookout: Lookout, wanted: Iterable[tuple[Watched, Kept]]) -> list[Sighting]:
        """Looks at every cycle; one whose storage is silent cannot be read, where no receipt tells of it."""
        places: dict[tuple[str, int], list[tuple[Watched, Kept]]] = {}
        for one, kept in wanted:
            # One place is looked at by one at a time: its log is read once.
            place = (one.place.path.rstrip("/"), id(one.files))
            places.setdefault(place, []).append((one, kept))
        groups = list(places.values())
        errands = [
            Errand(self.roots[group[0][0].slo.key], group[0][0].files, self._of(group)) for group in groups
        ]
        answers = lookout.answers(errands)
        return [
            sighting
            for group, answer in zip(groups, answers, strict=True)
            for sighting in (
                self._of(group)(SilentFiles(answer.problem)) if isinstance(answer, Silence) else answer
            )
        ]

    def _of(self, group: Sequence[tuple[Watched, Kept]]) -> Callable[[Files], list[Sighting]]:
        return lambda files: [self._one(one, kept, files) for one, kept in group]

    def _one(self, one: Watched, kept: Kept, files: Files) -> Sighting:
        slo, cycle = one.slo, kept.cycle
        # Where a partition's path tells what came, no time does.
        placed = bool(cycle.partitions) and one.place.format not in LAKEHOUSE
        window, ahead = (ANY_TIME, None) if placed else window_of(slo, cycle)

        def log() -> SeenCommits:
            return self.history.of(one.place.path.rstrip("/"), one.place.format, files)

        def commit(partition: Partition) -> Evidence | None:
            place, format = one.place.path.rstrip("/"), one.place.format
            live = partial(self.history.live, place, format, files)
            return delivered(slo, cycle, partition, log(), window, live, revoked=kept.revoked)

        if kept.status.good:
            in_log = one.place.format in LAKEHOUSE
            left = (
                presence_in_log(cycle, commit)
                if in_log
                else presence(slo, cycle, one.place, kept.claims, files)
            )
            return Sighting(one, kept, None, ANY_TIME, presence=left)
        receipts = self.receipts.get(slo.key[:2], {})
        if kept.revoked and kept.gone_since is not None:
            # Whoever said before that it came knew nothing of what became of it.
            later = {name: said.since(kept.gone_since) for name, said in receipts.items()}
            receipts = {name: said for name, said in later.items() if said is not None}
        evidence = look(slo, cycle, one.place, files, receipts, commit, self.now)
        if evidence is None and self.now > cycle.breach_at:
            evidence = self.sight.lost(slo, one.place, files)
        nothing = evidence is None or (evidence.readable and evidence.delivered_at is None)
        told = kept.told or self.now < kept.tell_at
        there = glance(slo, cycle, one.place, files, log) if nothing and not told else ("", "")
        return Sighting(one, kept, evidence, window, ahead, there=there)

"""Finds out where the data of promises lies, and waits no longer for a folder that does not answer.

To follow the links on the way to a folder of a mount that hangs never ends.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from dq.cli.loading.contracts import watched
from dq.cli.loading.refusal import each, refusal
from dq.cli.world.mounts import mount_points
from dq.contracts.access.access_policy import Reach, is_remote
from dq.contracts.shared.outcome import DqError, Finding
from dq.contracts.slo import Slo
from dq.dataquality.delivery.cycle import Watched
from dq.dataquality.delivery.outages import root_of
from dq.dataquality.delivery.probe_pool import Lookout, Silence
from dq.lake.storage import Files, SilentFiles


def resolved(lookout: Lookout, folders: Sequence[Path]) -> list[str]:
    """The folders with every link followed; one that does not answer as it is written."""
    written = [os.path.normpath(folder) for folder in folders]
    answers = lookout.bounded([(one, partial(os.path.realpath, one)) for one in written])
    return [
        one if isinstance(answer, Silence) else answer for one, answer in zip(written, answers, strict=True)
    ]


def placed(
    promises: Sequence[Slo],
    server: str | None,
    reach: Reach,
    files_of: Callable[[str], Files],
    lookout: Lookout,
) -> tuple[list[Watched], list[Finding]]:
    """Every SLO with the place of its data, and why the others have none.

    Where the folder does not answer, nobody knows whether the place may be used, and its files are silent.
    """
    unseen = replace(reach, unseen=True)
    written, refused = each(
        promises, lambda slo: slo.contract, lambda slo: watched(slo, server, unseen, files_of)
    )
    local = [number for number, one in enumerate(written) if not is_remote(one.place.path)]
    mounts = mount_points()
    questions = [
        (reach.above(one.place.path, mounts), partial(_seen, one.slo, server, reach, files_of))
        for one in (written[number] for number in local)
    ]
    found: dict[int, Watched | DqError] = dict(enumerate(written))
    for number, (root, _), answer in zip(local, questions, lookout.bounded(questions), strict=True):
        if isinstance(answer, Silence):
            found[number] = replace(written[number], files=SilentFiles(answer.problem), root=root)
        else:
            found[number] = answer
    wrong = [
        refusal(written[number].slo.contract, one)
        for number, one in found.items()
        if isinstance(one, DqError)
    ]
    ready = [one for one in found.values() if isinstance(one, Watched)]
    return ready, list(dict.fromkeys([*refused, *wrong]))


def _seen(slo: Slo, server: str | None, reach: Reach, files_of: Callable[[str], Files]) -> Watched | DqError:
    try:
        one = watched(slo, server, reach, files_of)
        return replace(one, root=root_of(one))
    except DqError as error:
        return error

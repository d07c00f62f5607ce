"""Every text that contracts ever had, from the work tree and from Git, with what each promised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from dq.contracts import slo as promise
from dq.contracts.access.files import FileRefused, read_own
from dq.contracts.model import Contract
from dq.contracts.slo import Slo
from dq.contracts.yaml.parse import parse
from dq.dataquality.delivery.history.audit import Promises
from dq.validators.git.history import every_text


def promises_of_all_times(contracts: Iterable[Contract]) -> Promises:
    """The delivery promises of these contracts' files, by the SHA-256 of each text and the promise's key.

    Raises BaseUnavailable where Git cannot answer.
    """
    found: dict[tuple[str, tuple[str, str, str]], Slo] = {}
    for contract in contracts:
        for data in _texts(Path(contract.file)):
            past = parse(data, contract.file).contract
            if past is None:
                continue
            for slo in promise.read(past)[0]:
                found[past.digest, slo.key] = slo
    return found


def _texts(file: Path) -> Iterator[bytes]:
    with suppress(FileRefused):
        yield read_own(file)
    yield from every_text(file.parent, file.name)

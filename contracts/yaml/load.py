"""The contract that a caller of the Python interface means: a file, a text, or one already read."""

from __future__ import annotations

from pathlib import Path

from dq.contracts.access import files
from dq.contracts.model import Contract
from dq.contracts.shared.errors import DqError, Unreadable
from dq.contracts.shared.outcome import Finding
from dq.contracts.yaml.parse import parse

# What findings in a text name as its file.
TEXT = "(text)"


class BrokenContract(DqError):
    """The contract has errors, all of which are in `findings`: nothing can be tested by it."""

    exit_code = 3

    def __init__(self, message: str, mend: str, findings: tuple[Finding, ...]) -> None:
        super().__init__(message, mend)
        self.findings = findings


def read(given: Contract | Path | str) -> Contract:
    """The contract. A `str` with a line break is YAML, every other one a path.

    Raises Unreadable for a file that cannot be read, and BrokenContract, with every finding, for one that
    has errors.
    """
    if isinstance(given, Contract):
        return given
    if isinstance(given, str) and "\n" in given:
        return parsed(given.encode("utf-8", "surrogatepass"), TEXT)
    try:
        data = files.read_own(Path(given))
    except files.FileRefused as error:
        raise Unreadable(
            f"the contract {str(given)!r} cannot be read: {error.message}",
            "Give the path of a contract's file, its text, or a Contract.",
        ) from error
    return parsed(data, str(given))


def parsed(data: bytes, file: str) -> Contract:
    """The contract in the bytes of a file. Raises BrokenContract for one that has errors."""
    found = parse(data, file)
    wrong = tuple(finding for finding in found.findings if finding.severity.blocks)
    if found.contract is not None and not wrong:
        return found.contract
    number = f"{len(wrong)} error{'' if len(wrong) == 1 else 's'}"
    listed = "".join(f"\n    {finding}" for finding in wrong)
    where = "the contract" if file == TEXT else file
    raise BrokenContract(f"{where} has {number}:{listed}", "Run 'dq validate' after mending them.", wrong)

"""The file is not named after the contract that it holds.

Why: In a registry of thousands of contracts, people look for a contract by its id.

Bad:
    id: purchases

Good:
    id: orders

Mend: Name the file `<id>.odcs.yaml`, or `<id>-v2.odcs.yaml` beside another major version.
"""

import re
from pathlib import PurePosixPath

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault

_VERSION = re.compile(r"([-_.]v?[0-9][0-9A-Za-z.-]*)?")


def check(contract: Contract, context: Context) -> Faults:
    stem = PurePosixPath(context.file).name.removesuffix(".yaml").removesuffix(".odcs")
    if not stem.startswith(contract.id) or not _VERSION.fullmatch(stem.removeprefix(contract.id)):
        message = f"the file {stem!r} holds the contract {contract.id!r}."
        yield fault(contract, "id", message, f"Name the file {contract.id}.odcs.yaml.")


RULE = Rule("file-name-not-id", Severity.INFO, __doc__, check, after=("id-form",), wish=True)

"""File name does not match the contract id.

Why: In a registry with thousands of contracts, people search for a contract by its id.

Bad:
    id: purchases

Good:
    id: orders

How to fix: Name the file `<id>.odcs.yaml`, or `<id>-v2.odcs.yaml` next to another major version.
"""

import re
from pathlib import PurePosixPath

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation

_VERSION = re.compile(r"([-_.]v?[0-9][0-9A-Za-z.-]*)?")


def check(contract: Contract, context: Context) -> Violations:
    stem = PurePosixPath(context.file).name.removesuffix(".yaml").removesuffix(".odcs")
    if not stem.startswith(contract.id) or not _VERSION.fullmatch(stem.removeprefix(contract.id)):
        message = f"the file {stem!r} contains the contract {contract.id!r}."
        yield violation(contract, "id", message, f"Name the file {contract.id}.odcs.yaml.")


RULE = Rule("file-name-not-id", Severity.INFO, __doc__, check, after=("id-form",), opt_in=True)

"""Contract version that is not MAJOR.MINOR.PATCH.

Why: The major version is part of the contract's identity, and shows whether a change may break consumers.

Bad:
    version: "1.2"

Good:
    version: 1.2.0

How to fix: Write MAJOR.MINOR.PATCH, see https://semver.org.
"""

import re

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation

# https://semver.org, with the length of each part bounded.
_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-[0-9A-Za-z.-]{{1,100}})?(?:\+[0-9A-Za-z.-]{{1,100}})?"
)


def check(contract: Contract, _context: Context) -> Violations:
    if not _SEMVER.fullmatch(contract.version):
        message = f"version {contract.version!r} is not MAJOR.MINOR.PATCH."
        yield violation(contract, "version", message, f"Write 'version: {_nearest(contract.version)}'.")


def _nearest(version: str) -> str:
    numbers = [str(int(number)) for number in re.findall(r"[0-9]{1,9}", version)[:3]]
    return ".".join([*numbers, "0", "0", "0"][:3]) if numbers else "1.0.0"


RULE = Rule("version-not-semver", Severity.WARNING, __doc__, check)

"""What makes two files the same contract, and the one name under which the store files what became of it.

Two majors of a contract may stand side by side, and are two products: each has deliveries, runs and
incidents of its own. So nothing is filed under the id alone.
"""

from __future__ import annotations

from urllib.parse import quote

Identity = tuple[str, str]
"""The id and the major version, as texts."""

_FIRST = "1"
_BETWEEN = "@"


def identity(id: str, version: str) -> Identity:
    """The id and the major version of a contract: `("orders", "2")` for orders 2.1.0."""
    return id, version.removeprefix("v").partition(".")[0]


def key(id: str, version: str) -> str:
    """The identity as one text, another one for each identity, whatever the two texts hold.

    Major 1 is the id alone, every other one `id@major`. An id must not have an `@` (rule `id-form`); one
    that has it all the same always carries its major, so that no id can pass for another's major.
    """
    name, major = identity(id, version)
    if major == _FIRST and _BETWEEN not in name:
        return name
    return f"{name}{_BETWEEN}{quote(major, safe='')}"

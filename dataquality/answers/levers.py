"""Ways to an answer that read less than a scan; each can be turned off, and no verdict depends on it."""

from __future__ import annotations

from enum import StrEnum


class Lever(StrEnum):
    """STATISTICS proves clauses by what formats keep beside the values; LOCAL_KEYS looks for repeated keys
    file by file where no key can stand in two; KERNELS evaluates plain predicates in Python tasks; KEPT takes
    the answers of folders that did not change from the store; SMALL_TABLES reads tables of a few files in
    this process (`answers.memory`), where the request lets it.
    """

    STATISTICS = "statistics"
    LOCAL_KEYS = "local-keys"
    KERNELS = "kernels"
    KEPT = "kept"
    SMALL_TABLES = "small-tables"


ALL = frozenset(Lever)
NONE: frozenset[Lever] = frozenset()

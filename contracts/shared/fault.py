"""A fault: what is wrong with one value that a contract holds, before it is known where it stands."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextFault:
    """What is wrong with a text found in a contract, and what to write instead.

    `code` is stable and fit for tables (`CRON_RANGE`); `message` quotes what was found; `mend` is one
    sentence that shows what to write. A rule turns it into a `Finding` by adding the location.
    """

    code: str
    message: str
    mend: str

    def __str__(self) -> str:
        return f"{self.message} {self.mend}".rstrip()

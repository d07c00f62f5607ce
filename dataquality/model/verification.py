"""What came of statistics that were put to the test: proofs, scans, and where the rows say otherwise."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tally:
    """How many answers statistics proved, how many of these were counted again, and how many were wrong."""

    proofs: int = 0
    scans: int = 0
    disagreements: int = 0


@dataclass(frozen=True, slots=True)
class SuspectFile:
    """A file whose statistics say something else than its rows, and who wrote them ("": nobody says it)."""

    path: str
    writer: str

    def __str__(self) -> str:
        return f"{self.path} ({self.writer or 'of no writer that is named'})"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An answer that statistics prove and the rows do not give.

    `clauses` are the paths of those that ask it. `proven` and `found` are texts without any value of the
    data. `files` are at most twenty of the suspects, `suspects` is the number of all; none where no file
    could be told from the others. `kept`: it is no proof, but was made with what earlier runs kept.
    """

    clauses: tuple[str, ...]
    proven: str
    found: str
    files: tuple[SuspectFile, ...]
    suspects: int
    kept: bool = False

    @property
    def said(self) -> str:
        """What is wrong, where, and what to do."""
        if self.kept:
            return (
                f"what earlier checks kept of its folders is wrong: with it there are {self.proven}, its rows"
                f" give {self.found}. It is forgotten, and the next check counts all folders anew. A file may"
                " have changed and kept its name, size and time: ask who writes the table"
            )
        shown = "; ".join(str(file) for file in self.files[:3]) or "no single file"
        more = f"; {self.suspects - 3} more" if self.suspects > 3 else ""
        return (
            f"its statistics are wrong: they prove {self.proven}, its rows give {self.found}."
            f" Files and writers: {shown}{more}. Nothing was proven by statistics in this run."
            " Have these files written anew by another version of the writer, or check with --scan"
        )


@dataclass(frozen=True, slots=True)
class Verification:
    """A share of what statistics proved in one run, counted from the rows.

    `ever` adds up all runs that the store knows, this one included; None where there is no store.
    """

    share: float
    tally: Tally
    disagreements: tuple[Disagreement, ...] = ()
    ever: Tally | None = None

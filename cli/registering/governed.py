"""What `dq register` keeps beside the tables of a catalog: steps, results, and how they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dq.contracts.shared.outcome import DqError, Finding
from dq.registry.diff import PlanStep, StepResult


@dataclass(frozen=True, slots=True)
class Governed:
    """The steps towards what contracts and subscriptions say, what became of them, and what keeps others out.

    `name` is of what is governed, such as `Lake Formation`. `refused` is what is not ours to touch.
    """

    name: str
    steps: Sequence[PlanStep] = ()
    notes: Sequence[str] = ()
    results: Sequence[StepResult[PlanStep]] = ()
    findings: Sequence[Finding] = ()
    refused: Sequence[str] = ()
    error: DqError | None = None

    @property
    def failed(self) -> bool:
        blocking = any(one.severity.blocks for one in self.findings)
        return bool(blocking or self.refused or self.error) or any(one.error for one in self.results)


def governed_lines(governed: Governed) -> list[str]:
    """A line for each step and each note."""
    notes = [f"! {note}" for note in (*governed.refused, *governed.notes)]
    return [*map(str, governed.steps), *notes, *([str(governed.error)] if governed.error else [])]


def governed_as_dict(governed: Governed) -> Mapping[str, object]:
    """The same for machines."""
    endings = {one.step: one for one in governed.results}
    return {
        "steps": [
            {
                "kind": step.kind,
                "what": str(step),
                "ending": None if step not in endings else "failed" if endings[step].error else "done",
                "error": str(endings[step].error) if step in endings and endings[step].error else None,
            }
            for step in governed.steps
        ],
        "notes": [*governed.refused, *governed.notes],
        "error": str(governed.error) if governed.error else None,
    }

"""What `dq register` keeps beside the tables of a catalog: steps, results, and how they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dq.cli.terminal import output
from dq.contracts.shared.errors import DqError
from dq.contracts.shared.outcome import Finding
from dq.registry.action import PlanStep, StepResult


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


def describe_governed(governed: Governed, *, applied: bool) -> None:
    """The steps as lines, what became of them, and what has to be known beside them."""
    for text in governed_lines(governed):
        output.line(f"  {text}")
    for one in governed.results:
        if one.error is not None:
            output.line(f"  {output.mark(False)} {one.error}")
    steps = len(governed.steps)
    if governed.error is not None:
        output.line(f"{governed.name}: it is not known what is to be done.")
    elif applied:
        done = sum(one.error is None for one in governed.results)
        output.line(f"{governed.name}: applied {done} of {steps} changes.")
    else:
        output.line(f"{governed.name}: {steps} changes." if steps else f"{governed.name}: nothing to do.")


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

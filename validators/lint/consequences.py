"""One mistake gives one finding: what follows from a mistake already reported is left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from dq.contracts.shared.outcome import Finding, Severity
from dq.contracts.shared.spelling import nearest
from dq.validators.rule import Fault

# The rules that spoke, by path, and how severe it is there.
Said = Mapping[str, Mapping[str, Severity]]


class Folds:
    """Answers whether a fault is only a consequence.

    It is when the loader had to cut out something at, above or below a path that the fault relies on; when
    an unknown key reads like the misspelt name of what is said to be absent; when the loader reported the
    very same place; or when a rule that explains this one reported it.
    """

    def __init__(self, cut: Iterable[str], form: Iterable[Finding]) -> None:
        self._cut = frozenset(cut)
        self._above = {above for path in self._cut for above in ancestors(path)}
        self._form: set[str] = set()
        self._unknown: dict[str, list[tuple[str, Severity]]] = defaultdict(list)
        for finding in form:
            self._form.add(finding.path)
            if finding.rule == "unknown-key":
                holder, _, key = finding.path.rpartition(".")
                self._unknown[holder].append((key, finding.severity))
        self._form.discard("")
        # Many faults rely on the same long list of paths.
        self._relied: dict[tuple[str, ...], bool] = {}

    def consequence(self, fault: Fault, severity: Severity, after: tuple[str, ...], said: Said) -> bool:
        """Whether the fault follows from another.

        No error follows from an unknown key that the standard allows: the warning of it lets the contract
        pass.
        """
        if fault.path in self._form:
            return True
        if self._unknown and any(self._misspelt(path, severity) for path in fault.needs):
            return True
        if after and any(
            not said.get(path, {}).keys().isdisjoint(after) for path in (fault.path, *ancestors(fault.path))
        ):
            return True
        if not self._cut:
            return False
        if fault.needs not in self._relied:
            self._relied[fault.needs] = any(self._unreliable(path) for path in fault.needs)
        return self._relied[fault.needs] or self._unreliable(fault.path)

    def told(self, fault: Fault, said: Said, rule: str, severity: Severity) -> bool:
        """Whether another rule spoke already of what the fault is about, of a part of it, or of its type.

        Spoken of as less severe, it is not told: a policy may make an error of what is a warning elsewhere.
        """
        element = fault.path if fault.path.endswith("]") else fault.path.rpartition(".")[0]
        others = [
            path
            for path, rules in said.items()
            if any(name != rule and grade.rank >= severity.rank for name, grade in rules.items())
        ]
        logical_type = element.removesuffix(".logicalTypeOptions") + ".logicalType"
        if fault.path in others or element in others or logical_type in others:
            return True
        begins = (f"{fault.path}.", f"{fault.path}[")
        return any(path.startswith(begins) for path in (*others, *self._form, *self._cut))

    def _unreliable(self, path: str) -> bool:
        if path in self._cut or path in self._above:
            return True
        return any(above in self._cut for above in ancestors(path))

    def _misspelt(self, path: str, severity: Severity) -> bool:
        holder, _, key = path.rpartition(".")
        # A reference stands for all that is said to be absent beside it.
        return any(
            grade.rank >= severity.rank and (written == "$ref" or nearest(written, [key]))
            for written, grade in self._unknown.get(holder, ())
        )


def ancestors(path: str) -> Iterator[str]:
    """The paths above this one, nearest first: `a[0]` and `a` for `a[0].b`."""
    for index in range(len(path) - 1, 0, -1):
        if path[index] in ".[":
            yield path[:index]

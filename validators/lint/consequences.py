"""One mistake gives one finding: what follows from a mistake already reported is left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from dq.contracts.shared.outcome import Finding, Severity
from dq.contracts.shared.spelling import nearest
from dq.validators.rule import Fault


class Said:
    """The rules that spoke, by path, and how severe it is there."""

    def __init__(self) -> None:
        self._at: dict[str, dict[str, Severity]] = {}
        self._below: dict[str, dict[str, Severity]] = {}

    def add(self, path: str, rule: str, severity: Severity) -> None:
        """A rule speaks of what stands at a path."""
        self._at.setdefault(path, {})[rule] = severity
        for above in ancestors(path):
            rules = self._below.setdefault(above, {})
            rules[rule] = max(severity, rules.get(rule, severity), key=lambda grade: grade.rank)

    def by_any_of(self, rules: Iterable[str], path: str) -> bool:
        """Whether one of the rules spoke of the path itself."""
        return not self._at.get(path, {}).keys().isdisjoint(rules)

    def by_another(self, rule: str, severity: Severity, path: str) -> bool:
        """Whether another rule spoke of the path itself, at least as severely."""
        return _graver(self._at.get(path, {}), rule, severity)

    def below_by_another(self, rule: str, severity: Severity, path: str) -> bool:
        """Whether another rule spoke of a part of what stands at the path, at least as severely."""
        return _graver(self._below.get(path, {}), rule, severity)


def _graver(rules: Mapping[str, Severity], rule: str, severity: Severity) -> bool:
    return any(name != rule and grade.rank >= severity.rank for name, grade in rules.items())


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
        self._above_form = {above for path in self._form for above in ancestors(path)}
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
        if after and any(said.by_any_of(after, path) for path in (fault.path, *ancestors(fault.path))):
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
        column = element.removesuffix(".logicalTypeOptions")
        types = (f"{column}.logicalType", f"{column}.physicalType")
        if any(said.by_another(rule, severity, path) for path in (fault.path, element, *types)):
            return True
        return (
            said.below_by_another(rule, severity, fault.path)
            or fault.path in self._above
            or fault.path in self._above_form
        )

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

"""A contract with the rules that its data has kept: learnt, written into its text, and tested once more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dq.contracts.model import Contract
from dq.contracts.shared.outcome import Status, UsageError
from dq.contracts.yaml.insertion import Addition, insert, reaches
from dq.contracts.yaml.parse import parse
from dq.dataquality.clauses.coverage import JsonObject
from dq.dataquality.object_check import check
from dq.dataquality.proposal.facts import Proposal
from dq.dataquality.proposal.profile import learn
from dq.dataquality.proposal.rules import TOGETHER, proposals
from dq.dataquality.request import Request, pick

LAST = 90


@dataclass(frozen=True, slots=True)
class Dropped:
    """A rule that was not proposed after all, and why."""

    proposal: Proposal
    reason: str


@dataclass(frozen=True, slots=True)
class Proposed:
    """What is proposed for one object, and what is told of it without being promised.

    `partitions` were looked at, of `present`; 0 of a table without any. `empty` are columns without a value.
    """

    contract: str
    object: str
    rows: int
    partitions: int
    present: int
    proposals: tuple[Proposal, ...]
    dropped: tuple[Dropped, ...] = ()
    empty: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    def as_dict(self) -> JsonObject:
        """As JSON values."""
        return {
            "contract": self.contract,
            "object": self.object,
            "rows": self.rows,
            "partitions": self.partitions,
            "present": self.present,
            "proposals": [_entry(one) for one in self.proposals],
            "dropped": [{**_entry(one.proposal), "reason": one.reason} for one in self.dropped],
            "empty": list(self.empty),
            "sensitive": list(self.hidden),
            "unreadable": list(self.unreadable),
        }


def _entry(one: Proposal) -> JsonObject:
    return {
        "column": one.column or None,
        "path": path_of(one.way),
        "key": one.key or None,
        "value": one.value,
        "evidence": one.evidence,
    }


def path_of(way: Sequence[str | int]) -> str:
    """Steps as a path such as `schema[0].properties[2]`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in way)
    return text.removeprefix(".")


def propose(request: Request, data: bytes, last: int = LAST) -> tuple[bytes, Proposed]:
    """The bytes of the contract's file with the rules of one object, and what they are.

    `request` is what a check of the object would be handed; its `now` says what lies in the future. Nothing
    that the contract says already is changed or said twice. Every rule is tested on the same data by the
    check that will test it, and left out if it does not pass.

    Raises UsageError for a `last` below 1 and a text that takes no additions, Unreadable for data that
    cannot be read.
    """
    if last < 1:
        raise UsageError(f"the last {last} partitions are none.", "Give a number from 1.")
    contract, one = request.contract, pick(request.contract, request.object)
    learnt = learn(request.session(), request.data, one, last, request.now)
    asked = replace(request, object=one.name, partitions=learnt.scope or None)
    table = learnt.table
    dropped: list[Dropped] = []
    while True:
        # What did not hold is left out, a key that is none gives way to the next, and all is tested anew.
        wanted = [each for each in proposals(table) if each not in [out.proposal for out in dropped]]
        out = _unreachable(data, wanted)
        dropped += out
        made = [each for each in wanted if each not in [each.proposal for each in out]]
        additions = [Addition(each.way, each.key, each.value, each.evidence) for each in made]
        text = insert(data, contract.file, additions)
        wrong = _broken(text, made, asked) if made else []
        if not wrong:
            break
        dropped += wrong
        if any(each.proposal.says == TOGETHER for each in wrong):
            table = replace(table, pairs=table.pairs[1:])
    return text, Proposed(
        contract=contract.id,
        object=one.name,
        rows=table.rows,
        partitions=len(table.sizes) if table.keys else 0,
        present=table.present if table.keys else 0,
        proposals=tuple(made),
        dropped=tuple(dropped),
        empty=tuple(each.name for each in table.columns if table.rows and not each.filled),
        hidden=tuple(each.name for each in table.columns if each.sensitive),
        unreadable=learnt.unreadable,
    )


def _unreachable(data: bytes, wanted: Sequence[Proposal]) -> list[Dropped]:
    there = reaches(data, [one.way for one in wanted])
    reason = "an alias, an anchor or another value stands where it would be written"
    return [Dropped(one, reason) for one, can in zip(wanted, there, strict=True) if not can]


def _broken(text: bytes, made: Sequence[Proposal], asked: Request) -> list[Dropped]:
    """The proposals that the contract cannot have, or that the data does not pass, as their check tells."""
    paths = _paths(asked.contract, made)
    parsed = parse(text, asked.contract.file)
    wrong = [finding for finding in parsed.findings if finding.severity.blocks]
    if parsed.contract is None or wrong:
        told = {path: finding for finding in wrong for path in paths if finding.path.startswith(path)}
        assert told, wrong
        return [Dropped(paths[path], finding.message) for path, finding in told.items()]
    report = check(replace(asked, contract=parsed.contract, rules=tuple(paths)))
    results = {result.clause: result for result in report.results}
    return [
        Dropped(one, results[path].message if path in results else "no check tests it")
        for path, one in paths.items()
        if path not in results or results[path].status is not Status.PASS
    ]


def _paths(contract: Contract, made: Sequence[Proposal]) -> dict[str, Proposal]:
    """The proposals by the paths of the clauses that they make."""
    nodes = {node.path(): node for one in contract.objects for node in (one, *one.walk())}
    rules = {f"{path}.quality": len(node.quality) for path, node in nodes.items()}
    found = {}
    for one in made:
        path = path_of(one.way)
        if one.key:
            found[f"{path}.{one.key}"] = one
        else:
            found[f"{path}[{rules.setdefault(path, 0)}]"] = one
            rules[path] += 1
    return found

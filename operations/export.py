"""`dq.export`: the schema of a contract in the words of others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from dq.contracts.escaping import comment
from dq.contracts.model import Contract
from dq.contracts.outcome import UsageError, nearest
from dq.operations.registry_files import load, only
from dq.registry import exporting
from dq.registry.exporting import Exported, ExportKind, Write, unsaid


@dataclass(frozen=True, slots=True)
class ExportOutcome:
    """The text, and what that form cannot say, each with what is written instead."""

    text: str
    lost: tuple[str, ...] = ()


def export(
    kind: str, contract: Path | str, object: str | None = None, *, to: str | None = None
) -> ExportOutcome:
    """The schema of the contract in this file in another form, as `dq export` writes it.

    `kind` is odcs, sql, jsonschema, avro, dbt, pandera or html. `object` is the only one that is wanted, and
    `to` names the form where there are several, such as v3.0.2 of odcs. Nothing is written.

    Raises UsageError for a kind, form or object that is not known, and Unreadable for a contract that cannot
    be read or has errors.
    """
    return run(kind, Path(contract), object, to, lambda _: None)


def run(
    kind: str, file: Path, object: str | None, to: str | None, note: Callable[[str], None]
) -> ExportOutcome:
    """The operation itself. Raises as `export`."""
    shelf = exporting.load()
    if kind not in shelf:
        hint = nearest(kind, shelf)
        mend = f"Did you mean {hint}?" if hint else f"It knows {', '.join(shelf)}."
        raise UsageError(f"dq export knows no {kind!r}.", mend)
    known = only(load([file], note))
    wanted = [one for one in known.objects if object in (None, one.name, one.id)]
    if not wanted:
        names = ", ".join(one.name for one in known.objects)
        raise UsageError(f"{file} has no object {object!r}.", f"It has {names}." if names else "")
    made = _write(shelf[kind], to)(known, wanted)
    says = shelf[kind].says
    if says is not None:
        made = replace(made, lost=(*made.lost, *unsaid(known, wanted, says)))
    return ExportOutcome(_headed(shelf[kind], made, known), tuple(map(str, made.lost)))


def _write(kind: ExportKind, to: str | None) -> Write:
    if to is None:
        return kind.write
    if to in kind.others:
        return kind.others[to]
    if not kind.others:
        raise UsageError(f"{kind.id} has one form only.", "Leave --to out.")
    hint = nearest(to, kind.others)
    mend = f"Did you mean {hint}?" if hint else f"It knows {', '.join(kind.others)}."
    raise UsageError(f"dq export {kind.id} knows no {to!r}.", mend)


def _headed(kind: ExportKind, made: Exported, contract: Contract) -> str:
    """The text below what it was made from, and what it does not say, where the form has comments."""
    if not kind.comment:
        return made.text
    head = [f"Made by 'dq export' from {contract.id} {contract.version}", *made.lost]
    return "".join(f"{kind.comment} {comment(line)}.\n" for line in head) + made.text

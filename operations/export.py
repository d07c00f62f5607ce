"""`dq.export`: the schema of a contract in other formats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from dq.contracts.escaping import comment, shell_word
from dq.contracts.model import Contract
from dq.contracts.outcome import UsageError, nearest
from dq.operations.registry_files import load, single_contract
from dq.registry import exporting
from dq.registry.exporting import Exported, ExportKind, Write, unsupported_keys


@dataclass(frozen=True, slots=True)
class ExportOutcome:
    """Exported text, and what the format cannot express, each with its replacement."""

    text: str
    losses: tuple[str, ...] = ()


def export(
    kind: str, contract: Path | str, object: str | None = None, *, to: str | None = None
) -> ExportOutcome:
    """Convert the schema of a contract to another format, as `dq export` does.

    `kind` is odcs, sql, jsonschema, avro, dbt, pandera or html. `object` selects one object, and `to` a
    variant of the format, e.g. v3.0.2 of odcs. Nothing is written.

    Raises UsageError for an unknown kind, variant or object, and ReadError for a contract that cannot be
    read or has errors.
    """
    return run(kind, Path(contract), object, to, lambda _: None)


def run(
    kind: str, file: Path, object: str | None, to: str | None, note: Callable[[str], None]
) -> ExportOutcome:
    """Run the operation. Raises as `export`."""
    export_kinds = exporting.load()
    if kind not in export_kinds:
        suggestion = nearest(kind, export_kinds)
        hint = f"Did you mean {suggestion}?" if suggestion else f"Supported: {', '.join(export_kinds)}."
        if str(file) in export_kinds:
            hint = f"The format comes first: dq export {file} {shell_word(kind)}"
        raise UsageError(f"unknown export format {kind!r}.", hint)
    contract = single_contract(load([file], note))
    objects = [
        schema_object
        for schema_object in contract.objects
        if object in (None, schema_object.name, schema_object.id)
    ]
    if not objects:
        names = ", ".join(schema_object.name for schema_object in contract.objects)
        raise UsageError(f"{file} has no object {object!r}.", f"Objects: {names}." if names else "")
    exported = _write(export_kinds[kind], to)(contract, objects)
    expressible = export_kinds[kind].supported
    if expressible is not None:
        exported = replace(
            exported, unsupported=(*exported.unsupported, *unsupported_keys(contract, objects, expressible))
        )
    return ExportOutcome(
        _with_header(export_kinds[kind], exported, contract), tuple(map(str, exported.unsupported))
    )


def _write(kind: ExportKind, to: str | None) -> Write:
    if to is None:
        return kind.write
    if to in kind.variants:
        return kind.variants[to]
    if not kind.variants:
        raise UsageError(f"{kind.id} has no versions to choose from.", "Remove --to.")
    suggestion = nearest(to, kind.variants)
    hint = f"Did you mean {suggestion}?" if suggestion else f"Supported: {', '.join(kind.variants)}."
    raise UsageError(f"dq export {kind.id} does not support version {to!r}.", hint)


def _with_header(kind: ExportKind, exported: Exported, contract: Contract) -> str:
    """Return the text with a header of its source and losses, if the format has comments."""
    if not kind.comment:
        return exported.text
    header = [f"Made by 'dq export' from {contract.id} {contract.version}", *exported.unsupported]
    return "".join(f"{kind.comment} {comment(line)}.\n" for line in header) + exported.text

"""`dq.sample`: check a small file against its contract without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.access.data_location import RFC_4180, TextFormat, text_format
from dq.contracts.access.files import printable_path
from dq.contracts.install import install_command
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import Finding, MissingTool, UsageError

if TYPE_CHECKING:
    from dq.dataquality.report import Report


def sample(
    contract: Contract | Path | str,
    file: Path | str,
    object: str | None = None,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    now: datetime | None = None,
) -> Report:
    """Check a sample file of at most 64 MB against its contract, as `dq sample` does, without Spark and Java.

    `contract` is the path of its file, its YAML as text, or a loaded contract. The file is CSV, JSON (objects
    by line, or one array) or Parquet, by its extension; without `object` it belongs to the object with its
    name, or to the only one. Text is read in the format of the contract's only server, unless `delimiter` or
    `encoding` are set. Keys and shares are checked within the sample; clauses that need the whole table are
    in the report's accounts. NULL is an empty value of CSV, or the server's text for it. `now` is an aware
    instant, for ages.

    Raises BrokenContract for a contract with errors, UsageError for a file without an object or for a frame,
    ReadError for a file that cannot be read, and MissingTool for Parquet without the extra `sample`.
    """
    from dq.contracts.yaml.parse import read

    if not isinstance(file, str | Path):
        raise UsageError(
            f"dq.sample takes the path of a file, not a {type(file).__name__}.",
            "Check a frame with dq.check.",
        )
    parsed = read(contract)
    if now is not None and now.tzinfo is None:
        raise UsageError(f"now={now!r} has no time zone.", "Pass an aware datetime.")
    schema_object = select_object(parsed, Path(file), object)
    return check_sample(parsed, schema_object, Path(file), text_form(parsed, delimiter, encoding), now)


@dataclass(frozen=True, slots=True)
class SampleOutcome:
    """The contract, or None if it cannot be read, and a report for each file with its path."""

    contract: Contract | None
    findings: tuple[Finding, ...]
    reports: tuple[tuple[Path, Report], ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code of `dq sample`: 1 an error-level check failed, 3 something could not be read or
        measured.
        """
        codes = [report.exit_code for _, report in self.reports]
        return 3 if self.contract is None else next((code for code in (1, 3) if code in codes), 0)


def samples(
    contract: Path, files: Sequence[str], delimiter: str | None = None, encoding: str | None = None
) -> SampleOutcome:
    """Check several sample files, `FILE` or `FILE=OBJECT`, against the contract in a file; see `sample`."""
    from dq.operations.registry_files import load
    from dq.operations.runtime.messages import MESSAGES

    if contract.suffix.lower() in (".csv", ".jsonl", ".ndjson", ".parquet"):
        raise UsageError(
            f"{printable_path(contract)} is not a contract.",
            "The contract comes first: dq sample CONTRACT FILE.",
        )
    loaded = load([contract], MESSAGES.get()().note)
    if not loaded.contracts:
        return SampleOutcome(None, tuple(loaded.findings))
    parsed = loaded.contracts[0]
    pairs = [file_and_object(parsed, text) for text in files]
    form = text_form(parsed, delimiter, encoding)
    reports = tuple((file, check_sample(parsed, schema_object, file, form)) for file, schema_object in pairs)
    return SampleOutcome(parsed, tuple(loaded.findings), reports)


def file_and_object(contract: Contract, text: str) -> tuple[Path, SchemaObject]:
    """Parse `FILE` or `FILE=OBJECT` into file and object."""
    name, equals, object_name = text.rpartition("=")
    # A path may contain an equals sign, as partition folders do.
    if not equals or (contract.object(object_name) is None and Path(text).exists()):
        return Path(text), select_object(contract, Path(text))
    return Path(name), select_object(contract, Path(name), object_name)


def select_object(contract: Contract, file: Path, object_name: str | None = None) -> SchemaObject:
    """Return the object of a sample file: by name, else by the file's name, else the only one.

    Raises UsageError if there is none.
    """
    names = {file.stem, file.name.split(".")[0]}
    if object_name:
        schema_object = contract.object(object_name)
    else:
        schema_object = next((candidate for candidate in contract.objects if candidate.name in names), None)
        schema_object = (
            contract.objects[0] if schema_object is None and len(contract.objects) == 1 else schema_object
        )
    if schema_object is None:
        argument = f"{file}={object_name}" if object_name else str(file)
        object_names = ", ".join(candidate.name for candidate in contract.objects) or "none"
        raise UsageError(
            f"{argument}: no such object in {contract.id!r}.", f"Use FILE=OBJECT, one of: {object_names}."
        )
    return schema_object


def text_form(contract: Contract, delimiter: str | None, encoding: str | None) -> TextFormat:
    """Return the text format of the contract's only server, with the given overrides.

    Raises UsageError for a delimiter that is not one character.
    """
    if delimiter is not None and len(delimiter) != 1:
        raise UsageError(f"the delimiter {delimiter!r} is not one character.", "Use e.g. ';'.")
    form = text_format(contract.servers[0]) if len(contract.servers) == 1 else RFC_4180
    return replace(form, delimiter=delimiter or form.delimiter, encoding=encoding or form.encoding)


def check_sample(
    contract: Contract, schema_object: SchemaObject, file: Path, form: TextFormat, now: datetime | None = None
) -> Report:
    """Check the file. Raises MissingTool without the extra."""
    try:
        from dq.dataquality import sample as local

        return local.check(contract, schema_object, local.read(file, schema_object, form), now)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "dq":
            raise
        raise MissingTool(
            f"Testing a sample needs {error.name}, which is not installed.",
            install_command("sample"),
        ) from error

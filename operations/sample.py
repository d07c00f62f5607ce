"""A small file tested against its contract without Spark: which object it is of, and how it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.access.data_location import RFC_4180, TextFormat, text_format
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
    """A sample file of at most 64 MB against its contract, as `dq sample` tests it, without Spark and Java.

    `contract` is the path of its file, its YAML as a text, or one already read. The file is CSV, JSON
    (objects by line, or one array) or Parquet, by its ending; without `object` it belongs to the object of
    its name, or to the only one. Text is read as the contract's only server says, unless `delimiter` or
    `encoding` say otherwise. Keys and shares are tested within the sample; what only the whole table shows is
    in the report's accounts. NULL is an empty value of CSV, or the server's text for it. `now` is an aware
    instant, for ages.

    Raises BrokenContract for a contract that has errors, UsageError for a file of no object, Unreadable for a
    file that cannot be read, and MissingTool for one of Parquet without the extra `sample`.
    """
    from dq.contracts.yaml.parse import read

    known = read(contract)
    if now is not None and now.tzinfo is None:
        raise UsageError(f"now={now!r} has no zone.", "Give an aware datetime.")
    one = object_of(known, Path(file), object)
    return sampled(known, one, Path(file), form_of(known, delimiter, encoding), now)


@dataclass(frozen=True, slots=True)
class SampleOutcome:
    """The contract, None where it cannot be read, and a report for each file with its path."""

    contract: Contract | None
    findings: tuple[Finding, ...]
    reports: tuple[tuple[Path, Report], ...] = ()

    @property
    def exit_code(self) -> int:
        """As `dq sample` ends: 1 an error-level check failed, 3 something could not be read or measured."""
        codes = [report.exit_code for _, report in self.reports]
        return 3 if self.contract is None else next((code for code in (1, 3) if code in codes), 0)


def samples(
    contract: Path, files: Sequence[str], delimiter: str | None = None, encoding: str | None = None
) -> SampleOutcome:
    """Several sample files, `FILE` or `FILE=OBJECT`, against the contract in a file; see `sample`."""
    from dq.operations.registry_files import load
    from dq.operations.runtime.context import MESSAGES

    loaded = load([contract], MESSAGES.get()().note)
    if not loaded.contracts:
        return SampleOutcome(None, tuple(loaded.findings))
    known = loaded.contracts[0]
    pairs = [file_and_object(known, text) for text in files]
    form = form_of(known, delimiter, encoding)
    reports = tuple((file, sampled(known, one, file, form)) for file, one in pairs)
    return SampleOutcome(known, tuple(loaded.findings), reports)


def file_and_object(contract: Contract, text: str) -> tuple[Path, SchemaObject]:
    """The file and the object that `FILE` or `FILE=OBJECT` says."""
    name, equals, wanted = text.rpartition("=")
    # A file's name may hold an equals sign, as folders of partitions do.
    if not equals or (contract.object(wanted) is None and Path(text).exists()):
        return Path(text), object_of(contract, Path(text))
    return Path(name), object_of(contract, Path(name), wanted)


def object_of(contract: Contract, file: Path, wanted: str | None = None) -> SchemaObject:
    """The object that a file is a sample of: the one of this name, else of the file's, else the only one.

    Raises UsageError where that is none.
    """
    own = {file.stem, file.name.split(".")[0]}
    if wanted:
        found = contract.object(wanted)
    else:
        found = next((one for one in contract.objects if one.name in own), None)
        found = contract.objects[0] if found is None and len(contract.objects) == 1 else found
    if found is None:
        said = f"{file}={wanted}" if wanted else str(file)
        known = ", ".join(one.name for one in contract.objects) or "none"
        raise UsageError(f"{said}: contract {contract.id!r} has the objects {known}.", "Name one of them.")
    return found


def form_of(contract: Contract, delimiter: str | None, encoding: str | None) -> TextFormat:
    """How the contract's only server writes text, and what is said otherwise.

    Raises UsageError for a delimiter that is not one character.
    """
    if delimiter is not None and len(delimiter) != 1:
        raise UsageError(f"the delimiter {delimiter!r} is not one character.", "Write ';', for instance.")
    form = text_format(contract.servers[0]) if len(contract.servers) == 1 else RFC_4180
    return replace(form, delimiter=delimiter or form.delimiter, encoding=encoding or form.encoding)


def sampled(
    contract: Contract, one: SchemaObject, file: Path, form: TextFormat, now: datetime | None = None
) -> Report:
    """The file tested. Raises MissingTool without the extra."""
    try:
        from dq.dataquality import sample as local

        return local.check(contract, one, local.read(file, one, form), now)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "dq":
            raise
        raise MissingTool(
            f"Testing a sample needs {error.name}, which is not installed.",
            install_command("sample"),
        ) from error

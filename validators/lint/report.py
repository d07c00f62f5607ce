"""What a report format is: one file on the shelf `reports/`, from findings to a text."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import PurePosixPath

from dq.contracts.shared.outcome import Finding, Severity
from dq.validators.lint.run import Linted


@dataclass(frozen=True, slots=True)
class Screen:
    """What the reader's screen can do; formats for machines take no notice of it.

    `paint` gives a text a colour, by the code of the SGR sequence (`31;1`) that terminals know.
    """

    paint: Callable[[str, str], str] = lambda text, _: text
    width: int = 100


class From(StrEnum):
    """From where a report names files: what its reader can open.

    `registry`: the registry's root, as findings do. `repository`: the root of the Git repository, as
    services that show a pull request want it. `here`: the working folder, so that a terminal can open them.
    """

    REGISTRY = "registry"
    REPOSITORY = "repository"
    HERE = "here"


@dataclass(frozen=True, slots=True)
class ReportFormat:
    """One format. `render` gives the whole text, which ends with a line break.

    Nothing that a contract says may do anything to who reads the text: `contracts.printable` has the words.
    `steers` says that its own lines are commands to the runner of a CI server.
    """

    id: str
    render: Callable[[Linted, Screen], str]
    files: From = From.REGISTRY
    steers: bool = False


def moved(linted: Linted, folder: PurePosixPath) -> Linted:
    """The same, with files named from elsewhere; `folder` is the registry's root as seen from there.

    Absolute paths, which lie outside of the registry, stay.
    """
    if folder == PurePosixPath():
        return linted

    def name(file: str) -> str:
        # An absolute path swallows the folder; a policy may lie above it.
        return posixpath.normpath(folder / file)

    return Linted(
        tuple(replace(one, at=replace(one.at, file=name(one.at.file))) for one in linted.findings),
        tuple(name(file) for file in linted.files),
        {name(file): data for file, data in linted.sources.items()},
    )


def gravest_first(findings: Sequence[Finding]) -> list[Finding]:
    """By severity, worst first, and then as they came."""
    return sorted(findings, key=lambda finding: -finding.severity.rank)


def lines(data: bytes) -> list[str]:
    """The lines of a contract as YAML 1.1 counts them, which knows three line breaks of Unicode besides."""
    return re.split("\r\n|[\n\r\x85\u2028\u2029]", data.decode("utf-8-sig", "replace"))


def said(number: int, word: str) -> str:
    """`1 error`, `2 errors`, `0 contracts`; info stays."""
    return f"{number} {word}{'' if number == 1 or word == Severity.INFO else 's'}"


def told(linted: Linted) -> list[str]:
    """How many findings there are of each severity that has any, worst first: `2 errors`, `1 warning`."""
    return [said(number, severity) for severity, number in counts(linted.findings).items() if number]


def counts(findings: tuple[Finding, ...]) -> Mapping[Severity, int]:
    """How many findings there are of each severity, worst first; zeros included."""
    made = dict.fromkeys(reversed(Severity), 0)
    for finding in findings:
        made[finding.severity] += 1
    return made

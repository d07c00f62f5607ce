"""A working folder of one's own in which command lines run, and contracts of one table each."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from dq.cli.main import run

HEAD = """\
apiVersion: v3.2.0
kind: DataContract
id: {name}
version: {version}
status: {status}
servers:
  - {{server: lake, type: local, path: lake/{name}, format: parquet}}
"""
SUPPORT = """\
support:
  - {{channel: "#{name}", tool: slack, scope: notifications}}
"""
SCHEMA = """\
schema:
  - name: {name}
    properties:
"""
DAY = """\
      - {{name: day, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 1}}
"""
ID = """\
      - {{name: id, logicalType: integer, physicalType: bigint}}
"""
PROMISE = """\
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: {name}
    schedule: "0 6 * * *"
    customProperties:
      - property: delivery
        vendor: dq
        value: {{grace: 30m, partition: {{day: "{{due - 1d:%F}}"}}, objective: 90%}}
"""
CONTRACT = HEAD + SUPPORT + SCHEMA + DAY + ID + PROMISE
BEGIN, MISSED = "2026-05-10T12:00:00Z", "2026-05-11T07:12:00Z"


def contract(name: str, version: str = "1.0.0", status: str = "active", **parts: str) -> str:
    """A contract whose table and object have its name; `parts` replace texts, each by its key's text."""
    return written(CONTRACT, name, version, status, **parts)


def written(template: str, name: str, version: str = "1.0.0", status: str = "active", **parts: str) -> str:
    """A contract of some of the parts above."""
    return replaced(template.format(name=name, version=version, status=status), parts)


def replaced(text: str, parts: Mapping[str, str]) -> str:
    """The text with each key replaced by its value; a key that does not stand in it is a mistake."""
    for old, new in parts.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def without_settings() -> dict[str, str]:
    """This machine's environment without the settings of dq and Slack."""
    return {name: text for name, text in os.environ.items() if not name.startswith(("DQ_", "SLACK_"))}


@dataclass(frozen=True)
class Ran:
    """An exit code, and what stood on stdout and stderr."""

    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return self.out + self.err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Place:
    """A folder that commands run in."""

    folder: Path

    def put(self, file: str, text: str) -> Path:
        """A file below the folder, and the folders on its way."""
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def dq(self, *arguments: str) -> Ran:
        """One command line, in this process."""
        out, err = StringIO(), StringIO()
        with chdir(self.folder), redirect_stdout(out), redirect_stderr(err):
            code = run(list(arguments))
        return Ran(code, out.getvalue(), err.getvalue())


PEOPLE = """\
apiVersion: v3.2.0
kind: DataContract
id: people
version: 1.0.0
status: active
servers: [{server: lake, type: local, path: people/lake, format: json}]
schema:
  - name: people
    properties:
      - name: email
        logicalType: string
        customProperties: [{property: identity, value: customer.email}]
"""


def people(place: Place) -> None:
    """A table with an identity, and a file of keys."""
    place.put("people/people.odcs.yaml", PEOPLE)
    place.put("people/lake/part-0.json", '{"email": "Ann@Example.com"}\n{"email": "bob@example.com"}\n')
    place.put("keys.txt", "ann@example.com\n")


PROVE = ("people", "--keys", "keys.txt", "--identity", "customer.email")


def proof(place: Place) -> None:
    """A certificate for the keys of `people`, unsigned."""
    place.put("proof.json", place.dq("erasure", "prove", *PROVE).out)


FIND = ("people", "--keys", "keys.txt", "--identity", "customer.email", "--out")

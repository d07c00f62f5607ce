"""What a judgement looks at besides the change: formats, engines, dates; all of it handed in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from dq.contracts.diff.element import FlatElement
from dq.contracts.diff.formats import Structure, profile, structure
from dq.contracts.extension import dataset
from dq.contracts.model import Contract
from dq.validators.compat.judgement.matrix import ENGINE_COLUMN

DEFAULT_ENGINES = ("athena", "spark", "redshift-spectrum")
NOTICE_DAYS = 90

# Server types whose format needs no saying.
_SERVER_FORMATS = {"iceberg": "iceberg", "databricks": "delta"}
_ENGINE = re.compile(r"([a-z-]*[a-z])[ _-]?(<=|>=|<|>|=|==)?[ v]?(\d+)?(?:\.\d+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Setting:
    """Formats by object name, engines, the date, and since when a column is deprecated.

    `format` stands for every object when it is given. `deprecated_since` has dates by element path, from
    the history; a custom property `deprecatedSince` says the same in the file.
    """

    today: date
    engines: tuple[str, ...] = DEFAULT_ENGINES
    format: str | None = None
    formats: Mapping[str, str] = field(default_factory=dict)
    notice_days: int = NOTICE_DAYS
    deprecated_since: Mapping[str, date] = field(default_factory=dict)
    before: FlatElement | None = None

    def format_of(self, object_name: str) -> str:
        """The row of the format table by which an object's data is read."""
        return profile(self.format or self.formats.get(object_name, ""))

    def structure_of(self, element: FlatElement) -> Structure:
        """How the format of an element's object finds columns, or fields of a struct."""
        return structure(self.format_of(element.object_name), self.engines, nested=element.nested)


def formats_of(contract: Contract) -> dict[str, str]:
    """The format of each object by its name in the data: its `dataset` terms, else what its server says."""
    server = next((server for server in contract.servers if server.get("format")), None)
    kind = next((_SERVER_FORMATS[one.type] for one in contract.servers if one.type in _SERVER_FORMATS), "")
    usual = (server.get("format") if server else None) or kind
    return {one.column: dataset(one)[0].format or usual for one in contract.objects}


def engine(text: str) -> str:
    """The engine that a text means: `spark<=3.5` and `spark 3` are `spark-3`, `trino<452` is `trino-451`.

    A version that makes no difference is left out; an unknown engine stands as it is, and nothing is known
    to be readable by it.
    """
    word = text.strip().lower().split(" partitions")[0].removesuffix("-hive").replace(" ", "-")
    match = _ENGINE.fullmatch(word)
    if match is None:
        return word
    name, sign, number = match[1].strip("-"), match[2] or "", int(match[3]) if match[3] else None
    name = {"redshift": "redshift-spectrum", "spectrum": "redshift-spectrum", "emr": "spark"}.get(name, name)
    if name == "spark" and number is not None and (number < 4 or (number == 4 and sign == "<")):
        return "spark-3"
    if name == "trino" and number is not None and (number < 452 or (number == 452 and sign == "<")):
        return "trino-451" if sign in ("<", "<=", "=", "==", "") else name
    return name if name in ENGINE_COLUMN else word

"""A model, seed, snapshot or source of dbt, whichever file it was read from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dq.registry.importing.documents import Mapped, listed, mapped, text

# Keys of a test beside its arguments.
_BESIDE = ("name", "description", "config", "tags", "meta", "docs", "arguments")
_SETTINGS = ("severity", "where", "enabled", "error_if", "warn_if", "limit", "fail_calc", "store_failures")


@dataclass(frozen=True, slots=True)
class DbtTest:
    """A test with the column that it is about, "" for the whole table. `config` are dbt's own settings."""

    name: str
    arguments: Mapping[str, object]
    column: str = ""
    config: Mapping[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class DbtTable:
    """A table. `name` is what refs call it, `alias` its name in the database, `source` the group of a source.

    `columns` are as dbt writes them, by name; `types` what the warehouse said of their types.
    """

    name: str
    said: Mapped
    alias: str = ""
    source: str = ""
    columns: dict[str, Mapped] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    tests: list[DbtTest] = field(default_factory=list)

    def config(self, key: str) -> object:
        """A setting, which newer versions of dbt keep under `config`."""
        inner = mapped(self.said.get("config"))
        return inner[key] if inner.get(key) not in (None, {}, []) else self.said.get(key)


def written_tests(said: Mapped, column: str = "") -> Iterator[DbtTest]:
    """The tests that a file of properties lists at a table or a column, in each of dbt's spellings."""
    for one in [*listed(said.get("data_tests")), *listed(said.get("tests"))]:
        if isinstance(one, str):
            yield DbtTest(one, {}, column)
            continue
        inner = mapped(one)
        if "test_name" in inner:
            name, rest = text(inner.pop("test_name")), inner
        elif len(inner) == 1:
            [(name, value)] = inner.items()
            rest = mapped(value)
        else:
            # `not_null:` with its settings one step too far left, as dbt takes it too.
            name = next(iter(inner), "")
            rest = {**mapped(inner.pop(name, None)), **inner}
        settings = {**{key: rest[key] for key in _SETTINGS if key in rest}, **mapped(rest.get("config"))}
        arguments = {key: value for key, value in rest.items() if key not in (*_BESIDE, *_SETTINGS)}
        yield DbtTest(name, {**arguments, **mapped(rest.get("arguments"))}, column, settings)

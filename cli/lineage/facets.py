"""What a check found, as the facets that OpenLineage has for it. No row of the data is in any of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from openlineage.client.facet_v2 import (
    DatasetFacet,
    InputDatasetFacet,
    RunFacet,
    data_quality_assertions_dataset,
    data_quality_metrics_input_dataset,
    schema_dataset,
    set_producer,
    symlinks_dataset,
    tags_run,
    test_run,
)

from dq.cli.lineage.naming import DatasetName
from dq.contracts.model import Property, Quality, SchemaObject
from dq.contracts.shared.outcome import CheckResult, Status
from dq.dataquality import Report

_Metrics = data_quality_metrics_input_dataset.ColumnMetrics
# A text of a contract may be of any length, and a backend keeps all of it.
_LONGEST = 500
# What a check's number is in OpenLineage's words, where it is the number of all rows of the scope.
_COUNTS = {"required": "nullCount", "distinct_count": "distinctCount"}
_NUMBERS = {"sum": "sum", "min": "min", "max": "max"}


def sign(producer: str) -> None:
    """Who made the facets, for all of this process: the client keeps it in one place."""
    set_producer(producer)


def clipped(text: str) -> str:
    """The text, or as much of it as an event should hold."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def schema(one: SchemaObject) -> DatasetFacet:
    """The columns that the contract promises."""
    return schema_dataset.SchemaDatasetFacet(fields=list(_fields(one.properties)))


def symlinks(others: Sequence[DatasetName]) -> DatasetFacet:
    """The names that the dataset goes by besides its own: those of tables in catalogs."""
    return symlinks_dataset.SymlinksDatasetFacet(
        identifiers=[symlinks_dataset.Identifier(each.namespace, each.name, "TABLE") for each in others]
    )


def assertions(report: Report) -> InputDatasetFacet:
    """Each clause that was tested; one that could not be measured is no success, and says so in `actual`."""
    return data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(
        assertions=[
            data_quality_assertions_dataset.Assertion(
                assertion=result.check,
                success=result.status is Status.PASS,
                column=_column(result),
                severity=_severity(result),
                name=result.name or result.clause,
                expected=clipped(result.allowed),
                actual=_actual(result),
            )
            for result in report.results
            if result.status is not Status.SKIPPED
        ]
    )


def metrics(report: Report, one: SchemaObject) -> InputDatasetFacet:
    """The numbers of rows, nulls and values that the clauses measured on all rows of the scope."""
    narrowed = set(_narrowed(one))
    found: dict[str, _Metrics] = {}
    rows = None
    for result in report.results:
        if result.value is None or not math.isfinite(result.value) or result.by or result.clause in narrowed:
            continue
        if result.check == "row_count":
            rows = int(result.value)
        elif result.check in _COUNTS or result.check in _NUMBERS:
            number = int(result.value) if result.check in _COUNTS else result.value
            kept = found.setdefault(result.property, _Metrics())
            setattr(kept, (_COUNTS | _NUMBERS)[result.check], number)
    return data_quality_metrics_input_dataset.DataQualityMetricsInputDatasetFacet(
        columnMetrics=found, rowCount=rows
    )


def tests(report: Report) -> RunFacet:
    """Every clause with what became of it, the skipped ones too."""
    return test_run.TestRunFacet(
        tests=[
            test_run.TestExecution(
                name=result.name or result.clause,
                status={Status.PASS: "pass", Status.SKIPPED: "skip"}.get(result.status, "fail"),
                severity=_severity(result),
                type=result.check,
                expected=clipped(result.allowed),
                actual=_actual(result),
            )
            for result in report.results
        ]
    )


def tags(**texts: str) -> RunFacet:
    """What the run was about, as tags whose source is dq; empty texts are left out."""
    return tags_run.TagsRunFacet(
        tags=[tags_run.TagsRunFacetFields(key, text, "DQ") for key, text in texts.items() if text]
    )


def _column(result: CheckResult) -> str | None:
    """The one column that it is about, as the schema calls it; None for a key of several and for the rows."""
    return result.property if result.property and ", " not in result.property else None


def _severity(result: CheckResult) -> str:
    return "error" if result.severity.blocks else "warn"


def _actual(result: CheckResult) -> str:
    # Why something could not be measured may be an engine's own words, which quote the data.
    return "could not be measured" if result.status is Status.ERROR else clipped(result.observed)


def _narrowed(one: SchemaObject) -> Iterator[str]:
    """The rules whose number is a share, or is of some rows only."""
    for element in (one, *one.walk()):
        for quality in element.quality:
            if _percent(quality) or quality.custom("scope") is not None:
                yield quality.path()


def _percent(quality: Quality) -> bool:
    asked = quality.implementation if isinstance(quality.implementation, dict) else {}
    return any(str(unit).strip().lower() in ("percent", "%") for unit in (quality.unit, asked.get("unit")))


def _fields(properties: Iterable[Property]) -> Iterator[schema_dataset.SchemaDatasetFacetFields]:
    for position, prop in enumerate(properties, 1):
        inner = prop.properties or (prop.items.properties if prop.items else [])
        yield schema_dataset.SchemaDatasetFacetFields(
            name=prop.column,
            type=prop.physical_type or prop.logical_type,
            description=clipped(prop.description) if prop.description else None,
            ordinal_position=position,
            fields=list(_fields(inner)),
        )

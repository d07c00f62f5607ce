"""Events of OpenLineage: facets and runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    InputDatasetFacet,
    RunFacet,
    data_quality_assertions_dataset,
    data_quality_metrics_input_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    schema_dataset,
    set_producer,
    symlinks_dataset,
    tags_run,
    test_run,
)
from openlineage.client.uuid import generate_new_uuid

from dq.contracts.model import Contract, Property, Quality, SchemaObject
from dq.contracts.shared.install import NAME, release
from dq.contracts.shared.outcome import UNTOLD, CheckResult, Status
from dq.dataquality.report import Report
from dq.operations.openlineage.sender import DatasetName

# What a check found, as the facets that OpenLineage has for it. No row of the data is in any of them.

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


def tags_facet(**texts: str) -> RunFacet:
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


# Events of OpenLineage for runs of dq: a start, and one end with the same run id.
#
# A check or an audit that came to a verdict is COMPLETE, whether the promise is kept or broken; one that
# did
# not is FAIL.

NAMESPACE = "dq"
PRODUCER = f"https://pypi.org/project/{NAME}/{release()}"
sign(PRODUCER)


@dataclass(frozen=True, slots=True)
class LineageSubject:
    """An object of a contract, what its data is called, and what it is made from.

    `called` is not empty; its first name is the dataset's own.
    """

    contract: Contract
    object: SchemaObject
    called: Sequence[DatasetName]
    made_from: Sequence[DatasetName] = ()


@dataclass(frozen=True, slots=True)
class CheckedScope:
    """One check of a subject on a scope, such as `day=2026-11-20`; its id is the same in all its events.

    `verb` is `check`, or `audit` of what is `staged`, which no reader sees yet.
    """

    subject: LineageSubject
    scope: str
    verb: str = "check"
    staged: str = ""
    id: str = field(default_factory=lambda: str(generate_new_uuid()))

    def started(self, at: datetime) -> RunEvent:
        """The check begins."""
        return self._event(RunState.START, at, {}, {})

    def judged(self, report: Report | None, at: datetime) -> RunEvent:
        """The check came to an end, with what it found; None: this very run was published before."""
        if report is None:
            return self._event(RunState.COMPLETE, at, {}, {}, "published before")
        found = {
            "dataQualityAssertions": assertions(report),
            "dataQualityMetrics": metrics(report, self.subject.object),
        }
        run = {"test": tests(report)}
        state = RunState.FAIL if report.verdict == UNTOLD else RunState.COMPLETE
        return self._event(state, at, run, found, report.verdict)

    def failed(self, at: datetime, message: str) -> RunEvent:
        """Nothing could be tested, for this reason."""
        said = error_message_run.ErrorMessageRunFacet(clipped(message), "Python")
        return self._event(RunState.FAIL, at, {"errorMessage": said}, {}, UNTOLD)

    def _event(
        self,
        state: RunState,
        at: datetime,
        run: dict[str, RunFacet],
        found: dict[str, InputDatasetFacet],
        verdict: str = "",
    ) -> RunEvent:
        subject = self.subject
        tags = tags_facet(
            contract=subject.contract.key,
            contract_version=subject.contract.version,
            scope=self.scope,
            staged=self.staged,
            verdict=verdict,
        )
        (namespace, name), *others = subject.called
        checked = InputDataset(namespace, name, facets=_described(subject.object, others), inputFacets=found)
        return RunEvent(
            eventTime=_time(at),
            producer=PRODUCER,
            eventType=state,
            run=Run(self.id, facets={"tags": tags, **run}),
            job=_job(self.verb, subject),
            inputs=[checked, *(InputDataset(each.namespace, each.name) for each in subject.made_from)],
        )


def published(subject: LineageSubject, id: str, at: datetime, rows: int | None = None) -> list[RunEvent]:
    """A delivery is known: the dataset was made from its inputs. `id` is a UUID that a retry has too."""
    (namespace, name), *others = subject.called
    counted = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows)
    made = OutputDataset(
        namespace,
        name,
        facets=_described(subject.object, others),
        outputFacets={} if rows is None else {"outputStatistics": counted},
    )
    tags = tags_facet(contract=subject.contract.key, contract_version=subject.contract.version)
    return [
        RunEvent(
            eventTime=_time(at),
            producer=PRODUCER,
            eventType=state,
            run=Run(id, facets={"tags": tags}),
            job=_job("publish", subject),
            inputs=[InputDataset(each.namespace, each.name) for each in subject.made_from],
            outputs=[made],
        )
        for state in (RunState.START, RunState.COMPLETE)
    ]


def _described(one: SchemaObject, others: Sequence[DatasetName]) -> dict[str, DatasetFacet]:
    return {"schema": schema(one)} | ({"symlinks": symlinks(others)} if others else {})


def _job(verb: str, subject: LineageSubject) -> Job:
    kind = job_type_job.JobTypeJobFacet(processingType="BATCH", integration="DQ", jobType=verb.upper())
    return Job(NAMESPACE, f"{verb}.{subject.contract.key}.{subject.object.name}", facets={"jobType": kind})


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")

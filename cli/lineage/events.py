"""Events of OpenLineage for runs of dq: a start, and one end with the same run id.

A check or an audit that came to a verdict is COMPLETE, whether the promise is kept or broken; one that did
not is FAIL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    InputDatasetFacet,
    RunFacet,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
)
from openlineage.client.uuid import generate_new_uuid

from dq.cli.lineage import facets
from dq.cli.lineage.naming import DatasetName
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.install import NAME, release
from dq.contracts.shared.outcome import UNTOLD
from dq.dataquality import Report

NAMESPACE = "dq"
PRODUCER = f"https://pypi.org/project/{NAME}/{release()}"
facets.sign(PRODUCER)


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
            "dataQualityAssertions": facets.assertions(report),
            "dataQualityMetrics": facets.metrics(report, self.subject.object),
        }
        run = {"test": facets.tests(report)}
        state = RunState.FAIL if report.verdict == UNTOLD else RunState.COMPLETE
        return self._event(state, at, run, found, report.verdict)

    def failed(self, at: datetime, message: str) -> RunEvent:
        """Nothing could be tested, for this reason."""
        said = error_message_run.ErrorMessageRunFacet(facets.clipped(message), "Python")
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
        tags = facets.tags(
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
    tags = facets.tags(contract=subject.contract.key, contract_version=subject.contract.version)
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
    return {"schema": facets.schema(one)} | ({"symlinks": facets.symlinks(others)} if others else {})


def _job(verb: str, subject: LineageSubject) -> Job:
    kind = job_type_job.JobTypeJobFacet(processingType="BATCH", integration="DQ", jobType=verb.upper())
    return Job(NAMESPACE, f"{verb}.{subject.contract.key}.{subject.object.name}", facets={"jobType": kind})


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")

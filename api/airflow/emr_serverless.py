"""dq on EMR Serverless as an Airflow task: submits the request of `dq emr`, waits, and returns the reports.

Sources: "StartJobRun", "GetJobRun" and "CancelJobRun" in the EMR Serverless API reference; "Logging for
EMR Serverless with Amazon S3" in its user guide, for the place of the driver's output.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from airflow.triggers.base import BaseTrigger, TriggerEvent

from dq.airflow.command import AirflowException, AirflowFailException, Ended, failure, options
from dq.airflow.operators import CommandOperator, summaries

# Errors of StartJobRun that a retry does not change.
_REFUSALS = frozenset({"AccessDeniedException", "ResourceNotFoundException", "ValidationException"})
_ENDED = frozenset({"SUCCESS", "FAILED", "CANCELLED"})
# In the details of a failed job, among the last exceptions of its log.
_EXIT_CODE = re.compile(r"\bExitCode: (\d+)")
_MAX_LOG_BYTES = 64 * 1024 * 1024
_DOCUMENT = re.compile(r"^\[", re.MULTILINE)


class DqEmrServerlessOperator(CommandOperator):
    """Runs a dq command on EMR Serverless and waits for it; killing the task cancels the job.

    `arguments` are the words of the command, e.g. `["check", "contracts/orders.odcs.yaml"]`; the other
    arguments are those of `dq emr`, which builds the request and needs the extra `aws` in dq's environment.
    Credentials and region are those of the connection `aws_conn_id`, which needs Airflow's Amazon provider;
    by default boto3's, in Airflow's environment. `logs` is an S3 prefix for the driver's output, which is
    uploaded within `log_seconds` of the end: XCom then gets the counts of each report of `check`, and a
    failed task names the failed checks.
    By default an attempt of a task starts one job, also if its worker is restarted.

    `deferrable` waits in the triggerer; the job of a killed task is then cancelled from Airflow 3.3 on.
    """

    template_fields: Sequence[str] = (
        *CommandOperator.template_fields,
        *("arguments", "application", "role", "entry", "environment", "contracts"),
        *("tags", "conf", "once", "logs", "aws_conn_id"),
    )  # fmt: skip

    def __init__(
        self,
        *,
        arguments: Sequence[str],
        application: str,
        role: str,
        entry: str,
        environment: str,
        contracts: str | None = None,
        name: str = "dq",
        tags: Mapping[str, str] | None = None,
        conf: Mapping[str, str] | None = None,
        timeout_minutes: int = 60,
        once: str | None = None,
        logs: str | None = None,
        region: str | None = None,
        aws_conn_id: str | None = None,
        poll_seconds: float = 30.0,
        log_seconds: float = 180.0,
        deferrable: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.arguments = list(arguments)
        self.application = application
        self.role = role
        self.entry = entry
        self.environment = environment
        self.contracts = contracts
        self.name = name
        self.tags = dict(tags or {})
        self.conf = dict(conf or {})
        self.timeout_minutes = timeout_minutes
        self.once = once
        self.logs = logs
        self.region = region
        self.aws_conn_id = aws_conn_id
        self.poll_seconds = poll_seconds
        self.log_seconds = log_seconds
        self.deferrable = deferrable
        self._job_run: str | None = None

    def execute(self, context: Any) -> Any:
        """Start the job and wait; return its id, exit code and the counts of its reports, if any."""
        request = self._request(context)
        client = _client("emr-serverless", self.region, self.aws_conn_id)
        try:
            self._job_run = job_run = client.start_job_run(**request)["jobRunId"]
        except client.exceptions.ClientError as error:
            final = error.response["Error"]["Code"] in _REFUSALS
            raise (AirflowFailException if final else AirflowException)(
                f"cannot start the job: {error}"
            ) from error
        self.log.info("Started job run %s on application %s", job_run, self.application)
        if self.deferrable:
            return self.defer(
                trigger=EmrServerlessTrigger(
                    self.application, job_run, self.region, self.poll_seconds, self.aws_conn_id
                ),
                method_name="resume",
            )
        while (event := _state(client, self.application, job_run))["state"] not in _ENDED:
            time.sleep(self.poll_seconds)
        return self.resume(context, event)

    def resume(self, context: Any, event: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG002  # Airflow's own
        """Return the result of a job that succeeded. Raises AirflowException for one that did not."""
        job_run, state, details = event["job_run_id"], event["state"], event["details"]
        task = f"dq {' '.join(self.arguments)} in job run {job_run}"
        printed = self._output(job_run) if self.logs and state != "CANCELLED" else None
        if state != "SUCCESS":
            code = _EXIT_CODE.search(details)
            if code is not None:
                raise failure(task, Ended(int(code[1]), printed or "", [details]))
            raise AirflowException(f"{task} ended as {state}: {details or 'no details'}")
        reports = None
        if self.logs and self._is_check:
            if printed is None:
                raise AirflowException(
                    f"{task} succeeded, but its reports are not in {self._stdout(job_run)}"
                )
            reports = summaries(task, json.loads(printed))
        return {"job_run_id": job_run, "exit_code": 0, "reports": reports}

    def on_kill(self) -> None:
        """Cancel the job."""
        super().on_kill()
        if self._job_run is not None:
            _cancel(self.application, self._job_run, self.region, self.aws_conn_id)
            self.log.info("Cancelled job run %s", self._job_run)

    @property
    def _is_check(self) -> bool:
        return self.arguments[:1] == ["check"]

    def _request(self, context: Any) -> dict[str, Any]:
        """Return the parameters of StartJobRun that `dq emr` prints."""
        arguments = self.arguments
        if self._is_check:
            arguments = ["check", "--format=json", *arguments[1:]]
        words = [
            "emr",
            *options({
                "application": self.application, "role": self.role, "entry": self.entry,
                "environment": self.environment, "contracts": self.contracts, "name": self.name,
                "timeout": self.timeout_minutes, "once": self.once or _attempt(context), "logs": self.logs,
            }),
            *(f"--tag={key}={value}" for key, value in self.tags.items()),
            *(f"--conf={key}={value}" for key, value in self.conf.items()),
            *("--", *arguments),
        ]  # fmt: skip
        ended = self._in_subprocess(words)
        if ended.code:
            raise failure("dq emr", ended)
        request: dict[str, Any] = json.loads(ended.printed)
        return request

    def _stdout(self, job_run: str) -> str:
        prefix = (self.logs or "").rstrip("/")
        return f"{prefix}/applications/{self.application}/jobs/{job_run}/SPARK_DRIVER/stdout.gz"

    def _output(self, job_run: str) -> str | None:
        """Return the reports in the driver's output as JSON, or None if they are not there in time."""
        url = urlsplit(self._stdout(job_run))
        client = _client("s3", self.region, self.aws_conn_id)
        deadline = time.monotonic() + self.log_seconds
        while True:
            try:
                body = client.get_object(Bucket=url.netloc, Key=url.path.lstrip("/"))["Body"]
                with gzip.open(body) as stream:
                    text = stream.read(_MAX_LOG_BYTES).decode(errors="replace")
                if (reports := _reports(text)) is not None:
                    return json.dumps(reports)
                problem = "it has no reports"
            except client.exceptions.ClientError as error:
                # S3 also denies access to what does not exist.
                problem = str(error)
            except (EOFError, OSError) as error:
                problem = f"it is incomplete: {error}"
            if time.monotonic() > deadline:
                self.log.warning("No reports in %s: %s", self._stdout(job_run), problem)
                return None
            time.sleep(min(self.poll_seconds, 10.0))


class EmrServerlessTrigger(BaseTrigger):
    """Polls a job run until it has ended. All state is in the arguments; read errors are retried."""

    def __init__(
        self,
        application: str,
        job_run: str,
        region: str | None = None,
        poll_seconds: float = 30.0,
        aws_conn_id: str | None = None,
    ) -> None:
        super().__init__()
        self.application = application
        self.job_run = job_run
        self.region = region
        self.poll_seconds = poll_seconds
        self.aws_conn_id = aws_conn_id

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and its arguments."""
        return "dq.airflow.emr_serverless.EmrServerlessTrigger", {
            "application": self.application,
            "job_run": self.job_run,
            "region": self.region,
            "poll_seconds": self.poll_seconds,
            "aws_conn_id": self.aws_conn_id,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event when the job has ended."""
        client = await asyncio.to_thread(_client, "emr-serverless", self.region, self.aws_conn_id)
        while True:
            event = await asyncio.to_thread(_state, client, self.application, self.job_run)
            if event["state"] in _ENDED:
                yield TriggerEvent(event)
                return
            await asyncio.sleep(self.poll_seconds)

    async def on_kill(self) -> None:
        """Cancel the job if a user ends the task. Called by Airflow 3.3 and newer."""
        await asyncio.to_thread(_cancel, self.application, self.job_run, self.region, self.aws_conn_id)


def _client(service: str, region: str | None, aws_conn_id: str | None) -> Any:
    """Return a client with the credentials of the connection, or boto3's. Raises AirflowFailException without
    boto3 or, for a connection, Airflow's Amazon provider.
    """
    try:
        import boto3
        from botocore.config import Config
    except ImportError as error:
        raise AirflowFailException(
            "EMR Serverless needs boto3 in Airflow's environment: install it."
        ) from error
    # With its backoff this bridges some minutes: the job goes on meanwhile.
    config = Config(retries={"mode": "standard", "max_attempts": 20})
    if aws_conn_id is None:
        return boto3.client(service, region_name=region, config=config)
    try:
        from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook
    except ImportError as error:
        raise AirflowFailException(
            f"The connection {aws_conn_id!r} needs Airflow's Amazon provider: install "
            "apache-airflow-providers-amazon, or leave out aws_conn_id."
        ) from error
    hook = AwsBaseHook(aws_conn_id, client_type=service, region_name=region, config=config)
    return hook.get_conn()


def _state(client: Any, application: str, job_run: str) -> dict[str, str]:
    """Return the id of the job run, its state and the details, which may be empty."""
    job = client.get_job_run(applicationId=application, jobRunId=job_run)["jobRun"]
    return {"job_run_id": job_run, "state": job["state"], "details": job.get("stateDetails") or ""}


def _cancel(application: str, job_run: str, region: str | None, aws_conn_id: str | None) -> None:
    client = _client("emr-serverless", region, aws_conn_id)
    client.cancel_job_run(applicationId=application, jobRunId=job_run)


def _attempt(context: Any) -> str | None:
    """Return a name of this attempt of the task, or None outside of Airflow."""
    task = context.get("ti")
    if task is None:
        return None
    return f"{task.dag_id}/{task.task_id}/{task.run_id}/{task.map_index}/{task.try_number}"


def _reports(text: str) -> list[dict[str, Any]] | None:
    """Return the reports in an output that also has lines of Spark, or None if there are none."""
    for candidate in _arrays(text):
        if all(isinstance(report, dict) and "contract" in report for report in candidate):
            return candidate
    return None


def _arrays(text: str) -> Iterator[list[Any]]:
    for begin in _DOCUMENT.finditer(text):
        try:
            yield json.JSONDecoder().raw_decode(text, begin.start())[0]
        except ValueError:
            continue

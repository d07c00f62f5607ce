"""EMR Serverless: moto's API over HTTP, and a platform that runs each job as a process of this machine.

moto leaves a job in its first state (here RUNNING); it has no idempotency by `clientToken` and no logs.
The platform runs the submitted words of dq, uploads their output as the log of the driver, and sets a state.
"""

from __future__ import annotations

import gzip
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.emrserverless.models import emrserverless_backends
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer

REGION, ACCOUNT, BUCKET = "eu-west-1", "123456789012", "logs"
# Lines of Spark before and after what the program prints.
NOISE = "26/05/11 05:00:01 INFO SparkContext: Running\n[main] INFO started\n"


@dataclass
class Platform:
    """`runs_jobs` false leaves them running. `requests` are those of the jobs, in order."""

    folder: Path
    endpoint: str
    application: str
    runs_jobs: bool = True
    uploads_logs: bool = True
    requests: list[dict[str, Any]] = field(default_factory=list)
    _stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def variables(self) -> dict[str, str]:
        """What points boto3 here, away from any real account."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": REGION,
        }

    @property
    def states(self) -> list[str]:
        """States of the jobs, in order."""
        return [job.state for job in self._jobs()]

    def _jobs(self) -> list[Any]:
        return list(emrserverless_backends[ACCOUNT][REGION].job_runs.get(self.application, []))

    def run(self) -> None:
        while not self._stopped.wait(0.05):
            jobs = self._jobs()
            for job in jobs[len(self.requests) :]:
                driver = job.job_driver["sparkSubmit"]
                self.requests.append({"token": job.client_token, **driver, "name": job.name})
                if self.runs_jobs:
                    self._run(job, driver["entryPointArguments"])

    def _run(self, job: Any, words: list[str]) -> None:
        command = [sys.executable, "-P", "-m", "dq", *words]
        ended = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        overrides = job.configuration_overrides or {}
        if overrides and self.uploads_logs:
            uri = overrides["monitoringConfiguration"]["s3MonitoringConfiguration"]["logUri"]
            key = f"applications/{self.application}/jobs/{job.id}/SPARK_DRIVER/stdout.gz"
            prefix = uri.removeprefix(f"s3://{BUCKET}").strip("/")
            client = boto3.client("s3", endpoint_url=self.endpoint, region_name=REGION)
            body = gzip.compress((NOISE + ended.stdout + NOISE).encode())
            client.put_object(Bucket=BUCKET, Key=f"{prefix}/{key}".lstrip("/"), Body=body)
        if ended.returncode:
            job.state_details = (
                "Job failed, please check complete logs in configured logging destination. "
                f"ExitCode: {ended.returncode}. Last few exceptions: …"
            )
        job.state = "FAILED" if ended.returncode else "SUCCESS"

    def stop(self) -> None:
        self._stopped.set()


@contextmanager
def platform(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Platform]:
    """A platform whose jobs run in this folder."""
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    monkeypatch.setattr("moto.emrserverless.models.JOB_STATUS", "RUNNING")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    for backends in (emrserverless_backends, s3_backends):
        backends.reset()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    client = boto3.client("emr-serverless", endpoint_url=endpoint, region_name=REGION)
    boto3.client("s3", endpoint_url=endpoint, region_name=REGION).create_bucket(
        Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION}
    )
    application = client.create_application(name="dq", releaseLabel="emr-7.1.0", type="SPARK")
    made = Platform(folder, endpoint, application["applicationId"])
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.stop()
        thread.join(30)
        server.stop()

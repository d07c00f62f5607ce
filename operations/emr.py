"""`dq.emr`: the StartJobRun request of EMR Serverless, validated offline.

Sources: "StartJobRun" in the EMR Serverless API reference, as botocore's service model has it; "Using Python
libraries with EMR Serverless" (a packed environment) in its user guide.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dq.contracts.install import install_command
from dq.contracts.outcome import MissingTool, UsageError

# Folders into which the two archives are unpacked, on the driver and every executor.
ENVIRONMENT, CONTRACTS = "environment", "contracts"
_PYTHON = f"./{ENVIRONMENT}/bin/python"
# Settings for the Python of the driver and the executors.
_INTERPRETERS = (
    "spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON",
    "spark.emr-serverless.driverEnv.PYSPARK_PYTHON",
    "spark.executorEnv.PYSPARK_PYTHON",
)
_TOKENS = uuid.UUID("5a4c3f0e-6a5f-5d0b-9a57-0d1c3c0f9e11")


@dataclass(frozen=True, slots=True)
class Job:
    """A command line of dq on an application of EMR Serverless.

    `entry` is `dq_submit.py` on S3, `environment` a packed virtual environment, `contracts` an archive of
    the contracts or None. `once` is an idempotency key: the same key gives the same run.
    """

    application: str
    role: str
    entry: str
    environment: str
    arguments: tuple[str, ...]
    contracts: str | None = None
    name: str = "dq"
    tags: tuple[tuple[str, str], ...] = ()
    conf: tuple[tuple[str, str], ...] = ()
    timeout_minutes: int = 60
    once: str | None = None
    logs: str | None = None


def emr(
    arguments: Sequence[str],
    *,
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
) -> dict[str, Any]:
    """Return the parameters of StartJobRun for a dq command, as `dq emr` prints them. Nothing is sent.

    `arguments` are its words, e.g. `["check", "contracts/orders.odcs.yaml"]`; `application` is the id of the
    application, `role` the ARN that the job runs as, `entry` the S3 URL of `dq_submit.py`, `environment` and
    `contracts` archives on S3. `conf` are Spark settings. `once` is an idempotency key, e.g. the partition.
    `logs` is an S3 prefix for the logs of the job and its output.

    Raises UsageError for a request that AWS would reject, and MissingTool without boto3.
    """
    job = Job(
        application,
        role,
        entry,
        environment,
        tuple(arguments),
        contracts,
        name,
        tuple((tags or {}).items()),
        tuple((conf or {}).items()),
        timeout_minutes,
        once,
        logs,
    )
    request = _request(job)
    if problems := aws_problems(request):
        raise UsageError("AWS would reject this request:", details=problems)
    return request


def _request(job: Job) -> dict[str, Any]:
    """Return the parameters of StartJobRun.

    The client token makes the request idempotent: it is derived from the job if `once` is set, else random.
    """
    archives = [f"{job.environment}#{ENVIRONMENT}"]
    archives += [f"{job.contracts}#{CONTRACTS}"] if job.contracts else []
    conf = {"spark.archives": ",".join(archives), **dict.fromkeys(_INTERPRETERS, _PYTHON), **dict(job.conf)}
    return {
        "applicationId": job.application,
        "clientToken": str(uuid.uuid4() if job.once is None else uuid.uuid5(_TOKENS, repr(job))),
        "executionRoleArn": job.role,
        "name": job.name,
        "executionTimeoutMinutes": job.timeout_minutes,
        "jobDriver": {
            "sparkSubmit": {
                "entryPoint": job.entry,
                "entryPointArguments": list(job.arguments),
                "sparkSubmitParameters": " ".join(f"--conf {key}={value}" for key, value in conf.items()),
            }
        },
        "tags": dict(job.tags),
        **({"configurationOverrides": _logging(job.logs)} if job.logs else {}),
    }


def _logging(prefix: str) -> dict[str, Any]:
    return {"monitoringConfiguration": {"s3MonitoringConfiguration": {"logUri": prefix}}}


def aws_problems(request: Mapping[str, Any]) -> list[str]:
    """Validate the request against botocore's service model: offline, without credentials.

    Raises MissingTool without boto3.
    """
    try:
        import botocore.session
        from botocore.validate import ParamValidator
    except ImportError as error:
        raise MissingTool(
            "Validating the request needs AWS's API model, which is part of boto3.",
            install_command("aws"),
        ) from error
    model = botocore.session.Session().get_service_model("emr-serverless")
    shape = model.operation_model("StartJobRun").input_shape
    report = ParamValidator().validate(request, shape).generate_report()
    return [
        *filter(None, report.splitlines()),
        *_space_problems(request),
        *_pattern_problems(request, shape, ""),
    ]


def _space_problems(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield settings with spaces: EMR splits its parameters at spaces and does not support quotes."""
    words = request["jobDriver"]["sparkSubmit"]["sparkSubmitParameters"].split(" ")
    for index, word in enumerate(words):
        if word != "--conf" and (index == 0 or words[index - 1] != "--conf"):
            yield f"{word!r} follows a space in a Spark setting"


def _pattern_problems(value: Any, shape: Any, path: str) -> Iterator[str]:
    """Yield values that do not match the pattern in the model, which botocore does not validate."""
    if shape.type_name == "structure" and isinstance(value, Mapping):
        for name, item in value.items():
            if name in shape.members:
                yield from _pattern_problems(item, shape.members[name], f"{path}.{name}".strip("."))
    elif shape.type_name == "map" and isinstance(value, Mapping):
        for name, item in value.items():
            yield from _pattern_problems(name, shape.key, f"{path}.{name}")
            yield from _pattern_problems(item, shape.value, f"{path}.{name}")
    elif shape.type_name == "list" and isinstance(value, Sequence) and not isinstance(value, str):
        for index, item in enumerate(value):
            yield from _pattern_problems(item, shape.member, f"{path}[{index}]")
    elif shape.type_name == "string" and isinstance(value, str):
        pattern = shape.metadata.get("pattern")
        # The model doubles the backslash of `\u002F`.
        if pattern and not re.fullmatch(pattern.replace(r"\\u", r"\u"), value, re.DOTALL):
            yield f"{path}: {value!r} does not match {pattern}"

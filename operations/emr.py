"""`dq.emr`: a job run of EMR Serverless: the request of StartJobRun, and what AWS would refuse of it.

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

# Where the two archives are unpacked, beside the driver and every executor.
ENVIRONMENT, CONTRACTS = "environment", "contracts"
_PYTHON = f"./{ENVIRONMENT}/bin/python"
# What the driver and the executors take as their Python.
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
    the contracts or None. `once` names what may run only once: the same name gives the same run.
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
) -> dict[str, Any]:
    """The parameters of StartJobRun that run a command line of dq, as `dq emr` prints them. Nothing is sent.

    `arguments` are its words, e.g. `["check", "contracts/orders.odcs.yaml"]`; `application` is the id of the
    application, `role` the ARN that the job runs as, `entry` where `dq_submit.py` lies, `environment` and
    `contracts` archives on S3. `conf` are settings of Spark. With `once`, e.g. the partition's name, the same
    job is not begun twice.

    Raises UsageError for what AWS would refuse, and MissingTool without boto3.
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
    )
    made = _request(job)
    if wrong := refused(made):
        raise UsageError("AWS would refuse this request:", details=wrong)
    return made


def _request(job: Job) -> dict[str, Any]:
    """The parameters of StartJobRun.

    The client token makes AWS take a request that is sent twice as one: it follows from the job and `once`,
    and is new each time without.
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
    }


def refused(made: Mapping[str, Any]) -> list[str]:
    """What AWS would refuse of the request, by the model that botocore ships: offline, without credentials.

    Raises MissingTool without boto3.
    """
    try:
        import botocore.session
        from botocore.validate import ParamValidator
    except ImportError as error:
        raise MissingTool(
            "The request is compared with AWS's own model, which boto3 brings.",
            install_command("aws"),
        ) from error
    model = botocore.session.Session().get_service_model("emr-serverless")
    shape = model.operation_model("StartJobRun").input_shape
    report = ParamValidator().validate(made, shape).generate_report()
    return [*filter(None, report.splitlines()), *_spaces(made), *_unlike(made, shape, "")]


def _spaces(made: Mapping[str, Any]) -> Iterator[str]:
    """EMR splits its parameters at spaces, and knows no quotes inside of a value."""
    words = made["jobDriver"]["sparkSubmit"]["sparkSubmitParameters"].split(" ")
    for at, word in enumerate(words):
        if word != "--conf" and (at == 0 or words[at - 1] != "--conf"):
            yield f"{word!r} stands after a space in a setting of Spark"


def _unlike(value: Any, shape: Any, path: str) -> Iterator[str]:
    """Texts that do not have the pattern of the model, which botocore itself leaves to AWS."""
    if shape.type_name == "structure" and isinstance(value, Mapping):
        for name, one in value.items():
            if name in shape.members:
                yield from _unlike(one, shape.members[name], f"{path}.{name}".strip("."))
    elif shape.type_name == "map" and isinstance(value, Mapping):
        for name, one in value.items():
            yield from _unlike(name, shape.key, f"{path}.{name}")
            yield from _unlike(one, shape.value, f"{path}.{name}")
    elif shape.type_name == "list" and isinstance(value, Sequence) and not isinstance(value, str):
        for at, one in enumerate(value):
            yield from _unlike(one, shape.member, f"{path}[{at}]")
    elif shape.type_name == "string" and isinstance(value, str):
        pattern = shape.metadata.get("pattern")
        # The model doubles the backslash of `\u002F`.
        if pattern and not re.fullmatch(pattern.replace(r"\\u", r"\u"), value, re.DOTALL):
            yield f"{path}: {value!r} is not of the form {pattern}"

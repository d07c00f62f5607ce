"""dq emr"""

from __future__ import annotations

import typer

from dq.cli import output
from dq.contracts.outcome import UsageError
from dq.operations.emr import emr


def command(
    arguments: list[str] = typer.Argument(..., help="The command line of dq to run, after --."),
    application: str = typer.Option(..., "--application", help="The id of the EMR Serverless application."),
    role: str = typer.Option(..., "--role", help="The ARN of the role that the job runs as."),
    entry: str = typer.Option(
        ..., "--entry", help="Where dq_submit.py is, such as s3://bucket/dq_submit.py."
    ),
    environment: str = typer.Option(..., "--environment", help="The packed environment on S3 (.tar.gz)."),
    contracts: str = typer.Option(None, "--contracts", help="An archive of the contracts on S3 (.tar.gz)."),
    name: str = typer.Option("dq", "--name", help="The name of the run."),
    tag: list[str] = typer.Option([], "--tag", help="KEY=VALUE, for example for costs."),
    conf: list[str] = typer.Option([], "--conf", help="KEY=VALUE, a setting of Spark."),
    timeout: int = typer.Option(60, "--timeout", help="Minutes after which AWS stops the run."),
    once: str = typer.Option(
        None, "--once", help="A name, such as the partition's: the same name never runs twice."
    ),
) -> None:
    """Print the request that runs dq on EMR Serverless, compared with AWS's own model of it.

    Needs no credentials and sends nothing: hand it to 'aws emr-serverless start-job-run
    --cli-input-json file://job.json', or to Airflow. Needs the extra [aws].

    Exit codes: 0 printed, 2 AWS would refuse it, or boto3 is missing.

    Example: dq emr --application 00f1abc --role arn:aws:iam::123456789012:role/dq
    --entry s3://lake/dq_submit.py --environment s3://lake/dq-env.tar.gz --contracts s3://lake/contracts.tar.gz
    -- check contracts/orders.odcs.yaml > job.json
    """
    output.as_json(
        emr(
            arguments,
            application=application,
            role=role,
            entry=entry,
            environment=environment,
            contracts=contracts,
            name=name,
            tags=dict(_pair(text, "--tag") for text in tag),
            conf=dict(_pair(text, "--conf") for text in conf),
            timeout_minutes=timeout,
            once=once,
        )
    )


def _pair(text: str, option: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"{option} {text!r} is not of the form KEY=VALUE.", f"Write {option} team=sales.")
    return key, value

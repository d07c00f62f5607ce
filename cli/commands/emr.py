"""dq emr"""

from __future__ import annotations

import typer

from dq.cli import output
from dq.cli.context import key_value
from dq.operations.emr import emr


def command(
    arguments: list[str] = typer.Argument(..., help="The dq command line to run, after --."),
    application: str = typer.Option(..., "--application", help="EMR Serverless application id."),
    role: str = typer.Option(..., "--role", help="ARN of the job's execution role."),
    entry: str = typer.Option(
        ..., "--entry", help="Location of dq_submit.py, e.g. s3://bucket/dq_submit.py."
    ),
    environment: str = typer.Option(..., "--environment", help="Packed Python environment on S3 (.tar.gz)."),
    contracts: str = typer.Option(None, "--contracts", help="Archive of the contracts on S3 (.tar.gz)."),
    name: str = typer.Option("dq", "--name", help="Name of the job run."),
    tag: list[str] = typer.Option([], "--tag", help="AWS tag, KEY=VALUE."),
    conf: list[str] = typer.Option([], "--conf", help="Spark setting, KEY=VALUE."),
    timeout: int = typer.Option(60, "--timeout", help="Minutes after which AWS stops the job."),
    once: str = typer.Option(
        None, "--once", help="Idempotency key, e.g. the partition: a second run with it is ignored."
    ),
    logs: str = typer.Option(None, "--logs", help="S3 prefix for the job's logs and output."),
) -> None:
    """Print the request that runs dq on EMR Serverless, validated against AWS's own API model.

    Needs the extra [aws]. Uses no credentials and sends nothing: pass the output to 'aws emr-serverless
    start-job-run --cli-input-json file://job.json', or to Airflow.

    Exit codes: 0 printed, 2 AWS would reject it, or boto3 is missing.

    Example: dq emr --application 00f1abc --role arn:aws:iam::123456789012:role/dq
    --entry s3://lake/dq_submit.py --environment s3://lake/dq-env.tar.gz --contracts
    s3://lake/contracts.tar.gz -- check contracts/orders.odcs.yaml > job.json
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
            tags=dict(key_value(text, "--tag", "team=sales") for text in tag),
            conf=dict(key_value(text, "--conf", "spark.executor.memory=4g") for text in conf),
            timeout_minutes=timeout,
            once=once,
            logs=logs,
        )
    )

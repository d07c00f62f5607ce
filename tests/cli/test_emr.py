"""dq emr: the request for EMR Serverless, held against AWS's own model, offline."""

from __future__ import annotations

import pytest

GOOD = {
    "--application": "00f1g2h3",
    "--role": "arn:aws:iam::123456789012:role/team/dq",
    "--entry": "s3://lake/dq_submit.py",
    "--environment": "s3://lake/dq-env.tar.gz",
    "--contracts": "s3://lake/contracts.tar.gz",
}
CHECK = ("--", "check", "contracts/orders.odcs.yaml", "--partition", "day=2026-11-20")


def line(*more, **changed):
    options = {**GOOD, **{f"--{name}": value for name, value in changed.items()}}
    return ["emr", *(part for pair in options.items() for part in pair), *more, *CHECK]


def test_the_request_ships_an_environment_and_runs_the_command(dq):
    ran = dq(*line("--tag", "team=sales", "--conf", "spark.executor.memory=4g"))

    assert ran.code == 0, ran.err
    assert ran.json == {
        "applicationId": "00f1g2h3",
        "clientToken": ran.json["clientToken"],
        "executionRoleArn": "arn:aws:iam::123456789012:role/team/dq",
        "name": "dq",
        "executionTimeoutMinutes": 60,
        "jobDriver": {
            "sparkSubmit": {
                "entryPoint": "s3://lake/dq_submit.py",
                "entryPointArguments": [
                    "check", "contracts/orders.odcs.yaml", "--partition", "day=2026-11-20"
                ],
                "sparkSubmitParameters": "--conf spark.archives=s3://lake/dq-env.tar.gz#environment,"
                "s3://lake/contracts.tar.gz#contracts"
                " --conf spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON=./environment/bin/python"
                " --conf spark.emr-serverless.driverEnv.PYSPARK_PYTHON=./environment/bin/python"
                " --conf spark.executorEnv.PYSPARK_PYTHON=./environment/bin/python"
                " --conf spark.executor.memory=4g",
            }
        },
        "tags": {"team": "sales"},
    }  # fmt: skip


def test_a_named_run_has_the_same_token_each_time_and_another_one_when_it_differs(dq):
    def token(*arguments, **changed):
        return dq(*line(*arguments, **changed)).json["clientToken"]

    assert token("--once", "2026-11-20") == token("--once", "2026-11-20")
    assert token("--once", "2026-11-20") != token("--once", "2026-11-21")
    assert token("--once", "2026-11-20") != token("--once", "2026-11-20", name="other")
    assert token() != token()


@pytest.mark.parametrize(
    ("more", "changed", "said"),
    [
        ((), {"application": "UPPER"}, "applicationId: 'UPPER' does not match"),
        (
            (),
            {"role": "arn:aws:iam::1:user/ana"},
            "executionRoleArn: 'arn:aws:iam::1:user/ana' does not match",
        ),
        ((), {"role": "dq"}, "Invalid length for parameter executionRoleArn"),
        (("--tag", "team=sales;ops"), {}, "tags.team: 'sales;ops' does not match"),
        (("--timeout", "-1"), {}, "parameter executionTimeoutMinutes, value: -1"),
        (("--conf", "spark.app.name=my check"), {}, "'check' follows a space"),
        (("--tag", "team"), {}, "invalid --tag 'team': expected KEY=VALUE"),
    ],
)
def test_what_aws_would_refuse_is_said_before_it_is_sent(dq, more, changed, said):
    ran = dq(*line(*more, **changed))

    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err

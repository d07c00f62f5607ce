"""Files of a registry project that `dq init --ci` and `--airflow` write: pipelines of a CI system, and a DAG.

Sources: workflow syntax of GitHub Actions; GitLab's CI/CD YAML reference; the buildspec reference of
CodeBuild, and AWS::CodeBuild::Project and AWS::CodePipeline::Pipeline of CloudFormation.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from dq.contracts.escaping import python
from dq.contracts.install import pinned_requirement

CONTRACTS = "contracts"
"""Folder of the contracts in a project; pipelines and DAGs are next to it."""


class Ci(StrEnum):
    """CI system of a registry project."""

    GITHUB = "github"
    GITLAB = "gitlab"
    CODEPIPELINE = "codepipeline"


_REQUIREMENTS = """\
# What CI installs. Change the version by a reviewed commit.
{requirement}
"""
_GITIGNORE = """\
.dq/
"""
_GITHUB = """\
# Validates contracts in pull requests, and registers them in the catalog after the merge.
# Settings of the repository: variables AWS_REGION, REGISTRAR_ROLE and LAKE_ROOTS, secret DQ_STORE_URL.
name: contracts
on:
  pull_request:              # never pull_request_target: a fork's code would run with your secrets
  push: {branches: [main]}
permissions:
  contents: read
env:
  CATALOG: glue
jobs:
  validate:
    if: github.event_name == 'pull_request'
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2
        with: {fetch-depth: 0, persist-credentials: false}   # the comparison needs the history
      - uses: actions/setup-python@a26af69be951a213d495a4c3e4e4022e16d87065 # v5.6.0
        with: {python-version: "3.12"}
      - run: pip install --quiet -r requirements.txt
      - run: dq validate contracts --base "origin/$BASE" --format github
        env:
          BASE: ${{ github.base_ref }}
  register:
    if: github.event_name == 'push'
    runs-on: ubuntu-latest
    concurrency: register    # one run at a time
    permissions:
      contents: read
      id-token: write        # AWS gives the run a role, so there are no stored keys
    steps:
      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2
        with: {persist-credentials: false}
      - uses: actions/setup-python@a26af69be951a213d495a4c3e4e4022e16d87065 # v5.6.0
        with: {python-version: "3.12"}
      - run: pip install --quiet -r requirements.txt
      - uses: aws-actions/configure-aws-credentials@e3dd6a429d7300a6a4c196c26e071d42e0343502 # v4.0.2
        with:
          aws-region: ${{ vars.AWS_REGION }}
          role-to-assume: ${{ vars.REGISTRAR_ROLE }}
      - run: dq register contracts --catalog "$CATALOG" --apply
        env:
          DQ_STORE_URL: ${{ secrets.DQ_STORE_URL }}
          DQ_LAKE_ROOTS: ${{ vars.LAKE_ROOTS }}
"""
_GITLAB = """\
# Validates contracts in merge requests, and registers them in the catalog after the merge.
# CI/CD variables, protected: AWS_REGION, AWS_ROLE_ARN, DQ_LAKE_ROOTS and DQ_STORE_URL.
variables:
  CATALOG: glue
default:
  image: python:3.12
  before_script:
    - pip install --quiet -r requirements.txt
stages: [validate, register]
validate:
  stage: validate
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
  variables:
    GIT_DEPTH: "0"           # the comparison needs the history
  script:
    - git fetch --quiet origin "+refs/heads/$CI_MERGE_REQUEST_TARGET_BRANCH_NAME:refs/remotes/origin/base"
    - dq validate contracts --base origin/base --report junit=dq.xml
  artifacts:
    when: always
    reports: {junit: dq.xml}
register:
  stage: register
  rules:
    - if: $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH
  resource_group: register   # one run at a time
  id_tokens:
    AWS_ID_TOKEN: {aud: sts.amazonaws.com}
  script:
    - umask 077 && printf '%s' "$AWS_ID_TOKEN" > "$CI_PROJECT_DIR.token"
    - export AWS_WEB_IDENTITY_TOKEN_FILE="$CI_PROJECT_DIR.token"
    - dq register contracts --catalog "$CATALOG" --apply
"""
_VALIDATE = """\
# CodeBuild: validates contracts in pull requests. The project is in codepipeline.yaml.
version: 0.2
env:
  git-credential-helper: yes
phases:
  install:
    runtime-versions: {python: 3.12}
    commands:
      - pip install --quiet -r requirements.txt
  build:
    commands:
      - git fetch --quiet origin "+$CODEBUILD_WEBHOOK_BASE_REF:refs/remotes/origin/base"
      - dq validate contracts --base origin/base
"""
_REGISTER = """\
# CodeBuild: registers contracts in the catalog after the merge. The project is in codepipeline.yaml.
version: 0.2
env:
  variables: {CATALOG: glue}
phases:
  install:
    runtime-versions: {python: 3.12}
    commands:
      - pip install --quiet -r requirements.txt
  build:
    commands:
      - dq register contracts --catalog "$CATALOG" --apply
"""
_CODEPIPELINE = """\
# A CodeBuild project that validates pull requests, and a pipeline that registers contracts after the merge.
# aws cloudformation deploy --template-file codepipeline.yaml --stack-name contracts --capabilities \\
#   CAPABILITY_IAM --parameter-overrides Connection=ARN Repository=OWNER/NAME RegistrarPolicy=ARN \\
#   LakeRoots=s3://lake StoreSecret=ARN
AWSTemplateFormatVersion: "2010-09-09"
Parameters:
  Connection: {Type: String, Description: ARN of a CodeConnections connection to the repository}
  Repository: {Type: String, Description: "Repository on GitHub, e.g. example/contracts"}
  Branch: {Type: String, Default: main}
  RegistrarPolicy: {Type: String, Description: ARN of a managed policy with the registrar's permissions}
  LakeRoots: {Type: String, Description: "Locations that contracts may name, e.g. s3://lake"}
  StoreSecret: {Type: String, Description: ARN of a secret whose text is the URL of the state store}
Resources:
  Artifacts:
    Type: AWS::S3::Bucket
    DeletionPolicy: Delete
    UpdateReplacePolicy: Delete
    Properties:
      PublicAccessBlockConfiguration:
        {BlockPublicAcls: true, BlockPublicPolicy: true, IgnorePublicAcls: true, RestrictPublicBuckets: true}
      LifecycleConfiguration: {Rules: [{Status: Enabled, ExpirationInDays: 30}]}
  ValidateRole:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument:
        Version: "2012-10-17"
        Statement: [{Effect: Allow, Principal: {Service: codebuild.amazonaws.com}, Action: "sts:AssumeRole"}]
      Policies:
        - PolicyName: build
          PolicyDocument:
            Version: "2012-10-17"
            Statement:
              - Effect: Allow
                Action: ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"]
                Resource: !Sub "arn:${AWS::Partition}:logs:*:${AWS::AccountId}:log-group:/aws/codebuild/*"
              - Effect: Allow
                Action: ["codeconnections:GetConnection", "codeconnections:GetConnectionToken",
                         "codeconnections:UseConnection"]
                Resource: !Ref Connection
  Validate:
    Type: AWS::CodeBuild::Project
    Properties:
      ServiceRole: !GetAtt ValidateRole.Arn
      Artifacts: {Type: NO_ARTIFACTS}
      Environment:
        Type: LINUX_CONTAINER
        ComputeType: BUILD_GENERAL1_SMALL
        Image: aws/codebuild/amazonlinux-x86_64-standard:5.0
      Source:
        Type: GITHUB
        Location: !Sub "https://github.com/${Repository}.git"
        Auth: {Type: CODECONNECTIONS, Resource: !Ref Connection}
        BuildSpec: buildspec/validate.yml
        GitCloneDepth: 0             # the comparison needs the history
        ReportBuildStatus: true
      Triggers:
        Webhook: true
        FilterGroups:
          - - {Type: EVENT, Pattern: "PULL_REQUEST_CREATED, PULL_REQUEST_UPDATED, PULL_REQUEST_REOPENED"}
            - {Type: BASE_REF, Pattern: !Sub "^refs/heads/${Branch}$"}
  RegisterRole:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument:
        Version: "2012-10-17"
        Statement: [{Effect: Allow, Principal: {Service: codebuild.amazonaws.com}, Action: "sts:AssumeRole"}]
      ManagedPolicyArns: [!Ref RegistrarPolicy]
      Policies:
        - PolicyName: build
          PolicyDocument:
            Version: "2012-10-17"
            Statement:
              - Effect: Allow
                Action: ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"]
                Resource: !Sub "arn:${AWS::Partition}:logs:*:${AWS::AccountId}:log-group:/aws/codebuild/*"
              - {Effect: Allow, Action: "s3:GetObject", Resource: !Sub "${Artifacts.Arn}/*"}
              - {Effect: Allow, Action: "secretsmanager:GetSecretValue", Resource: !Ref StoreSecret}
  Register:
    Type: AWS::CodeBuild::Project
    Properties:
      ServiceRole: !GetAtt RegisterRole.Arn
      Artifacts: {Type: CODEPIPELINE}
      ConcurrentBuildLimit: 1
      Environment:
        Type: LINUX_CONTAINER
        ComputeType: BUILD_GENERAL1_SMALL
        Image: aws/codebuild/amazonlinux-x86_64-standard:5.0
        EnvironmentVariables:
          - {Name: DQ_LAKE_ROOTS, Value: !Ref LakeRoots}
          - {Name: DQ_STORE_URL, Type: SECRETS_MANAGER, Value: !Ref StoreSecret}
      Source: {Type: CODEPIPELINE, BuildSpec: buildspec/register.yml}
  PipelineRole:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument:
        Version: "2012-10-17"
        Statement:
          - {Effect: Allow, Principal: {Service: codepipeline.amazonaws.com}, Action: "sts:AssumeRole"}
      Policies:
        - PolicyName: pipeline
          PolicyDocument:
            Version: "2012-10-17"
            Statement:
              - Effect: Allow
                Action: ["s3:GetObject", "s3:PutObject"]
                Resource: !Sub "${Artifacts.Arn}/*"
              - Effect: Allow
                Action: ["codestar-connections:UseConnection", "codeconnections:UseConnection"]
                Resource: !Ref Connection
              - Effect: Allow
                Action: ["codebuild:StartBuild", "codebuild:BatchGetBuilds"]
                Resource: !GetAtt Register.Arn
  Pipeline:
    Type: AWS::CodePipeline::Pipeline
    Properties:
      PipelineType: V2
      ExecutionMode: QUEUED          # one run at a time
      RoleArn: !GetAtt PipelineRole.Arn
      ArtifactStore: {Type: S3, Location: !Ref Artifacts}
      Stages:
        - Name: Source
          Actions:
            - Name: Source
              ActionTypeId: {Category: Source, Owner: AWS, Provider: CodeStarSourceConnection, Version: "1"}
              Configuration:
                ConnectionArn: !Ref Connection
                FullRepositoryId: !Ref Repository
                BranchName: !Ref Branch
              OutputArtifacts: [{Name: Registry}]
        - Name: Register
          Actions:
            - Name: Register
              ActionTypeId: {Category: Build, Owner: AWS, Provider: CodeBuild, Version: "1"}
              Configuration: {ProjectName: !Ref Register}
              InputArtifacts: [{Name: Registry}]
"""
_DAG = '''\
"""Waits for each delivery until the deadline in its contract, then checks it. For Airflow 2.10 to 3.x.

`DQ_PROJECT` is a checkout of this repository, and the working folder of dq. `DQ_PYTHON` is the interpreter
of the environment that has dq; unset, dq is in Airflow's own environment.
"""

import os

import pendulum
from airflow import DAG

from dq.airflow import DqCheckOperator, DqDeliverySensor

PROJECT = os.environ.get("DQ_PROJECT", ".")
DQ = {{
    "contract": {contract},
    "folder": PROJECT,
    "python": os.environ.get("DQ_PYTHON"),
}}

with DAG(
    {dag},
    schedule={schedule},  # that of the contract: each run is for the delivery that is due at its end
    start_date=pendulum.datetime({year}, {month}, {day}, tz={timezone}),
    catchup=False,
) as dag:
    wait = DqDeliverySensor(task_id="wait", due="{{{{ data_interval_end.isoformat() }}}}", **DQ)
    check = DqCheckOperator(task_id="check", **DQ)
    wait >> check
'''

_PIPELINES: Mapping[Ci, Mapping[str, str]] = {
    Ci.GITHUB: {".github/workflows/contracts.yml": _GITHUB},
    Ci.GITLAB: {".gitlab-ci.yml": _GITLAB},
    Ci.CODEPIPELINE: {
        "buildspec/validate.yml": _VALIDATE,
        "buildspec/register.yml": _REGISTER,
        "codepipeline.yaml": _CODEPIPELINE,
    },
}


def pipeline_files(ci: Ci) -> dict[str, str]:
    """Return the files of a CI system by their path in the project: pipelines and what they install."""
    requirement = pinned_requirement("aws", "postgres")
    return {
        **_PIPELINES[ci],
        "requirements.txt": _REQUIREMENTS.format(requirement=requirement),
        ".gitignore": _GITIGNORE,
    }


def dag_files(id: str, schedule: str, timezone: str, start: tuple[int, int, int]) -> dict[str, str]:
    """Return the DAG of a contract by its path in the project; `start` is its first day."""
    year, month, day = start
    text = _DAG.format(
        contract=python(f"{CONTRACTS}/{id}.odcs.yaml"),
        dag=python(id),
        schedule=python(schedule),
        timezone=python(timezone),
        year=year,
        month=month,
        day=day,
    )
    return {f"dags/{id}_dag.py": text}

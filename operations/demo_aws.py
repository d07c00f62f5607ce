"""`dq demo --aws`: a contract from its merge to the consumer's queue, with moto as AWS, on one machine.

Every command runs in a process of its own, with an environment made here: the endpoint and credentials of
moto, and none of the caller's variables and files that configure AWS, dq, Git, Slack or a proxy.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum, auto
from importlib.util import find_spec
from pathlib import Path

from dq.contracts.escaping import shell, shell_word
from dq.contracts.install import install_command
from dq.contracts.outcome import MissingTool, ReadError
from dq.contracts.schedule.clock import Schedule, parse
from dq.contracts.schedule.cron import Dialect
from dq.contracts.slo import read_slos
from dq.contracts.yaml.parse import read
from dq.operations.demo import copy_examples, new_folder
from dq.operations.demo_servers import SlackMessage, SlackServer, aws_server
from dq.operations.runtime.context import RuntimeContext, call_context, format_instant

EXTRA = "demo-aws"
_MODULES = ("boto3", "pyarrow", "slack_sdk", "moto", "pyparsing", "py_partiql_parser", "flask", "flask_cors")

REGION, ACCOUNT = "eu-central-1", "123456789012"  # moto's account
_TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:dq-sales"
_SETTINGS = f"""\
lake_roots = ["s3://lake"]
topic = "arn:aws:sns:{REGION}:{ACCOUNT}:dq-{{domain}}"
schedule_target = "arn:aws:lambda:{REGION}:{ACCOUNT}:function:dq-watcher"
schedule_role = "arn:aws:iam::{ACCOUNT}:role/dq-scheduler"
"""
# The breach was so long ago that its alert, a minute later, is due as well.
_BREACH_AGE = timedelta(minutes=2)
_WATCHED = timedelta(hours=1)
_ROWS = 912
_LONGEST_SECONDS = 120
_SHOWN_LINES = 5

# Variables that programs need, and that do not configure AWS, dq, Git or Slack.
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "PYTHONUSERBASE")

# The AWS CLI's command line in boto3: service, operation, parameters, and JMESPath of --query.
_CALL = """\
import json, sys
import boto3, jmespath
service, operation, parameters, query = json.load(sys.stdin)
if "Body" in parameters:
    parameters["Body"] = open(parameters["Body"], "rb")
answer = getattr(boto3.client(service), operation.replace("-", "_"))(**parameters)
answer.pop("ResponseMetadata")
answer = jmespath.search(query, answer) if query else answer
if answer:
    print(answer if isinstance(answer, str) else json.dumps(answer, indent=2, default=str))
"""
_HANDLE = (
    "import json, sys; from dq.aws import handler; answer = handler(json.load(sys.stdin), None); "
    'answer.pop("ticks"); print(json.dumps(answer, indent=2))'
)


class AwsChapter(Enum):
    """Chapter of the demo."""

    ACCOUNT = auto()
    MERGE = auto()
    REGISTER = auto()
    BREACH = auto()
    DELIVERY = auto()
    CONSUMER = auto()
    STATUS = auto()


@dataclass(frozen=True, slots=True)
class DemoCommand:
    """A command line that was run, what it printed, and how long it took."""

    line: str
    output: str
    seconds: float


@dataclass(frozen=True, slots=True)
class DemoNote:
    """An explanation between commands."""

    text: str


@dataclass(frozen=True, slots=True)
class DemoMoment:
    """An event of the demo at an instant (UTC), for the summary."""

    at: datetime
    text: str


AwsDemoStep = AwsChapter | DemoCommand | DemoNote | DemoMoment | SlackMessage


@dataclass(frozen=True, slots=True)
class AwsDemoOutcome:
    """The folder of the demo, all of its steps in their order, and its duration."""

    folder: Path
    steps: tuple[AwsDemoStep, ...]
    seconds: float

    @property
    def exit_code(self) -> int:
        """Exit code of `dq demo --aws`: 0 it was played to its end."""
        return 0


def demo_aws(folder: Path | str = "dq-demo") -> AwsDemoOutcome:
    """Play the loop on AWS against moto: merge, register, schedule, Lambda, Slack, late delivery, consumer.

    Like `dq demo --aws`, it takes about half a minute, needs the extra demo-aws and Git, and uses neither the
    network nor the caller's AWS credentials. `folder` is a new folder, or that of an earlier demonstration,
    which is replaced.

    Raises UsageError for a folder with other content, MissingTool without moto or Git, and ReadError if a
    command fails.
    """
    started = time.monotonic()
    context = prepare(replace(call_context(None)[0], is_elsewhere=True), Path(folder))
    steps = tuple(play(context))
    return AwsDemoOutcome(context.folder, steps, time.monotonic() - started)


def prepare(context: RuntimeContext, folder: Path) -> RuntimeContext:
    """Return the context of a demo in a new folder. Raises MissingTool, and UsageError as `new_folder`."""
    missing = [module for module in _MODULES if find_spec(module) is None]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise MissingTool(
            f"dq demo --aws needs {', '.join(missing)}, which {are} not installed.", install_command(EXTRA)
        )
    if shutil.which("git") is None:
        raise MissingTool("dq demo --aws needs Git, which is not installed.", "Install Git 2.30 or later.")
    new_folder(folder)
    copy_examples("aws", folder / "registry")
    return replace(context, folder=folder.resolve())


def play(context: RuntimeContext) -> Generator[AwsDemoStep, None, None]:
    """Run the demo in a folder made by `prepare`, and yield each step when it is done.

    Close the iterator to end its servers early. Raises ReadError if a command fails.
    """
    with ExitStack() as servers:
        slack = servers.enter_context(SlackServer().running())
        environment = _environment(context)
        with context.messages.step("starting moto's server"):
            aws_url = servers.enter_context(aws_server(context.folder, environment))
        yield from _Story(context.folder, _connected(environment, aws_url, slack), slack).play()


def _environment(context: RuntimeContext) -> dict[str, str]:
    """Return the variables of all processes of the demo. Nothing of the caller's leads to another AWS."""
    inherited = {name: context.environment[name] for name in _INHERITED if name in context.environment}
    return {
        **inherited,
        "AWS_ACCESS_KEY_ID": "demo",
        "AWS_SECRET_ACCESS_KEY": "demo",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        # Some systems have proxies without variables.
        "NO_PROXY": "*",
        "PYTHONUTF8": "1",
    }


def _connected(environment: Mapping[str, str], aws_url: str, slack: SlackServer) -> dict[str, str]:
    author = {"NAME": "Ana Reis", "EMAIL": "ana.reis@example.com"}
    return {
        **environment,
        "AWS_ENDPOINT_URL": aws_url,
        "AWS_ENDPOINT_URL_S3": aws_url,
        "DQ_CONFIG": "dq.toml",
        "DQ_SLACK_URL": slack.url,
        "SLACK_BOT_TOKEN": slack.token,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{role}_{name}": text for role in ("AUTHOR", "COMMITTER") for name, text in author.items()},
    }


class _Story:
    """The chapters, in a folder, with the processes' variables."""

    def __init__(self, folder: Path, environment: Mapping[str, str], slack: SlackServer) -> None:
        self._folder, self._environment, self._slack = folder, environment, slack
        self._contract = folder / "registry" / "orders.odcs.yaml"
        [slo], _ = read_slos(read(self._contract))
        self._started_at = datetime.now(UTC)
        self._due_at = self._started_at.replace(second=0, microsecond=0) - slo.grace - _BREACH_AGE
        self._partition = f"day={self._due_at:%F}"

    def play(self) -> Iterator[AwsDemoStep]:
        yield AwsChapter.ACCOUNT
        yield from self._account()
        yield AwsChapter.MERGE
        yield from self._merge()
        yield AwsChapter.REGISTER
        yield from self._register()
        yield AwsChapter.BREACH
        yield from self._breach()
        yield AwsChapter.DELIVERY
        yield from self._delivery()
        yield AwsChapter.CONSUMER
        yield from self._consumer()
        yield AwsChapter.STATUS
        yield self._dq("status", "registry")

    def _account(self) -> Iterator[AwsDemoStep]:
        """Create what the landing zone has in AWS, and the consumer's queue with its subscription."""
        shown = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_REGION", "DQ_CONFIG", "DQ_SLACK_URL")
        yield DemoNote(" ".join(f"{name}={self._environment[name]}" for name in shown))
        settings = self._folder / "dq.toml"
        settings.write_text(_SETTINGS)
        settings.chmod(0o644)  # dq refuses settings that everyone can write
        bucket = {"Bucket": "lake"}
        constraint = {"LocationConstraint": REGION}
        yield self._aws("s3", "create-bucket", **bucket, CreateBucketConfiguration=constraint)
        yield self._aws("sqs", "create-queue", QueueName="dq-object-events")
        events = {"QueueArn": _queue_arn("dq-object-events"), "Events": ["s3:ObjectCreated:*"]}
        yield self._aws(
            "s3",
            "put-bucket-notification-configuration",
            **bucket,
            NotificationConfiguration={"QueueConfigurations": [events]},
        )
        yield self._aws("scheduler", "create-schedule-group", Name="dq")
        yield self._aws("sns", "create-topic", Name=_TOPIC.rpartition(":")[2])
        yield self._aws("sqs", "create-queue", QueueName="billing")
        attributes = {"RawMessageDelivery": "true", "FilterPolicy": json.dumps({"contract": ["orders"]})}
        yield self._aws(
            "sns",
            "subscribe",
            TopicArn=_TOPIC,
            Protocol="sqs",
            NotificationEndpoint=_queue_arn("billing"),
            Attributes=attributes,
        )

    def _merge(self) -> Iterator[AwsDemoStep]:
        """Merge a branch with a contract and the subscription of a consumer, after its validation."""
        text = self._contract.read_text()
        self._contract.write_text(text.replace('"0 6 * * *"', f'"{self._due_at:%-M %-H} * * *"'))
        yield self._git("init", "--quiet", "--initial-branch", "main")
        yield self._git("add", "registry/dq-policy.yaml")
        yield self._git("commit", "--quiet", "--message", "registry: policy")
        yield self._git("switch", "--quiet", "--create", "orders")
        yield self._git("add", "registry")
        yield self._git("commit", "--message", "orders: contract, and subscription of billing")
        yield self._dq("validate", "registry", "--base", "main")
        yield self._git("switch", "--quiet", "main")
        yield self._git("merge", "--no-ff", "--message", "merge orders", "orders")

    def _register(self) -> Iterator[AwsDemoStep]:
        yield self._dq("register", "registry", "--catalog", "glue", "--apply")
        first_tick = format_instant(self._started_at - _WATCHED)
        yield DemoNote("The watcher has run for an hour: it expects no delivery from before its first tick.")
        yield self._dq("watch", "registry", "--as-of", first_tick)

    def _breach(self) -> Iterator[AwsDemoStep]:
        """Start the function as the schedule in moto says, for the last time that its expression names."""
        names = self._aws("scheduler", "list-schedules", "Schedules[].Name", GroupName="dq")
        yield names
        [name] = json.loads(names.output)
        query = (
            "{Expression: ScheduleExpression, Timezone: ScheduleExpressionTimezone, Target: Target.Arn, "
            "Input: Target.Input}"
        )
        shown = self._aws("scheduler", "get-schedule", query, GroupName="dq", Name=name)
        yield shown
        schedule = json.loads(shown.output)
        scheduled_at = self._last_start(schedule["Expression"], schedule["Timezone"])
        payload = schedule["Input"].replace("<aws.scheduler.scheduled-time>", format_instant(scheduled_at))
        (self._folder / "schedule.json").write_text(payload)
        yield DemoMoment(self._due_at, "orders is due")
        yield DemoMoment(scheduled_at, "its grace is over: the schedule starts the function")
        yield DemoNote(
            f"moto starts no schedules: schedule.json is the input of the start at {scheduled_at:%H:%M} UTC."
        )
        yield from self._function("schedule.json", "missing")

    def _last_start(self, expression: str, timezone: str) -> datetime:
        schedule = parse(expression, timezone=timezone, dialect=Dialect.EVENTBRIDGE)
        if not isinstance(schedule, Schedule):
            raise ReadError(f"EventBridge's schedule {expression} cannot be read: {schedule.message}")
        day = timedelta(days=1)
        return [due.at for due in schedule.between(self._started_at - day, self._started_at)][-1]

    def _delivery(self) -> Iterator[AwsDemoStep]:
        """Write the partition to S3, publish it, and hand S3's events on to the function."""
        _write_orders(self._folder / "orders.parquet")
        key = f"sales/orders/{self._partition}/part-0.parquet"
        yield self._aws("s3", "put-object", Bucket="lake", Key=key, Body="orders.parquet")
        words = ("registry/orders.odcs.yaml", "--partition", self._partition, "--rows", str(_ROWS))
        yield self._dq("publish", *words, "--catalog", "glue")
        yield DemoMoment(datetime.now(UTC), f"{self._partition} is delivered and published")
        url = self._queue_url("dq-object-events")
        # As Lambda passes the messages of a queue to a function.
        query = "{Records: Messages[].{messageId: MessageId, body: Body, eventSource: 'aws:sqs'}}"
        received = self._aws("sqs", "receive-message", query, QueueUrl=url, MaxNumberOfMessages=10)
        (self._folder / "object-events.json").write_text(received.output)
        yield replace(received, line=f"{received.line} > object-events.json", output="")
        yield from self._function("object-events.json", "late")

    def _function(self, event: str, status: str) -> Iterator[AwsDemoStep]:
        """Run the handler of the function with an event, and yield what reached Slack.

        Raises ReadError if the delivery does not get the status.
        """
        text = (self._folder / event).read_text()
        line = f"python -c {shell_word(_HANDLE)} < {event}"
        ran = self._run(line, [sys.executable, "-P", "-c", _HANDLE], text)
        yield ran
        statuses = [verdict["status"] for verdict in json.loads(ran.output)["verdicts"]]
        messages = self._slack.take_messages()
        yield from messages
        channels = sorted({message.channel for message in messages})
        if statuses != [status] or channels != ["#billing", "#orders"]:
            raise ReadError(
                f"The demo expected the status {status} and messages in two channels, "
                f"but got {', '.join(statuses) or 'none'} and {', '.join(channels) or 'no message'}.",
                f"The state is in {self._folder}; please report this.",
            )
        yield DemoMoment(messages[-1].at, f"{status}; Slack: {messages[0].lines[0]}")

    def _consumer(self) -> Iterator[AwsDemoStep]:
        url = self._queue_url("billing")
        received = self._aws("sqs", "receive-message", "Messages[0].Body", QueueUrl=url)
        if not received.output:
            raise ReadError(
                "The consumer's queue has no message.", f"The state is in {self._folder}; please report this."
            )
        event = json.loads(received.output)
        line = f"{received.line} --output text | python -m json.tool"
        yield replace(received, line=line, output=json.dumps(event, indent=4))
        text = f"billing has {event['type']}: {event['subject']}, {event['data']['rows']} rows"
        yield DemoMoment(datetime.now(UTC), text)

    # Commands.

    def _dq(self, *words: str) -> DemoCommand:
        return self._run(shell(("dq", *words)), [sys.executable, "-P", "-m", "dq", *words])

    def _git(self, *words: str) -> DemoCommand:
        command = ("git", *words)
        return self._run(shell(command), command)

    def _aws(self, service: str, operation: str, query: str = "", **parameters: object) -> DemoCommand:
        """Call AWS. The line is that of the AWS CLI, whose options are the parameters' names."""
        words = ["aws", {"s3": "s3api"}.get(service, service), operation]
        for name, value in parameters.items():
            option = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()
            words += [f"--{option}", value if isinstance(value, str) else json.dumps(value)]
        words += ["--query", query] if query else []
        if "NotificationEndpoint" in parameters:  # as the AWS CLI calls SNS's parameter Endpoint
            parameters["Endpoint"] = parameters.pop("NotificationEndpoint")
        call = json.dumps([service, operation, parameters, query])
        return self._run(shell(words), [sys.executable, "-P", "-c", _CALL], call)

    def _queue_url(self, name: str) -> str:
        return f"{self._environment['AWS_ENDPOINT_URL']}/{ACCOUNT}/{name}"

    def _run(self, line: str, command: Sequence[str], stdin: str = "") -> DemoCommand:
        """Run a command, whose standard error is part of its output. Raises ReadError if it fails."""
        started = time.monotonic()
        try:
            done = subprocess.run(
                command,
                cwd=self._folder,
                env=dict(self._environment),
                input=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                timeout=_LONGEST_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ReadError(
                f"{line} has not ended after {_LONGEST_SECONDS} seconds.",
                f"The log of moto's server is {self._folder / 'moto.log'}.",
            ) from error
        output = done.stdout.strip("\n")
        if done.returncode != 0:
            raise ReadError(
                f"{line} failed with exit code {done.returncode}.",
                f"The log of moto's server is {self._folder / 'moto.log'}.",
                [text for text in output.splitlines() if text][-_SHOWN_LINES:],
            )
        return DemoCommand(line, output, time.monotonic() - started)


def _queue_arn(name: str) -> str:
    return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"


def _write_orders(file: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    numbers = range(1, _ROWS + 1)
    amounts = [Decimal(100 + number * 37 % 9_900) / 100 for number in numbers]
    columns = {
        "order_id": pyarrow.array(numbers, pyarrow.int64()),
        "amount": pyarrow.array(amounts, pyarrow.decimal128(10, 2)),
    }
    parquet.write_table(pyarrow.table(columns), file)


__all__ = ["AwsDemoOutcome", "demo_aws"]

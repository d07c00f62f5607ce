"""The life of a subscription as its page in the docs shows it: each line is run, each output compared."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from fakes import pages
from fakes.glue import REGION, GlueShim
from fakes.lake_formation import granted
from fakes.slack import TOKEN, FakeSlack

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="commits are signed with OpenSSH")

DOCS = Path(__file__).parents[3] / "docs"
JOURNEY = "journey"
PEOPLE = ("ana", "bo", "platform")
CHANNELS = {"#sales": "C0SALES001", "#billing": "C0BILLING1"}
GRANT = {("sales", "orders", "210987654321"): ["email", "order_id"]}
JOB = """\
import sys

import boto3

key = f"sales/orders/day={sys.argv[1]}/part-0.parquet"
boto3.client("s3").put_object(Bucket="lake", Key=key, Body=b"PAR1")
"""


@dataclass(frozen=True)
class Company:
    """A bare repository; each person has a home with an SSH key, a clone of the registry, and programs."""

    folder: Path
    programs: dict[str, str]

    def start(self) -> None:
        self._run("ana", "git init -q --bare -b main registry.git")
        for name in PEOPLE:
            (self._home(name) / ".ssh").mkdir(parents=True)
            self._run(name, "ssh-keygen -q -t ed25519 -N '' -C '' -f ~/.ssh/id_ed25519")
            self._run(name, f"git config --global user.name {name.title()}")
            self._run(name, f"git config --global user.email {name}@example.com")

    def clone(self, name: str) -> Path:
        """Return the clone of this person, which is created when it is first used."""
        folder = self.folder / name
        if not folder.exists():
            self._run(name, f"git clone -q registry.git {name} 2>&1")
            for program, text in self.programs.items():
                (folder / f"{program}.py").write_text(text)
                (folder / ".git" / "info" / "exclude").write_text("*.py\n")
        return folder

    def run(self, name: str, line: str) -> str:
        return self._run(name, line, self.clone(name))

    def _home(self, name: str) -> Path:
        return self.folder / "homes" / name

    def _run(self, name: str, line: str, folder: Path | None = None) -> str:
        variables = {"HOME": str(self._home(name)), "GIT_CONFIG_NOSYSTEM": "1", "DQ_CONFIG": "dq.toml"}
        if folder is None:
            del variables["DQ_CONFIG"]
        return pages.run_line(line, folder or self.folder, Path(sys.executable), variables=variables)


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with FakeSlack(channels=CHANNELS) as workspace:
        yield workspace


@pytest.fixture
def company(glue: GlueShim, slack: FakeSlack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Company:
    # The shim is of Glue and Lake Formation; S3 is moto's own.
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{glue.backend}")
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    monkeypatch.setenv("DQ_SLACK_URL", slack.url)
    boto3.client("s3", region_name=REGION).create_bucket(
        Bucket="lake", CreateBucketConfiguration={"LocationConstraint": REGION}
    )
    boto3.client("sns", region_name=REGION).create_topic(Name="dq-sales")
    page = (DOCS / "how-to" / "subscribe.md").read_text("utf-8")
    programs = dict(re.findall(r"```python not-run (\w+)\n(.*?)```", page, re.DOTALL))
    company = Company(tmp_path, {**programs, "job": JOB})
    company.start()
    return company


def without_commits(text: str) -> str:
    """The text with the same id for all commits."""
    return re.sub(r"\b[0-9a-f]{12}\b", "0" * 12, text)


def messages(slack: FakeSlack, channel: str) -> list[str]:
    """The texts of the messages in a channel, as plain lines."""
    return [_text(post) for post in slack.roots if post["channel"] == CHANNELS[channel]]


def _text(post: dict[str, Any]) -> str:
    parts = [post["text"]]
    for block in (block for attachment in post["attachments"] for block in attachment["blocks"]):
        items = [*block.get("fields", ()), *block.get("elements", ()), block.get("text")]
        parts += [item["text"] for item in items if item]
    return re.sub(r"\*(.+?)\*\s+", r"\1  ", "\n".join(parts)) + "\n"


def test_the_page_about_the_life_of_a_subscription_is_true(
    company: Company, glue: GlueShim, slack: FakeSlack
) -> None:
    printed, grants, compared = "", [granted(glue)], 0
    for block in pages.BLOCK.finditer((DOCS / "tutorial-consumer.md").read_text("utf-8")):
        words = (block["how"] or "").split()
        if JOURNEY not in words:
            continue
        options = dict(word.split("=") for word in words if "=" in word)
        body = block["body"]
        if "file" in options:
            file = company.clone("ana") / options["file"]
            file.parent.mkdir(exist_ok=True)
            file.write_text(body)
        elif block["kind"] == "sh":
            printed = "".join(company.run(options["as"], line) for line in body.splitlines())
            if granted(glue) != grants[-1]:
                grants.append(granted(glue))
        else:
            text = messages(slack, options["slack"])[-1] if "slack" in options else printed
            assert pages.matches(without_commits(body), without_commits(text)), f"{body}\n\nprinted:\n{text}"
            compared += 1

    assert grants == [{}, GRANT, {}]
    assert compared >= 12
    # After the end of the subscription, only the owners' message is opened again.
    assert [text.partition("\n")[0] for text in messages(slack, "#sales")] == [
        "ERROR: orders is missing: day=2026-05-11"
    ]
    assert [post["text"] for post in slack.posts if post["channel"] == CHANNELS["#billing"]] == [
        "ERROR: orders is missing: day=2026-05-10",
        "Resolved at 2026-05-11 08:00 UTC, after 1 h 30 min.",
    ]
    assert [text.partition(":")[0] for text in messages(slack, "#billing")] == ["RESOLVED"]

"""The wheel without extras, in a bare environment: what it gives, and what it says of what it lacks."""

from __future__ import annotations

import pytest
from fakes import light, pages, wheel
from fakes.late_s3 import LateS3, environment


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return wheel.built(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module", params=light.bases(), ids=lambda base: base.name)
def installed(request, built, tmp_path_factory):
    """One bare environment for each Python from 3.11 on that is at hand."""
    return light.install(built, tmp_path_factory.mktemp("light") / "env", request.param)


def test_the_light_install_gives_its_commands_and_says_what_the_others_lack(installed, tmp_path):
    assert light.problems(installed, tmp_path) == []


def test_the_tutorial_of_deliveries_needs_no_extra(installed, tmp_path):
    pages.follow(wheel.ROOT / "docs" / "tutorial-delivery.md", tmp_path, installed.python, together=True)


def test_the_first_hour_needs_what_it_says_and_no_spark(built, tmp_path):
    installed = light.install(built, tmp_path / "env", light.bases()[0])
    page = wheel.ROOT / "docs" / "tutorial.md"
    (tmp_path / "hour").mkdir()

    light.install_more(installed, *light.told_to_install(page, built))
    pages.follow(page, tmp_path / "hour", installed.python, together=True)

    assert not list(tmp_path.glob("env/lib/python3*/site-packages/pyspark*"))


def test_the_first_hour_has_at_most_seven_commands():
    page = wheel.ROOT / "docs" / "tutorial.md"

    assert [line.split()[:2] for line in pages.commands(page)] == [
        ["pip", "install"],
        *(["dq", name] for name in ("demo", "import", "validate", "sample", "watch")),
        ["dq", "check"],
    ]


@pytest.fixture
def bucket():
    """The URL of a server of S3 with a bucket `lake`."""
    server = LateS3()
    server.put(["lake/orders/day=2026-01-01/_SUCCESS"])
    yield server.url
    server.close()


@pytest.mark.parametrize("extra", ["s3", "sample"])
def test_a_light_extra_gives_its_command_and_brings_no_spark(built, bucket, tmp_path, extra):
    installed = light.install(built, tmp_path / "env", light.bases()[0])
    light.install_more(installed, light.run(installed, tmp_path, "doctor --all").hint(extra))
    light.furnish(tmp_path)
    light.parquet(installed, tmp_path / "lake" / "orders.parquet")

    own = {"DQ_LAKE_ROOTS": f"s3://lake,{tmp_path}", **environment(bucket)}
    ran = [(one, light.run(installed, tmp_path, one.line, **own)) for one in light.WITH[extra]]

    assert [(one.line, done.code, done.printed) for one, done in ran if not one.holds(done)] == []
    assert not list(tmp_path.glob("env/lib/python3*/site-packages/pyspark*"))
    assert light.run(installed, tmp_path, "doctor").line(f"[{extra}]").startswith("  ✓")


def test_the_command_that_mends_a_lack_mends_it(built, tmp_path):
    installed = light.install(built, tmp_path / "env", light.bases()[0])
    light.furnish(tmp_path)
    watch = "watch orders.odcs.yaml --channel slack:#sales"
    before = light.run(
        installed, tmp_path, watch, SLACK_BOT_TOKEN="xoxb-1", DQ_SLACK_URL="http://127.0.0.1:1"
    )

    light.install_more(installed, before.printed.splitlines()[1])
    after = light.run(installed, tmp_path, watch, SLACK_BOT_TOKEN="xoxb-1", DQ_SLACK_URL="http://127.0.0.1:1")

    assert (before.code, "not installed" in before.printed) == (2, True)
    assert (after.code, "not installed" in after.printed) == (0, False)

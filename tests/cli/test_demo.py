"""dq demo: the whole loop, every command that it prints, and the tables of the first hour."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fakes import browser, portal_pages
from fakes.command import Place

import dq

EXAMPLES = Path(__file__).parents[2] / "examples" / "registry"
DQ = [sys.executable, "-c", "from dq.cli.main import main; main()"]


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("DQ_", "SLACK_"))}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DQ, *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_its_tables_are_those_of_the_contracts_in_the_examples(place: Place) -> None:
    made = place.dq("demo", "--tables", "lake")
    said = [place.dq("import", "parquet", f"lake/{name}", "--output", str(EXAMPLES / f"{name}.odcs.yaml")).out
            for name in ("flights", "planes", "weather")]  # fmt: skip

    assert (made.code, made.err) == (0, "")
    assert ["matches its source" in one for one in said] == [True, True, True], said


def test_each_file_is_as_old_as_its_delivery(place: Place) -> None:
    place.dq("demo", "--tables", "lake")

    came = {file.parent.name: datetime.fromtimestamp(file.stat().st_mtime, UTC)
            for file in place.folder.glob("lake/flights/*/*.parquet")}  # fmt: skip

    assert came["flight_date=2013-10-31"] == datetime(2013, 11, 1, 13, 10, tzinfo=UTC)
    assert came["flight_date=2013-11-01"] == datetime(2013, 11, 2, 9, 20, tzinfo=UTC)
    assert max(came) == "flight_date=2013-11-03"


def test_it_follows_no_link_that_leads_away(place: Place) -> None:
    (place.folder / "lake").mkdir()
    (place.folder / "lake" / "weather").symlink_to(place.folder / "nowhere")

    ran = place.dq("demo", "--tables", "lake")

    assert (ran.code, "lake/weather already exists" in ran.err) == (2, True)
    assert not (place.folder / "nowhere").exists()


def test_it_leaves_a_table_that_is_there(place: Place) -> None:
    place.put("lake/planes/part-0.parquet", "mine")

    ran = place.dq("demo", "--tables", "lake")

    assert (ran.code, "lake/planes already exists" in ran.err) == (2, True)
    assert [one.name for one in (place.folder / "lake").iterdir()] == ["planes"]
    assert (place.folder / "lake/planes/part-0.parquet").read_text() == "mine"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Result of one run of the demonstration, and the folder that it made."""
    folder = tmp_path_factory.mktemp("demo")
    return run(folder, "demo"), folder / "dq-demo"


@pytest.mark.spark
@pytest.mark.slow
def test_the_demonstration_plays_the_whole_loop_on_real_data(played):
    played, made = played
    as_of = ("--as-of", "2013-11-09T12:00:00Z", "--format", "json")
    shown = Place(made).dq("status", "registry", *as_of).json
    flights = next(one for one in shown["deliveries"] if one["contract"] == "flights")
    broken = [line for line in shown["checks"] if line["status"] == "fail"]
    failed = {(line["scope"], line["property"], line["check"]) for line in broken}
    samples = next(line["samples"] for line in broken if line["check"] == "duplicate_values")

    assert played.returncode == 0, played.stderr
    assert "3 products: open dq-demo/site/index.html" in played.stdout
    assert "Flights out of New York" in (made / "site/products/flights/index.html").read_text()
    assert "Did you mean 'America/New_York'?" in played.stdout
    assert played.stdout.count("[!] ERROR: flights is missing") == 2
    assert played.stdout.count("[ok] RESOLVED: flights came") == 2
    assert [cycle["status"] for cycle in flights["cycles"]].count("late") == 2
    assert len(flights["cycles"]) == 10
    assert flights["budget"].startswith("error budget: 2 of 2 misses used")
    assert ("flight_date=2013-11-04", "arr_time", "bounds") in failed
    assert ("obs_date=2013-11-03", "origin, year, month, day, hour", "duplicate_values") in failed
    assert {row["origin"] for row in samples} == {"EWR", "JFK", "LGA"}


@pytest.mark.spark
@pytest.mark.slow
def test_a_snow_storm_is_an_unusual_number_with_an_incident_and_a_chart(played) -> None:
    shown, folder = played
    told = section(shown.stdout, 4)
    [incident] = [
        one
        for one in Place(folder).dq("incidents", "list", "--all", "--format", "json").json["incidents"]
        if "2013-02-08" in json.dumps(one)
    ]
    status = (
        Place(folder).dq("status", "registry", "--as-of", "2013-11-09T12:00:00Z", "--format", "json").json
    )
    page = (folder / "site/products/flights/index.html").read_text()
    panel = page.partition("Actual departure, local clock")[2].partition("Scheduled departure, local clock")[
        0
    ]

    assert (
        told.splitlines()[0]
        == "flights of 38 days, 2013-01-01 to 2013-02-07: delivered and checked, nothing unusual"
    )
    assert (
        "dep_time unusual: flights.dep_time: nullShare 50.75 % is unusual for a Friday: expected 0 %" in told
    )
    assert "[!] WARNING: flights fails 1 data check: flight_date=2013-02-08" in told
    assert "[ok] RESOLVED: flights" in told
    assert incident["state"] == "resolved"
    assert [counts["real"] for counts in status["unusual"]] == [1]
    assert "<svg" in panel.partition("NULL share")[2]
    assert "2013-02-08" in page


@pytest.mark.spark
@pytest.mark.slow
def test_the_function_plays_what_the_command_plays(spark, played, tmp_path: Path) -> None:
    shown, folder = played
    outcome = dq.demo(tmp_path / "function")

    assert (shown.returncode, outcome.exit_code) == (0, 0), shown.stderr
    assert outcome.folder == tmp_path / "function"
    for alert in outcome.alerts:
        assert alert.splitlines()[0] in shown.stdout
    words = ("status", "registry", "--as-of", outcome.at.isoformat(), "--format", "json")
    command, function = (without_ids(Place(place).dq(*words).json) for place in (folder, outcome.folder))
    assert command == function
    [standing] = [step for step in outcome.steps if isinstance(step, dq.PromisesStanding)]
    below = without_ids(standing.as_dict(), f"{outcome.folder}/")
    assert below["deliveries"] == function["deliveries"]
    [built] = [step for step in outcome.steps if isinstance(step, dq.PortalOutcome)]
    [registered] = [step for step in outcome.steps if isinstance(step, dq.RegisterOutcome)]
    reports = [step for step in outcome.steps if isinstance(step, dq.Report)]
    assert (built.exit_code, registered.exit_code, len(reports)) == (0, 0, 23)
    pages = [{*(place / "site").rglob("*.html")} for place in (folder, outcome.folder)]
    assert len(pages[0]) == len(pages[1]) > 0


def without_ids(document: object, folder: str = "") -> Any:
    """A document as JSON has it, without the folder, and in which all ids of incidents are the same."""
    text = json.dumps(document)
    text = text.replace(folder, "") if folder else text
    return json.loads(re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "id", text))


SCREENS = (
    "index.html", "find.html", "changes.html", "domains/index.html", "domains/aviation.html",
    "incidents/index.html",
    "products/flights/index.html", "products/planes/index.html", "products/weather/index.html",
)  # fmt: skip


@pytest.mark.spark
@pytest.mark.slow
def test_every_screen_of_its_portal_opens_in_a_browser(played):
    site = played[1] / "site"
    with browser.browser() as chromium:
        seen = portal_pages.crawl(chromium, site, "2013-11-09T12:00:00Z")
        incidents = [
            one.path for one in seen if one.path.startswith("incidents/") and one.path not in SCREENS
        ]
        screens = [*SCREENS, incidents[0]]
        page = chromium.new_page()
        ways = {one: axe_of(page, site / one) for one in screens}
        without = portal_pages.read(chromium, site, screens, script=False)
        told = portal_pages.read(chromium, site, screens, script=True)

    assert {*SCREENS} <= {one.path for one in seen}
    assert len(incidents) == 5
    assert [(one.path, one.heard) for one in seen if one.heard] == []
    for fault in ("faults", "tooWide", "nameless", "fired"):
        assert {one.path: one.facts[fault] for one in seen if one.facts[fault]} == {}
    assert portal_pages.lost(site, seen) == []
    assert [wrong for wrong in ways.values() if wrong] == []
    assert without | {"find.html": ""} == told | {"find.html": ""}


def axe_of(page, file):
    page.goto(file.as_uri())
    return browser.axe(page)


def section(printed: str, number: int) -> str:
    """Text below the numbered heading of the demonstration."""
    return (
        re.split(rf"^{number}\. .*\n", printed, flags=re.MULTILINE)[1].split(f"\n{number + 1}. ")[0].strip()
    )


def alerts(printed: str) -> list[tuple[str, str, list[str]]]:
    """Title, command and broken promises of each alert that names a command."""
    messages = re.findall(r"^\[!\] ERROR: (.*)\n((?:    .*\n)+)", printed, flags=re.MULTILINE)
    return [
        (title, command, re.findall(r"^    (\w+(?: \w+)?)  +.*, expected ", body, flags=re.MULTILINE))
        for title, body in messages
        for command in re.findall(r"details +(dq .*)", body)
    ]


@pytest.mark.spark
@pytest.mark.slow
def test_the_command_of_each_alert_shows_what_the_alert_tells(
    spark, played, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, folder = played
    found = alerts(shown.stdout)
    # The session of the tests was started in another folder.
    monkeypatch.setenv("DQ_VARS", "DQ_LAKE")
    monkeypatch.setenv("DQ_LAKE", str(folder / "lake"))

    for title, command, broken in found:
        ran = Place(folder).dq(*shlex.split(command)[1:])
        if command.startswith("dq check"):
            assert (ran.code, [name in ran.out for name in broken]) == (1, [True]), ran.out
        else:
            incidents = ran.out.partition("Open incidents")[2]
            assert (ran.code, f"error: {title} (" in incidents) == (0, True), (command, ran.out)

    assert [command.split()[1] for _, command, _ in found] == ["check", "status", "check", "status", "status"]


def last_commands(printed: str) -> list[str]:
    """The commands below "Look around", to be run from the demonstration's folder."""
    return re.findall("^  ((?:cd|dq) .*)$", printed.rpartition("Next steps:")[2], re.MULTILINE)


@pytest.mark.spark
@pytest.mark.slow
def test_t26_the_commands_at_the_end_of_the_demonstration_show_what_it_showed(played) -> None:
    shown, folder = played
    enter, *commands = last_commands(shown.stdout)
    words = {command.split()[1]: shlex.split(command)[1:] for command in commands}
    printed = {name: Place(folder).dq(*words[name]) for name in ("validate", "status", "register", "explain")}
    # As a user runs it: in the folder, with a session of its own.
    checked = run(folder, *words["check"])

    assert enter == f"cd {folder.name}"
    assert {*words} == {*printed, "check", "portal"}
    assert {name: ran.code for name, ran in printed.items()} == dict.fromkeys(printed, 0)
    assert checked.returncode == 0, checked.stderr
    assert printed["validate"].out.strip().removeprefix("registry/") == section(shown.stdout, 2)
    assert printed["register"].out.strip() == "3 tables: 3 no-op."
    for line in section(shown.stdout, 5).partition("duplicate_values: ")[2].splitlines()[:4]:
        assert line.strip() in checked.stdout
    assert printed["explain"].out.startswith("decimal-without-precision (warning)")


@pytest.mark.spark
@pytest.mark.slow
def test_t26_the_status_at_the_instant_that_is_printed_is_the_one_that_was_shown(played) -> None:
    shown, folder = played
    (status,) = (command for command in last_commands(shown.stdout) if command.startswith("dq status"))

    ran = Place(folder).dq(*shlex.split(status)[1:])

    assert ran.out.strip() == section(shown.stdout, 6)


@pytest.mark.spark
@pytest.mark.slow
def test_the_portal_that_the_demonstration_tells_to_serve_is_served(played) -> None:
    shown, folder = played
    (command,) = re.findall("^  dq (portal serve .*)$", shown.stdout, re.MULTILINE)
    serving = subprocess.Popen(
        [*DQ, *shlex.split(command)], cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True
    )
    try:
        assert serving.stdout is not None
        with urllib.request.urlopen(serving.stdout.readline().strip(), timeout=300) as answer:
            page = answer.read().decode()
    finally:
        serving.terminate()
        serving.wait()

    assert [name in page for name in ("flights", "weather")] == [True] * 2

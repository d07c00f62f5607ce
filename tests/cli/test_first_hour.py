"""What once stopped people in their first hour, by the number of its fault, through the real command.

The table says which test would fail if a fault came back; those that have no other place stand below.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.command import BEGIN, MISSED, Place, contract

TESTS = Path(__file__).parents[1]
DQ = Path(sys.executable).with_name("dq")

FAULTS = {
    "U1: without extras nothing ran": (
        "test_light.py::test_the_light_install_gives_its_commands_and_says_what_the_others_lack",
    ),
    "U2: told to install from an index that has no dq": (
        "contracts/shared/test_install.py",
        "test_light.py::test_the_command_that_mends_a_lack_mends_it",
    ),
    "U3: Windows and Python 3.14": (
        "test_light.py::test_the_light_install_gives_its_commands_and_says_what_the_others_lack",
    ),
    "U4: stack traces of Java for a file that is no Parquet": (
        "cli/test_first_hour.py::test_a_file_that_is_no_parquet_is_said_in_words",
        "cli/test_first_hour.py::test_what_the_tutorial_names_next_works",
    ),
    "U5: a doctor that did not look": (
        "cli/test_doctor.py::test_a_damaged_store_is_broken_and_has_a_mend",
        "cli/test_doctor.py::test_every_extra_has_a_row_that_says_all_that_it_brings",
        "cli/test_doctor.py::test_s3_is_asked_and_a_silent_bucket_holds_nobody_up",
    ),
    "U6: a sample and S3 asked for all of Spark": (
        "test_light.py::test_a_light_extra_gives_its_command_and_brings_no_spark",
    ),
    "U7: help, options without effect, shell completion": (
        "cli/test_first_hour.py::test_help_keeps_what_stands_in_brackets",
        "cli/test_first_hour.py::test_since_says_when_it_begins_nothing",
        "cli/test_first_hour.py::test_since_may_not_lie_ahead",
        "cli/test_first_hour.py::test_a_page_as_json_is_json",
        "cli/test_first_hour.py::test_a_mode_wants_a_base_and_is_one",
        "cli/test_first_hour.py::test_bash_completes_commands_options_and_values",
        "cli/test_first_hour.py::test_other_shells_ask_and_are_answered",
        "cli/test_outputs.py::test_every_command_that_prints_json_has_its_form",
        "cli/test_outputs.py::test_what_is_printed_has_the_form",
        "cli/test_commands.py::test_schedule_next_prints_instants_or_one_finding",
    ),
    "U8: rules by positions in the quarantine": (
        "contracts/yaml/test_clause_name.py::test_the_order_of_columns_changes_no_name",
        "dataquality/test_quarantine.py",
        "dataquality/results/test_names.py::test_a_rule_that_moved_keeps_its_history",
        "dataquality/results/test_names.py::test_results_of_an_older_dq_are_found_by_their_paths",
        "cli/test_check_many.py::test_results_are_appended_to_a_table_that_may_have_columns_of_its_own",
        "cli/test_lineage.py::test_a_check_starts_and_completes_one_run_with_what_it_found",
    ),
    "U9: nothing to import with, to run it by, or to read about that": (
        "cli/test_import.py",
        "test_light.py::test_the_first_hour_needs_what_it_says_and_no_spark",
        "test_light.py::test_the_first_hour_has_at_most_seven_commands",
        "orchestration/test_airflow.py",
        "test_examples.py",
        "dataquality/test_frames.py::test_the_example_publishes_the_good_rows_of_each_batch",
        "test_operating.py::test_the_steps_of_the_image_lead_to_a_dq_that_runs",
        "test_operating.py::test_systemd_finds_no_fault_in_its_units",
        "test_operating.py::test_the_cron_job_has_keys_that_kubernetes_knows",
        "store/test_upgrade.py::test_a_backup_of_the_schema_before_is_restored_and_upgraded",
    ),
    "U10: metadata, and dependencies that nothing imports": (
        "test_release.py::test_the_metadata_says_what_is_so",
        "test_imports.py",
    ),
}


@pytest.mark.parametrize("shown", [test for tests in FAULTS.values() for test in tests])
def test_each_test_of_the_table_is_there(shown: str) -> None:
    file, _, name = shown.partition("::")
    functions = {one.name for one in ast.walk(ast.parse((TESTS / file).read_text()))
                 if isinstance(one, ast.FunctionDef)}  # fmt: skip

    assert not name or name in functions


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.put("registry/orders.odcs.yaml", contract("orders"))
    (tmp_path / "lake" / "orders").mkdir(parents=True)
    return made


@pytest.mark.spark
def test_what_the_tutorial_names_next_works(tmp_path: Path, spark: object) -> None:
    page = (TESTS.parent / "docs" / "tutorial-delivery.md").read_text()
    [check] = re.findall(r"`dq (check [^`]*)`", page)
    place = Place(tmp_path)
    place.put("registry/keep", "")
    for line in re.findall(r"^(?:dq init|sed|mkdir) .*$", page, re.MULTILINE):
        subprocess.run(line.replace("dq init", f"{DQ} init"), shell=True, cwd=tmp_path, check=True)
    file = tmp_path / "registry" / "orders.odcs.yaml"
    # The session of the tests stands in another folder.
    file.write_text(file.read_text().replace('"lake/{object}"', f'"{tmp_path}/lake/{{object}}"'))

    ran = place.dq(*check.split())

    assert (ran.code, " fail" in ran.out) == (0, False), ran.out + ran.err


@pytest.mark.spark
def test_a_file_that_is_no_parquet_is_said_in_words(place: Place, spark: object) -> None:
    place.put("lake/orders/day=2026-05-10/part-0.parquet", "data\n")
    # The session of the tests stands in another folder.
    there = {"path: lake/orders": f"path: {place.folder}/lake/orders"}
    place.put("registry/orders.odcs.yaml", contract("orders", **there))

    ran = place.dq("check", "registry/orders.odcs.yaml", "--partition", "day=2026-05-10")

    assert ran.code == 3
    assert "part-0.parquet" in ran.err
    assert "Deliver this file again" in ran.err
    assert "at org.apache" not in ran.out + ran.err
    assert "Traceback" not in ran.out + ran.err


def test_help_keeps_what_stands_in_brackets(place: Place) -> None:
    assert "Needs the extra [aws]." in place.dq("emr", "--help").out


def test_since_says_when_it_begins_nothing(place: Place) -> None:
    first = place.dq("watch", "registry", "--as-of", BEGIN, "--since", "2026-05-09T00:00:00Z")

    second = place.dq("watch", "registry", "--as-of", MISSED, "--since", "2026-05-01T00:00:00Z")

    assert "new cycles: 2" in first.out
    assert "--since" not in first.err
    assert "--since does not affect SLOs evaluated before: 1 of 1 continues" in second.err
    assert "new cycles: 1" in second.out


def test_since_may_not_lie_ahead(place: Place) -> None:
    ran = place.dq("watch", "registry", "--as-of", BEGIN, "--since", MISSED)

    assert (ran.code, f"--since {MISSED} is after the current time {BEGIN}" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("name", "kind"), [("cron-invalid", "rule"), ("type-narrowed", "change"), ("luhn", "custom check")]
)
def test_a_page_as_json_is_json(place: Place, name: str, kind: str) -> None:
    page = place.dq("explain", name, "--format", "json").json
    text = place.dq("explain", name).out

    assert (page["id"], page["kind"]) == (name, kind)
    assert page["summary"].split("\n")[0][:40] in text
    assert bool(page["bad"]) == bool(page["why"]) == (kind == "rule")


@pytest.mark.parametrize(
    ("options", "said"),
    [(("--mode", "foo"), "unknown mode 'foo'"), (("--mode", "full"), "needs --base")],
)
def test_a_mode_wants_a_base_and_is_one(place: Place, options: tuple[str, ...], said: str) -> None:
    ran = place.dq("validate", "registry", *options)

    assert (ran.code, said in ran.err) == (2, True)


def answered(place: Place, **variables: str) -> list[str]:
    """What dq says to a shell that completes."""
    done = subprocess.run(
        [DQ], cwd=place.folder, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert (done.stderr, "\x1b" in done.stdout) == ("", False)
    return done.stdout.splitlines()


def test_bash_completes_commands_options_and_values(place: Place) -> None:
    script = "\n".join(answered(place, _DQ_COMPLETE="source_bash"))
    asked = {"dq va": "validate", "dq schedule n": "next", "dq watch --trust": "--trust-clock",
             "dq --config dq.toml watch --format j": "json"}  # fmt: skip
    call = f"_dq_completion {DQ}; echo ${{COMPREPLY[@]}}"
    lines = [f"COMP_WORDS=({words}); COMP_CWORD={len(words.split()) - 1}; {call}" for words in asked]

    done = subprocess.run(
        ["bash", "--norc"], input="\n".join([script, *lines]), capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines() == list(asked.values())


def test_other_shells_ask_and_are_answered(place: Place) -> None:
    words = {"_TYPER_COMPLETE_ARGS": "dq va", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}

    [zsh] = answered(place, _DQ_COMPLETE="complete_zsh", **words)
    [fish] = answered(place, _DQ_COMPLETE="complete_fish", **words)

    assert '"validate":"Validate contracts' in zsh
    assert fish.startswith("validate\tValidate contracts")


def test_the_scripts_for_each_shell_name_dq(place: Place) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_DQ_COMPLETE=complete_" + shell in "\n".join(answered(place, _DQ_COMPLETE=f"source_{shell}"))

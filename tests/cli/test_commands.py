"""The commands as their users see them: what they print and which exit code they give."""

from __future__ import annotations

import os
import pkgutil
from datetime import datetime

import pytest

from dq.cli import commands
from dq.cli.main import ALIASES, names


@pytest.mark.parametrize("name", names())
def test_every_command_has_a_help_text_with_an_example(dq, name):
    shown = dq(name, "--help")

    assert shown.code == 0
    assert "Example: dq" in shown.out or "Commands" in shown.out


def test_a_help_that_is_asked_for_again_is_the_same(dq):
    shown = [dq("store", "--help"), dq("store", "upgrade", "--help"), dq("register", "--help")]

    again = [dq("store", "--help"), dq("store", "upgrade", "--help"), dq("register", "--help")]

    assert again == shown


def test_the_help_lists_every_command(dq):
    shown = dq("--help")

    assert [name for name in names() if name not in shown.out] == []


def test_every_module_of_a_command_is_listed_or_below_another():
    modules = {
        module.name.rstrip("_").replace("_", "-") for module in pkgutil.iter_modules(commands.__path__)
    }

    assert modules == ({*names(), *ALIASES} - {"cycles"})


def test_an_old_name_of_a_command_is_the_new_one_and_not_listed(dq):
    shown = dq("--help").out

    assert {old: dq(old, "--help").code for old in ALIASES} == dict.fromkeys(ALIASES, 0)
    assert [old for old in ALIASES if f"│ {old} " in shown] == []
    assert dq("replay") == dq("cycles", "replay")


@pytest.mark.parametrize("words", ["ac4", "ac", "3f2a91c0", "--all"])
def test_what_can_be_an_incident_is_no_misspelled_command(dq, words):
    assert "No such command" not in dq("incidents", words).err
    assert "Did you mean 'ack'?" in dq("incidents", "akc").err


@pytest.mark.parametrize("arguments", [(), ("valdate",), ("validate", "--nonsense"), ("schedule", "nxt")])
def test_a_command_that_cannot_be_understood_is_exit_2(dq, arguments):
    assert dq(*arguments).code == 2


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("validate", ".", "--base", ""), "--base"),
        (("validate", "--base=", "."), "--base"),
        (("watch", ".", "--as-of", ""), "--as-of"),
        (("validate", "--", ""), "an argument"),
        (("check", ".", "--quarantine", ""), "--quarantine"),
        (("fmt", ""), "an argument"),
    ],
)
def test_what_a_script_did_not_fill_is_not_taken_for_what_was_left_out(dq, words, name):
    ran = dq(*words)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"dq: {name} is empty.")


def test_a_good_contract_is_exit_0(dq):
    assert dq("validate").code == 0


def test_a_broken_contract_is_exit_1_with_the_place_and_the_mend(dq, folder):
    broken = folder / "orders.odcs.yaml"
    broken.write_text(broken.read_text().replace("logicalType: integer", "logicalType: integr"))

    found = dq("validate", "orders.odcs.yaml")

    assert found.code == 1
    assert "16:33 error" in found.out
    assert "Did you mean 'integer'?" in found.out


def test_findings_as_json_are_one_document(dq, folder):
    broken = folder / "orders.odcs.yaml"
    broken.write_text(broken.read_text().replace("version: 1.0.0", "version: 1.10"))

    (finding,) = dq("validate", "--format", "json").json["findings"]

    assert (finding["rule"], finding["line"], finding["column"]) == ("wrong-type", 4, 10)


@pytest.mark.parametrize("command", ["validate", "watch", "status", "register"])
def test_a_path_that_is_not_there_is_exit_3_with_the_mend(dq, command):
    found = dq(command, "nowhere")

    assert found.code == 3
    assert "nowhere does not exist" in found.err
    assert "Traceback" not in found.err


@pytest.mark.parametrize("command", ["validate", "watch"])
def test_a_folder_without_contracts_is_not_fine(dq, folder, command):
    (folder / "empty").mkdir()

    assert dq(command, "empty").code == 3


def test_a_policy_that_cannot_be_understood_is_exit_2(dq, folder):
    (folder / "dq-policy.yaml").write_text("rules: {missing-ownr: {severity: error}}\n")

    found = dq("validate")

    assert found.code == 2
    assert "dq-policy.yaml:1:9" in found.err
    assert "missing-owner" in found.err


def test_a_store_that_cannot_be_opened_is_exit_3_without_its_password(dq, monkeypatch):
    monkeypatch.setenv("DQ_STORE_URL", "postgresql://dq:s3cret@127.0.0.1:1/dq")

    found = dq("status")

    assert found.code == 3
    assert "s3cret" not in found.out + found.err


def test_an_instant_without_a_zone_is_exit_2(dq):
    found = dq("watch", "--as-of", "2026-05-01T06:00:00")

    assert found.code == 2
    assert "2026-05-01T06:00:00Z" in found.err


def test_a_contract_that_cannot_be_read_does_not_keep_the_others_from_being_watched(dq, folder):
    (folder / "broken.odcs.yaml").write_text("apiVersion: v3.2.0\nkind: [")

    found = dq("watch", "--as-of", "2026-05-10T12:00:00Z", "--format", "json")

    assert found.code == 3
    assert found.json["slos"] == 1
    assert "broken.odcs.yaml:" in found.err


def test_a_missing_delivery_is_exit_1_once_and_resolves(dq, folder):
    watch = ("watch", "--channel", "console", "--as-of")
    dq(*watch, "2026-05-10T12:00:00Z")
    missing = dq(*watch, "2026-05-11T06:35:00Z")
    again = dq(*watch, "2026-05-11T06:40:00Z")
    marker = folder / "lake" / "day=2026-05-10" / "_SUCCESS"
    marker.parent.mkdir(parents=True)
    marker.touch()
    os.utime(marker, (datetime.fromisoformat("2026-05-11T08:00:00+00:00").timestamp(),) * 2)
    late = dq(*watch, "2026-05-11T08:05:00Z")
    shown = dq("status", "--as-of", "2026-05-11T09:00:00Z", "--format", "json").json

    assert (missing.code, again.code, late.code) == (1, 0, 0)
    assert missing.out.count("orders is missing: day=2026-05-10") == 1
    assert "orders is missing" not in again.out
    assert late.out.count("RESOLVED") == 1
    assert shown["deliveries"][0]["cycles"][0]["status"] == "late"
    assert shown["incidents"] == []


def test_a_channel_that_is_not_set_up_is_told_and_the_console_stands_in(dq):
    dq("watch", "--as-of", "2026-05-10T12:00:00Z")

    found = dq("watch", "--as-of", "2026-05-11T06:35:00Z")

    assert found.code == 4
    assert "slack" in found.err
    assert "orders is missing" in found.out


def test_register_plans_applies_and_then_has_nothing_to_do(dq):
    planned = dq("register", "--check")
    applied = dq("register", "--apply")
    again = dq("register", "--check", "--format", "json")

    assert planned.code == 1
    assert "No changes made" in planned.out
    assert applied.code == 0
    assert again.code == 0
    assert [action["kind"] for action in again.json["actions"]] == ["no-op"]


def test_publish_does_each_step_once(dq, folder):
    dq("register", "--apply")
    partition = folder / "lake" / "day=2026-05-10"
    partition.mkdir(parents=True)
    (partition / "part-0.parquet").write_bytes(b"data")
    publish = ("publish", "orders.odcs.yaml", "--partition", "day=2026-05-10", "--rows", "5")

    first, second = dq(*publish), dq(*publish)

    assert first.out == "orders day=2026-05-10: partition, marker, receipt, notify.\n"
    assert second.out == "orders day=2026-05-10: nothing to do, published before.\n"
    assert (partition / "_SUCCESS").exists()
    assert len((folder / ".dq" / "published.jsonl").read_text().splitlines()) == 1


def test_a_receipt_is_evidence_for_the_watcher(dq, folder):
    dq("register", "--apply")
    (folder / "lake" / "day=2026-05-10").mkdir(parents=True)
    dq("watch", "--as-of", "2026-05-10T12:00:00Z")
    dq("publish", "orders.odcs.yaml", "--partition", "day=2026-05-10", "--as-of", "2026-05-11T05:00:00Z")

    found = dq("watch", "--as-of", "2026-05-11T06:35:00Z", "--format", "json").json

    assert [change["after"] for change in found["changes"]] == ["on_time"]


def test_a_partition_that_does_not_fit_is_exit_2(dq):
    found = dq("publish", "orders.odcs.yaml", "--partition", "dy=2026-05-10")

    assert found.code == 2
    assert "day" in found.err


def test_init_writes_a_contract_that_passes_and_overwrites_nothing(dq):
    flags = ("--domain", "sales", "--owner", "a@example.com", "--channel", "#x", "--schedule", "@daily")
    made = dq("init", "new", "--id", "clicks", *flags, "--tz", "Asia/Tokyo")
    again = dq("init", "new", "--id", "clicks", *flags, "--tz", "Asia/Tokyo")
    judged = dq("validate", "new")

    assert made.code == 0
    assert again.code == 2
    assert judged.out.strip() == "1 contract, no findings."


def test_doctor_names_what_is_missing_and_the_command_that_mends_it(dq, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")

    found = dq("doctor", "--format", "json")

    assert found.code == 3
    (java,) = [look for look in found.json if look["name"] == "Java"]
    assert java["ok"] is False
    assert "apt-get install openjdk-17" in java["hint"]


@pytest.mark.parametrize("option", ["--after", "--as-of"])
@pytest.mark.parametrize("instant", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z"])
def test_an_instant_at_the_ends_of_time_is_a_mistake_and_not_a_bug(dq, option, instant):
    command = {"--after": ("schedule", "next", "0 6 * * *"), "--as-of": ("status",)}[option]

    ran = dq(*command, option, instant)

    assert (ran.code, ran.err.splitlines()[1]) == (2, "    Use a year from 1900 to 9000.")


def test_a_rule_that_names_a_mapping_for_a_column_is_not_evaluated(dq, folder):
    contract = folder / "orders.odcs.yaml"
    rule = "{metric: duplicateValues, mustBe: 0, arguments: {properties: [{a: 1}]}}"
    contract.write_text(
        contract.read_text().replace("    properties:\n", f"    quality: [{rule}]\n    properties:\n")
    )

    ran = dq("explain", "orders.odcs.yaml")

    assert (ran.code, "{'a': 1} is not a property of orders" in ran.out) == (0, True)


def test_schedule_next_prints_instants_or_one_finding(dq):
    good = dq(
        "schedule", "next", "0 6 * * *", "--after", "2026-05-01T06:00:00Z", "--count", "2", "--format", "json"
    )
    bad = dq("schedule", "next", "0 30 * * *", "--format", "json")

    assert good.json["next_due_utc"] == ["2026-05-02T06:00:00Z", "2026-05-03T06:00:00Z"]
    assert bad.code == 2
    assert bad.json["finding"]["rule"] == "CRON_RANGE"


def test_explain_of_an_unknown_rule_names_the_nearest(dq):
    found = dq("explain", "dupliate-property")

    assert found.code == 2
    assert "duplicate-property" in found.err


def test_a_secret_may_stand_in_a_file(dq, folder, monkeypatch):
    monkeypatch.setenv("SLACK_BOT_TOKEN_FILE", str(folder / "absent"))

    found = dq("watch", "--as-of", "2026-05-10T12:00:00Z")

    assert found.code == 2
    assert "SLACK_BOT_TOKEN_FILE" in found.err


def test_a_channel_that_does_not_exist_is_refused_before_the_first_alert(dq):
    found = dq("watch", "--channel", "slak", "--as-of", "2026-05-10T12:00:00Z")

    assert found.code == 2
    assert "unknown channel 'slak'" in found.err


def test_a_folder_that_cannot_be_written_is_one_sentence(dq, folder):
    flags = ("--domain", "a", "--owner", "a@example.com", "--channel", "#x", "--schedule", "@daily")

    found = dq("init", str(folder / "orders.odcs.yaml"), "--id", "clicks", *flags, "--tz", "UTC")

    assert found.code == 3
    assert "orders.odcs.yaml" in found.err
    assert "Traceback" not in found.err


def test_a_number_that_no_float_holds_is_a_number_for_the_gate(dq, folder):
    contract = folder / "orders.odcs.yaml"
    bounds = f"logicalTypeOptions: {{minimum: 1{'0' * 400}, maximum: 1}}"
    contract.write_text(contract.read_text().replace("required: true", f"required: true, {bounds}"))

    ran = dq("validate", "orders.odcs.yaml", "--format", "json")

    assert (ran.code, [one["rule"] for one in ran.json["findings"]]) == (0, ["min-above-max"])


def test_a_service_level_of_no_number_of_days_is_not_evaluated(dq, folder):
    contract = folder / "orders.odcs.yaml"
    contract.write_text(
        contract.read_text() + "  - {property: latency, value: .nan, unit: d, element: orders.day}\n"
    )

    assert "nan is not a valid number for a duration" in dq("explain", "orders.odcs.yaml").out

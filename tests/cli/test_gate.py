"""The gate of a pull request, in a real Git repository: `dq validate --base` as a team would run it."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: lake, format: parquet}
team: {members: [{username: ana@example.com, role: owner}]}
support:
  - {channel: "#sales", tool: slack, scope: notifications}
schema:
  - name: orders
    description: One row per order.
    properties:
      - {name: id, logicalType: integer, physicalType: bigint, required: true, description: Number.}
      - {name: amount, logicalType: number, physicalType: "decimal(18, 2)", description: Sum.}
"""
AMOUNT = '      - {name: amount, logicalType: number, physicalType: "decimal(18, 2)", description: Sum.}\n'


class Registry:
    """A repository with one commit on main, and the branch `change` checked out."""

    def __init__(self, folder):
        self.folder = folder
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.email", "a@example.com")
        self.git("config", "user.name", "a")
        (folder / "dq-policy.yaml").write_text("profile: default\n")
        self.write("orders.odcs.yaml", CONTRACT)
        self.commit("promise orders")
        self.git("checkout", "-q", "-b", "change")

    def git(self, *arguments):
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, capture_output=True, text=True, timeout=300, check=True
        )
        return done.stdout

    def write(self, name, text):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)

    def commit(self, subject):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", subject)


@pytest.fixture
def registry(folder):
    (folder / "orders.odcs.yaml").unlink()
    return Registry(folder)


def gate(dq, *more):
    return dq("validate", ".", "--base", "main", *more)


def test_nothing_changed_is_exit_0(dq, registry):
    assert gate(dq).code == 0


def test_a_breaking_change_is_exit_1_with_an_annotation_on_the_right_line(dq, registry):
    registry.write("orders.odcs.yaml", CONTRACT.replace(AMOUNT, ""))
    registry.commit("drop amount")

    found = gate(dq, "--format", "github")

    assert found.code == 1
    assert "::error file=orders.odcs.yaml,line=12" in found.out
    assert "column-removed" in found.out
    assert "version 2.0.0" in found.err


@pytest.mark.parametrize("after", ["classification: public, ", ""])
def test_a_lowered_classification_stops_the_gate_until_somebody_waives_it(dq, registry, after):
    secret = AMOUNT.replace("{name: amount, ", "{name: amount, classification: restricted, ")
    registry.git("checkout", "-q", "main")
    registry.write("orders.odcs.yaml", CONTRACT.replace(AMOUNT, secret))
    registry.commit("classify amount")
    registry.git("checkout", "-q", "-B", "change")
    lowered = secret.replace("classification: restricted, ", after)
    registry.write("orders.odcs.yaml", CONTRACT.replace(AMOUNT, lowered).replace("1.0.0", "1.1.0"))
    registry.commit("show amount")

    found = gate(dq)

    assert found.code == 1
    assert "error classification-lowered" in found.out
    assert "To accept it, add to .waivers. in dq-policy.yaml" in " ".join(found.out.split()).replace("'", ".")


def test_a_change_that_is_not_committed_is_judged_too(dq, registry):
    registry.write("orders.odcs.yaml", CONTRACT.replace(AMOUNT, ""))

    assert gate(dq).code == 1


def test_a_major_beside_a_deprecated_old_file_is_exit_0(dq, registry):
    end = (datetime.now(UTC) + timedelta(days=120)).date()
    old = CONTRACT.replace("status: active", "status: deprecated").replace("version: 1.0.0", "version: 1.1.0")
    support = f"slaProperties:\n  - {{property: endOfSupport, value: '{end}'}}\n"
    new = CONTRACT.replace("version: 1.0.0", "version: 2.0.0").replace(AMOUNT, "")
    registry.write("orders.odcs.yaml", old + support)
    registry.write("v2/orders.odcs.yaml", new)
    registry.commit("second major")

    found = gate(dq)

    assert found.code == 0, found.out


def test_a_moved_file_is_no_change(dq, registry):
    registry.write("sales/orders.odcs.yaml", CONTRACT)
    (registry.folder / "orders.odcs.yaml").unlink()
    registry.commit("move")

    found = gate(dq, "--format", "json")

    assert found.code == 0
    assert {one["severity"] for one in found.json["findings"]} <= {"info"}


def test_a_branch_cannot_allow_itself_what_the_base_forbids(dq, registry):
    registry.write("orders.odcs.yaml", CONTRACT.replace(AMOUNT, ""))
    registry.write(
        "dq-policy.yaml",
        "waivers:\n"
        "  - {rule: column-removed, contract: orders, path: 'schema[orders].properties[amount]',"
        " reason: nobody uses it, by: ana@example.com, expires: 2099-01-01}\n",
    )
    registry.commit("drop amount and allow it")

    assert gate(dq).code == 1


def test_contracts_that_the_branch_did_not_touch_are_not_read(dq, registry):
    registry.git("checkout", "-q", "main")
    registry.write("broken.odcs.yaml", "kind: [")
    registry.commit("a broken one, long ago")
    registry.git("checkout", "-q", "change")
    registry.git("rebase", "-q", "main")

    found = gate(dq)

    assert found.code == 0
    assert "broken" not in found.out


def test_a_shallow_clone_is_exit_3_with_the_command_that_mends_it(
    dq, registry, tmp_path_factory, monkeypatch
):
    registry.write("orders.odcs.yaml", CONTRACT.replace("Sum.", "Total."))
    registry.commit("reword")
    clone = tmp_path_factory.mktemp("shallow") / "clone"
    url = f"file://{registry.folder}"
    command = ["git", "clone", "-q", "--depth", "1", "--branch", "change", url, str(clone)]
    subprocess.run(command, check=True, timeout=300)
    monkeypatch.chdir(clone)

    found = dq("validate", ".", "--base", "origin/main")

    assert found.code == 3
    assert "git fetch" in found.err


def test_the_summary_has_the_changes_and_the_version_that_they_need(dq, registry):
    registry.write("orders.odcs.yaml", CONTRACT.replace(AMOUNT, ""))

    gate(dq, "--report", "markdown=summary.md")

    text = (registry.folder / "summary.md").read_text()
    assert "| break | `column-removed` |" in text
    assert "### Version policy: break (version 2.0.0 or higher is required: version-not-bumped)" in text
    assert "### Compatibility: break (FORWARD: 1 break)" in text


def test_an_unknown_mode_is_exit_2_with_the_nearest(dq, registry):
    found = gate(dq, "--mode", "FORWRD")

    assert found.code == 2
    assert "FORWARD" in found.err


def test_the_official_schema_judges_what_the_branch_changes(dq, registry):
    sftp = "{server: files, type: sftp, location: files.example.com/orders}"
    registry.write("orders.odcs.yaml", CONTRACT.replace("servers:\n", f"servers:\n  - {sftp}\n"))
    registry.commit("files")

    plain = dq("validate", ".", "--base", "main", "--format", "json")
    official = dq("validate", ".", "--base", "main", "--format", "json", "--official")

    assert "official-schema" not in plain.out
    assert official.code == 1
    rules = [finding["rule"] for finding in json.loads(official.out)["findings"]]
    assert rules.count("official-schema") == 1

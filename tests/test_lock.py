"""What is installed is what was tested: lock, hashes, bill of materials, and the actions by their commits."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib

import pytest
import yaml
from fakes import wheel

LOCK = tomllib.loads((wheel.ROOT / "uv.lock").read_text())
GATE = wheel.ROOT / "requirements-gate.txt"
REGISTER = wheel.ROOT / "requirements-register.txt"
AIRFLOW = sorted((wheel.ROOT / "tests" / "orchestration").glob("airflow-*.txt"))
WORKFLOWS = sorted((wheel.ROOT / ".github" / "workflows").glob("*.yml"))
USES = re.compile(r"uses: *([^ #\n]+)(.*)")


@pytest.mark.parametrize(
    ("file", "extras"),
    [(GATE, []), (REGISTER, ["--extra", "aws", "--extra", "postgres", "--extra", "iceberg"])],
)
def test_what_the_action_installs_is_what_is_locked(file, extras):
    made = subprocess.run(
        [wheel.uv(), "--no-config", "export", "--quiet", "--frozen", "--no-default-groups", "--group",
         "build", "--no-emit-project", "--no-annotate", "--no-header", "--format", "requirements.txt",
         *extras],
        cwd=wheel.ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout  # fmt: skip

    assert file.read_text() == made, "run 'make lock'"


@pytest.mark.parametrize("file", [GATE, REGISTER, *AIRFLOW])
def test_everything_that_is_installed_by_a_list_has_its_hashes(file):
    # One requirement, with its hashes on lines of their own that a backslash joins.
    wanted = [line for line in file.read_text().replace("\\\n", " ").splitlines() if line]

    assert [line for line in wanted if "==" not in line or " --hash=sha256:" not in line] == []


def test_the_lock_names_the_public_index_and_no_other_host():
    sources = {json.dumps(package["source"]) for package in LOCK["package"]}
    files = [
        one["url"]
        for package in LOCK["package"]
        for one in [*package.get("wheels", []), *filter(None, [package.get("sdist")])]
    ]

    assert sources == {'{"registry": "https://pypi.org/simple"}', '{"editable": "."}'}
    assert {url.split("/")[2] for url in files} == {"files.pythonhosted.org"}


def test_the_bill_of_materials_lists_what_the_lock_lists_with_its_hashes(tmp_path):
    file = tmp_path / "dq.cdx.json"

    subprocess.run(
        ["make", "--silent", "sbom", f"UV={wheel.uv()}", f"SBOM={file}"], cwd=wheel.ROOT, check=True
    )

    made = json.loads(file.read_text())
    listed = {(one["name"], one["version"]) for one in made["components"]}
    locked = {(package["name"], package.get("version")) for package in LOCK["package"]}
    assert (made["bomFormat"], made["metadata"]["component"]["name"]) == ("CycloneDX", "dq-contracts")
    assert {"pydantic", "pyspark", "slack-sdk", "psycopg", "boto3"} <= {name for name, _ in listed}
    assert listed <= locked
    assert all(one["externalReferences"][0]["hashes"] for one in made["components"])


def test_actions_are_pinned_by_commit_with_the_release_beside_it():
    pages = [*WORKFLOWS, wheel.ROOT / "action.yml", wheel.ROOT / "docs" / "how-to" / "github-actions.md"]
    used = [(page.name, *found) for page in pages for found in USES.findall(page.read_text())]

    assert used
    assert [
        one for one in used if not (re.search(r"@[0-9a-f]{40}$", one[1]) and re.match(r" # \S", one[2]))
    ] == []


def test_a_fork_s_pull_request_runs_with_a_token_that_can_only_read():
    assert WORKFLOWS
    for file in WORKFLOWS:
        workflow = yaml.safe_load(file.read_text())
        # YAML 1.1 reads the key `on` as true.
        assert "pull_request_target" not in workflow[True]
        assert workflow["permissions"] == {"contents": "read"}
        assert not any("permissions" in job for job in workflow["jobs"].values())
        checkouts = [
            step
            for job in workflow["jobs"].values()
            for step in job["steps"]
            if step.get("uses", "").startswith("actions/checkout@")
        ]
        assert all(step["with"]["persist-credentials"] is False for step in checkouts)
        assert "secrets." not in file.read_text()

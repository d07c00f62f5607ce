"""Subscriptions at the command line: the gate judges them, and a change names who subscribed."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from dq.cli.main import run
from dq.contracts.subscriptions import json_schema

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
team: {name: sales, members: [{username: ana@example.com, role: owner}]}
schema:
  - name: orders
    physicalName: tbl_orders
    properties:
      - {name: id, logicalType: integer, physicalType: bigint}
      - {name: total, physicalName: amount, logicalType: number, tags: [finance]}
      - name: address
        logicalType: object
        properties:
          - {name: city, logicalType: string}
      - {name: email, logicalType: string, classification: Confidential}
"""


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A registry with one contract, and no subscription."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dq-policy.yaml").write_text(
        "rules: {subscription-without-approver: {proof: names, other_accounts: false}}\n"
    )
    (tmp_path / "orders.odcs.yaml").write_text(CONTRACT)
    return tmp_path


def subscribe(folder: Path, name: str, **other: str) -> None:
    lines = {
        "contract": "orders",
        "major": "1",
        "consumer": f"{{team: {name}, contact: '#{name}'}}",
        "purpose": "Invoices.",
        "columns": "[orders.id]",
        "startDate": "2020-01-01",
        **other,
    }
    file = folder / "subscriptions" / "teams" / f"{name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{key}: {value}\n" for key, value in lines.items() if value))


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[tuple[str, str, int]]:
    run(["validate", *arguments, "--format", "json"])
    rows = json.loads(capsys.readouterr().out)["findings"]
    return [(row["rule"], row["file"], row["line"]) for row in rows]


def test_mistakes_of_contracts_and_of_subscriptions_come_together(registry, capsys):
    (registry / "orders.odcs.yaml").write_text(CONTRACT.replace("active", "activ"))
    subscribe(registry, "billing", columns="[orders.id, orders.totl]", major="1", endDate="2019-01-01")
    subscribe(registry, "search", contract="order")
    (registry / "subscriptions" / "odd.yaml").write_text("contract: orders\nmajr: 1\n")

    assert found(capsys) == [
        ("status-unknown", "orders.odcs.yaml", 5),
        *[("missing-key", "subscriptions/odd.yaml", 1)] * 3,
        ("unknown-key", "subscriptions/odd.yaml", 2),
        ("subscription-column-unknown", "subscriptions/teams/billing.yaml", 5),
        ("subscription-dates-reversed", "subscriptions/teams/billing.yaml", 7),
        ("subscription-contract-unknown", "subscriptions/teams/search.yaml", 1),
    ]


@pytest.mark.parametrize(
    "columns",
    ["[orders]", "[tbl_orders.amount, orders.total]", "[orders.address.city, tbl_orders.address]", ""],
)
def test_columns_are_known_by_every_name_that_the_contract_gives_them(registry, capsys, columns):
    subscribe(registry, "billing", columns=columns, approvers="[ana@example.com]")

    assert found(capsys) == []


@pytest.mark.parametrize(
    "covering", [{"columns": ""}, {"columns": "[orders]"}, {"columns": "[orders.email]"}]
)
def test_classified_columns_ask_for_an_approver_however_they_are_reached(registry, capsys, covering):
    subscribe(registry, "billing", **covering)

    assert [rule for rule, _, _ in found(capsys)] == ["subscription-without-approver"]


@pytest.mark.parametrize("columns", ["[orders.id]", "[orders.email]"])
@pytest.mark.parametrize(
    ("approvers", "strangers"),
    [
        ("[ana@example.com]", 0),
        ("[Ana@Example.com, ' ana@example.com ']", 0),
        ("[sales]", 0),
        ("[stu, lead@example.com, second@example.com, vp]", 0),
        ("[billing]", 1),
        ("[ana@example.com, dev@example.com, example.com]", 2),
        ("[former]", 1),
        ("['lead@example.com, second@example.com']", 1),
    ],
)
def test_t3_only_owners_stewards_and_approvers_of_the_contract_approve(
    registry, capsys, columns, approvers, strangers
):
    team = """\
team:
  name: sales
  members:
    - {username: ana@example.com, role: Owner}
    - {username: stu, role: Data Steward}
    - {username: dev@example.com, role: engineer}
    - {username: example.com}
    - {username: former, role: owner, dateOut: '2019-12-31'}
roles:
  - {role: reader, firstLevelApprovers: 'lead@example.com, second@example.com', secondLevelApprovers: vp}
"""
    (registry / "orders.odcs.yaml").write_text(re.sub("team: .*\n", team, CONTRACT))
    subscribe(registry, "billing", columns=columns, approvers=approvers)

    findings = found(capsys)

    unknown = ("subscription-approver-unknown", "subscriptions/teams/billing.yaml", 7)
    assert findings.count(unknown) == strangers
    nobody_may = columns == "[orders.email]" and approvers in (
        *("[billing]", "[former]"),
        "['lead@example.com, second@example.com']",
    )
    assert [rule for rule, _, _ in findings if rule != unknown[0]] == (
        ["subscription-without-approver"] if nobody_may else []
    )


def test_t3_a_contract_without_owners_has_no_approvers(registry, capsys):
    (registry / "orders.odcs.yaml").write_text(re.sub("team: .*\n", "", CONTRACT))
    subscribe(registry, "billing", approvers="[ana@example.com]")

    run(["validate"])

    assert "has no owner, steward or approver" in capsys.readouterr().out


def test_a_tag_stands_for_the_columns_that_have_it(registry, capsys):
    subscribe(registry, "billing", columns="", tags="[finance, sales]")

    assert [rule for rule, _, _ in found(capsys)] == ["subscription-column-unknown"]


@pytest.mark.parametrize(
    "filter_",
    [
        "id IN (SELECT 1)",
        "upper(email) = 'A'",
        "id + 1 = 2",
        "nme = 1",
        "true; DROP TABLE x",
        "o.id = 1",
        "''",
        "id > 7 AND email",
        "id = amount",
        "1 = 1",
        # T16: each of these is read in one way by Spark and in another by Lake Formation.
        'email = "x"',
        "email = 'x\\' OR 1=1 --'",
        "email = r'x'",
        "email = 'a' 'b'",
        "id > 7 -- and more",
        "id > 7 /* and more */",
        "id > 7 OR (email = '\\'' OR '\\' <> '')",
        f"email = '{'x' * 2048}'",
    ],
)
def test_a_row_filter_that_could_not_be_applied_is_refused(registry, capsys, filter_):
    subscribe(registry, "billing", rowFilter=json.dumps(filter_))

    assert [rule for rule, _, _ in found(capsys)] == ["subscription-row-filter-invalid"]


def test_an_ordinary_row_filter_is_taken(registry, capsys):
    subscribe(
        registry, "billing", rowFilter="\"id BETWEEN 1 AND 9 AND NOT (amount <= -1.5 OR email LIKE 'a%')\""
    )

    assert found(capsys) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [("columns", "[]"), ("tags", "[]"), ("rowFilter", "~"), ("rowFilter", "# id > 7"), ("endDate", "null")],
)
def test_a_value_that_was_forgotten_does_not_mean_everything(registry, capsys, key, value):
    subscribe(registry, "billing", **{key: value})

    assert [rule for rule, _, _ in found(capsys)] == ["wrong-type"]


def test_one_contract_alone_is_judged_with_its_own_subscriptions(registry, capsys):
    (registry / "lines.odcs.yaml").write_text(CONTRACT.replace("id: orders\n", "id: lines\n"))
    subscribe(registry, "billing", columns="[orders.nothing]")
    subscribe(registry, "search", contract="lines", columns="[orders.nothing]")

    assert [file for _, file, _ in found(capsys, "lines.odcs.yaml")] == ["subscriptions/teams/search.yaml"]


def test_a_subscription_that_is_named_is_judged_alone(registry, capsys):
    subscribe(registry, "billing", columns="[orders.nothing]")
    subscribe(registry, "search", columns="[orders.nothing]")

    assert [file for _, file, _ in found(capsys, "subscriptions/teams/search.yaml")] == [
        "subscriptions/teams/search.yaml"
    ]


def test_what_is_waived_for_one_subscription_is_not_for_another(registry, capsys):
    subscribe(registry, "billing", columns="[orders.email]")
    subscribe(registry, "search", columns="[orders.email]")
    waiver = {
        "rule": "subscription-without-approver",
        "contract": "orders",
        "path": "subscriptions/teams/billing.yaml#columns",
        "reason": "It is old.",
        "by": "Ana",
        "expires": "2120-01-01",
    }
    (registry / "dq-policy.yaml").write_text(json.dumps({"waivers": [waiver]}))

    assert [file for _, file, _ in found(capsys)] == ["subscriptions/teams/search.yaml"]


def test_a_link_is_a_finding_and_its_target_is_not_read(registry, capsys, tmp_path_factory):
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.yaml"
    secret.write_text("contract: orders\ncanary: 1\n")
    subscribe(registry, "billing")
    (registry / "subscriptions" / "link.yaml").symlink_to(secret)

    assert run(["validate"]) == 1

    out = capsys.readouterr().out
    assert "not-a-plain-file" in out
    assert "canary" not in out


def test_a_folder_of_subscriptions_that_is_a_link_is_a_finding(registry, capsys, tmp_path_factory):
    other = tmp_path_factory.mktemp("elsewhere")
    subscribe(other, "billing", contract="nothing")
    (registry / "subscriptions").symlink_to(other / "subscriptions")

    assert [rule for rule, _, _ in found(capsys)] == ["not-a-plain-file"]


def git(*arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments],
        check=True,
        capture_output=True,
    )


@pytest.fixture
def branch(registry: Path) -> Path:
    """The registry as a repository, on a branch after a commit with two subscriptions."""
    subscribe(registry, "billing", columns="[orders.total]", approvers="[ana@example.com]")
    subscribe(registry, "search", columns="[orders.nothing]")
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-q", "-m", "all")
    git("checkout", "-q", "-b", "feature")
    return registry


@pytest.mark.parametrize("version", ["1.0.0", "2.0.0"], ids=["same major", "new major"])
def test_t3_a_branch_cannot_name_its_own_approver(branch, capsys, version):
    own = CONTRACT.replace("ana@example.com", "stranger").replace("1.0.0", version)
    name = "orders" if version == "1.0.0" else "orders2"
    (branch / f"{name}.odcs.yaml").write_text(own)
    subscribe(branch, "stranger", major=version[0], columns="[orders.email]", approvers="[stranger]")

    assert ("subscription-approver-unknown", "subscriptions/teams/stranger.yaml", 7) in found(
        capsys, "--base", "main"
    )


def test_t3_a_new_contract_comes_with_its_own_approvers(branch, capsys):
    text = CONTRACT.replace("id: orders", "id: lines").replace("ana@", "bo@")
    (branch / "lines.odcs.yaml").write_text(text)
    subscribe(branch, "lines", contract="lines", columns="[orders.email]", approvers="[bo@example.com]")

    assert "subscription-approver-unknown" not in {rule for rule, _, _ in found(capsys, "--base", "main")}


@pytest.mark.parametrize(
    ("format_", "contract", "subscription"),
    [
        ("text", "1 contract and 2 subscriptions: ", "1 subscription, no findings."),
        ("markdown", "in 1 contract and 2 subscriptions", "## Data contracts: 1 subscription, no findings"),
        ("github", "dq: 1 contract and 2 subscriptions, ", "dq: 1 subscription, no findings."),
    ],
)
def test_the_summary_counts_subscriptions(branch, capsys, format_, contract, subscription):
    assert run(["validate", "--format", format_]) == 1
    assert contract in capsys.readouterr().out

    subscribe(branch, "audit")
    assert run(["validate", "--base", "main", "--format", format_]) == 0
    assert subscription in capsys.readouterr().out


@pytest.mark.parametrize(
    ("proof", "hint"),
    [
        (
            "signature",
            "Ask an approver (ana@example.com) to add their name under 'approvers', in a signed commit",
        ),
        *(
            (
                proof,
                "Add 'approvers: [NAME]' with an approver (sales, ana@example.com), who reviews the change.",
            )
            for proof in ("codeowners", "names")
        ),
    ],
)
def test_a_request_without_an_approver_names_whom_to_ask(registry, capsys, proof, hint):
    (registry / "dq-policy.yaml").write_text(
        f"rules: {{subscription-without-approver: {{proof: {proof}}}}}\n"
    )
    subscribe(registry, "billing", columns="[orders.email]")

    run(["validate", "--format", "json"])

    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["hint"].startswith(hint)


def test_a_request_does_not_name_approvers_who_have_left(registry, capsys):
    left = "[{username: zoe@example.com, role: owner, dateOut: 2026-04-01}, {username: ana@"
    (registry / "orders.odcs.yaml").write_text(CONTRACT.replace("[{username: ana@", left))
    (registry / "dq-policy.yaml").write_text("{}")
    subscribe(registry, "billing", columns="[orders.email]")

    run(["validate", "--format", "json"])

    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["hint"].startswith("Ask an approver (ana@example.com) to add")


def test_a_branch_is_told_of_the_subscriptions_that_it_changes(branch, capsys):
    subscribe(branch, "audit", columns="[orders.nothing]")
    subscribe(branch, "again", consumer="{team: billing, contact: '#billing'}")

    assert found(capsys, "--base", "main") == [
        ("subscription-duplicate", "subscriptions/teams/again.yaml", 4),
        ("subscription-column-unknown", "subscriptions/teams/audit.yaml", 5),
    ]


def test_the_gate_names_whom_a_change_hits_and_whom_to_ask(branch, capsys):
    without = CONTRACT.replace("1.0.0", "2.0.0").replace(", physicalName: amount", ", physicalName: total")
    (branch / "orders.odcs.yaml").write_text(without)
    # What a branch says of subscriptions changes nothing of who is named.
    (branch / "subscriptions" / "teams" / "billing.yaml").unlink()

    assert run(["validate", "--base", "main"]) == 1

    out = " ".join(capsys.readouterr().out.split())
    assert (
        "Subscribed: billing (Invoices; subscriptions/teams/billing.yaml:5; ask #billing, ana@example.com)"
        in out
    )


def test_a_diff_takes_the_subscriptions_of_the_registry(branch, capsys):
    (branch / "orders.odcs.yaml").write_text(
        CONTRACT.replace("  - {name: id, logicalType", "  - {name: key, logicalType")
    )
    arguments = ["diff", "main:orders.odcs.yaml", "orders.odcs.yaml"]

    assert run([*arguments, "--format", "json"]) == 1
    changes = json.loads(capsys.readouterr().out)["changes"]
    run([*arguments, "--format", "markdown"])

    assert changes[0]["consumers"] == []
    assert "No subscription uses it." in capsys.readouterr().out


def test_what_cannot_be_read_at_the_base_stops_nobody_and_is_not_taken_for_nobody(branch, capsys):
    (branch / "subscriptions" / "odd.yaml").write_text("contract: [")
    git("add", "-A")
    git("commit", "-q", "-m", "odd")
    (branch / "orders.odcs.yaml").write_text(CONTRACT.replace("{name: id, logical", "{name: key, logical"))

    assert run(["validate", "--base", "HEAD"]) == 1

    said = capsys.readouterr()
    assert "column-removed" in said.out
    assert "No subscription uses it." not in said.out
    assert "subscriptions/odd.yaml at the base cannot be read" in said.err


def test_the_schema_of_a_subscription_is_printed(capsys):
    assert run(["schema", "subscription"]) == 0

    made = json.loads(capsys.readouterr().out)
    assert set(made["required"]) == {"contract", "major", "consumer", "purpose", "startDate"}
    assert not made["additionalProperties"]


def test_subscriptions_are_listed_and_those_that_end_soon(registry, capsys):
    subscribe(registry, "billing", columns="[orders.id, orders.total]", endDate="2026-12-20")
    subscribe(registry, "search", columns="", tags="[finance]")
    subscribe(registry, "past", endDate="2026-11-22")
    subscribe(registry, "later", startDate="2027-01-01")
    day = ["--as-of", "2026-11-23T23:00:00Z"]

    assert run(["subscriptions", "--format", "json", *day]) == 0
    every = json.loads(capsys.readouterr().out)["subscriptions"]
    assert run(["subscriptions", "--within", "30d", *day]) == 0
    soon = capsys.readouterr().out
    assert run(["subscriptions", "--within", "4w", "--format", "markdown", *day]) == 0
    shown = capsys.readouterr().out

    assert [(one["consumer"]["team"], one["state"]) for one in every] == [
        ("billing", "ending"),
        ("later", "coming"),
        ("past", "over"),
        ("search", "active"),
    ]
    assert soon.split()[7:] == [
        "orders",
        "1",
        "billing",
        "orders.id,",
        "orders.total",
        "2020-01-01",
        "2026-12-20",
        "ending",
        "-",
    ]
    assert "| orders 1 | billing |" in shown


def test_a_list_with_a_file_that_cannot_be_read_is_not_taken_for_whole(registry, capsys):
    subscribe(registry, "billing")
    subscribe(registry, "odd", major="one")

    assert run(["subscriptions"]) == 3

    said = capsys.readouterr()
    assert "billing" in said.out
    assert "subscriptions/teams/odd.yaml:2:8" in said.err


@pytest.mark.parametrize("within", ["soon", "1mo", "30"])
def test_a_time_that_cannot_be_understood_is_a_mistake_of_usage(registry, within):
    assert run(["subscriptions", "--within", within]) == 2


@pytest.mark.parametrize(
    "arguments",
    [["orders", "--owner", "123456789012"], ["sales.orders", "--owner", "12345"]],
    ids=["no database", "no account"],
)
def test_a_link_that_cannot_be_understood_is_a_mistake_of_usage(arguments):
    assert run(["link", *arguments, "--principal", "arn:aws:iam::210987654321:role/billing"]) == 2


@pytest.mark.parametrize(
    "written",
    ["id: >-\n  orders", '"id": "orders"', "id: &name orders", "id: !!str orders"],
    ids=["on its own line", "quoted", "anchored", "with a tag"],
)
def test_a_contract_is_found_however_its_id_is_written(registry, capsys, written):
    (registry / "orders.odcs.yaml").write_text(CONTRACT.replace("id: orders", written))
    subscribe(registry, "billing", columns="[orders.nothing]")

    rules = [rule for rule, file, _ in found(capsys) if file.startswith("subscriptions")]
    assert rules == ["subscription-column-unknown"]


@pytest.mark.parametrize("command", ["validate", "subscriptions"])
def test_a_subscription_away_from_the_registrys_folder_is_told(
    registry: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    subscribe(registry, "billing")
    subscribe(registry / "teams", "audit")
    capsys.readouterr()

    run([command, "."])

    said = capsys.readouterr().err
    assert "1 like a subscription outside the registry's folder subscriptions" in said
    assert "teams/subscriptions/teams/audit.yaml)" in said
    assert "billing.yaml" not in said


PROMISE = """\
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: orders
    schedule: "0 6 * * *"
    customProperties: [{property: delivery, vendor: dq, value: {grace: 30m}}]
"""
USE = ("--team", "billing", "--purpose", "Invoices.", "--from", "2026-05-01", "--columns", "orders.id")


def _dq_subscribe(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    """The exit code of `dq subscribe`, and what it says on stderr."""
    capsys.readouterr()
    code = run(["subscribe", "orders", *USE, *options])
    return code, capsys.readouterr().err


def _keys(value: object, path: str = "") -> set[str]:
    """The paths of all mappings' keys in a document."""
    if not isinstance(value, dict):
        return set()
    return {
        found for key, inner in value.items() for found in (f"{path}{key}", *_keys(inner, f"{path}{key}."))
    }


def _schema_keys(schema: dict[str, Any], whole: dict[str, Any], path: str = "") -> set[str]:
    keys = set()
    for key, prop in schema["properties"].items():
        keys.add(f"{path}{key}")
        for option in (prop, *prop.get("anyOf", ())):
            if "$ref" in option:
                inner = whole["$defs"][option["$ref"].rpartition("/")[2]]
                keys |= _schema_keys(inner, whole, f"{path}{key}.")
    return keys


def test_every_key_of_a_subscription_has_an_option(
    registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (registry / "orders.odcs.yaml").write_text(
        CONTRACT.replace("bigint}", "bigint, required: true}") + PROMISE
    )
    ran = _dq_subscribe(
        capsys,
        *("--tag", "finance", "--row-filter", "id > 1", "--until", "2099-12-31"),
        *("--account", "210987654321", "--contact", "#billing", "--approver", "ana@example.com"),
        *("--principal", "arn:aws:iam::210987654321:role/billing"),
        *("--alert-channel", "#billing", "--alert-tool", "slack", "--severity", "error"),
        *("--severity", "critical", "--escalate-after", "30m", "--quiet-hours", "22:00-06:00"),
        *("--quiet-severity", "error", "--timezone", "Europe/Berlin"),
        *("--needs-by", "09:30", "--needs-quality", "orders.id.required,orders.id.unique"),
        *("--needs-quality", "orders.total.minimum"),
    )

    (file,) = (registry / "subscriptions").rglob("*.yaml")
    written = yaml.safe_load(file.read_text())
    schema = json_schema()
    assert ran[0] == 0, ran
    assert _keys(written) == _schema_keys(schema, schema)
    assert written["alerts"] == {
        "channel": "#billing", "tool": "slack", "severities": ["error", "critical"], "escalateAfter": "30m",
        "quiet": "22:00-06:00", "timezone": "Europe/Berlin", "quietSeverities": ["error"],
    }  # fmt: skip
    assert written["needs"] == {
        "by": "09:30", "timezone": "Europe/Berlin",
        "quality": ["orders.id.required", "orders.id.unique", "orders.total.minimum"],
    }  # fmt: skip
    # The contract has only the first of the three clauses.
    lines = file.read_text().splitlines()
    unmet = [lines.index(f"    - {clause}") + 1 for clause in ("orders.id.unique", "orders.total.minimum")]
    assert ran[1].count("dq: ") == 2
    assert found(capsys) == [
        ("subscription-need-unmet", file.relative_to(registry).as_posix(), line) for line in unmet
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--alert-channel", "#billing"), "alerts needs 'tool'."),
        (("--severity", "error"), "alerts needs 'channel'."),
        (("--alert-channel", "#billing", "--alert-tool", "slak"), "dq has no channel 'slak'. Did you mean"),
        (("--alert-channel", "ana", "--alert-tool", "email"), "Write one address"),
        (("--alert-channel", "", "--alert-tool", "slack"), "channel"),
        (
            ("--alert-channel", "#b", "--alert-tool", "slack", "--escalate-after", "soon"),
            "escalateAfter: 'soon'",
        ),
        (("--alert-channel", "#b", "--alert-tool", "slack", "--quiet-hours", "25:00"), "quiet: '25:00'"),
        (("--needs-by", "7.30"), "'7.30' is not a time of the day."),
        (("--needs-by", ""), "--needs-by is empty."),
        (("--needs-by", "07:30", "--timezone", "Europe/Berln"), "Europe/Berln"),
        (("--timezone", "Europe/Berlin"), "--timezone needs --needs-by or --quiet-hours."),
        (("--needs-quality", ""), "needs"),
        (("--approver", "eve@example.com"), "'eve@example.com' is not an owner"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_terms_that_the_gate_rejects_are_not_written(
    registry: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    code, printed = _dq_subscribe(capsys, *options)

    assert (code, (registry / "subscriptions").exists()) == (2, False)
    assert message in printed, printed


@pytest.mark.parametrize(
    ("proof", "code", "message"),
    [
        ("names", 0, ""),
        ("codeowners", 0, ""),
        ("signature", 2, "Remove the name, and let the approver add it in a signed commit"),
    ],
)
def test_an_approver_is_only_written_where_the_name_can_count(
    registry: Path, capsys: pytest.CaptureFixture[str], proof: str, code: int, message: str
) -> None:
    rule = f"subscription-without-approver: {{proof: {proof}}}"
    (registry / "dq-policy.yaml").write_text(f"rules: {{{rule}}}\n")

    ran = _dq_subscribe(capsys, "--columns", "orders.email", "--approver", "ana@example.com")

    assert (ran[0], message in ran[1]) == (code, True), ran
    assert (registry / "subscriptions").exists() == (code == 0)

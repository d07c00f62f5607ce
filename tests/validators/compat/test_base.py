"""The base of a pull request in real repositories: what is compared, and what cannot be."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from fragments.registry import Registry

from dq.contracts.outcome import Severity
from dq.contracts.yaml.parse import parse
from dq.validators.compat.classification import Mode, Verdict
from dq.validators.compat.classified_change import Comparison, findings
from dq.validators.compat.comparison import DiffTerms
from dq.validators.git.base import BaseCommit, bytes_at, compare_with_base, open_base, subscriptions_at_base
from dq.validators.git.repository import BaseRefInvalid, BaseUnavailable

TODAY = date(2026, 1, 15)
HEAD = "apiVersion: v3.2.0\nkind: DataContract\n"


def orders(version: str = "1.0.0", columns: str = "id note", more: str = "") -> str:
    listed = "".join(f"  - {{name: {one}, logicalType: string}}\n" for one in columns.split())
    return f"{HEAD}id: orders\nversion: {version}\n{more}schema:\n- name: orders\n  properties:\n{listed}"


DEPRECATED = "status: deprecated\nslaProperties: [{property: endOfSupport, value: '2026-12-31'}]\n"


def told(found: Comparison) -> list[tuple[str, str]]:
    return [(one.rule, one.verdict.value) for one in found.changes]


def compared(folder: Path, ref: str = "main", **terms: Any) -> Comparison:
    return compare_with_base(open_base(folder, ref), DiffTerms(today=TODAY, **terms))


def test_a_breaking_change_in_a_branch_is_a_break_on_its_line(registry: Registry) -> None:
    registry.commit({"orders.odcs.yaml": orders()})
    registry.branch("feature")
    registry.commit({"orders.odcs.yaml": orders("2.0.0", "id", "status: active\n")})

    found = compared(registry.folder)
    (removed,) = [one for one in findings(found, TODAY) if one.rule == "column-removed"]

    assert found.verdict is Verdict.BREAK
    assert removed.severity is Severity.ERROR
    assert str(removed.at) == "orders.odcs.yaml:7:3"
    assert "consumers" in removed.message
    assert 'path: "orders.note"' in removed.hint


def test_work_that_is_not_committed_counts(registry: Registry) -> None:
    registry.commit({"orders.odcs.yaml": orders()})
    registry.write("orders.odcs.yaml", orders("1.1.0", "id note more"))
    registry.write("lines.odcs.yaml", orders().replace("id: orders", "id: lines"))

    found = compared(registry.folder)

    assert sorted(told(found)) == [
        ("column-added-optional", "ok"),
        ("contract-added", "ok"),
        ("version-bump-ok", "ok"),
    ]


def test_a_new_major_beside_the_deprecated_old_one_is_fine(registry: Registry) -> None:
    registry.commit({"orders.odcs.yaml": orders()})
    registry.branch("feature")
    registry.commit(
        {
            "orders.odcs.yaml": orders("1.1.0", more=DEPRECATED),
            "orders-v2.odcs.yaml": orders("2.0.0", "id"),
        }
    )

    found = compared(registry.folder)

    assert found.verdict is Verdict.OK
    assert {"contract-major-added", "status-deprecated"} <= {rule for rule, _ in told(found)}


def test_a_major_that_overwrites_the_old_one_takes_it_away(registry: Registry) -> None:
    registry.commit({"orders.odcs.yaml": orders()})
    registry.branch("feature")
    registry.commit({"orders.odcs.yaml": orders("2.0.0", "id")})

    found = compared(registry.folder)

    assert ("contract-removed", "break") in told(found)
    assert ("version-bump-ok", "ok") in told(found)


@pytest.mark.parametrize("target", ["sales/orders.odcs.yaml", "Orders.odcs.yaml"])
def test_a_file_that_moves_is_no_change_of_the_contract(registry: Registry, target: str) -> None:
    registry.commit({"orders.odcs.yaml": orders()})
    registry.branch("feature")
    registry.commit({"orders.odcs.yaml": None, target: orders()})

    assert told(compared(registry.folder)) == [("contract-moved", "ok")]


def test_a_file_that_moves_away_from_a_reference_is_told_though_that_file_is_untouched(
    registry: Registry,
) -> None:
    link = "authoritativeDefinitions: [{type: contract, url: sales/orders.odcs.yaml}]\n"
    other = orders(more=link).replace("id: orders", "id: other")
    registry.commit({"sales/orders.odcs.yaml": orders(), "other.odcs.yaml": other})
    registry.branch("feature")
    registry.commit({"sales/orders.odcs.yaml": None, "orders.odcs.yaml": orders()})

    (moved,) = compared(registry.folder).changes

    assert (moved.rule, moved.verdict) == ("contract-moved-referenced", Verdict.WARN)
    assert "other.odcs.yaml refers to sales/orders.odcs.yaml" in moved.note


def test_contracts_that_the_branch_does_not_touch_are_not_read(registry: Registry) -> None:
    registry.commit({"orders.odcs.yaml": orders(), "broken.odcs.yaml": "not: [a contract"})
    registry.branch("feature")
    registry.commit({"orders.odcs.yaml": orders("1.1.0", "id note more")})

    changed = open_base(registry.folder, "main").changed_contracts()

    assert [one.file for one in (*changed.before, *changed.after)] == ["orders.odcs.yaml"] * 2
    assert (changed.invalid, changed.broken) == ((), ())


def test_what_main_gained_since_the_branch_left_is_not_removed_by_the_branch(registry: Registry) -> None:
    registry.commit({"orders.odcs.yaml": orders()})
    registry.branch("feature")
    registry.commit({"other.odcs.yaml": orders().replace("id: orders", "id: other")})
    registry.repo.git.checkout("-q", "main")
    registry.commit({"orders.odcs.yaml": orders("1.1.0", "id note more")})
    registry.repo.git.checkout("-q", "feature")

    assert told(compared(registry.folder)) == [("contract-added", "ok")]


def test_a_base_that_cannot_be_read_is_told_and_what_stands_there_now_is_new(registry: Registry) -> None:
    registry.commit({"orders.odcs.yaml": "schema: [unfinished"})
    registry.branch("feature")
    registry.commit({"orders.odcs.yaml": orders()})

    assert told(compared(registry.folder)) == [("base-invalid", "warn"), ("contract-added", "ok")]


def test_a_contract_that_is_broken_now_is_not_taken_for_removed(registry: Registry) -> None:
    registry.commit({"orders.odcs.yaml": orders()})
    registry.branch("feature")
    registry.commit({"orders.odcs.yaml": "schema: [unfinished"})

    changed = open_base(registry.folder, "main").changed_contracts()

    assert (changed.before, changed.after, changed.broken) == ((), (), ("orders.odcs.yaml",))


def test_the_policy_is_that_of_the_base_whatever_the_branch_writes(registry: Registry) -> None:
    registry.commit({"orders.odcs.yaml": orders(), "dq-policy.yaml": "profile: strict\n"})
    registry.branch("feature")
    registry.commit({"dq-policy.yaml": "profile: default\n"})

    found = open_base(registry.folder, "main")

    assert found.read("dq-policy.yaml") == b"profile: strict\n"
    assert found.read("nothing.yaml") is None


def test_the_mode_is_that_of_the_base_whatever_the_branch_writes(registry: Registry) -> None:
    loose = "  customProperties:\n  - {property: dataset, vendor: dq, value: {compatibility: NONE}}\n"
    registry.commit({"orders.odcs.yaml": orders()})
    registry.branch("feature")
    registry.commit({"orders.odcs.yaml": orders("1.1.0", "id") + loose})

    assert ("column-removed", "break") in told(compared(registry.folder))


def test_a_registry_in_a_folder_of_the_repository_sees_only_itself(registry: Registry) -> None:
    registry.commit({"contracts/orders.odcs.yaml": orders(), "other/x.odcs.yaml": orders()})
    registry.branch("feature")
    registry.commit(
        {"contracts/orders.odcs.yaml": orders("1.1.0", "id note a"), "other/x.odcs.yaml": orders("9.0.0")}
    )

    found = compared(registry.folder / "contracts")

    assert sorted({one.at.file for one in found.changes}) == ["orders.odcs.yaml"]


def test_consumers_are_named_from_the_subscriptions_of_the_base(registry: Registry) -> None:
    subscription = (
        "contract: orders\nmajor: 1\nconsumer: {team: billing}\npurpose: Invoices.\n"
        "columns: [orders.note]\nstartDate: 2020-01-01\n"
    )
    registry.commit({"orders.odcs.yaml": orders(), "subscriptions/billing.yaml": subscription})
    registry.branch("feature")
    registry.commit({"orders.odcs.yaml": orders("2.0.0", "id")})

    known, _ = subscriptions_at_base(open_base(registry.folder, "main"))
    found = compared(registry.folder, subscriptions=tuple(known))

    (removed,) = [one for one in found.changes if one.rule == "column-removed"]
    assert removed.affected == ("consumers", "consumer billing")


def history(registry: Registry) -> BaseCommit:
    registry.commit({"orders.odcs.yaml": orders("1.0.0", "id note")}, "2025-01-01")
    registry.commit({"orders.odcs.yaml": orders("1.1.0", "id")}, "2025-02-01")
    registry.branch("feature")
    head = orders("1.2.0", "id") + "  - {name: note, logicalType: integer}\n"
    registry.commit({"orders.odcs.yaml": head}, "2025-03-01")
    return open_base(registry.folder, "main")


def test_a_transitive_mode_sees_a_name_that_an_earlier_version_had(registry: Registry) -> None:
    found = history(registry)

    direct = compare_with_base(found, DiffTerms(today=TODAY, mode=Mode.FORWARD))
    every = compare_with_base(found, DiffTerms(today=TODAY, mode=Mode.FORWARD_TRANSITIVE))

    assert direct.verdict is Verdict.OK
    (reused,) = [one for one in every.changes if one.rule == "column-name-reused"]
    assert (reused.verdict, reused.against) == (Verdict.BREAK, "1.0.0")


def test_tags_come_before_history_where_there_are_any(registry: Registry) -> None:
    first = registry.commit({"orders.odcs.yaml": orders("1.0.0", "id note")}, "2025-01-01")
    registry.commit({"orders.odcs.yaml": orders("1.0.1", "id other")}, "2025-02-01")
    registry.commit({"orders.odcs.yaml": orders("1.1.0", "id")}, "2025-03-01")
    registry.repo.create_tag("orders/v1.0.0", ref=first)
    found = open_base(registry.folder, "main")
    (now,) = [one for one in [found.read("orders.odcs.yaml")] if one]

    contract = parse(now, "orders.odcs.yaml").contract
    assert contract is not None
    assert [one.version for one in found.history(contract, always=True).earlier] == ["1.0.0"]


@pytest.mark.parametrize(
    ("marked", "rule"), [("2025-06-01", "column-removed-deprecated"), ("2025-12-01", "column-removed")]
)
def test_the_notice_of_a_column_runs_from_the_commit_that_deprecated_it(
    registry: Registry, marked: str, rule: str
) -> None:
    noted = orders("1.1.0", "id") + "  - {name: note, logicalType: string, deprecated: true}\n"
    registry.commit({"orders.odcs.yaml": orders()}, "2025-01-01")
    registry.commit({"orders.odcs.yaml": noted}, marked)
    registry.branch("feature")
    registry.commit({"orders.odcs.yaml": orders("2.0.0", "id")}, "2026-01-10")

    found = compared(registry.folder)

    assert rule in {one.rule for one in found.changes}


def test_a_shallow_clone_is_no_base_and_the_command_mends_it(
    registry: Registry, shallow: Callable[[str], Path]
) -> None:
    registry.commit({"orders.odcs.yaml": orders()})
    registry.branch("feature")
    registry.commit({"orders.odcs.yaml": orders("2.0.0", "id")})
    folder = shallow("feature")

    with pytest.raises(BaseUnavailable) as refused:
        open_base(folder, "origin/main")

    assert (refused.value.exit_code, refused.value.rule) == (3, "base-unavailable")
    command = "git fetch --unshallow origin main:refs/remotes/origin/main"
    assert refused.value.hint.startswith(f"Run: {command}")
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    assert compared(folder, "origin/main").verdict is Verdict.BREAK


def test_a_name_that_is_nowhere_is_no_base(registry: Registry) -> None:
    registry.commit({"orders.odcs.yaml": orders()})

    with pytest.raises(BaseUnavailable) as refused:
        open_base(registry.folder, "origin/nowhere")

    assert "git fetch origin nowhere" in refused.value.hint


def test_branches_without_a_common_commit_have_no_base(registry: Registry) -> None:
    registry.commit({"orders.odcs.yaml": orders()})
    registry.repo.git.checkout("-q", "--orphan", "island")
    registry.commit({"orders.odcs.yaml": orders("2.0.0")})

    with pytest.raises(BaseUnavailable, match="no common commit"):
        open_base(registry.folder, "main")


@pytest.mark.parametrize("ref", ["--output=/tmp/x", "-q", "a b", "main..feature", "", "$(id)"])
def test_what_is_no_name_of_a_commit_never_reaches_git(registry: Registry, ref: str) -> None:
    registry.commit({"orders.odcs.yaml": orders()})

    with pytest.raises(BaseRefInvalid) as refused:
        open_base(registry.folder, ref)

    assert (refused.value.exit_code, refused.value.rule) == (2, "base-ref-invalid")


def test_a_folder_without_a_repository_has_no_base(tmp_path: Path) -> None:
    with pytest.raises(BaseUnavailable, match="not in a Git repository"):
        open_base(tmp_path, "main")


def test_a_file_is_read_as_it_stood_at_a_reference(registry: Registry) -> None:
    registry.commit({"orders.odcs.yaml": orders()})
    registry.write("orders.odcs.yaml", orders("2.0.0"))

    assert bytes_at(registry.folder, "HEAD", "orders.odcs.yaml") == orders().encode()
    with pytest.raises(BaseUnavailable, match=r"file 'nothing\.odcs\.yaml' does not exist at 'HEAD'"):
        bytes_at(registry.folder, "HEAD", "nothing.odcs.yaml")


def test_the_work_tree_and_the_index_stay_as_they_are(registry: Registry) -> None:
    registry.commit({"orders.odcs.yaml": orders()})
    registry.branch("feature")
    registry.write("orders.odcs.yaml", orders("1.1.0", "id note more"))
    registry.write("new.odcs.yaml", orders().replace("id: orders", "id: new"))
    before = registry.repo.git.status("--porcelain=v2", "--branch")

    compared(registry.folder)

    assert registry.repo.git.status("--porcelain=v2", "--branch") == before

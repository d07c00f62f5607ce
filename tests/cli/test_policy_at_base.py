"""Whose policy judges a branch: the base's, and where the branch changes one, the stricter of both."""

from __future__ import annotations

import pytest
from fragments.gate import AMOUNT, CONTRACT, Gated, Scene

ORDERS = "registry/orders.odcs.yaml"
POLICY = "registry/dq-policy.yaml"
OWNER = "team: {members: [{username: ana@example.com, role: owner}]}\n"
NOT_OWNED = CONTRACT.replace(OWNER, "").replace("version: 1.0.0", "version: 1.1.0")
DROPPED = CONTRACT.replace(AMOUNT, "")


def at_base(scene: Scene, **files: str | None) -> None:
    """What main has, and the branch with it; None takes a file away."""
    scene.git("checkout", "-q", "main")
    write(scene, **files)
    scene.git("checkout", "-q", "-B", "change")


def write(scene: Scene, **files: str | None) -> None:
    for name, text in files.items():
        path = {"policy": POLICY, "top": "dq-policy.yaml", "orders": ORDERS, "other": "ci/policy.yaml"}[name]
        if text is None:
            (scene.folder / path).unlink()
        else:
            scene.write(path, text)
    scene.commit("files")


def owner(severity: str) -> str:
    return f"rules: {{missing-owner: {{severity: {severity}}}}}\n"


def waiver(rule: str, path: str, expires: str = "2099-01-01") -> str:
    text = f"rule: {rule}, contract: orders, path: {path!r}, reason: agreed, by: ana, expires: {expires}"
    return f"waivers:\n  - {{{text}}}\n"


def severity(found: Gated, rule: str) -> str | None:
    return next((one["severity"] for one in found.findings if one["rule"] == rule), None)


def told(found: Gated) -> list[str]:
    return [one["message"] for one in found.findings if one["rule"] == "policy-changed"]


@pytest.mark.parametrize(
    ("base", "branch", "expected"),
    [
        pytest.param("error", "off", "error", id="the branch turns a rule off"),
        pytest.param("error", "info", "error", id="the branch lowers a severity"),
        pytest.param("info", "error", "error", id="the branch raises a severity"),
        pytest.param("off", "error", "error", id="the branch turns a rule on"),
        pytest.param("off", "off", None, id="both have it off"),
    ],
)
def test_the_higher_severity_of_the_two_policies_holds(
    scene: Scene, base: str, branch: str, expected: str | None
) -> None:
    at_base(scene, policy=owner(base))
    write(scene, policy=owner(branch), orders=NOT_OWNED)

    found = scene.gate()

    assert severity(found, "missing-owner") == expected
    assert bool(told(found)) is (base != branch)


@pytest.mark.parametrize("which", ["base", "branch", "both"])
def test_a_finding_is_waived_only_where_both_policies_waive_it(scene: Scene, which: str) -> None:
    waived = owner("error") + waiver("missing-owner", "team")
    at_base(scene, policy=waived if which != "branch" else owner("error"))
    write(scene, policy=waived + "# \n" if which != "base" else owner("error"), orders=NOT_OWNED)

    found = scene.gate()

    assert severity(found, "missing-owner") == (None if which == "both" else "error")


@pytest.mark.parametrize("which", ["base", "branch", "both"])
def test_a_change_is_waived_only_where_both_policies_waive_it(scene: Scene, which: str) -> None:
    waived = "\n".join(
        (waiver("column-removed", "orders.amount"), waiver("version-not-bumped", "orders").partition("\n")[2])
    )
    at_base(scene, policy=waived if which != "branch" else "profile: default\n")
    write(scene, policy=waived + "# \n" if which != "base" else "profile: default\n", orders=DROPPED)

    found = scene.gate()

    assert severity(found, "column-removed") == ("info" if which == "both" else "error")
    assert found.code == (0 if which == "both" else 1)


def test_an_expired_waiver_can_be_mended_in_a_branch(scene: Scene) -> None:
    at_base(scene, policy=waiver("missing-owner", "team", "2020-01-01"))
    write(scene, policy="profile: default\n")

    found = scene.gate()

    assert (found.code, {one["rule"] for one in found.findings}) == (0, {"policy-changed"})


def test_a_branch_that_left_before_the_policy_was_tightened_is_judged_by_the_tight_one(scene: Scene) -> None:
    write(scene, orders=NOT_OWNED)
    scene.git("checkout", "-q", "main")
    write(scene, policy=owner("error"))
    scene.git("checkout", "-q", "change")

    found = scene.gate()

    assert severity(found, "missing-owner") == "error"
    assert told(found) == []


def test_a_policy_of_which_only_the_comments_change_is_not_told(scene: Scene) -> None:
    at_base(scene, policy="profile: default\n")
    write(scene, policy="# told apart\nprofile: default\n")

    assert scene.gate().findings == []


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        pytest.param(
            {"policy": "profile: strict\n"},
            {"policy": "profile: default\n"},
            "the branch changes the policy of the registry: profile strict → default.",
            id="profile",
        ),
        pytest.param(
            {"policy": owner("error")},
            {"policy": owner("off")},
            'the branch changes the policy of the registry: rules.missing-owner {"severity": "error"} → '
            '{"severity": false}.',
            id="rule",
        ),
        pytest.param(
            {"policy": None},
            {"policy": owner("warning")},
            'the branch adds a policy for registry: rules.missing-owner added: {"severity": "warning"}.',
            id="added",
        ),
        pytest.param(
            {"policy": owner("error")},
            {"policy": None},
            "the branch removes the policy of the registry.",
            id="removed",
        ),
        pytest.param(
            {"policy": owner("error")},
            {"policy": None, "top": owner("error")},
            "the branch moves the policy from dq-policy.yaml to ../dq-policy.yaml.",
            id="moved up",
        ),
        pytest.param(
            {"policy": None, "top": owner("error")},
            {"top": None, "policy": owner("error")},
            "the branch moves the policy from dq-policy.yaml to registry/dq-policy.yaml.",
            id="moved down",
        ),
    ],
)
def test_what_a_branch_does_to_a_policy_is_told(
    scene: Scene, before: dict[str, str | None], after: dict[str, str | None], message: str
) -> None:
    at_base(scene, **before)
    write(scene, **after)

    found = scene.gate()

    assert told(found) == [message]
    assert found.code == 0


def test_a_changed_policy_is_told_at_the_line_that_changes_first(scene: Scene) -> None:
    at_base(scene, policy="profile: strict\nrules:\n  missing-owner: {severity: error}\n")
    write(scene, policy="profile: strict\nrules:\n  missing-owner: {severity: off}\n")

    (one,) = scene.gate().findings

    assert (one["file"], one["line"]) == ("dq-policy.yaml", 3)


def test_a_policy_deeper_than_the_path_is_told_and_does_not_judge(scene: Scene) -> None:
    at_base(scene, policy=owner("error"))
    scene.write("registry/sales/dq-policy.yaml", owner("off"))
    scene.write("registry/sales/lines.odcs.yaml", NOT_OWNED.replace("id: orders", "id: lines"))
    scene.commit("a policy of our own")

    for path in ("registry", "registry/sales"):
        found = scene.gate(path)

        assert severity(found, "missing-owner") == "error"
        assert len(told(found)) == 1


def test_a_base_may_turn_the_telling_off_and_a_branch_may_not(scene: Scene) -> None:
    silent = "rules: {policy-changed: {severity: off}}\n"
    at_base(scene, policy="profile: default\n")
    write(scene, policy=silent)
    assert len(told(scene.gate())) == 1

    at_base(scene, policy=silent)
    write(scene, policy=silent + "profile: default\n")
    assert told(scene.gate()) == []


def test_a_policy_that_the_operator_names_outside_of_the_repository_judges_alone(scene: Scene) -> None:
    (scene.canary.parent / "policy.yaml").write_text(owner("error"))
    write(scene, policy=owner("off"), orders=NOT_OWNED)

    found = scene.gate("registry", "--policy", str(scene.canary.parent / "policy.yaml"))

    assert severity(found, "missing-owner") == "error"


@pytest.mark.parametrize("base", ["error", "off"])
def test_a_policy_that_the_operator_names_in_the_repository_is_read_at_the_base_too(
    scene: Scene, base: str
) -> None:
    at_base(scene, other=owner(base))
    write(scene, other=owner("off" if base == "error" else "error"), orders=NOT_OWNED)

    found = scene.gate("registry", "--policy", "ci/policy.yaml")

    assert severity(found, "missing-owner") == "error"
    assert len(told(found)) == 1


def test_a_named_policy_that_the_branch_makes_a_link_is_not_followed(scene: Scene) -> None:
    at_base(scene, other=owner("error"))
    (scene.folder / "ci" / "policy.yaml").unlink()
    scene.write("lax.yaml", owner("off"))
    (scene.folder / "ci" / "policy.yaml").symlink_to("../lax.yaml")
    scene.commit("a link")

    assert scene.gate("registry", "--policy", "ci/policy.yaml").code == 3


def test_paths_of_two_registries_are_judged_one_after_the_other(scene: Scene) -> None:
    at_base(scene, top="profile: default\n")
    scene.write("other/orders.odcs.yaml", NOT_OWNED)
    scene.commit("elsewhere")

    found = scene.gate("registry", "other")

    assert found.code == 2
    assert "two registries" in found.err


def test_a_policy_of_the_branch_that_cannot_be_understood_is_exit_2(scene: Scene) -> None:
    write(scene, policy="profile: [\n")

    assert scene.gate().code == 2


def test_a_file_is_named_from_the_repository_where_the_policy_lies_above_the_registry(scene: Scene) -> None:
    at_base(scene, policy=owner("error"))
    write(scene, top=owner("off"))

    found = scene.gate("registry", "--report", "github=out.txt")

    assert found.code == 0
    assert "file=dq-policy.yaml,line=1" in (scene.folder / "out.txt").read_text()


def test_a_pattern_of_a_policy_that_could_keep_the_gate_busy_is_refused(scene: Scene) -> None:
    own = "own:\n  slow: {select: contract, assert: {id: {matches: '^(a+)+$'}}, message: slow}\n"
    write(scene, policy=own)

    assert scene.gate().code == 2


def test_patterns_of_the_branch_are_not_run(scene: Scene) -> None:
    own = "own:\n  slow: {select: contract, assert: {id: {matches: '^a+x?a+$'}}, message: slow}\n"
    stars = f"sections:\n  - for: {{path: '{'*a' * 30}*b'}}\n    profile: strict\n"
    added = CONTRACT.replace("id: orders", f"id: {'a' * 40}b").replace("path: lake", "path: elsewhere")
    scene.write(f"registry/{'a' * 200}.odcs.yaml", added)
    write(scene, policy=own + stars)

    found = scene.gate()

    assert found.code == 0
    assert "own.slow" in told(found)[0]

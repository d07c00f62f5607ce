"""Only an approval that Git proves grants access and notifies the consumer of breaches.

Forged, stale and own approvals in a real repository.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fakes.command import BEGIN, MISSED, Place
from fakes.glue import GlueShim
from fakes.lake_formation import granted
from fakes.slack import TOKEN, FakeSlack
from fragments import approvals
from fragments.approvals import FORGED, FORGED_OWNERS, RIGHT, RIGHT_OWNERS, Case, History

from dq.cli.main import run

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="commits are signed with OpenSSH")


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    history = History(tmp_path_factory.mktemp("approvals") / "repository")
    return approvals.build(history, {**RIGHT, **FORGED})


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    return approvals.build_owners(tmp_path_factory.mktemp("approvals") / "reviewed")


PROMISE = """\
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: {name}
    schedule: "0 6 * * *"
    customProperties: [{{property: delivery, vendor: dq, value: {{grace: 30m, objective: 90%}}}}]
"""


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DQ_LAKE_ROOTS", "s3://lake")
    monkeypatch.setenv("DQ_LAKE_FORMATION", "grants")


def folder(cases: dict[str, Case]) -> str:
    return str(next(iter(cases.values())).history.folder / approvals.ROOT)


def granted_cases(glue: GlueShim, cases: dict[str, Case]) -> set[str]:
    principals = {principal for (_, _, principal) in granted(glue)}
    return {name for name, case in cases.items() if any(case.account in reader for reader in principals)}


def approved(cases: dict[str, Case], capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """The cases that `dq subscriptions` calls approved, with the commit."""
    capsys.readouterr()
    run(["subscriptions", folder(cases), "--format", "json"])
    rows = json.loads(capsys.readouterr().out)["subscriptions"]
    by_file = {row["file"]: row["approval"] for row in rows if row["approval"] is not None}
    bound = {
        name: by_file[case.file]["commit"]
        for name, case in cases.items()
        if case.file in by_file and by_file[case.file]["approver"]
    }
    assert all(row["reasons"] for row in by_file.values() if not row["approver"])
    return bound


def test_right_signatures_are_granted_and_forged_ones_are_not(
    glue: GlueShim, registry: None, signed: dict[str, Case], capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(RIGHT) >= 20
    assert len(FORGED) >= 50

    code = run(["register", folder(signed), "--catalog", "glue", "--apply"])

    printed = capsys.readouterr()
    assert granted_cases(glue, signed) == set(RIGHT)
    assert code == 3
    case = signed["by_the_owner"]
    commit = case.history.git(
        "log", "-1", "--no-merges", "--format=%H", "--", f"{approvals.ROOT}/{case.file}"
    )
    assert f"({case.file}, approved by ana@example.com in {commit[:12]})" in printed.out
    listed = approved(signed, capsys)
    assert set(listed) == set(RIGHT)
    assert listed["by_the_owner"] == commit


def test_reviewed_files_are_granted_and_others_are_not(
    glue: GlueShim, registry: None, reviewed: dict[str, Case], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["register", folder(reviewed), "--catalog", "glue", "--apply"]) == 3

    assert granted_cases(glue, reviewed) == set(RIGHT_OWNERS), capsys.readouterr().err
    assert set(approved(reviewed, capsys)) == set(RIGHT_OWNERS)
    assert len(FORGED_OWNERS) >= 14


@pytest.fixture
def slack(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSlack]:
    with FakeSlack() as workspace:
        monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
        monkeypatch.setenv("DQ_SLACK_URL", workspace.url)
        yield workspace


def promise_deliveries(root: Path) -> None:
    """Changes the contracts so that their deliveries are missing every day from 6:30."""
    (root.parent / "lake").mkdir()
    for file in root.rglob("*.odcs.yaml"):
        text = file.read_text().replace("type: s3, location: 's3://lake", "type: local, path: 'lake")
        file.write_text(text + PROMISE.format(name=re.findall(r"\n  - name: (.+)", text)[-1]))


@pytest.mark.parametrize(("built", "right"), [("signed", RIGHT), ("reviewed", RIGHT_OWNERS)])
def test_breaches_reach_the_consumers_whose_approvals_bind_and_no_others(
    request: pytest.FixtureRequest, slack: FakeSlack, tmp_path: Path, built: str, right: dict[str, object]
) -> None:
    cases: dict[str, Case] = request.getfixturevalue(built)
    place = Place(tmp_path / "repository")
    shutil.copytree(next(iter(cases.values())).history.folder, place.folder)
    promise_deliveries(place.folder / approvals.ROOT)
    slack.channels = {f"#{name}": f"C0CASE{number:04}" for number, name in enumerate(cases)}
    # Alerts are the consumer's own, and need no approval.
    for name, case in cases.items():
        with (place.folder / approvals.ROOT / case.file).open("a") as file:
            file.write(f"alerts: {{channel: '#{name}', tool: slack}}\n")

    # So many misses at once are held for a quarter of an hour.
    watched = [
        place.dq("watch", approvals.ROOT, "--as-of", at) for at in (BEGIN, MISSED, "2026-05-11T07:28:00Z")
    ]

    printed = "".join(tick.all for tick in watched)
    assert all(tick.code in (0, 1) for tick in watched), printed
    assert Counter(post["channel"] for post in slack.posts) == Counter(
        slack.channels[f"#{name}"] for name in right
    )
    noted = {name for name, case in cases.items() if f"{case.file}:" in printed or f"{case.file})" in printed}
    assert noted == cases.keys() - right.keys()


def test_a_consumer_is_notified_of_breaches_while_its_approval_binds(
    slack: FakeSlack, tmp_path: Path
) -> None:
    history = History(tmp_path / "repository")
    place, root = Place(history.folder), history.folder / approvals.ROOT
    promise_deliveries(root)
    history.commit("ana")
    case = Case(history, 1, "request")
    history.branch("request")
    case.request(approvers="[ana@example.com]", alerts="{channel: '#orders-alerts', tool: slack}")
    history.merge()
    place.dq("watch", approvals.ROOT, "--as-of", BEGIN)

    def reasons(number: int) -> tuple[list[str], list[str]]:
        """The findings of the gate and the notes of the watcher on a day."""
        findings = place.dq("validate", approvals.ROOT, "--format", "json").json["findings"]
        watched = place.dq("watch", approvals.ROOT, "--as-of", f"2026-05-{number}T06:40:00Z")
        notes = [line.partition(": ")[2] for line in watched.err.splitlines() if case.file in line]
        return [finding["message"] for finding in findings], notes

    unsigned = reasons(11)
    assert slack.posts == []
    history.branch("again")
    case.write(approvers="")
    history.commit("rita")
    case.approve()
    history.merge()
    signed = reasons(12)
    signers = history.read("allowed_signers")
    history.write("allowed_signers", signers.replace(history.signer("ana"), ""))
    history.commit("bo")
    withdrawn = reasons(13)

    for (findings, notes), reason in (
        (unsigned, "the approver's own signed commit is missing."),
        (withdrawn, "is not signed with a key of 'ana@example.com' in allowed_signers."),
    ):
        (finding,), (note,) = findings, notes
        assert finding.endswith(reason)
        assert note.endswith(f"{finding} Its consumer is not notified.")
    assert signed == ([], [])
    (breach,) = slack.roots
    assert "2026-05-12 06:00 UTC, 30 min grace" in str(breach)
    assert not re.search("2026-05-1[13]", str(slack.posts))


def _squash(history: History) -> None:
    history.git("merge", "-q", "--squash", "request")
    history.commit("rita", committer="host")


def _rebase(history: History) -> None:
    """Rewrites each commit, as GitHub does even where a fast-forward is possible."""
    for commit in history.git("rev-list", "--reverse", "main..request").split():
        author = history.git("log", "-1", "--format=%an", commit).lower()
        history.git("cherry-pick", "--no-commit", commit)
        history.commit(author, committer="host")


def _squash_signed_by_the_host(history: History) -> None:
    """The request was merged before; the host signs the squashed approval with OpenPGP."""
    first, last = history.git("rev-list", "--reverse", "main..request").split()
    history.git("merge", "-q", "--ff-only", first)
    history.git("merge", "-q", "--squash", last)
    history.commit("ana", committer="host")
    head, _, message = history.git("cat-file", "commit", "HEAD").partition("\n\n")
    pgp = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iHUEABYIAB0=\n -----END PGP SIGNATURE-----"
    raw = history.folder / ".git" / "signed"
    raw.write_text(f"{head}\n{pgp}\n\n{message}\n")
    history.git("reset", "-q", "--hard", history.git("hash-object", "-t", "commit", "-w", str(raw)))


@pytest.mark.parametrize(
    ("merge", "reason"),
    [
        (
            _squash,
            "adds 'ana@example.com' and makes or changes the request itself, as squashing does; the "
            "approver's own signed commit is missing.",
        ),
        (_rebase, ", which adds 'ana@example.com', is not signed, as after squashing or rebasing."),
        (
            _squash_signed_by_the_host,
            ", which adds 'ana@example.com', is not signed with an SSH key; Git hosts sign what they squash "
            "with a key of their own.",
        ),
    ],
)
def test_a_merge_that_loses_the_signature_is_named_and_can_be_repaired(
    glue: GlueShim,
    registry: None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    merge: Callable[[History], None],
    reason: str,
) -> None:
    history = History(tmp_path / "repository")
    case = Case(history, 1, "request")
    history.branch("request")
    case.request()
    case.approve()
    history.git("checkout", "-q", "main")
    merge(history)
    root = str(history.folder / approvals.ROOT)

    lost = run(["register", root, "--catalog", "glue", "--apply"])
    printed = capsys.readouterr().err
    run(["validate", root, "--format", "json"])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    refused = granted(glue)
    # As the hint says.
    history.branch("again")
    case.write(approvers="")
    history.commit("rita")
    case.approve()
    history.merge()
    repaired = run(["register", root, "--catalog", "glue", "--apply"])

    assert (lost, refused) == (3, {})
    assert reason in " ".join(printed.split())
    assert finding["rule"] == "subscription-without-approver"
    assert finding["message"].endswith(reason)
    assert "add it in a signed commit, merged with a merge commit" in finding["hint"]
    assert repaired == 0, capsys.readouterr().err
    assert granted_cases(glue, {"request": case}) == {"request"}


def _request(history: History, author: str, key: str = "") -> Case:
    """A subscription, requested by this author with this key, and approved by Ana in a signed commit."""
    case = Case(history, 1, "request")
    history.branch("request")
    case.write()
    history.commit(author, key)
    case.approve()
    history.merge()
    return case


def _key_of_the_branch(history: History) -> Case:
    history.branch("request")
    signers = history.read("allowed_signers")
    history.write("allowed_signers", signers + history.signer("other", "new@example.com"))
    history.commit("new")
    case = Case(history, 1, "request")
    case.write()
    history.commit("new", "other")
    case.approve()
    history.merge()
    return case


def _changed_by_another(history: History) -> Case:
    case = Case(history, 1, "request")
    history.branch("request")
    case.write(purpose="Letters.")
    history.commit("rita", "rita")
    case.request("rita", purpose="Advertising.")
    case.approve()
    history.merge()
    return case


UNPROVEN = "is not signed with a key of its author 'rita@example.com' in allowed_signers"


@pytest.mark.parametrize(
    ("policy", "act", "reason"),
    [
        # By default, dq believes the author, whom anyone can name.
        ("", lambda history: _request(history, "rita"), ""),
        ("signed_requests: true", lambda history: _request(history, "rita", "rita"), ""),
        ("signed_requests: true", lambda history: _request(history, "rita"), UNPROVEN),
        ("signed_requests: true", lambda history: _request(history, "rita", "mallory"), UNPROVEN),
        ("signed_requests: true", lambda history: _request(history, "rita", "ana"), "signed the request"),
        ("signed_requests: true", lambda history: _request(history, "ana", "rita"), "wrote the request"),
        ("signed_requests: true", _key_of_the_branch, "is not signed with a key of its author 'new@"),
        ("signed_requests: true", _changed_by_another, UNPROVEN),
    ],
    ids=["default", "signed", "unsigned", "of_another", "of_the_approver", "own", "new_key", "second_commit"],
)
def test_where_requests_have_to_be_signed_nobody_can_name_another_as_their_author(
    glue: GlueShim,
    registry: None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    policy: str,
    act: Callable[[History], Case],
    reason: str,
) -> None:
    history = History(tmp_path / "repository", f"rules: {{subscription-without-approver: {{{policy}}}}}\n")
    cases = {"case": act(history)}

    code = run(["register", folder(cases), "--catalog", "glue", "--apply"])

    assert reason in " ".join(capsys.readouterr().err.split())
    assert (granted_cases(glue, cases), code) == ((set(), 3) if reason else ({"case"}, 0))


def test_a_request_that_dq_commits_is_signed_if_git_is_set_up_to_sign(
    glue: GlueShim, registry: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = History(
        tmp_path / "repository", "rules: {subscription-without-approver: {signed_requests: true}}\n"
    )
    settings = {
        "user.name": "Rita", "user.email": "rita@example.com", "gpg.format": "ssh",
        "user.signingkey": str(history.keys / "rita"), "commit.gpgsign": "on",
    }  # fmt: skip
    for name, value in settings.items():
        history.git("config", name, value)
    case = Case(history, 1, "request")
    terms = (
        *("--columns", "orders.email", "--account", case.account),
        *("--purpose", "Invoices.", "--from", "2026-01-01"),
    )
    root = str(history.folder / approvals.ROOT)

    opened = run(["subscribe", "orders", root, "--team", "billing", *terms, "--open"])
    history.git("checkout", "-q", "subscribe/orders-billing")
    file = "subscriptions/orders/billing.yaml"
    history.write(file, history.read(file) + "approvers: [ana@example.com]\n")
    # The request is dated now.
    history.commit("ana", "ana", when="2099-01-01T00:00:00Z")
    history.merge()

    assert opened == 0, capsys.readouterr().err
    assert run(["register", root, "--catalog", "glue", "--apply"]) == 0, capsys.readouterr().err
    assert granted_cases(glue, {"case": case}) == {"case"}

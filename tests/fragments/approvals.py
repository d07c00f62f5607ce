"""Subscriptions with right and with forged approvals, each on a branch of one real repository."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: {id}
version: 1.0.0
status: active
team:
  name: sales
  members:
    - {{username: ana@example.com, name: Ana Lima, role: owner}}
    - {{username: bo@example.com, role: Data Steward}}
    - {{username: dev@example.com, role: engineer}}
    - {{username: old@example.com, role: owner, dateOut: '2021-05-01'}}
roles:
  - {{role: reader, firstLevelApprovers: 'lead@example.com, vp'}}
servers:
  - {{server: lake, type: s3, location: 's3://lake/{id}', format: parquet}}
schema:
  - name: {id}
    properties:
      - {{name: number, logicalType: integer, physicalType: bigint}}
      - {{name: email, logicalType: string, physicalType: string, classification: confidential}}
      - name: phone
        logicalType: string
        physicalType: string
        classification: confidential
        tags: [contact]
"""
KEYS = ("ana", "bo", "lead", "vp", "old", "dev", "rita", "mallory")
PRINCIPALS = {name: name if name == "vp" else f"{name}@example.com" for name in KEYS}
ROOT = "registry"


class History:
    """A repository with a registry whose commits are a minute apart, by any author and with any SSH key."""

    def __init__(self, folder: Path, policy: str = "{}\n") -> None:
        self.folder, self.minute = folder, 0
        # Edits after everything is merged, which are not committed.
        self.edits: list[Callable[[], object]] = []
        folder.mkdir()
        self.keys = folder.parent / f"{folder.name}-keys"
        self.keys.mkdir()
        self.git("init", "-q", "-b", "main")
        for name in (*KEYS, "other"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(self.keys / name)]
            subprocess.run(command, check=True)
        self.write("dq-policy.yaml", policy)
        self.write("allowed_signers", "".join(map(self.signer, KEYS[:-1])))
        for contract in ("orders", "ledger"):
            self.write(f"{contract}.odcs.yaml", CONTRACT.format(id=contract))
        self.commit("ana")

    def signer(self, name: str, principal: str = "", options: str = "") -> str:
        """A line of the allowed signers."""
        key = (self.keys / f"{name}.pub").read_text().strip()
        return f"{principal or PRINCIPALS[name]} {options}{key}\n"

    def git(self, *arguments: str, **environment: str) -> str:
        done = subprocess.run(
            ["git", "-c", "core.hooksPath=/dev/null", *arguments],
            cwd=self.folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def write(self, name: str, text: str) -> None:
        path = self.folder / ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def read(self, name: str) -> str:
        return (self.folder / ROOT / name).read_text()

    def tick(self) -> str:
        self.minute += 1
        return f"2026-01-{1 + self.minute // 1440:02}T{self.minute // 60 % 24:02}:{self.minute % 60:02}:00Z"

    def commit(self, author: str, key: str = "", *, when: str = "", committer: str = "") -> str:
        """Commits everything by this author; with a key, signed."""
        when = when or self.tick()
        signing = ("-c", "gpg.format=ssh", "-c", f"user.signingkey={self.keys / key}") if key else ()
        self.git("add", "--all")
        self.git(
            *signing,
            *("commit", "-q", "--allow-empty", "-m", "change", *(["-S"] if key else ["--no-gpg-sign"])),
            **self.people(author, committer or author),
            GIT_AUTHOR_DATE=when,
            GIT_COMMITTER_DATE=when,
        )
        return self.git("rev-parse", "HEAD")

    @staticmethod
    def people(author: str, committer: str) -> dict[str, str]:
        address = {name: name if "@" in name else f"{name}@example.com" for name in (author, committer)}
        return {
            "GIT_AUTHOR_NAME": author.title(),
            "GIT_AUTHOR_EMAIL": address[author],
            "GIT_COMMITTER_NAME": committer.title(),
            "GIT_COMMITTER_EMAIL": address[committer],
        }

    def branch(self, name: str) -> None:
        self.git("checkout", "-q", "-B", re.sub(r"\W+", "-", name), "main")

    def merge(self, author: str = "rita") -> None:
        """Merges the branch into main, with a merge commit."""
        branch = self.git("rev-parse", "--abbrev-ref", "HEAD")
        self.git("checkout", "-q", "main")
        when = self.tick()
        self.git(
            *("merge", "-q", "--no-ff", "--no-gpg-sign", "-m", "merge", branch),
            **self.people(author, author),
            GIT_AUTHOR_DATE=when,
            GIT_COMMITTER_DATE=when,
        )


class Case:
    """A subscription of one account, its request by Rita and its approval."""

    def __init__(self, history: History, number: int, name: str) -> None:
        self.history, self.name, self.account = history, name, f"{100_000_000_000 + number}"
        self.contract = "orders"
        self.file = f"subscriptions/case{number:02}.yaml"
        self.terms = {
            "contract": "orders",
            "major": "1",
            "consumer": f"{{team: team{number}, account: '{self.account}', contact: '#team{number}'}}",
            "purpose": "Invoices.",
            "columns": "[orders.email]",
            "startDate": "2026-01-01",
        }

    def write(self, **terms: str) -> None:
        self.terms |= terms
        self.history.write(
            self.file, "".join(f"{key}: {value}\n" for key, value in self.terms.items() if value)
        )

    def request(self, author: str = "rita", **terms: str) -> None:
        self.write(**terms)
        self.history.commit(author)

    def approve(
        self, names: str = "ana@example.com", key: str = "ana", author: str = "", **other: str
    ) -> None:
        """Adds the names in a commit with this key."""
        self.write(approvers=f"[{names}]")
        self.history.commit(author or key, key, **other)

    def own_contract(self, change: Callable[[str], str] = str) -> None:
        """A contract of this case alone, on main."""
        self.contract = self.file.removeprefix("subscriptions/").removesuffix(".yaml")
        self.terms |= {"contract": self.contract, "columns": f"[{self.contract}.email]"}
        self.history.git("checkout", "-q", "main")
        self.history.write(f"{self.contract}.odcs.yaml", change(CONTRACT.format(id=self.contract)))
        self.history.commit("ana")
        self.history.branch(self.name)

    def edit_contract(self, old: str, new: str, author: str = "rita") -> None:
        file = f"{self.contract}.odcs.yaml"
        text = self.history.read(file)
        assert old in text
        self.history.write(file, text.replace(old, new))
        self.history.commit(author)


RIGHT: dict[str, Callable[[Case], None]] = {}
FORGED: dict[str, Callable[[Case], None]] = {}


def right(act: Callable[[Case], None]) -> Callable[[Case], None]:
    RIGHT[act.__name__] = act
    return act


def forged(act: Callable[[Case], None]) -> Callable[[Case], None]:
    FORGED[act.__name__] = act
    return act


# Right ones.


@right
def by_the_owner(case: Case) -> None:
    case.request()
    case.approve()


@right
def by_a_steward(case: Case) -> None:
    case.request()
    case.approve("bo@example.com", "bo")


@right
def by_an_approver_of_a_role(case: Case) -> None:
    case.request()
    case.approve("lead@example.com", "lead")


@right
def by_a_name_without_an_address(case: Case) -> None:
    case.request()
    case.approve("vp", "vp")


@right
def two_approvers_of_whom_one_signed(case: Case) -> None:
    case.request()
    case.approve("bo@example.com, ana@example.com")


@right
def by_two_in_two_commits(case: Case) -> None:
    case.request()
    case.approve()
    case.approve("ana@example.com, bo@example.com", "bo")


@right
def requested_and_approved_in_two_branches(case: Case) -> None:
    case.request()
    case.history.merge()
    case.history.branch(f"{case.name} later")
    case.approve()


@right
def on_main_without_a_merge(case: Case) -> None:
    case.history.git("checkout", "-q", "main")
    case.request()
    case.approve()


@right
def all_columns(case: Case) -> None:
    case.request(columns="")
    case.approve()


@right
def by_tag(case: Case) -> None:
    case.request(columns="", tags="[contact]")
    case.approve()


@right
def fewer_columns_afterwards(case: Case) -> None:
    case.request(columns="[orders.email, orders.phone]")
    case.approve()
    case.request(columns="[orders.email]")


@right
def an_earlier_end_afterwards(case: Case) -> None:
    case.request(endDate="2099-12-31")
    case.approve()
    case.request(endDate="2098-12-31")


@right
def another_contact_afterwards(case: Case) -> None:
    case.request()
    case.approve()
    case.request(consumer=case.terms["consumer"].replace("#team", "#the-team"))


@right
def widened_and_approved_again(case: Case) -> None:
    case.request(purpose="Letters.")
    case.approve()
    case.request(purpose="Invoices and letters.", approvers="")
    case.approve()


@right
def withdrawn_and_approved_again(case: Case) -> None:
    case.request()
    case.approve()
    case.write(approvers="")
    case.history.commit("ana", "ana")
    case.approve()


@right
def a_nested_folder(case: Case) -> None:
    case.file = case.file.replace("subscriptions/", "subscriptions/eu/berlin/")
    case.request()
    case.approve()


@right
def pushed_by_a_robot(case: Case) -> None:
    case.request()
    case.approve(committer="robot")


@right
def the_contract_changed_otherwise(case: Case) -> None:
    case.own_contract()
    case.request()
    case.approve()
    case.edit_contract("version: 1.0.0", "version: 1.1.0")


@right
def the_contract_was_moved(case: Case) -> None:
    case.own_contract()
    case.request()
    case.approve()
    case.history.git("mv", f"{ROOT}/{case.contract}.odcs.yaml", f"{ROOT}/moved-{case.contract}.odcs.yaml")
    case.history.commit("ana")


@right
def an_owner_added_before(case: Case) -> None:
    case.own_contract(
        lambda text: text.replace("dev@example.com, role: engineer", "dev@example.com, role: owner")
    )
    case.request()
    case.approve("dev@example.com", "dev")


# Forged ones: nobody signed.


@forged
def a_name_in_the_request(case: Case) -> None:
    case.request(approvers="[ana@example.com]")


@forged
def a_name_in_a_second_commit_of_the_requester(case: Case) -> None:
    case.request()
    case.request(approvers="[ana@example.com]")


@forged
def the_owner_as_the_author_alone(case: Case) -> None:
    case.request()
    case.approve(key="", author="ana")


@forged
def signed_by_the_requester(case: Case) -> None:
    case.request()
    case.approve(key="rita", author="ana")


@forged
def signed_by_a_key_of_nobody(case: Case) -> None:
    case.request()
    case.approve(key="other", author="ana")


@forged
def signed_by_another_approver(case: Case) -> None:
    case.request()
    case.approve("ana@example.com", "bo", author="bo")


@forged
def another_signed_commit_of_the_owner(case: Case) -> None:
    case.request(approvers="[ana@example.com]")
    case.history.write(f"{case.file}.txt", "nothing to do with it")
    case.history.commit("ana", "ana")


@forged
def a_signed_change_after_the_name(case: Case) -> None:
    case.request(approvers="[ana@example.com]")
    case.history.write(case.file, "# read\n" + case.history.read(case.file))
    case.history.commit("ana", "ana")


@forged
def a_signature_of_another_commit(case: Case) -> None:
    case.request()
    case.approve()
    signed = case.history.git("cat-file", "commit", "HEAD")
    case.write(columns="[orders.email, orders.phone]")
    case.history.git("add", "--all")
    tree = case.history.git("write-tree")
    file = case.history.folder.parent / "forged-commit"
    file.write_text(re.sub("^tree .*", f"tree {tree}", signed) + "\n")
    commit = case.history.git("hash-object", "-t", "commit", "-w", str(file))
    case.history.git("reset", "-q", "--hard", commit)


@forged
def a_key_that_the_branch_brings(case: Case) -> None:
    case.history.write(
        "allowed_signers",
        case.history.read("allowed_signers") + case.history.signer("mallory", "ana@example.com"),
    )
    case.history.commit("mallory")
    case.request()
    case.approve(key="mallory")


@forged
def a_pattern_of_signers(case: Case) -> None:
    case.history.git("checkout", "-q", "main")
    case.history.write(
        "allowed_signers",
        case.history.read("allowed_signers") + case.history.signer("mallory", "*@example.org"),
    )
    case.history.commit("ana")
    case.own_contract(
        lambda text: text.replace("dev@example.com, role: engineer", "zoe@example.org, role: owner")
    )
    case.request()
    case.approve("zoe@example.org", "mallory")


@forged
def a_key_that_is_no_longer_valid(case: Case) -> None:
    case.history.git("checkout", "-q", "main")
    line = case.history.signer("mallory", "vi@example.com", 'valid-before="20250101" ')
    case.history.write("allowed_signers", case.history.read("allowed_signers") + line)
    case.history.commit("ana")
    case.own_contract(
        lambda text: text.replace("dev@example.com, role: engineer", "vi@example.com, role: owner")
    )
    case.request()
    case.approve("vi@example.com", "mallory")


@forged
def a_key_for_another_purpose(case: Case) -> None:
    case.history.git("checkout", "-q", "main")
    line = case.history.signer("mallory", "fi@example.com", 'namespaces="file" ')
    case.history.write("allowed_signers", case.history.read("allowed_signers") + line)
    case.history.commit("ana")
    case.own_contract(
        lambda text: text.replace("dev@example.com, role: engineer", "fi@example.com, role: owner")
    )
    case.request()
    case.approve("fi@example.com", "mallory")


@forged
def the_merge_adds_the_name(case: Case) -> None:
    case.request()
    case.history.git("checkout", "-q", "main")
    branch = re.sub(r"\W+", "-", case.name)
    case.history.git("merge", "-q", "--no-ff", "--no-commit", branch)
    case.approve()


# Not an approver.


@forged
def by_an_engineer(case: Case) -> None:
    case.request()
    case.approve("dev@example.com", "dev")


@forged
def by_a_stranger(case: Case) -> None:
    case.request()
    case.approve("mallory@example.com", "mallory")


@forged
def by_one_who_left(case: Case) -> None:
    case.request()
    case.approve("old@example.com", "old")


@forged
def by_one_who_left_and_dates_back(case: Case) -> None:
    case.request()
    case.approve("old@example.com", "old", when="2021-01-01T00:00:00Z")


@forged
def an_old_start_for_one_who_left(case: Case) -> None:
    case.request(startDate="2020-01-01")
    case.approve("old@example.com", "old")


@forged
def removed_from_the_team_afterwards(case: Case) -> None:
    case.own_contract()
    case.request()
    case.approve("bo@example.com", "bo")
    case.edit_contract("    - {username: bo@example.com, role: Data Steward}\n", "")


@forged
def left_the_team_afterwards(case: Case) -> None:
    case.own_contract()
    case.request()
    case.approve("bo@example.com", "bo")
    case.edit_contract("role: Data Steward", "role: Data Steward, dateOut: '2026-01-15'")


@forged
def an_owner_that_the_branch_appoints(case: Case) -> None:
    case.own_contract()
    case.edit_contract("dev@example.com, role: engineer", "dev@example.com, role: owner")
    case.request()
    case.approve("dev@example.com", "dev")


@forged
def a_new_major_with_an_owner_of_its_own(case: Case) -> None:
    case.own_contract()
    text = case.history.read(f"{case.contract}.odcs.yaml")
    case.history.write(
        f"{case.contract}-2.odcs.yaml",
        text.replace("version: 1.0.0", "version: 2.0.0")
        .replace("dev@example.com, role: engineer", "dev@example.com, role: owner")
        .replace(f"name: {case.contract}\n", f"name: {case.contract}_2\n")
        .replace(f"s3://lake/{case.contract}", f"s3://lake/{case.contract}-2"),
    )
    case.request(major="2", columns=f"[{case.contract}_2.email]")
    case.approve("dev@example.com", "dev")


@forged
def a_contract_of_the_same_branch(case: Case) -> None:
    case.contract = f"new{case.account[-2:]}"
    text = CONTRACT.format(id=case.contract)
    case.history.write(
        f"{case.contract}.odcs.yaml",
        text.replace("dev@example.com, role: engineer", "dev@example.com, role: owner"),
    )
    case.history.commit("mallory")
    case.request(contract=case.contract, columns=f"[{case.contract}.email]")
    case.approve("dev@example.com", "dev")


@forged
def an_owner_of_another_contract(case: Case) -> None:
    case.own_contract(lambda text: text.replace("ana@example.com", "ada@example.com"))
    case.request()
    case.approve()


# Self approval.


@forged
def request_and_approval_in_one_commit(case: Case) -> None:
    case.write(approvers="[ana@example.com]")
    case.history.commit("ana", "ana")


@forged
def by_the_author_of_the_request(case: Case) -> None:
    case.request("bo")
    case.approve("bo@example.com", "bo")


@forged
def by_the_author_in_other_letters(case: Case) -> None:
    case.request("BO@Example.com")
    case.approve("bo@example.com", "bo")


@forged
def by_the_committer_of_the_request(case: Case) -> None:
    case.write()
    case.history.commit("rita", committer="bo")
    case.approve("bo@example.com", "bo")


@forged
def by_the_author_by_name(case: Case) -> None:
    case.write()
    case.history.commit("ana lima")
    case.approve()


@forged
def a_request_signed_by_the_approver(case: Case) -> None:
    case.write()
    case.history.commit("rita", "bo")
    case.approve("bo@example.com", "bo")


@forged
def by_the_author_of_wider_terms(case: Case) -> None:
    case.request()
    case.request("ana", purpose="All mail.")
    case.approve()


@forged
def by_the_consumer_contact(case: Case) -> None:
    case.request(consumer=re.sub("contact: '.*?'", "contact: ana@example.com", case.terms["consumer"]))
    case.approve()


@forged
def by_the_consuming_team(case: Case) -> None:
    case.request(consumer=re.sub("team: team..?", "team: VP", case.terms["consumer"]))
    case.approve("vp", "vp")


@forged
def widened_and_approved_in_one_commit(case: Case) -> None:
    case.request()
    case.write(columns="[orders.email, orders.phone]")
    case.approve()


# Stale.


@forged
def more_columns_afterwards(case: Case) -> None:
    case.request()
    case.approve()
    case.request(columns="[orders.email, orders.phone]")


@forged
def all_columns_afterwards(case: Case) -> None:
    case.request()
    case.approve()
    case.request(columns="")


@forged
def a_tag_afterwards(case: Case) -> None:
    case.request()
    case.approve()
    case.request(tags="[contact]")


@forged
def another_purpose_afterwards(case: Case) -> None:
    case.request()
    case.approve()
    case.request(purpose="Advertising.")


@forged
def another_account_afterwards(case: Case) -> None:
    own = case.account
    case.request(consumer=case.terms["consumer"].replace(own, "222222222222"))
    case.approve()
    case.request(consumer=case.terms["consumer"].replace("222222222222", own))


@forged
def another_principal_afterwards(case: Case) -> None:
    case.request()
    case.approve()
    arn = f"arn:aws:iam::{case.account}:role/admin"
    case.request(consumer=case.terms["consumer"].replace("}", f", principal: '{arn}'}}"))


@forged
def another_contract_afterwards(case: Case) -> None:
    case.request()
    case.approve()
    case.request(contract="ledger", columns="[ledger.email]")


@forged
def a_later_end_afterwards(case: Case) -> None:
    case.request(endDate="2098-12-31")
    case.approve()
    case.request(endDate="2099-12-31")


@forged
def no_end_afterwards(case: Case) -> None:
    case.request(endDate="2098-12-31")
    case.approve()
    case.request(endDate="")


@forged
def an_earlier_start_afterwards(case: Case) -> None:
    case.request()
    case.approve()
    case.request(startDate="2025-01-01")


@forged
def no_row_filter_afterwards(case: Case) -> None:
    case.request(rowFilter="number > 5")
    case.approve()
    case.request(rowFilter="")


@forged
def a_new_column_of_the_contract(case: Case) -> None:
    case.own_contract()
    case.request(columns="")
    case.approve()
    column = "{name: ssn, logicalType: string, physicalType: string, classification: restricted}"
    case.edit_contract("      - {name: email,", f"      - {column}\n      - {{name: email,")


@forged
def a_new_tag_of_the_contract(case: Case) -> None:
    case.own_contract()
    case.request(columns="", tags="[contact]")
    case.approve()
    case.edit_contract("{name: email,", "{name: email, tags: [contact],")


@forged
def dated_before_the_request(case: Case) -> None:
    case.request()
    case.approve(when="2025-06-01T00:00:00Z")


@forged
def withdrawn(case: Case) -> None:
    case.request()
    case.approve()
    case.write(approvers="")
    case.history.commit("ana", "ana")
    case.request(approvers="[ana@example.com]")


@forged
def withdrawn_and_restored_by_a_merge(case: Case) -> None:
    case.request()
    case.approve()
    case.history.merge()
    case.write(approvers="")
    case.history.commit("ana", "ana")
    approved = case.history.git("rev-parse", "HEAD~1^2")
    case.history.git("checkout", "-q", "-B", "restored", approved)
    case.history.git(
        *("merge", "-q", "-s", "ours", "-m", "merge", "main"), **case.history.people("rita", "rita")
    )
    # The file of the branch wins, with the tree of main otherwise.
    case.history.git("checkout", "main", "--", ".")
    case.history.git("checkout", approved, "--", f"{ROOT}/{case.file}")
    case.history.git("commit", "-q", "--amend", "--no-edit", **case.history.people("rita", "rita"))


# Names that look alike.


@forged
def in_upper_case(case: Case) -> None:
    case.request()
    case.approve("Ana@Example.com")


@forged
def with_a_cyrillic_letter(case: Case) -> None:
    case.request()
    case.approve("аna@example.com")


@forged
def with_a_long_s(case: Case) -> None:
    case.own_contract(lambda text: text.replace("bo@example.com", "bos@example.com"))
    case.request()
    case.approve("boſ@example.com", "bo")


@forged
def with_a_kelvin_sign(case: Case) -> None:
    case.own_contract(lambda text: text.replace("bo@example.com", "kay@example.com"))
    case.request()
    case.approve("\u212aay@example.com", "bo")


@forged
def with_wide_letters(case: Case) -> None:
    case.request()
    case.approve("ａｎａ@example.com")


@forged
def with_an_invisible_letter(case: Case) -> None:
    case.request()
    case.approve('"ana@example.com\\u200b"')


@forged
def with_spaces(case: Case) -> None:
    case.request()
    case.approve("' ana@example.com '")


@forged
def two_names_in_one(case: Case) -> None:
    case.request()
    case.approve("'ana@example.com, bo@example.com'")


@forged
def a_pattern_for_a_name(case: Case) -> None:
    case.request()
    case.approve("'*@example.com'")


@forged
def the_name_of_a_member(case: Case) -> None:
    case.request()
    case.approve("Ana Lima")


# Other files.


@forged
def renamed(case: Case) -> None:
    case.request()
    case.approve()
    old, case.file = case.file, case.file.replace("case", "renamed")
    case.history.git("mv", f"{ROOT}/{old}", f"{ROOT}/{case.file}")
    case.history.commit("rita")


@forged
def moved_into_a_folder(case: Case) -> None:
    case.request()
    case.approve()
    old, case.file = case.file, case.file.replace("subscriptions/", "subscriptions/eu/")
    case.history.write(case.file, case.history.read(old))
    case.history.git("rm", "-q", f"{ROOT}/{old}")
    case.history.commit("rita")


@forged
def copied_for_another_team(case: Case) -> None:
    own = case.account
    case.request(consumer="{team: right, account: '333333333333'}")
    case.approve()
    case.file = case.file.replace("case", "copy")
    case.request(consumer=f"{{team: wrong, account: '{own}'}}")


@forged
def renamed_in_case(case: Case) -> None:
    case.request()
    case.approve()
    old, case.file = case.file, case.file.replace("case", "Case")
    case.history.git("mv", f"{ROOT}/{old}", f"{ROOT}/{case.file}")
    case.history.commit("rita")


@forged
def in_another_folder_of_that_name(case: Case) -> None:
    case.file = f"sales/{case.file}"
    case.request()
    case.approve()


@forged
def in_a_repository_inside(case: Case) -> None:
    folder = case.history.folder / ROOT / "subscriptions" / f"inner{case.account[-2:]}"
    folder.mkdir(parents=True)
    case.file = f"subscriptions/{folder.name}/request.yaml"
    case.write()
    outer, case.history.folder = case.history.folder, folder
    try:
        case.history.git("init", "-q", "-b", "main")
        case.history.commit("rita")
        text = (folder / "request.yaml").read_text() + "approvers: [ana@example.com]\n"
        (folder / "request.yaml").write_text(text)
        case.history.commit("ana", "ana")
    finally:
        case.history.folder = outer
    # Kept outside of the outer repository.
    (outer / ".git" / "info").mkdir(exist_ok=True)
    with (outer / ".git" / "info" / "exclude").open("a") as exclude:
        exclude.write(f"{ROOT}/subscriptions/{folder.name}/\n")


@forged
def edited_without_a_commit(case: Case) -> None:
    case.request()
    case.approve()
    case.history.merge()
    case.history.edits.append(lambda: case.write(purpose="Advertising."))


@forged
def never_committed(case: Case) -> None:
    case.terms["approvers"] = "[ana@example.com]"
    case.history.edits.append(case.write)


def build(history: History, acts: Mapping[str, Callable[[Case], None]]) -> dict[str, Case]:
    """The repository with every case merged into main, which is checked out."""
    cases: dict[str, Case] = {}
    for number, (name, act) in enumerate(acts.items(), 1):
        case = cases[name] = Case(history, number, name)
        history.branch(name)
        act(case)
        if history.git("rev-parse", "--abbrev-ref", "HEAD") != "main":
            history.merge()
    for edit in history.edits:
        edit()
    return cases


# With CODEOWNERS, whose review the branch `main` requires.

OWNERS_POLICY = "rules: {subscription-without-approver: {proof: codeowners, branch: main}}\n"
OWNERS = """\
# Who reviews what.
* @rita
/registry/subscriptions/orders/ ana@example.com bo@example.com
/registry/subscriptions/ledger/ @vp # alone
/registry/subscriptions/mixed/ ana@example.com @acme/everyone
/registry/subscriptions/dev/ dev@example.com
/registry/subscriptions/free/ ana@example.com
/registry/subscriptions/free/
*.sql @rita
"""
RIGHT_OWNERS: dict[str, Callable[[Case], None]] = {}
FORGED_OWNERS: dict[str, Callable[[Case], None]] = {}


def _in(case: Case, folder: str, **terms: str) -> Case:
    case.file = case.file.replace("subscriptions/", f"subscriptions/{folder}/")
    case.terms |= terms
    return case


def right_owner(act: Callable[[Case], None]) -> Callable[[Case], None]:
    RIGHT_OWNERS[act.__name__] = act
    return act


def forged_owner(act: Callable[[Case], None]) -> Callable[[Case], None]:
    FORGED_OWNERS[act.__name__] = act
    return act


@right_owner
def reviewed_by_an_owner(case: Case) -> None:
    _in(case, "orders").request(approvers="[ana@example.com]")


@right_owner
def reviewed_by_the_other_owner(case: Case) -> None:
    _in(case, "orders").request(approvers="[bo@example.com]")


@right_owner
def reviewed_by_a_user(case: Case) -> None:
    _in(case, "ledger", contract="ledger", columns="[ledger.email]").request(approvers="[vp]")


@right_owner
def widened_and_reviewed_again(case: Case) -> None:
    _in(case, "orders").request(approvers="[ana@example.com]")
    case.history.merge()
    case.history.branch(f"{case.name} wider")
    case.request(columns="[orders.email, orders.phone]")


@right_owner
def squashed(case: Case) -> None:
    case.history.git("checkout", "-q", "main")
    _in(case, "orders").request(approvers="[ana@example.com]")


@right_owner
def rebased(case: Case) -> None:
    case.history.git("checkout", "-q", "main")
    _in(case, "orders").request()
    case.request(approvers="[ana@example.com]")


@forged_owner
def covered_by_nobody_who_may(case: Case) -> None:
    case.request(approvers="[ana@example.com]")


@forged_owner
def an_owner_among_others(case: Case) -> None:
    _in(case, "mixed").request(approvers="[ana@example.com]")


@forged_owner
def not_an_owner_of_the_file(case: Case) -> None:
    _in(case, "orders").request(approvers="[lead@example.com]")


@forged_owner
def an_engineer_who_owns_the_file(case: Case) -> None:
    _in(case, "dev").request(approvers="[dev@example.com]")


@forged_owner
def a_later_line_without_owners(case: Case) -> None:
    _in(case, "free").request(approvers="[ana@example.com]")


@forged_owner
def requested_by_the_owner(case: Case) -> None:
    _in(case, "orders").request("ana", approvers="[ana@example.com]")


@forged_owner
def widened_by_the_owner(case: Case) -> None:
    _in(case, "orders").request(approvers="[ana@example.com]")
    case.request("ana", purpose="All mail.")


@forged_owner
def owners_that_the_branch_brings(case: Case) -> None:
    file = case.history.folder / "CODEOWNERS"
    file.write_text(file.read_text() + "/registry/subscriptions/own/ ana@example.com\n")
    case.history.commit("mallory")
    _in(case, "own").request(approvers="[ana@example.com]")


@forged_owner
def an_owner_the_branch_appoints(case: Case) -> None:
    case.edit_contract("dev@example.com, role: engineer", "dev@example.com, role: owner", "mallory")
    _in(case, "dev").request(approvers="[dev@example.com]")
    case.history.merge()
    case.history.branch(f"{case.name} undone")
    case.edit_contract("dev@example.com, role: owner", "dev@example.com, role: engineer", "ana")


@forged_owner
def a_folder_of_another_contract(case: Case) -> None:
    case.own_contract(lambda text: text.replace("ana@example.com", "ada@example.com"))
    _in(case, "orders").request(approvers="[ana@example.com]")


@forged_owner
def a_folder_in_other_letters(case: Case) -> None:
    _in(case, "Orders").request(approvers="[ana@example.com]")


@forged_owner
def changed_after_the_merge(case: Case) -> None:
    _in(case, "orders").request(approvers="[ana@example.com]")
    case.history.edits.append(lambda: case.write(columns="[orders.email, orders.phone]"))


@forged_owner
def not_merged(case: Case) -> None:
    _in(case, "orders")
    case.terms["approvers"] = "[ana@example.com]"
    case.history.edits.append(case.write)


@forged_owner
def a_new_column_after_the_review(case: Case) -> None:
    case.own_contract()
    _in(case, "orders").request(columns="", approvers="[ana@example.com]")
    case.history.merge()
    case.history.branch(f"{case.name} column")
    column = "{name: ssn, logicalType: string, physicalType: string, classification: restricted}"
    case.edit_contract("      - {name: email,", f"      - {column}\n      - {{name: email,")


def build_owners(folder: Path) -> dict[str, Case]:
    """The same with CODEOWNERS."""
    history = History(folder, OWNERS_POLICY)
    (folder / "CODEOWNERS").write_text(OWNERS)
    history.commit("ana")
    return build(history, {**RIGHT_OWNERS, **FORGED_OWNERS})

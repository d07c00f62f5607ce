"""Certificates of real files: signed by dq, read by the independent program, and attacked."""

from __future__ import annotations

import copy
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from pyarrow import parquet

from dq.contracts.outcome import ReadError, UsageError
from dq.dataquality.erasure import certificate
from dq.dataquality.erasure.certificate import TableState
from dq.dataquality.erasure.model import FileResult, Gap, Hit, Means, PhysicalFile, Role, SearchOutcome

VERIFIER = Path(__file__).parents[3] / "examples/erasure/verify.py"
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
BEFORE = datetime(2026, 11, 24, tzinfo=UTC)
KEYS = ("ana@example.com", "+49 170 1234567", "Zoë@example.com")
SECRET, SALT = bytes(range(32)), bytes(32)
TABLE = "orders/orders@lake"

Edit = Callable[[dict[str, Any]], None]


def pem(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def public_pem(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@dataclass
class Lake:
    """A folder with a table of Parquet files, the keys of its certificates, and the independent program."""

    folder: Path
    key: Ed25519PrivateKey

    @property
    def table(self) -> Path:
        return self.folder / "orders"

    def write(self, name: str, *emails: str) -> Path:
        path = self.table / name
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pa.table({"email": list(emails)}), path)
        return path

    def files(self) -> list[PhysicalFile]:
        """All files below the table, as they are now."""
        return [
            PhysicalFile(
                TABLE, str(path), status.st_size, Role.CURRENT, datetime.fromtimestamp(status.st_mtime, UTC)
            )
            for path in sorted(self.table.rglob("*"))
            if path.is_file()
            for status in (path.stat(),)
        ]

    def states(self) -> dict[str, TableState]:
        return {TABLE: TableState(str(self.table), "parquet")}

    def outcome(self, **changes: Any) -> SearchOutcome:
        """The search of every row of every file."""
        results = []
        for file in () if "files" in changes else self.files():
            values = parquet.read_table(pa.BufferReader(Path(file.path).read_bytes()))["email"].to_pylist()
            hits = tuple(
                Hit(number, "email", values.count(key)) for number, key in enumerate(KEYS) if key in values
            )
            results.append(FileResult(file, Means.SCAN, file.size, hits))
        outcome = SearchOutcome(
            "customer.email",
            len(KEYS),
            {TABLE: ("email",)},
            tuple(results),
            (),
            NOW,
            NOW + timedelta(minutes=3),
        )
        return replace(outcome, **changes)

    def certificate(self, **changes: Any) -> dict[str, Any]:
        built = certificate.build(
            self.outcome(**changes),
            keys=KEYS,
            secret=SECRET,
            salt=SALT,
            before=BEFORE,
            issued_at=NOW + timedelta(minutes=4),
            release="0.1.0",
            states=self.states(),
        )
        return self.signed(built)

    def signed(self, document: dict[str, Any]) -> dict[str, Any]:
        return certificate.sign(document, pem(self.key), "key.pem")

    def verify(self, content: dict[str, Any] | bytes | str, *options: str) -> tuple[int, str]:
        """Exit code and output of the independent program."""
        if isinstance(content, dict):
            content = json.dumps(content)
        file = self.folder / "certificate.json"
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        (self.folder / "issuer.pub").write_bytes(public_pem(self.key))
        line = [
            sys.executable,
            "-I",
            str(VERIFIER),
            str(file),
            "--key",
            str(self.folder / "issuer.pub"),
            *options,
        ]
        ran = subprocess.run(line, capture_output=True, text=True, check=False)
        assert "Traceback" not in ran.stderr, ran.stderr
        return ran.returncode, ran.stdout.strip() or ran.stderr

    def write_keys(self, *keys: str) -> tuple[str, ...]:
        """Options for a file of keys with the secret of the certificates next to it."""
        file = self.folder / "keys.csv"
        file.write_text("\n".join(('"customer.email"', *(f'"{key}"' for key in keys))), encoding="utf-8")
        (self.folder / "keys.csv.secret").write_text(f"{SECRET.hex()}\n")
        return ("--keys", str(file))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path, Ed25519PrivateKey.generate())
    made.write("part-0.parquet", "bob@example.com")
    made.write("day=2026-11-20/part-1.parquet", "cem@example.com", "dev@example.com")
    return made


def problems(lake: Lake, document: dict[str, Any]) -> list[str]:
    """What dq refuses of a certificate that it reads from its text."""
    read = certificate.read(json.dumps(document).encode(), "certificate.json")
    found = [
        certificate.signature_problem(read, public_pem(lake.key), "issuer.pub"),
        *certificate.form_problems(read),
    ]
    return [problem for problem in found if problem]


def test_dq_and_the_independent_program_agree_that_a_certificate_is_valid(lake: Lake) -> None:
    document = lake.certificate()

    assert document["verdict"] == "proven"
    assert problems(lake, document) == []
    assert list(certificate.lake_problems(document, lake.files(), lake.states())) == []
    assert certificate.key_problem(document, KEYS, SECRET) == ""
    code, text = lake.verify(
        document, *lake.write_keys(*KEYS), "--identity", "customer.email", "--before", "2026-11-24"
    )
    assert (code, text.startswith("valid: proven, 2 files of 1 tables, 3 keys of")) == (0, True), text


def test_the_independent_program_shares_no_code_and_is_short() -> None:
    text = VERIFIER.read_text()

    assert len(text.splitlines()) <= 300
    assert "import dq" not in text
    assert "from dq" not in text


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "proven"),
        ({"gaps": (Gap(TABLE, "part-9.parquet", "it is encrypted"),)}, "not proven"),
        ({"tables": {}}, "not proven"),
        ({"tables": {TABLE: ("email",), "other/other@lake": ("email",)}}, "not proven"),
        ({"keys": 2}, "not proven"),
    ],
)
def test_what_was_not_searched_is_not_proven(lake: Lake, changes: dict[str, Any], verdict: str) -> None:
    document = lake.certificate(**changes)

    assert (document["verdict"], problems(lake, {**document, "tables": document["tables"]})) == (
        verdict,
        [],
    )
    assert lake.verify(document, "--offline")[0] == (0 if verdict == "proven" else 1)


def test_rows_that_were_found_are_certain_even_with_gaps(lake: Lake) -> None:
    lake.write("part-2.parquet", KEYS[2], KEYS[2])

    document = lake.certificate(gaps=(Gap(TABLE, "a", "b"),))

    (hit,) = (hit for file in document["tables"][0]["files"] for hit in file["hits"])
    assert document["verdict"] == "found"
    assert hit == {"key": certificate.key_digests([KEYS[2]], SECRET, SALT)[0], "column": "email", "rows": 2}
    assert lake.verify(document)[0] == 1


def test_no_key_is_in_the_certificate_and_none_can_be_guessed_from_it(lake: Lake) -> None:
    text = json.dumps(lake.certificate())

    for key in KEYS:
        assert key not in text
        # A guess with what the certificate has: its salt.
        for secret in (b"", SALT, bytes(32)):
            assert certificate.key_digests([key], secret, SALT)[0] not in text
    assert certificate.key_digests(KEYS, SECRET, SALT) != certificate.key_digests(
        KEYS, SECRET, bytes([1] * 32)
    )


def test_files_of_keys_in_another_order_or_form_of_unicode_are_the_same(lake: Lake) -> None:
    document = lake.certificate()
    decomposed = "Zoe\u0308@example.com"

    for keys in (tuple(reversed(KEYS)), (f"  {decomposed} ", *KEYS), KEYS[:1]):
        assert certificate.key_problem(document, keys, SECRET) == ""
        assert lake.verify(document, *lake.write_keys(*keys))[0] == 0


@pytest.mark.parametrize("keys", [(*KEYS, "eve@example.com"), ("ANA@example.com",), ()])
def test_a_certificate_for_other_keys_is_refused(lake: Lake, keys: tuple[str, ...]) -> None:
    document = lake.certificate()

    assert certificate.key_problem(document, keys, SECRET) != ""
    assert certificate.key_problem(document, KEYS, bytes(32)) != ""
    code, text = lake.verify(document, *lake.write_keys(*keys))
    assert (code, "key" in text) == (1, True)


def test_every_flipped_bit_of_a_sample_is_refused(lake: Lake) -> None:
    content = json.dumps(lake.certificate(), separators=(",", ":")).encode()
    chance = random.Random(7)
    accepted = []

    for place in [*range(0, len(content), 97), *chance.sample(range(len(content)), 200)]:
        flipped = bytearray(content)
        flipped[place] ^= 1 << chance.randrange(8)
        try:
            document = certificate.read(bytes(flipped), "certificate.json")
        except ReadError:
            continue
        if not certificate.signature_problem(document, public_pem(lake.key), "issuer.pub"):
            accepted.append((place, document))

    # A flip in the name of the key that signed changes no statement, and is not signed.
    original = {name: value for name, value in json.loads(content).items() if name != "signature"}
    assert all({name: value for name, value in document.items() if name != "signature"} == original
               for _, document in accepted)  # fmt: skip
    code, text = lake.verify(content.replace(b'"bytes_read":', b'"bytes_reae":', 1))
    assert (code, text) == (1, "refused: the certificate was changed, or is signed by another key")


def left_out(document: dict[str, Any]) -> None:
    del document["tables"][0]["files"][0]


def reordered(document: dict[str, Any]) -> None:
    document["tables"][0]["files"].reverse()


def duplicated(document: dict[str, Any]) -> None:
    files = document["tables"][0]["files"]
    files.insert(0, copy.deepcopy(files[0]))


def duplicated_table(document: dict[str, Any]) -> None:
    document["tables"].append(copy.deepcopy(document["tables"][0]))


def other_size(document: dict[str, Any]) -> None:
    document["tables"][0]["files"][0]["size"] += 1


def hidden_gap(document: dict[str, Any]) -> None:
    document["gaps"] = [{"table": TABLE, "subject": "part-9.parquet", "reason": "it is encrypted"}]


def other_verdict(document: dict[str, Any]) -> None:
    document["verdict"] = "found"


def after_the_search(document: dict[str, Any]) -> None:
    document["before"] = "2026-11-30T00:00:00+00:00"


def without_keys(document: dict[str, Any]) -> None:
    document["keys"]["digests"] = []


def without_tables(document: dict[str, Any]) -> None:
    document["tables"] = []


def without_a_member(document: dict[str, Any]) -> None:
    del document["tables"][0]["snapshot"]


def of_another_type(document: dict[str, Any]) -> None:
    document["tables"][0]["files"] = {"path": "x"}


EDITS = (
    *(left_out, reordered, duplicated, duplicated_table, other_size, hidden_gap, other_verdict),
    *(after_the_search, without_keys, without_tables, without_a_member, of_another_type),
)


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_an_edited_certificate_is_refused_even_if_its_issuer_signs_it(lake: Lake, edit: Edit) -> None:
    document = copy.deepcopy(lake.certificate())
    edit(document)

    changed = "it was changed after it was signed: the signature does not match"
    assert certificate.signature_problem(document, public_pem(lake.key), "issuer.pub") == changed
    assert lake.verify(document, "--offline") == (
        1,
        "refused: the certificate was changed, or is signed by another key",
    )
    signed = lake.signed(document)
    assert certificate.form_problems(signed) != []
    code, text = lake.verify(signed, "--offline")
    assert (code, text.startswith("refused: ")) == (1, True), text


def test_a_forged_certificate_is_refused(lake: Lake) -> None:
    forger = Lake(lake.folder, Ed25519PrivateKey.generate())
    document = forger.certificate()
    stripped = {name: value for name, value in document.items() if name != "signature"}

    refused = certificate.signature_problem(document, public_pem(lake.key), "issuer.pub")
    assert refused.startswith("it is not signed by this key, but by SHA256:")
    assert certificate.signature_problem(stripped, public_pem(lake.key), "issuer.pub") == "it is not signed"
    assert lake.verify(document)[0] == 1
    assert lake.verify(stripped) == (1, "refused: the certificate is not signed")


@pytest.mark.parametrize("content", [
    b"", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"format": "dq-erasure-certificate/2"}',
    b'{"format": "dq-erasure-certificate/1", "format": "dq-erasure-certificate/1"}',
    b'{"format": "dq-erasure-certificate/1", "a": 1.5}', b'{"format": "dq-erasure-certificate/1", "a": NaN}',
    b'{"format": "dq-erasure-certificate/1", "a": ' + b"9" * 5_000 + b"}",
    b'{"format": "dq-erasure-certificate/1", "a": 9007199254740993}',
    b'{"format": "dq-erasure-certificate/1", "a": "\\ud800"}',
], ids=lambda content: repr(content[:60]))  # fmt: skip
def test_what_two_readers_could_read_differently_is_refused(lake: Lake, content: bytes) -> None:
    with pytest.raises(ReadError, match=r"certificate\.json is not a certificate"):
        certificate.read(content, "certificate.json")
    assert lake.verify(content)[0] == 1


def test_a_truncated_certificate_is_refused(lake: Lake) -> None:
    content = json.dumps(lake.certificate()).encode()

    for end in range(0, len(content), len(content) // 9):
        with pytest.raises(ReadError):
            certificate.read(content[:end], "certificate.json")
    assert lake.verify(content[:-1])[0] == 1


def test_a_replayed_certificate_is_refused(lake: Lake) -> None:
    document = lake.certificate()

    assert list(certificate.replay_problems(document, identity="customer.email", before=BEFORE)) == []
    (identity,) = certificate.replay_problems(document, identity="customer.phone")
    (earlier,) = certificate.replay_problems(document, before=BEFORE + timedelta(days=1))
    assert identity == "it is for the identity customer.email, not for customer.phone"
    assert earlier.startswith(
        "it covers rows that existed before 2026-11-24T00:00:00+00:00, not those until 2026"
    )
    assert "not for customer.phone" in lake.verify(document, "--identity", "customer.phone")[1]
    assert "and not until 2026-11-25" in lake.verify(document, "--before", "2026-11-25")[1]


def new_file(lake: Lake) -> None:
    lake.write("part-3.parquet", "ana@example.com")


def hidden_file(lake: Lake) -> None:
    lake.write("_tmp/.part-3.parquet", "ana@example.com")


def removed_file(lake: Lake) -> None:
    (lake.table / "part-0.parquet").unlink()


def rewritten_file(lake: Lake) -> None:
    lake.write("part-0.parquet", "ana@example.com")


def rewritten_file_of_the_same_size(lake: Lake) -> None:
    path = lake.table / "part-0.parquet"
    content = bytearray(path.read_bytes())
    content[10] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "change", [new_file, hidden_file, removed_file, rewritten_file, rewritten_file_of_the_same_size],
    ids=lambda change: change.__name__,
)  # fmt: skip
def test_a_lake_that_changed_is_another_lake(lake: Lake, change: Callable[[Lake], None]) -> None:
    document = lake.certificate()
    change(lake)

    assert len(list(certificate.lake_problems(document, lake.files(), lake.states()))) == 1
    code, text = lake.verify(document)
    assert (code, text.startswith(f"refused: table {TABLE}: ")) == (1, True), text
    assert lake.verify(document, "--offline")[0] == 0


def test_a_checksum_tells_content_that_was_replaced_with_the_same_size_and_time(lake: Lake) -> None:
    path = lake.table / "part-0.parquet"
    known = {file.path: file for file in lake.files()}
    with_checksum = replace(known[str(path)], checksum="etag:1")
    outcome = lake.outcome()
    results = tuple(replace(result, file=with_checksum) if result.file.path == str(path) else result
                    for result in outcome.files)  # fmt: skip
    document = lake.certificate(files=results)

    assert (
        list(certificate.lake_problems(document, [with_checksum, *list(known.values())[:1]], lake.states()))
        == []
    )
    replaced = [replace(with_checksum, checksum="etag:2"), *list(known.values())[:1]]
    assert list(certificate.lake_problems(document, replaced, lake.states())) == [
        f"table {TABLE}: {path} was changed after the search"
    ]


def test_tables_and_snapshots_that_are_not_those_of_the_certificate_are_named(lake: Lake) -> None:
    document = lake.certificate()
    newer = {TABLE: replace(lake.states()[TABLE], snapshot="8")}
    other = {**lake.states(), "other/other@lake": TableState("other", "parquet")}

    assert list(certificate.lake_problems(document, lake.files(), newer)) == [
        f"table {TABLE}: its current snapshot is 8, and the certificate is for None"
    ]
    assert list(certificate.lake_problems(document, lake.files(), other)) == [
        "table other/other@lake is in the lake, and not in the certificate"
    ]
    assert list(certificate.lake_problems(document, [], {})) == [
        f"table {TABLE} is in the certificate, and not in the lake"
    ]


@pytest.mark.parametrize(("form", "log", "name", "content", "snapshot"), [
    ("delta", "_delta_log", "00000000000000000012.json", "{}", "12"),
    ("iceberg", "metadata", "v3.metadata.json", '{"last-updated-ms": 9, "current-snapshot-id": 77}', "77"),
    ("hudi", ".hoodie", "20261120120000000.commit", "{}", "20261120120000000.commit"),
])  # fmt: skip
def test_an_old_snapshot_is_refused_by_the_independent_program(
    lake: Lake, form: str, log: str, name: str, content: str, snapshot: str
) -> None:
    folder = lake.table / log
    folder.mkdir()
    (folder / name).write_text(content)
    results = tuple(FileResult(file, Means.SCAN, file.size) for file in lake.files())
    document = lake.certificate(files=results)
    document["tables"] = [{**document["tables"][0], "format": form, "snapshot": snapshot}]

    assert lake.verify(lake.signed(document))[0] == 0
    newer = {"delta": "00000000000000000013.json", "iceberg": "v4.metadata.json"}
    (folder / newer.get(form, "20261121120000000.deltacommit")).write_text(
        content.replace("9,", "10,").replace("77", "78")
    )
    code, text = lake.verify(lake.signed(document))
    assert (code, "its current snapshot is" in text) == (1, True), text


def test_links_in_the_lake_are_not_passed_over(lake: Lake, tmp_path: Path) -> None:
    document = lake.certificate()
    (tmp_path / "elsewhere").mkdir()
    (lake.table / "link").symlink_to(tmp_path / "elsewhere")

    code, text = lake.verify(document)
    assert (code, "is a link" in text) == (1, True), text


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every folder")
def test_a_folder_that_cannot_be_listed_is_refused(lake: Lake) -> None:
    document = lake.certificate()
    (lake.table / "closed").mkdir(mode=0)

    assert lake.verify(document)[0] == 1


def test_names_with_every_kind_of_character_are_signed_alike(lake: Lake) -> None:
    for name in (
        'a"b\\c.parquet',
        "tab\tline\n.parquet",
        "ü ✓ 😀.parquet",
        "\x7f\x01.parquet",
        "\u2028#[x].parquet",
    ):
        lake.write(name, "bob@example.com")
    document = lake.certificate()

    assert problems(lake, document) == []
    assert lake.verify(document)[0] == 0
    assert lake.verify(json.dumps(document, ensure_ascii=False, indent=3))[0] == 0


def test_a_name_that_is_not_unicode_is_a_gap(lake: Lake) -> None:
    source = lake.table / "part-0.parquet"
    os.link(source, os.fsencode(lake.table) + b"/\xff.parquet")

    document = lake.certificate()

    assert (document["verdict"], [gap["reason"] for gap in document["gaps"]]) == (
        "not proven",
        ["its name is not Unicode"],
    )
    assert problems(lake, document) == []


def test_other_private_and_public_keys_are_usage_errors(lake: Lake) -> None:
    rsa = generate_private_key(65_537, 2_048)
    other = rsa.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    locked = lake.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x"))

    for content in (other, b"", b"nonsense", public_pem(lake.key)):
        with pytest.raises(UsageError, match="is not an Ed25519 private key"):
            certificate.sign({}, content, "key.pem")
    with pytest.raises(UsageError, match="has a passphrase"):
        certificate.sign({}, locked, "key.pem")
    for content in (other, b"", pem(lake.key)):
        with pytest.raises(UsageError, match="is not an Ed25519 public key"):
            certificate.signature_problem({}, content, "issuer.pub")


@pytest.mark.slow
def test_a_hundred_thousand_files_are_certified_and_verified(tmp_path: Path) -> None:
    lake = Lake(tmp_path, Ed25519PrivateKey.generate())
    files = [
        PhysicalFile(TABLE, f"s3://lake/orders/day={number % 365}/part-{number:06}-{'x' * 36}.zstd.parquet",
                     134_217_728, Role.CURRENT, NOW, "", f"etag:{number:032x}")
        for number in range(100_000)
    ]  # fmt: skip
    results = tuple(FileResult(file, Means.BLOOM, 65_536) for file in files)

    content = json.dumps(lake.certificate(files=results)).encode()
    read = certificate.read(content, "certificate.json")

    assert problems(lake, read) == []
    assert list(certificate.lake_problems(read, files[1:], lake.states())) == [
        f"table {TABLE}: {files[0].path} is in the certificate, and no longer in the lake"
    ]
    assert lake.verify(content, "--offline")[0] == 0

"""`dq erasure prove` and `verify` on real lakes, and what the independent program says of the same."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from fakes import lakehouse
from fakes.command import Place, Ran
from jsonschema import Draft202012Validator
from pyarrow import parquet

from dq.operations.output_schemas import json_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: NAME
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: PATH, format: FORMAT}
schema:
  - name: NAME
    properties:
      - {name: id, logicalType: integer}
      - name: email
        logicalType: string
        customProperties: [{property: identity, vendor: dq, value: customer.email}]
"""
ANA = "ana@example.com"


class Lake(Place):
    """A folder with a registry, a key pair and a file of keys; `config` are options before the command."""

    config: tuple[str, ...] = ()

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        key = Ed25519PrivateKey.generate()
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        self.put("issuer.pem", private.decode())
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        self.put("issuer.pub", public.decode())
        self.put("keys.csv", f"customer.email\n{ANA}\n")

    def contract(self, name: str = "orders", form: str = "parquet", path: str = "") -> None:
        text = CONTRACT.replace("NAME", name).replace("FORMAT", form).replace("PATH", path or f"lake/{name}")
        self.put(f"registry/{name}.odcs.yaml", text)

    def write(self, name: str, *emails: str) -> Path:
        path = self.folder / "lake" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pa.table({"id": range(len(emails)), "email": list(emails)}), path)
        return path

    def prove(self, *options: str) -> Ran:
        options = ("--keys", "keys.csv", "--identity", "customer.email", "--sign", "issuer.pem", *options)
        ran = self.dq(*self.config, "erasure", "prove", "registry", *options)
        if ran.out:
            self.put("proof.json", ran.out)
        return ran

    def verify(self, *options: str) -> Ran:
        return self.dq(*self.config, "erasure", "verify", "proof.json", "--key", "issuer.pub", *options)

    def verify_alone(self, *options: str) -> tuple[int, str]:
        """Exit code and output of the independent program."""
        line = [sys.executable, "-I", str(ROOT / "examples/erasure/verify.py"), "proof.json"]
        ran = subprocess.run(
            [*line, "--key", "issuer.pub", *options],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in ran.stderr, ran.stderr
        return ran.returncode, ran.stdout

    def codes(self, *options: str) -> tuple[int, int]:
        """Exit codes of both programs for the certificate and the lake of now."""
        return self.verify("--registry", "registry", *options).code, self.verify_alone(*options)[0]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path)
    made.contract()
    made.write("orders/part-0.parquet", "bob@example.com", "cem@example.com")
    made.write("orders/part-1.parquet", "dev@example.com")
    return made


def test_a_proven_erasure_is_verified_by_dq_and_without_it(lake: Lake) -> None:
    ran = lake.prove("--before", "2026-01-01")

    assert (ran.code, ran.json["verdict"]) == (0, "proven"), ran.err
    assert ANA not in ran.out + ran.err
    assert stat.S_IMODE((lake.folder / "keys.csv.secret").stat().st_mode) == 0o600
    validator = Draft202012Validator(json_schema("erasure prove"))
    assert [error.message for error in validator.iter_errors(ran.json)] == []
    options = ("--keys", "keys.csv", "--identity", "customer.email", "--before", "2026-01-01")
    assert lake.codes(*options) == (0, 0), lake.verify("--registry", "registry", *options).out
    verified = lake.verify("--format", "json", *options)
    assert (verified.code, verified.json["valid"], verified.json["unchecked"]) == (
        0,
        True,
        ["the lake: pass --registry"],
    )
    validator = Draft202012Validator(json_schema("erasure verify"))
    assert [error.message for error in validator.iter_errors(verified.json)] == []


@pytest.mark.parametrize("place", [
    "orders/part-0.parquet", "orders/_temporary/0/part-9.parquet", "orders/.hidden", "orders/part.bak",
])  # fmt: skip
def test_a_row_that_is_left_anywhere_is_found(lake: Lake, place: str) -> None:
    lake.write(place, "ANA@Example.com ")

    ran = lake.prove()

    assert (ran.code, ran.json["verdict"]) == (1, "found"), ran.err
    assert [file["path"].endswith(place) for file in ran.json["tables"][0]["files"] if file["hits"]] == [True]
    assert lake.codes("--keys", "keys.csv") == (1, 1)
    assert "were found in" in ran.err


@pytest.mark.parametrize("spoil", [
    lambda lake: (lake.folder / "lake/orders/part-0.parquet").write_bytes(b"PAR1 cut"),
    lambda lake: (lake.folder / "lake/orders/link").symlink_to("/etc"),
    lambda lake: lake.put("registry/broken.odcs.yaml", "kind: DataContract\napiVersion: v3.2.0\nid: [\n"),
    lambda lake: lake.contract("gone"),
], ids=["truncated", "link", "broken contract", "no folder"])  # fmt: skip
def test_what_cannot_be_searched_is_not_proven(lake: Lake, spoil: Callable[[Lake], object]) -> None:
    spoil(lake)

    ran = lake.prove()

    assert (ran.code, ran.json["verdict"]) == (3, "not proven"), ran.err
    assert ran.json["gaps"] != []
    assert (lake.verify().code, lake.verify_alone("--offline")[0]) == (3, 1)


def test_a_flipped_byte_a_left_out_file_an_old_state_and_a_replay_are_each_refused(lake: Lake) -> None:
    lake.prove("--before", "2026-01-01")
    proof = (lake.folder / "proof.json").read_text()

    lake.put("proof.json", proof.replace('"bytes_read": ', '"bytes_read": 1', 1))
    assert lake.codes() == (1, 1)
    document = json.loads(proof)
    del document["tables"][0]["files"][0]
    lake.put("proof.json", json.dumps(document))
    assert lake.codes() == (1, 1)
    lake.put("proof.json", proof)
    for other in (("--before", "2026-01-02"), ("--identity", "customer.phone")):
        assert lake.codes(*other) == (1, 1)
    lake.put("keys.csv", "eve@example.com\n")
    assert lake.codes("--keys", "keys.csv") == (1, 1)
    assert lake.codes() == (0, 0)

    lake.write("orders/part-2.parquet", "eve@example.com")
    assert lake.codes() == (1, 1)
    refused = lake.verify("--registry", "registry").out
    assert "part-2.parquet is in the lake, and not in the certificate" in refused


def test_an_empty_folder_of_a_partition_is_no_change(lake: Lake) -> None:
    (lake.folder / "lake/orders/day=2026-11-20").mkdir()

    assert lake.prove().code == 0
    assert lake.codes() == (0, 0), lake.verify("--registry", "registry").out + lake.verify_alone()[1]


def test_a_table_that_the_registry_gets_later_is_missed(lake: Lake) -> None:
    lake.prove()
    lake.write("customers/part-0.parquet", "bob@example.com")
    lake.contract("customers")

    refused = lake.verify("--registry", "registry")

    assert (refused.code, "table customers/customers@lake is in the lake" in refused.out) == (1, True)


def test_an_unknown_issuer_and_an_unsigned_certificate_are_not_trusted(lake: Lake) -> None:
    lake.prove()
    unknown = lake.dq("erasure", "verify", "proof.json")
    ran = lake.dq("erasure", "prove", "registry", "--keys", "keys.csv", "--identity", "customer.email")
    lake.put("proof.json", ran.out)

    assert (unknown.code, "of an unknown issuer: proven" in unknown.out) == (3, True)
    assert "The certificate is not signed" in ran.err
    assert lake.codes() == (1, 1)


@pytest.mark.parametrize(("options", "words"), [
    (("--before", "2999-01-01"), "is in the future"), (("--before", "soon"), "invalid time"),
    (("--sign", "keys.csv"), "is not an Ed25519 private key"), (("--sign", "gone.pem"), "gone.pem"),
    (("--secret", "issuer.pem"), "is not a secret of dq"), (("--secret", "gone/secret"), "cannot be written"),
    (("--identity", "customer.mail"), "customer.email"),
])  # fmt: skip
def test_mistakes_are_told_before_anything_is_searched(
    lake: Lake, options: tuple[str, ...], words: str
) -> None:
    ran = lake.prove(*options)

    assert (ran.code in (2, 3), ran.out) == (True, "")
    assert words in ran.err, ran.err
    assert ANA not in ran.err


def test_a_contract_that_is_invalid_is_the_reason_if_none_has_the_identity(lake: Lake) -> None:
    for contract in (lake.folder / "registry").iterdir():
        contract.write_text(contract.read_text("utf-8").replace("kind: DataContract", "kind: 5"), "utf-8")

    ran = lake.prove()

    assert (ran.code, ran.out) == (3, "")
    assert "no valid contract has the identity 'customer.email', and some contracts are invalid." in ran.err
    assert "orders.odcs.yaml:" in ran.err
    assert not (lake.folder / "keys.csv.secret").exists()


def test_the_secret_is_not_written_through_a_link_and_is_reused(lake: Lake, tmp_path: Path) -> None:
    (lake.folder / "keys.csv.secret").symlink_to(tmp_path / "elsewhere")
    assert lake.prove().code != 0
    assert not (tmp_path / "elsewhere").exists()

    (lake.folder / "keys.csv.secret").unlink()
    first, second = lake.prove().json, lake.prove().json
    assert first["keys"]["digests"] != second["keys"]["digests"]
    assert lake.codes("--keys", "keys.csv") == (0, 0)


# Deletion as the page says, in the engines.

PAGE = (ROOT / "docs/how-to/prove-erasure.md").read_text()


def statements(heading: str) -> list[str]:
    """The SQL of the page below a heading, without comments."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    [block] = re.findall(r"```sql not-run\n(.*?)```", section, re.DOTALL)
    text = "\n".join(line for line in block.splitlines() if not line.startswith("--"))
    return [statement.strip() for statement in text.split(";") if statement.strip()]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("spark", ["lakehouse"], indirect=True, scope="session")
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_deletion_as_the_page_says_is_proven(spark: SparkSession, tmp_path: Path, form: str) -> None:
    lake, catalog = Lake(tmp_path), lakehouse.CATALOG
    name = f"proof_{form}_{tmp_path.name.replace('-', '_')}"
    warehouse = str(spark.conf.get(f"spark.sql.catalog.{catalog}.warehouse"))
    path = f"{warehouse}/shop/{name}" if form == "iceberg" else f"{tmp_path}/lake/{name}"
    table = f"{catalog}.shop.{name}" if form == "iceberg" else f"delta.`{path}`"
    lake.config = ("--config", str(lake.put("dq.toml", f"lake_roots = ['{path}']\n")))
    lake.contract("orders", form, path)
    properties = "'delta.dataSkippingStatsColumns'='id'" if form == "delta" else "'format-version'='2'"
    spark.sql(f"CREATE TABLE {table} (id INT, email STRING) USING {form} TBLPROPERTIES ({properties})")
    values = f"VALUES (1, '{ANA}'), (2, 'bob@example.com')"
    spark.sql("INSERT INTO [table] SELECT /*+ COALESCE(1) */ * FROM [values]"
              .replace("[table]", table).replace("[values]", values))  # fmt: skip
    before = lake.prove()
    page = [
        part.replace("{table}", table).replace("{catalog}", catalog) for part in statements(form.capitalize())
    ]
    deletion = next(number for number, statement in enumerate(page) if "DELETE" in statement) + 1
    for statement in page[:deletion]:
        spark.sql(statement)
    deleted = lake.prove()
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")

    for statement in page[deletion:]:
        spark.sql(statement)
    after = lake.prove()

    assert (before.code, deleted.code, after.code) == (1, 1, 0), after.err
    assert "snapshot" in deleted.err
    assert after.json["tables"][0]["snapshot"] is not None
    assert lake.codes("--keys", "keys.csv") == (0, 0), (
        lake.verify("--registry", "registry").out,
        lake.verify_alone(),
    )
    spark.sql("INSERT INTO [table] VALUES (3, 'eve@example.com')".replace("[table]", table))
    assert lake.codes() == (1, 1)
    assert "its current snapshot is" in lake.verify("--registry", "registry").out
    assert "its current snapshot is" in lake.verify_alone()[1]
    shutil.rmtree(path)


HUDI = {
    "hoodie.table.name": "orders", "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "id", "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "1", "hoodie.insert.shuffle.parallelism": "1",
}  # fmt: skip


@pytest.mark.spark
@pytest.mark.skipif("hudi" not in lakehouse.FORMATS, reason="Hudi's jar is for Spark 3.5")
@pytest.mark.parametrize("spark", ["lakehouse"], indirect=True, scope="session")
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_deletion_from_hudi_as_the_page_says_is_proven(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    lake, path = Lake(tmp_path), str(tmp_path / "lake/orders")
    lake.config = ("--config", str(lake.put("dq.toml", f"lake_roots = ['{path}']\n")))
    lake.contract("orders", "hudi", path)
    is_merged = kind == "MERGE_ON_READ"
    metadata = {"hoodie.metadata.enable": str(not is_merged).lower()}
    options = {**HUDI, **metadata, "hoodie.datasource.write.table.type": kind}

    def upsert(*rows: tuple[int, str]) -> None:
        frame = spark.createDataFrame(list(rows), "id int, email string").coalesce(1)
        frame.write.format("hudi").options(**options).mode("append").save(path)

    upsert((1, ANA), (2, "bob@example.com"))
    upsert((1, ANA))
    before = lake.prove()

    section = PAGE.split("\n## Hudi\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```python not-run\n(.*?)```", section, re.DOTALL)
    names = {"spark": spark, "path": path}
    for block in blocks if is_merged else blocks[::2]:
        exec(block, names)  # the code of the page
    after = lake.prove()

    assert len(blocks) == 4
    assert (before.code, after.code) == (1, 0), after.err
    assert {file["role"] for file in before.json["tables"][0]["files"] if file["hits"]} >= {"log file"}
    assert spark.read.format("hudi").load(path).select("id").collect() == [(2,)]
    assert lake.codes("--keys", "keys.csv") == (0, 0), lake.verify("--registry", "registry").out
    upsert((3, "eve@example.com"))
    assert "its current snapshot is" in lake.verify("--registry", "registry").out
    assert "its current snapshot is" in lake.verify_alone()[1]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every folder")
def test_a_folder_without_permission_is_a_gap(lake: Lake) -> None:
    (lake.folder / "lake/orders/closed").mkdir(mode=0)

    assert lake.prove().code == 3

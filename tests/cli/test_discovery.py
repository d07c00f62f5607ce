"""A registry whose contracts are called as their users like, at every command that takes a folder."""

from __future__ import annotations

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: lake, format: parquet}
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, physicalType: bigint}
"""


def _registry(folder):
    (folder / "orders.odcs.yaml").unlink(missing_ok=True)
    (folder / "sales").mkdir()
    (folder / "sales" / "orders.yaml").write_text(CONTRACT)
    (folder / "schema.yml").write_text("version: 2\nmodels: []\n")


PASSED = "dq: 1 YAML file is not a contract: 1 like dbt (schema.yml)."


def test_validate_judges_them_and_says_what_it_passed_over(dq, folder):
    _registry(folder)
    (folder / "sales" / "orders.yaml").write_text(
        CONTRACT.replace("logicalType: integer", "logicalType: int")
    )

    done = dq("validate", ".")

    assert done.code == 1
    assert "sales/orders.yaml" in done.out
    assert PASSED in done.err
    assert dq("validate", ".", "--format", "json").json["counts"]["files"] == 1


def test_register_and_watch_take_them(dq, folder):
    _registry(folder)

    done = dq("register", ".")

    assert "orders" in done.out
    assert PASSED in done.err
    assert dq("watch", ".").code == 0
    assert "1 contract: all formatted." in dq("fmt", ".", "--check").err


def test_a_folder_of_other_files_is_not_fine(dq, folder):
    _registry(folder)
    (folder / "sales" / "orders.yaml").unlink()

    done = dq("validate", ".")

    assert done.code == 3
    assert "contains no contract. 1 YAML file is not a contract: 1 like dbt (schema.yml)." in done.err

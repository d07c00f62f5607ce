"""What `dq register` says of changes: in the words of `dq diff`, of retired contracts, and of new names."""

from __future__ import annotations

import pytest

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: "lake/{object}", format: parquet}
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, physicalType: bigint}
      - {name: place, logicalType: object, physicalType: "struct<zip:string>"}
      - {name: code, logicalType: string, physicalType: varchar(10)}
"""


@pytest.fixture
def registry(dq, folder):
    """A registry whose one contract is registered; gives what writes it anew and runs a plan."""
    (folder / "orders.odcs.yaml").unlink()
    (folder / "dq-policy.yaml").write_text("registry: shop\n")

    def written(*pairs, name="orders.odcs.yaml"):
        text = CONTRACT
        for before, after in pairs:
            assert before in text
            text = text.replace(before, after)
        (folder / name).write_text(text)
        return lambda *options: dq("register", ".", *options)

    assert written()("--apply").code == 0
    return written


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("zip:string", "zip:string,city:string", "[additive: column-added-optional]"),
        ("varchar(10)", "varchar(20)", "[additive: type-length-increased]"),
        ("varchar(10)", "varchar(5)", "[breaking: type-length-decreased]"),
        ("zip:string", "zip:int", "[breaking: type-changed"),
    ],
)
def test_a_change_is_called_and_graded_as_dq_diff_does(registry, before, after, said):
    plan = registry((before, after))

    done = plan("--apply")

    assert said in done.out
    assert done.code == (3 if "breaking" in said else 0)
    assert plan("--check").code == (1 if "breaking" in said else 0)


def test_a_column_that_goes_is_said_so(registry):
    done = registry(("      - {name: code, logicalType: string, physicalType: varchar(10)}\n", ""))()

    assert "column code: 'varchar(10)' [breaking: column-removed]" in done.out


RETIRED = ("status: active", "status: retired")


def test_the_table_of_a_retired_contract_says_so_and_stays_as_it_is(registry):
    plan = registry(RETIRED, ("varchar(10)", "varchar(5)"))

    first, second = plan("--apply"), plan("--apply", "--prune", "--check")

    assert "~ parameter dq.lifecycle: 'active' -> 'retired'" in first.out
    assert "type of code" not in first.out
    assert (first.code, second.code) == (0, 0)
    assert "1 table: 1 no-op." in second.out


def test_a_retired_contract_that_has_no_table_makes_none(registry):
    registry()
    plan = registry(RETIRED, ("id: orders", "id: old"), ("name: orders", "name: olds"), name="old.odcs.yaml")

    done = plan("--apply")

    assert "held orders.olds" not in done.out
    assert "Its contract is retired, and there is no table of it." in done.out
    assert done.code == 0


def test_a_retired_major_does_not_mark_the_table_of_the_next(registry):
    registry(("version: 1.0.0", "version: 2.0.0"))("--apply", "--allow-breaking")
    plan = registry(RETIRED, name="orders-v1.odcs.yaml")
    registry(("version: 1.0.0", "version: 2.0.0"))

    both = plan("--apply")
    alone = plan("--apply")

    assert (both.code, alone.code) == (0, 0)
    assert "dq.lifecycle" not in both.out + alone.out


def test_a_table_with_a_new_name_is_linked_to_the_old_one(registry):
    plan = registry(("name: orders\n", "name: orders\n    physicalName: sales_orders\n"))

    out = plan().out

    assert "It takes the place of orders.orders, which stays until it is pruned." in out
    assert "orders.sales_orders takes its place." in out

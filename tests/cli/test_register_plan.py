"""What `dq register` says of changes: in the words of `dq diff`, of retired contracts, and of new names."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from dq.registry.catalog import Action, ActionKind, CatalogSettings
from dq.registry.catalogs import open_catalog
from dq.store.engine import open_store

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
    assert "Its contract is retired and has no table." in done.out
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

    assert "It replaces orders.orders, which stays until it is pruned." in out
    assert "Replaced by orders.sales_orders." in out


def test_a_table_in_another_database_is_linked_to_the_old_one(registry):
    plan = registry(("status: active\n", "status: active\ndomain: mesh\n"))

    whole = plan()
    part = plan("orders.odcs.yaml")

    for said in (whole.out, part.out):
        assert said.count("It replaces orders.orders, which stays until it is pruned.") == 1
    assert "Replaced by mesh.orders." in whole.out


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        ("name: orders\n", "name: orders\n    physicalName: sales_orders\n", "orders.sales_orders"),
        ("status: active\n", "status: active\ndomain: mesh\n", "mesh.orders"),
    ],
    ids=["name", "database"],
)
def test_an_orphan_names_the_table_in_its_place_until_it_is_pruned(registry, before, after, new):
    plan = registry((before, after))
    first = plan("--apply")

    again, grown = plan(), registry((before, after), NARROWED)()

    for ran in (first, again, grown):
        assert ran.out.count(f"Replaced by {new}.") == 1, ran.out
    assert "It replaces" not in again.out
    plan("--apply", "--prune")
    assert "Replaced by" not in plan().out


NARROWED = ("varchar(10)", "varchar(20)")


def test_a_kept_plan_is_applied_while_nothing_has_moved(registry):
    plan = registry(NARROWED)

    assert plan("--out", "plan.json").code == 0
    done = plan("--apply", "--plan", "plan.json")

    assert (done.code, "Applied 1 of 1 changes." in done.out) == (0, True)
    assert plan("--apply", "--plan", "plan.json").code == 0  # it is done already


def test_a_kept_plan_is_stale_when_the_contract_moved(registry):
    registry(NARROWED)("--out", "plan.json")
    plan = registry(("varchar(10)", "varchar(30)"))

    done = plan("--apply", "--plan", "plan.json")

    assert done.code == 3
    assert "orders.orders: changed since the plan was saved; skipped." in done.err
    assert plan("--check").code == 1


def test_a_kept_plan_is_stale_when_the_catalog_moved(registry):
    plan = registry(NARROWED)
    plan("--out", "plan.json")
    registry(("bigint", "bigint, description: Other"))("--apply")

    done = registry(NARROWED)("--apply", "--plan", "plan.json")

    assert (done.code, "changed since the plan was saved" in done.err) == (3, True)


def test_what_is_not_in_a_kept_plan_is_left_alone_and_the_rest_is_done(registry):
    plan = registry(NARROWED)
    plan("--out", "plan.json")
    registry(("id: orders", "id: new"), ("name: orders", "name: news"), name="new.odcs.yaml")

    done = plan("--apply", "--plan", "plan.json")

    assert done.code == 3
    assert "new.news: not in the plan; skipped." in done.err
    assert "Applied 1 of 1 changes." in done.out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no json", "is not JSON"),
        ("[]", "is not a plan"),
        ('{"form": "dq register plan 1", "registry": "other"}', "a plan for the registry 'other'"),
        ('{"form": "dq register plan 1", "registry": "shop", "catalog": "glue"}', "for the catalog 'glue'"),
    ],
)
def test_a_file_that_is_no_plan_for_this_is_refused(registry, folder, text, said):
    plan = registry(NARROWED)
    (folder / "plan.json").write_text(text)

    done = plan("--apply", "--plan", "plan.json")

    assert (done.code, said in done.err) == (2, True)


@pytest.mark.parametrize(
    "options",
    [("--plan", "p.json"), ("--apply", "--plan", "p.json", "--out", "q"), ("--refresh-only", "--apply")],
    ids=lambda one: one[0],
)
def test_options_that_do_not_go_together_are_refused(registry, options):
    assert registry()(*options).code == 2


def test_refresh_only_shows_what_others_changed_and_not_the_contract(registry, folder):

    plan = registry(NARROWED)
    assert plan("--refresh-only", "--check").code == 0
    with_store = open_store(f"sqlite:///{folder}/.dq/store.db")
    catalog = open_catalog("local", CatalogSettings(store=with_store))
    live = catalog.read("orders", "orders")
    theirs = replace(live.spec, columns=live.spec.columns[1:])
    catalog.apply(Action(ActionKind.UPDATE, live.spec.key, before=live, after=theirs))
    with_store.close()

    done = plan("--refresh-only", "--check")

    assert done.code == 1
    assert "drift orders.orders" in done.out
    assert "varchar" not in done.out


def test_a_plan_is_a_comment_on_a_pull_request(registry):
    plan = registry(NARROWED, ("bigint", "bigint, description: '@team | <b>'"))

    lines = plan("--format", "markdown").out.splitlines()

    assert lines[0] == "<!-- dq register -->"
    assert lines[2] == "## Catalog: 1 update"
    row = next(line for line in lines if "orders.orders" in line)
    assert row.startswith("| update | `orders.orders` | additive | ")
    assert "type-length-increased" in row
    assert "<b>" not in row
    assert "`'@team" in row


SERVERS = """\
servers:
  - {server: new, environment: prod, type: local, path: "prod/{object}", format: parquet}
  - {server: test, environment: dev, type: local, path: "dev/{object}", format: parquet}
"""
OF_ONE = 'servers:\n  - {server: lake, type: local, path: "lake/{object}", format: parquet}\n'


def test_an_environment_chooses_the_server_of_each_contract(registry, folder):
    registry(
        (OF_ONE, SERVERS), ("id: orders", "id: two"), ("name: orders", "name: twos"), name="two.odcs.yaml"
    )
    (folder / "dq-policy.yaml").write_text("registry: shop\nservers: {prod: {orders: lake}}\n")

    prod, dev = registry()("--env", "prod"), registry()("--env", "dev")

    assert (prod.code, dev.code) == (0, 3)
    assert "+ parquet at prod/twos" in prod.out
    assert "+ parquet at dev/twos" in dev.out
    assert "contract 'orders' has no servers with 'environment: dev'." in dev.err


def test_two_servers_of_one_environment_are_refused_for_that_contract_alone(registry):
    both = SERVERS.replace("dev", "prod")
    registry((OF_ONE, both), ("id: orders", "id: two"), ("name: orders", "name: twos"), name="two.odcs.yaml")

    done = registry((OF_ONE, SERVERS))("--env", "prod")

    assert done.code == 3
    assert "contract 'two' has 2 servers with 'environment: prod'." in done.err
    assert "Choose one in dq-policy.yaml: servers: {prod: {two: new}}." in done.err
    assert "orders.orders" in done.out


def test_a_map_of_servers_that_is_none_is_a_mistake_of_the_policy(registry, folder):
    (folder / "dq-policy.yaml").write_text("registry: shop\nservers: {prod: lake}\n")

    done = registry()("--env", "prod")

    assert (done.code, "servers of 'prod' must be a mapping from contracts to server names." in done.err) == (
        2,
        True,
    )


def test_a_server_and_an_environment_are_one_too_many(registry):
    assert registry()("--server", "lake", "--env", "prod").code == 2


def test_every_change_and_refusal_is_logged_and_nothing_else(registry):
    registry()("--apply")  # nothing to do
    plan = registry(("varchar(10)", "varchar(5)"))
    plan("--apply")
    plan("--apply", "--allow-breaking")

    lines = plan("--log", "10", "--format", "json").json

    assert [(one["kind"], one["impact"], one["outcome"]) for one in lines] == [
        ("create", "additive", "done"),
        ("update", "breaking", "refused"),
        ("update", "breaking", "done"),
    ]
    assert {one["table"] for one in lines} == {"orders.orders"}
    assert len({one["run"] for one in lines}) == 3
    assert [one["before"] for one in lines] == ["", "1", "1"]
    assert "--allow-breaking" in lines[1]["error"]
    assert len(plan("--log", "1").out.splitlines()) == 1


def test_a_plan_alone_logs_nothing(registry):
    plan = registry(NARROWED)
    plan()

    assert len(plan("--log", "10", "--format", "json").json) == 1


FIRST = "a:int b:string c:double"
# After the change, how `dq diff --mode FULL` calls it, per way of reading: by position, by name.
OPTIONAL, REQUIRED = "additive: column-added-optional", "additive: column-added-required"
LAYOUTS = [
    ("a:int new:int b:string c:double", ("breaking: column-added-middle", OPTIONAL)),
    ("b:string a:int c:double", ("breaking: column-reordered", "")),
    ("a:int b:string c:double new:int", (OPTIONAL, OPTIONAL)),
    ("a:int c:double", ("breaking: column-removed", "breaking: column-removed")),
    ("a:int b:string c:double new:int!", (REQUIRED, REQUIRED)),
]


def layout(columns, format):
    head = CONTRACT.replace("format: parquet", f"format: {format}").partition("      - {name: id")[0]
    pairs = [column.split(":") for column in columns.split()]
    return head + "".join(
        f"      - {{name: {name}, physicalType: {kind.rstrip('!')}, required: {json.dumps('!' in kind)}}}\n"
        for name, kind in pairs
    )


@pytest.mark.parametrize("format", ["orc", "csv", "parquet", "json", "avro"])
@pytest.mark.parametrize(("after", "expected"), LAYOUTS)
def test_columns_are_graded_by_the_way_their_format_is_read(dq, folder, format, after, expected):
    (folder / "orders.odcs.yaml").unlink()
    (folder / "dq-policy.yaml").write_text("registry: shop\n")
    file = folder / "t.odcs.yaml"
    file.write_text(layout(FIRST, format))
    assert dq("register", ".", "--apply").code == 0
    (folder / "before.yaml").write_text(layout(FIRST, format))
    file.write_text(layout(after, format))
    (folder / "after.yaml").write_text(layout(after, format))

    compared = dq("diff", "before.yaml", "after.yaml", "--mode", "FULL")
    (folder / "before.yaml").unlink()
    (folder / "after.yaml").unlink()
    done = dq("register", ".", "--apply")

    grade = expected[0 if format in ("orc", "csv") else 1]
    if grade:
        assert f"[{grade}" in done.out
        assert grade.partition(": ")[2] in compared.out
    assert done.code == (3 if grade.startswith("breaking") else 0)
    shown = [line for line in done.out.splitlines() if line.startswith("    ")]
    assert shown, "an update has a line that says what is updated"


def test_a_plan_shows_wide_tables_in_part(dq, folder):
    (folder / "orders.odcs.yaml").unlink()
    (folder / "dq-policy.yaml").write_text("registry: shop\n")
    fields = ",".join(f"field_{number}:int" for number in range(400))
    wide = CONTRACT + f'      - {{name: deep, physicalType: "struct<{fields}>"}}\n'
    wide += "".join(f"      - {{name: column_{number}, physicalType: int}}\n" for number in range(500))
    (folder / "t.odcs.yaml").write_text(wide)

    plan = dq("register", ".")

    assert len(plan.out.splitlines()) < 50
    assert max(map(len, plan.out.splitlines())) < 250
    assert "… and 465 more" in plan.out


def test_a_vector_and_a_number_of_another_engine_keep_their_values(dq, folder):
    (folder / "orders.odcs.yaml").unlink()
    (folder / "dq-policy.yaml").write_text("registry: shop\n")
    more = (
        "      - {name: embedding, logicalType: vector}\n"
        "      - {name: amount, logicalType: number, physicalType: 'NUMBER(10,2)'}\n"
    )
    (folder / "t.odcs.yaml").write_text(CONTRACT + more)

    plan = dq("register", ".").out

    assert "+ column embedding: array<float>" in plan
    assert "+ column amount: decimal(10,2)" in plan


def test_an_orphan_that_stays_is_no_change_that_was_tried(registry):
    plan = registry(("name: orders\n", "name: orders\n    physicalName: sales_orders\n"))
    plan("--apply")

    again = plan("--apply")

    assert "Applied 0 of 0 changes." in again.out
    assert (again.code, "--prune" in again.out) == (0, True)
    assert "Add --apply" not in plan().out


def test_runs_at_the_same_time_claim_each_change_once(registry, folder):
    names = [f"table_{number}" for number in range(12)]
    for name in names:
        registry(
            ("id: orders", f"id: {name}"), ("name: orders\n", f"name: {name}\n"), name=f"{name}.odcs.yaml"
        )
    command = [sys.executable, "-m", "dq", "register", ".", "--apply"]
    runs = [
        subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(5)
    ]
    outputs = [run.communicate(timeout=300)[0] for run in runs]

    claimed = [int(re.search(r"Applied (\d+) of", output)[1]) for output in outputs]
    assert (sum(claimed), [run.returncode for run in runs]) == (12, [0] * 5), outputs

"""The examples beside a pipeline: a project of dbt, and a notebook."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import polars
import pytest
from fakes import golden, notebook
from fakes.command import Place

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def shop(tmp_path: Path) -> Place:
    shutil.copytree(EXAMPLES / "dbt", tmp_path / "shop", ignore=shutil.ignore_patterns("target", "logs"))
    return Place(tmp_path / "shop")


def built(shop: Place, sql: str) -> None:
    """What the model's SQL makes of the seed. dbt itself is not asked: `make test-dbt` does that."""
    types = {"order_id": polars.Int64, "amount": polars.Decimal(12, 2), "placed_at": polars.Date}
    seed = polars.read_csv(shop.folder / "seeds/raw_orders.csv", schema_overrides=types)
    plain = re.sub(r"\{\{ ref\('(\w+)'\) \}\}", r"\1", re.sub(r"\{\{ config\(.*\) \}\}", "", sql))
    (shop.folder / "target").mkdir()
    polars.SQLContext(raw_orders=seed).execute(plain).collect().write_parquet(
        shop.folder / "target/orders.parquet"
    )


def test_the_contract_beside_dbt_says_what_the_models_say(shop: Place) -> None:
    told = shop.dq("import", "dbt", "models/schema.yml", "--output", "contracts/shop.odcs.yaml")
    judged = shop.dq("validate", "contracts")

    assert (told.code, "matches its source" in told.out) == (0, True), told.out
    assert (judged.code, judged.out.strip()) == (0, "1 contract, no findings.")


def test_a_column_that_the_models_gain_is_a_difference(shop: Place) -> None:
    models = shop.folder / "models/schema.yml"
    models.write_text(f"{models.read_text()}      - {{name: channel, data_type: varchar}}\n")

    told = shop.dq("import", "dbt", "models/schema.yml", "--output", "contracts/shop.odcs.yaml")

    assert (told.code, "+ orders.channel" in told.out) == (1, True), told.out


def test_what_the_model_makes_keeps_the_contract(shop: Place) -> None:
    built(shop, (shop.folder / "models/orders.sql").read_text())

    ran = shop.dq("sample", "contracts/shop.odcs.yaml", "target/orders.parquet")

    assert ran.code == 0, ran.out


def test_what_a_worse_model_makes_breaks_it(shop: Place) -> None:
    built(shop, (shop.folder / "models/orders.sql").read_text().replace("where state <> 'lost'", ""))

    ran = shop.dq("sample", "contracts/shop.odcs.yaml", "target/orders.parquet")

    assert ran.code == 1
    assert {"sample-required", "sample-enum"} <= set(re.findall(r"error (\S+):", ran.out))


@pytest.mark.spark
def test_the_notebook_shows_what_its_cells_give(
    spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = EXAMPLES / "notebook" / "first-look.ipynb"
    kept = json.loads(file.read_text())
    monkeypatch.chdir(tmp_path)

    given = notebook.run(kept)

    if golden.WRITES:
        file.write_text(json.dumps(given, indent=1, ensure_ascii=False) + "\n")
        kept = given
    assert given["cells"] == kept["cells"]

"""Ask every command about the same tables, in one process and one Spark session, and gather their claims."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import yaml
from _agree_claims import (
    HIVE_NULL,
    NOT_READABLE,
    SAMPLE,
    WRONG_TYPE,
    Claims,
    from_backtest,
    from_check,
    from_propose,
    from_repair,
    from_results,
    from_tables,
    partition_of,
)
from _agree_types import RandomTable
from fakes.command import Place, Ran

from dq.contracts.types import row_type
from dq.contracts.yaml.parse import parse
from dq.dataquality.spark.session import spark_errors
from dq.lake.storage import is_data_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = ("parquet", "csv", "json")
_UNREACHED = 1_000_000_000
# How many values of a text file have the type: another number for each file.
_COUNTED = re.compile(r"\d+ of \d+ values")


class Crashed(Exception):
    """A command ended with exit code 70, a bug of dq; the text ends with its traceback."""


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """A table in `lake/NAME`: who wrote it, what odd things lie there, and how its contract is made."""

    name: str
    seed: int
    writer: str
    format: str
    table: RandomTable
    listing: tuple[str, ...]
    as_written: bool
    wrong_types: bool

    def path(self, place: Place) -> str:
        """Its folder, absolute: the JVM of the session stays in the folder that it began in."""
        return str(place.folder / "lake" / self.name)


def ask(place: Place, spark: SparkSession, tables: Iterable[WrittenTable]) -> Claims:
    """Claims of every command about these tables."""
    claims = Claims()
    readable = []
    for written in tables:
        columns = _spark_itself(claims, spark, place, written)
        try:
            if _contract(claims, place, written, columns):
                readable.append(written)
        except Crashed as crash:
            claims.crash(written.name, str(crash))
    if not readable:
        return claims
    promised = {
        written.name: [column["name"] for column in _document(place, written)["schema"][0]["properties"]]
        for written in readable
    }
    for turn in ("tables", "tables again"):
        from_tables(claims, turn, _json(place, "tables", "r"), promised)
    from_check(claims, "check", _json(place, "check", "r", "--all"))
    _status(claims, place, "status")
    from_check(claims, "check --scan", _json(place, "check", "r", "--all", "--scan"))
    _status(claims, place, "status after the scan")
    _portal(claims, place, readable)
    from_backtest(claims, "backtest", _json(place, "backtest", "r"))
    _repair(claims, place, readable)
    for written in readable:
        for part in (_propose, _partition, _samples):
            try:
                part(claims, place, written)
            except Crashed as crash:
                claims.crash(written.name, str(crash))
    return claims


def _ran(place: Place, *arguments: str) -> Ran:
    ran = place.dq(*arguments)
    if ran.code == 70:
        raise Crashed(f"dq {' '.join(arguments)}: {ran.err[-3_000:]}")
    return ran


def _json(place: Place, *arguments: str) -> Any:
    ran = _ran(place, *arguments, "--format", "json")
    return json.loads(ran.out) if ran.out.strip() else []


def _spark_itself(claims: Claims, spark: SparkSession, place: Place, written: WrittenTable) -> dict[str, str]:
    """Claim what Spark reads at the path without dq, and return its columns with their types."""
    from pyspark.sql import functions as sql

    name, root = written.name, written.path(place)
    if written.as_written:
        claims.add(name, "rows", "the writer", written.table.rows)
    try:
        reader = spark.read.format(written.format).option("header", "true")
        frame = reader.load(root)
        rows = frame.select(sql.lit(1)).count() if frame.columns else 0
        listed = frame.inputFiles() if written.format in FILES else []
        # Spark lists summaries of footers, and reads no row of them.
        files = [file for file in listed if not file.rpartition("/")[2].startswith("_")]
    except spark_errors() as error:
        claims.refusals[name]["Spark"] = str(error).splitlines()[0][:200]
        return {}
    claims.add(name, "rows", "Spark", rows)
    if written.format in FILES:
        if written.table.keys:
            base = f"file://{root}"
            # Addresses escape once more what the names of folders escape.
            names = [partition_of(unquote(file), base) for file in files]
            # Spark lists a file next to the folders of partitions, and reads no row of it.
            inside = [partition for partition in names if partition]
            claims.add(name, "partitions", "Spark", sorted(set(inside)))
            files = inside or files
        claims.add(name, "files", "Spark", len(files))
    columns = {
        field.name: field.dataType.simpleString()
        for field in frame.schema.fields
        if not field.name.startswith("_hoodie")
    }
    keys = {key.lower() for key in written.table.keys}
    if written.format not in ("csv", "json"):
        for column, kind in columns.items():
            if column.lower() not in keys:
                claims.add(name, f"type of {column}", "Spark", kind)
    return columns


def _document(place: Place, written: WrittenTable) -> Any:
    return yaml.safe_load((place.folder / "r" / f"{written.name}.odcs.yaml").read_text())


def _contract(claims: Claims, place: Place, written: WrittenTable, columns: dict[str, str]) -> bool:
    """The contract that `dq import` writes, with rules that are never kept, so that each tells its number.

    Where it refuses, the contract has the columns that Spark reads.
    """
    file = place.folder / "r" / f"{written.name}.odcs.yaml"
    path = written.path(place)
    imported = _ran(place, "import", written.format, path, "-o", str(file), "--id", written.name)
    if file.exists():
        _imported(claims, written, file)
    else:
        claims.refusals[written.name]["import"] = imported.err.strip().splitlines()[0][:200]
        if not columns or written.format in ("csv", "json"):
            return False
        file.write_text(_head(written, path, columns), "utf-8")
    text = file.read_text("utf-8")
    document = yaml.safe_load(text)
    document["status"] = "active"
    schema_object = document["schema"][0]
    schema_object["name"] = written.name
    schema_object["quality"] = [{"metric": "rowCount", "mustBeGreaterThan": _UNREACHED}]
    for column in schema_object["properties"]:
        if column.get("partitioned"):
            continue
        if written.wrong_types:
            named = {"name": column["name"], "logicalType": "array", "physicalType": WRONG_TYPE}
            column.clear()
            column.update(named)
        column["quality"] = [{"metric": "nullValues", "mustBeGreaterThan": _UNREACHED}]
    file.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    return True


def _imported(claims: Claims, written: WrittenTable, file: Path) -> None:
    """Columns and types of the contract that `dq import` wrote."""
    text = file.read_text("utf-8")
    contract = parse(text.encode(), str(file)).contract
    assert contract is not None
    kind = row_type(contract.objects[0])
    unreadable = set(re.findall(r"- name: (\S+)\n\s+# [^\n]*Spark cannot read", text))
    for column, part in zip(kind.names, kind.parts, strict=True):
        # What types the values of texts have is for the contract to say.
        if written.format not in ("csv", "json") or column in written.table.keys:
            value = NOT_READABLE if column in unreadable else str(part)
            claims.add(written.name, f"type of {column}", "import", value)


def _head(written: WrittenTable, path: str, columns: dict[str, str]) -> str:
    keys = [key.lower() for key in written.table.keys]
    properties: list[dict[str, object]] = []
    for name, kind in columns.items():
        column: dict[str, object] = {"name": name, "physicalType": kind}
        if name.lower() in keys:
            # As numbers, 7 and 007 would be one partition in two folders.
            kind = "string" if kind == "int" else kind
            column |= {
                "physicalType": kind,
                "partitioned": True,
                "partitionKeyPosition": keys.index(name.lower()) + 1,
            }
        properties.append(column)
    document = {
        "apiVersion": "v3.2.0",
        "kind": "DataContract",
        "id": written.name,
        "version": "0.1.0",
        "servers": [{"server": "lake", "type": "local", "path": path, "format": written.format}],
        "schema": [{"name": written.name, "properties": properties}],
    }
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def _status(claims: Claims, place: Place, command: str) -> None:
    for check in _json(place, "status", "r")["checks"]:
        if check["scope"] == "table":
            from_results(claims, check["object"], command, [check])


def _portal(claims: Claims, place: Place, tables: Iterable[WrittenTable]) -> None:
    _ran(place, "portal", "build", "site", "r")
    for written in tables:
        folder = place.folder / "site" / "products" / f"{written.name}@0"
        checks = json.loads((folder / "status.json").read_text())["checks"]
        from_results(
            claims, written.name, "portal", [result for result in checks if result["scope"] == "table"]
        )


def _repair(claims: Claims, place: Place, tables: Iterable[WrittenTable]) -> None:
    _ran(place, "register", "r", "--apply")
    from_repair(
        claims, "repair", _json(place, "repair", "r"), {table.name: table.path(place) for table in tables}
    )


def _propose(claims: Claims, place: Place, written: WrittenTable) -> None:
    ran = _ran(place, "propose", f"r/{written.name}.odcs.yaml", "--format", "json")
    if ran.code == 0:
        from_propose(claims, "propose", written.name, json.loads(ran.out))
    else:
        reason = ran.err.strip().splitlines()[-2][:300]
        if "its rows cannot be read" in reason:
            # It opened the table; a check without rules on rows reads none.
            claims.refusals[written.name]["propose"] = reason
        else:
            claims.refuse(written.name, "propose", reason)


def _partition(claims: Claims, place: Place, written: WrittenTable) -> None:
    facts = claims.by_table[written.name]
    names = facts.get("partitions", {}).get("backtest")
    plain = [name for name in yaml.safe_load(names or "[]") if HIVE_NULL not in name and name.count("/") < 2]
    if not plain:
        return
    chosen = random.Random(written.seed).choice(plain)
    # A slash in a value would read as the next part of the partition's name.
    if chosen.count("=") != len(written.table.keys) or chosen.count("/") != len(written.table.keys) - 1:
        return
    reports = _json(place, "check", f"r/{written.name}.odcs.yaml", "--partition", chosen)
    from_check(claims, "check --partition", reports, f" of partition {chosen}")


def _samples(claims: Claims, place: Place, written: WrittenTable) -> None:
    """Each file alone, as far as Spark reads them; their numbers add up to the table's."""
    if written.format not in FILES:
        return
    root = Path(written.path(place))
    files = [file for file in sorted(root.rglob(f"*.{written.format}")) if file.is_file()]
    shown = [file for file in files if is_data_path(str(file.relative_to(root)))]
    nulls: Counter[str] = Counter()
    for file in shown:
        ran = _ran(
            place, "sample", f"r/{written.name}.odcs.yaml", f"{file}={written.name}", "--format", "json"
        )
        if not ran.out.strip():
            claims.refusals[written.name]["sample"] = ran.err.strip().splitlines()[0][:200]
            return
        own_claims = Claims()
        from_check(own_claims, "sample", json.loads(ran.out))
        for fact, values in own_claims.by_table[written.name].items():
            value = values.get("sample")
            if value is None:
                continue
            if fact.startswith("nulls of "):
                nulls[fact] += int(value)
            elif fact.startswith(("type of ", "verdict on ")) and not _COUNTED.match(value):
                claims.add(written.name, fact, f"{SAMPLE} of {file.relative_to(root)}", value)
    if len(shown) == int(claims.by_table[written.name]["files"].get("Spark", -1)):
        for fact, number in nulls.items():
            claims.add(written.name, fact, "sample", number)

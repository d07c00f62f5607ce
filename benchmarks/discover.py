"""Discovery of 5,000 tables on disk, in S3 and in Glue: nothing missed, nothing twice, copies with evidence.

The lake has every format and layout, tables inside of each other's folders, hostile names, tables that cannot
be read, copies, families of tables with the same columns and other rows, and contracts for some. The first
look reads metadata; the second one, which is timed, only lists. Then branches with drafts are opened: each
has to validate, and its rules have to hold on the data.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3
from _lake_tables import DOMAINS, TruthTable, columns_of, write_lake
from _moto import fill, moto
from _report import arguments, finish
from fakes.drift_pairs import pairs, shown

import dq
from dq.operations.discover import DiscoveredTable, DiscoverOutcome

# Tables on disk and in S3; copies and broken ones of both; contracts.
FULL = {"disk": 4_400, "bucket": 600, "copies": 200, "broken": 30, "contracts": 187, "branches": 100}
QUICK = {"disk": 400, "bucket": 100, "copies": 20, "broken": 12, "contracts": 20, "branches": 3}
# JSON and CSV files, each with a contract of other values.
PAIRS = 200
BUCKET = "s3://lake/data"
_PARQUET = {
    "InputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    "SerdeInfo": {"SerializationLibrary": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"},
}
_LOGICAL = {
    "bigint": "integer", "int": "integer", "double": "number", "string": "string", "date": "date",
    "boolean": "boolean",
}  # fmt: skip


def main() -> int:
    args = arguments(__doc__ or "", branches="open so many branches")
    sizes = {**(QUICK if args.quick else FULL)}
    sizes["branches"] = args.branches or sizes["branches"]
    chance = random.Random(20)
    with tempfile.TemporaryDirectory() as place, moto() as url:
        folder = Path(place)
        os.chdir(folder)
        os.environ["DQ_LAKE_ROOTS"] = f"{folder},{BUCKET}"
        begun = time.monotonic()
        truth = _write(folder, url, sizes)
        contracts = _write_contracts(folder / "registry", truth, sizes["contracts"], chance)
        _note(f"wrote {len(truth):,} tables in {time.monotonic() - begun:,.0f} s")
        sources = ["lake", BUCKET, "glue://"]
        first, first_seconds = _look(sources)
        second, second_seconds = _look(sources)
        branches = _branches(folder / "registry", sizes["branches"])
        wrong_pairs = _wrong_drift(folder / "pairs", PAIRS)
    if first.as_dict() != second.as_dict():
        _note("the second look says something else than the first one")
    metrics = {
        "tables": float(len(truth)),
        "first look, s": first_seconds,
        "second look, s": second_seconds,
        "later look / limit of 60 s at most": second_seconds / 60,
        "looks that differ": float(first.as_dict() != second.as_dict()),
        **_verdicts(second, truth, contracts),
        **branches,
        "drift pairs": float(PAIRS),
        "drift pairs wrong": float(wrong_pairs),
    }
    goals = {
        "later look / limit of 60 s at most": ("<", 1.0),
        "looks that differ": ("<", 1.0),
        "missed": ("<", 1.0),
        "listed twice": ("<", 1.0),
        "listed and no table": ("<", 1.0),
        "wrong format": ("<", 1.0),
        "broken and not told": ("<", 1.0),
        "told broken and not": ("<", 1.0),
        "wrong contract": ("<", 1.0),
        "copies found, share": (">", 0.9499),
        "false copies, share": ("<", 0.0201),
        "drift pairs wrong": ("<", 1.0),
        "branches opened": (">", sizes["branches"] - 0.5),
        "branches not valid": ("<", 1.0),
        "branches whose rules fail": ("<", 1.0),
        "branches opened again or changed": ("<", 1.0),
    }
    return finish(metrics, goals, args)


def _look(sources: Sequence[str]) -> tuple[DiscoverOutcome, float]:
    begun = time.monotonic()
    outcome = dq.discover(sources, registry="registry")
    seconds = time.monotonic() - begun
    _note(f"{len(outcome.tables):,} tables in {seconds:,.1f} s; errors: {list(outcome.errors)[:3]}")
    return outcome, seconds


def _branches(registry: Path, count: int) -> dict[str, float]:
    """Open branches for tables on disk, validate and check their files, and open them again."""
    (registry / "dq-policy.yaml").write_text("profile: default\n")
    (registry / "CODEOWNERS").write_text("* @acme/data\n")
    _git(registry, "init", "-q", "-b", "main")
    for name, text in (("user.name", "Dee"), ("user.email", "dee@example.com")):
        _git(registry, "config", name, text)
    _git(registry, "add", "-A")
    _git(registry, "commit", "-qm", "start")
    begun = time.monotonic()
    outcome = dq.discover("lake", registry="registry", open_branches=True, limit=count)
    for text in outcome.notes[:5]:
        _note(text)
    open_seconds = time.monotonic() - begun
    drafts = registry.parent / "drafts"
    _git(registry.parent, "clone", "-q", str(registry), str(drafts))
    for draft in outcome.branches:
        _git(drafts, "checkout", f"origin/{draft.branch.name}", "--", *draft.files)
    files = [drafts / file for draft in outcome.branches for file in draft.files]
    rules = sum(file.read_text().count("  # ") for file in files)
    invalid = {finding.at.file for finding in dq.validate(files) if finding.severity.blocks}
    begun = time.monotonic()
    checked = dq.check_contracts(files)
    check_seconds = time.monotonic() - begun
    failing = {
        result["contract"]
        for result in checked.as_list()
        if result["error"] or any(clause["status"] not in ("pass", "skipped") for clause in result["results"])
    }
    _show("not valid", invalid)
    _show("rules fail", failing)
    begun = time.monotonic()
    repeated = dq.discover("lake", registry="registry", open_branches=True, limit=count)
    return {
        "open branches, s": open_seconds,
        "check their rules, s": check_seconds,
        "open them again, s": time.monotonic() - begun,
        "branches opened": float(sum(draft.branch.state == "opened" for draft in outcome.branches)),
        "rules in them": float(rules),
        "branches not valid": float(len(invalid)),
        "branches whose rules fail": float(len(failing)),
        "branches opened again or changed": float(
            sum(draft.branch.state != "unchanged" for draft in repeated.branches)
        ),
    }


def _wrong_drift(folder: Path, count: int) -> int:
    """Import the first file of each pair, replace it by the second one; return how many drifts are wrong."""
    written = list(pairs(seed=1, count=count))
    (folder / "registry").mkdir(parents=True)
    for number, pair in enumerate(written):
        file = folder / f"lake/t{number}/a.{pair.kind}"
        file.parent.mkdir(parents=True)
        file.write_text(pair.before)
        text = dq.import_(pair.kind, file.parent).text
        (folder / f"registry/t{number}.odcs.yaml").write_text(text)
        file.write_text(pair.after)
    outcome = dq.discover(folder / "lake", registry=folder / "registry")
    drift = {Path(table.location).name: shown(table.drift) for table in outcome.tables}
    wrong = {
        number
        for number, pair in enumerate(written)
        if {(sign, path.lower()) for sign, path in drift.get(f"t{number}", ())} != pair.expected
    }
    _show("wrong drift", wrong)
    return len(wrong)


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, stdout=subprocess.DEVNULL)


def _write(folder: Path, url: str, sizes: Mapping[str, int]) -> dict[str, TruthTable]:
    """Write the lake on disk and the bucket; return all tables by location."""
    share = sizes["bucket"] / (sizes["disk"] + sizes["bucket"])
    in_bucket = {name: round(sizes[name] * share) for name in ("copies", "broken")}
    on_disk = {name: sizes[name] - in_bucket[name] for name in in_bucket}
    local = write_lake(folder / "lake", sizes["disk"], on_disk["copies"], on_disk["broken"], seed=1)
    remote = write_lake(
        folder / "bucket", sizes["bucket"], in_bucket["copies"], in_bucket["broken"], seed=2, hostile=False
    )
    boto3.client("s3").create_bucket(Bucket="lake")
    fill(url, folder / "bucket", "lake", "data")
    _write_catalog([table for table in remote if table.form == "parquet" and not table.broken][::2])
    tables = {f"lake/{table.path}": table for table in local}
    return tables | {f"{BUCKET}/{table.path}": table for table in remote}


def _write_catalog(tables: Sequence[TruthTable]) -> None:
    """Create tables of Glue at some of the locations."""
    glue = boto3.client("glue")
    for domain in DOMAINS:
        glue.create_database(DatabaseInput={"Name": domain})
    for number, table in enumerate(tables):
        columns = [{"Name": name, "Type": kind} for name, kind in columns_of(table.rows)]
        storage: dict[str, Any] = {"Columns": columns, "Location": f"{BUCKET}/{table.path}/", **_PARQUET}
        glue.create_table(
            DatabaseName=DOMAINS[number % len(DOMAINS)],
            TableInput={
                "Name": f"t{number}",
                "TableType": "EXTERNAL_TABLE",
                "StorageDescriptor": storage,
                "Parameters": {"owner": f"team-{number % 9}", "classification": "parquet"},
            },
        )


def _write_contracts(
    registry: Path, truth: Mapping[str, TruthTable], count: int, chance: random.Random
) -> dict[str, str]:
    """Write contracts for some of the tables; return their ids by location."""
    registry.mkdir()
    plain = [
        location
        for location, table in truth.items()
        if not table.broken and table.form != "orc" and re.fullmatch(r"[\w/]+", table.path, re.ASCII)
    ]
    contracts: dict[str, str] = {}
    for number, location in enumerate(chance.sample(plain, count)):
        table = truth[location]
        server = {"server": "lake", "type": "local", "path": location, "format": table.form}
        if location.startswith("s3:"):
            server = {"server": "lake", "type": "s3", "location": location, "format": table.form}
        properties = [
            {"name": name, "logicalType": _LOGICAL[kind], "physicalType": kind}
            for name, kind in columns_of(table.rows)
        ]
        contract = {
            "apiVersion": "v3.2.0",
            "kind": "DataContract",
            "id": f"contract_{number}",
            "version": "1.0.0",
            "status": "active",
            "domain": DOMAINS[number % len(DOMAINS)],
            "servers": [server],
            "schema": [{"name": f"table_{number}", "properties": properties}],
        }
        (registry / f"contract_{number}.odcs.yaml").write_text(json.dumps(contract))
        contracts[location] = f"contract_{number}"
    return contracts


def _verdicts(
    outcome: DiscoverOutcome, truth: Mapping[str, TruthTable], contracts: Mapping[str, str]
) -> dict[str, float]:
    counts = Counter(table.location for table in outcome.tables)
    tables = {table.location: table for table in outcome.tables}
    by_title = {table.title: table.location for table in outcome.tables}
    missed = truth.keys() - tables.keys()
    extra = tables.keys() - truth.keys()
    both = truth.keys() & tables.keys()
    _show("missed", missed)
    _show("no table", extra)
    forms = {name for name in both if not truth[name].broken and tables[name].format != truth[name].form}
    _show("wrong format", forms)
    untold = {name for name in both if truth[name].broken and not tables[name].problem}
    _show("broken and not told", untold)
    reported = {name for name in both if tables[name].problem and not truth[name].broken}
    _show("told broken", {f"{name}: {tables[name].problem}" for name in reported})
    wrong = {name for name in both if _contract(tables[name]) != contracts.get(name)}
    _show("wrong contract", wrong)
    planted = {
        (location, location[: -len(table.path)] + table.copy_of)
        for location, table in truth.items()
        if table.copy_of
    }
    recognized = {
        (table.location, by_title[table.copy.of]) for table in outcome.tables if table.copy is not None
    }
    # Of two alike, the one with a contract is the original; of three, one is the original of both.
    groups = _groups(planted)
    false = {pair for pair in recognized if groups.get(pair[0], pair[0]) != groups.get(pair[1], pair[1])}
    hit = {pair for pair in planted if {*pair} & {location for location, _ in recognized - false}}
    _show("copies not found", planted - hit)
    _show("false copies", false)
    return {
        "missed": float(len(missed)),
        "listed twice": float(sum(count - 1 for count in counts.values())),
        "listed and no table": float(len(extra)),
        "wrong format": float(len(forms)),
        "broken": float(sum(table.broken for table in truth.values())),
        "broken and not told": float(len(untold)),
        "told broken and not": float(len(reported)),
        "contracts": float(len(contracts)),
        "wrong contract": float(len(wrong)),
        "copies": float(len(planted)),
        "copies found, share": len(hit) / len(planted),
        "false copies, share": len(false) / max(1, len(recognized)),
    }


def _contract(table: DiscoveredTable) -> str | None:
    return table.contracted.contract.id if table.contracted else None


def _groups(pairs: set[tuple[str, str]]) -> dict[str, str]:
    """The original of each table that is a copy, or has one."""
    groups = {original: original for _, original in pairs}
    for copy, original in sorted(pairs):
        groups[copy] = groups[original]
    return groups


def _show(title: str, names: set[Any]) -> None:
    if names:
        _note(f"{title}: {sorted(map(str, names))[:5]}")


def _note(text: str) -> None:
    print(f"  {text}".encode("utf-8", "backslashreplace").decode(), file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

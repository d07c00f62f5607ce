"""Jobs that write the same tables on two platforms, and the checks that compare them each day."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from fakes.command import Place
from jsonschema import Draft202012Validator

from dq.operations.output_schemas import json_schema

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: {name}
version: 1.0.0
status: active
servers:
  - {{server: emr, type: local, path: "{root}/emr/{name}", format: parquet}}
  - {{server: serverless, type: local, path: "{root}/serverless/{name}", format: parquet}}
schema:
  - name: {name}
    properties:
      - {{name: day, logicalType: date, partitioned: true}}
      - {{name: id, logicalType: integer, physicalType: bigint}}
      - {{name: amount, logicalType: number, physicalType: double}}
    quality:
      - name: same on serverless
        type: custom
        engine: dq
        implementation:
          check: agrees
          arguments: {{with: {{server: serverless}}, key: [id], cycles: {cycles}}}
"""


class Migration:
    """A registry of jobs that write the same tables on two platforms."""

    def __init__(self, folder: Path, jobs: Collection[str], cycles: int) -> None:
        self.place, self.jobs = Place(folder), jobs
        for name in jobs:
            self.put_contract(name, cycles=cycles)

    def put_contract(self, name: str, *, cycles: int, **parts: str) -> None:
        text = CONTRACT.format(name=name, root=self.place.folder, cycles=cycles)
        for old, new in parts.items():
            assert old in text
            text = text.replace(old, new)
        self.place.put(f"registry/{name}.odcs.yaml", text)

    def deliver(self, day: int, wrong: Collection[str] = ()) -> None:
        """Write a day of all jobs; one amount of those that are wrong is another one on the new platform."""
        for name in self.jobs:
            self.write("emr", name, day, 7.0)
            self.write("serverless", name, day, 8.0 if name in wrong else 7.0)

    def write(self, server: str, name: str, day: int, amount: float) -> None:
        folder = self.place.folder / server / name / f"day=2026-11-{day:02}"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [1, 2, 3], "amount": [1.5, amount, None]}), folder / "part-0.parquet")

    def check(self, day: int, *options: str, server: str = "emr") -> dict[str, tuple[str, str]]:
        """Status and message of the rule of each job."""
        partition = f"day=2026-11-{day:02}"
        ran = self.place.dq(
            "check", "registry", "--server", server, "--partition", partition, "--format", "json", *options
        )
        assert list(Draft202012Validator(json_schema("check")).iter_errors(ran.json)) == []
        results = {
            report["object"]: result
            for report in ran.json
            for result in report["results"]
            if result["check"] == "agrees"
        }
        assert ran.code == int(any(result["status"] == "fail" for result in results.values())), ran.all
        return {name: (result["status"], result["message"]) for name, result in results.items()}

    def incidents(self) -> dict[str, list[dict[str, object]]]:
        found: dict[str, list[dict[str, object]]] = {}
        for incident in self.place.dq("incidents", "--all", "--format", "json").json["incidents"]:
            found.setdefault(str(incident["object"]), []).append(incident)
        return found

    def agreements(self) -> dict[str, tuple[int, bool, object]]:
        ran = self.place.dq("status", "registry", "--format", "json")
        assert list(Draft202012Validator(json_schema("status")).iter_errors(ran.json)) == []
        return {
            row["object"]: (row["cycles"], row["complete"], row["disagreement"])
            for row in ran.json["agreements"]
        }

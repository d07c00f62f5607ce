"""Claims of each command about a table, as values that can be compared."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

Json = Any
# The types that a contract promises where each of them shall be wrong.
WRONG_TYPE = "array<array<boolean>>"
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
NOT_READABLE = "not readable"
SAMPLE = "sample"


# What a result of a check on a column says where it has no type to tell.
_NOTHING = ("missing", "no holder", "not measured")


class Claims:
    """Claims by table, fact and command, and what a command refused to tell of a table."""

    def __init__(self) -> None:
        self.by_table: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
        self.refusals: dict[str, dict[str, str]] = defaultdict(dict)

    def add(self, table: str, fact: str, command: str, value: object) -> None:
        self.by_table[table][fact][command] = str(value)

    def refuse(self, table: str, command: str, reason: str) -> None:
        self.refusals[table][command] = reason
        self.add(table, "opened", command, "no")

    def crash(self, table: str, text: str) -> None:
        """Note a command that ended with a bug of dq."""
        self.add(table, "crash", "dq", text)
        self.add(table, "crash", "a command", "none")

    def count(self) -> Counter[str]:
        """Claims by command; the samples of all files count as one command."""
        return Counter(
            SAMPLE if command.startswith(f"{SAMPLE} of ") else command
            for facts in self.by_table.values()
            for values in facts.values()
            for command in values
        )

    def compared(self) -> int:
        """Claims that another command's claim stands against."""
        return sum(
            len(values) for facts in self.by_table.values() for values in facts.values() if len(values) > 1
        )

    def differences(self) -> Iterable[tuple[str, str, Mapping[str, str]]]:
        """The table, the fact and what each command claims, where they are not all the same."""
        for table, facts in self.by_table.items():
            for fact, values in facts.items():
                if len(set(values.values())) > 1:
                    yield table, fact, values


def from_results(claims: Claims, table: str, command: str, results: Iterable[Json], scope: str = "") -> None:
    """The claims of a check's results, `scope` being the partition they are of."""
    for result in results:
        if (result.get("measure") or result).get("observed") == "not measured":
            continue
        target = result.get("target") or {"property": result.get("property") or None}
        measure = result.get("measure") or {"value": None, "observed": result.get("observed")}
        name, value = target["property"], measure["value"]
        if value is None and result["check"] in ("row_count", "null_values"):
            value = _number(measure["observed"])
        if result["check"] == "row_count" and result["status"] != "error":
            claims.add(table, f"rows{scope}", command, int(value))
        elif result["check"] == "null_values" and result["status"] in ("pass", "fail"):
            if value is not None:
                claims.add(table, f"nulls of {name}{scope}", command, int(value))
        elif result["check"] == "columns" and not scope:
            claims.add(table, f"verdict on the type of {name}", command, result["status"])
            if measure["observed"] not in _NOTHING:
                claims.add(table, f"type of {name}", command, measure["observed"])
        elif result["check"] == "additional_columns" and not scope:
            claims.add(table, "additional columns", command, measure["observed"])


def _number(text: object) -> int | None:
    match = re.match(r"-?[\d,]+", str(text))
    return int(match[0].replace(",", "")) if match else None


def from_check(claims: Claims, command: str, reports: Iterable[Json], scope: str = "") -> None:
    for report in reports:
        table = report["contract"]
        if table is None:
            continue
        if report.get("error"):
            if not scope:
                claims.refuse(table, command, str(report["error"]))
            continue
        if not scope:
            claims.add(table, "opened", command, "yes")
        from_results(claims, table, command, report["results"], scope)
        if report.get("rows") is not None:
            claims.add(table, f"rows{scope}", f"{command} (rows)", report["rows"])


def from_tables(
    claims: Claims, command: str, looks: Iterable[Json], columns: Mapping[str, list[str]]
) -> None:
    for look in looks:
        table = look["object"]
        if look["problem"]:
            claims.refusals[table][command] = look["problem"]
            continue
        claims.add(table, "files", command, look["files"])
        if look["rows"] is not None:
            claims.add(table, "rows", command, look["rows"])
        for name, number in look["nulls"].items():
            if number is not None:
                claims.add(table, f"nulls of {name}", command, number)
        if look["state"] in ("matching", "mismatching"):
            broken = {text.partition(": ")[0].partition(".")[2] for text in look["mismatches"]}
            for name in columns[table]:
                verdict = "fail" if name in broken else "pass"
                claims.add(table, f"verdict on the type of {name}", command, verdict)
            for text in look["mismatches"]:
                name = text.partition(": ")[0].partition(".")[2]
                if match := re.search(r": type is (.*); allowed", text):
                    claims.add(table, f"type of {name}", command, match[1])


def from_backtest(claims: Claims, command: str, reports: Iterable[Json]) -> None:
    for report in reports:
        table = report["contract"]
        if report["error"]:
            # A table without partitions has no history to be tested, whatever is in it.
            if "has no partitions" not in report["error"]:
                claims.refuse(table, command, str(report["error"]))
            continue
        observed = {result["observed"] for rule in report["rules"] for result in rule["untested"]}
        if report["unreadable"] or "not measured" in observed:
            claims.refusals[table][command] = str(report["unreadable"])[:300]
            continue
        claims.add(table, "opened", command, "yes")
        names = [partition_name(partition) for partition in report["partitions"]]
        if report["partitions"]:
            claims.add(table, "partitions", command, sorted(names))
        nulls: Counter[str] = Counter()
        rows = 0
        complete: set[str] = set()
        for rule in report["rules"]:
            results = [*rule["failed"], *rule["untested"]]
            for result in results:
                name = partition_name(result["partition"])
                scope = f" of partition {name}" if name else ""
                if rule["check"] == "row_count" and result["value"] is not None:
                    claims.add(table, f"rows{scope}", command, int(result["value"]))
                    rows += int(result["value"])
                elif rule["check"] == "null_values" and result["value"] is not None:
                    claims.add(table, f"nulls of {rule['property']}{scope}", command, int(result["value"]))
                    nulls[rule["property"]] += int(result["value"])
                    complete.add(rule["property"])
                elif rule["check"] == "columns" and result["observed"] not in _NOTHING:
                    claims.add(table, f"type of {rule['property']}", command, result["observed"])
            if rule["check"] == "columns":
                for status in ("pass", "fail", "error"):
                    if rule["counts"][status] == rule["total"] and rule["total"]:
                        claims.add(table, f"verdict on the type of {rule['property']}", command, status)
        if names and names != [""]:
            claims.add(table, "rows", command, rows)
            for name in complete:
                claims.add(table, f"nulls of {name}", command, nulls[name])


def partition_name(values: Mapping[str, str | None] | None) -> str:
    """A partition as it is written on a command line, with its values as they are."""
    return "/".join(f"{key}={HIVE_NULL if value is None else value}" for key, value in (values or {}).items())


def partition_of(path: str, root: str) -> str:
    """The same from the folders of a file below the root of its table."""
    steps = path.removeprefix(root).strip("/").split("/")[:-1]
    pairs = [step.partition("=") for step in steps if "=" in step]
    return "/".join(f"{unquote(key)}={unquote(value)}" for key, _, value in pairs)


def from_repair(claims: Claims, command: str, tables: Iterable[Json], roots: Mapping[str, str]) -> None:
    for repaired in tables:
        table = repaired["table"].rpartition(".")[2]
        # A partition of NULL is one to a reader, and none that a catalog can be told.
        if any(strange["reason"].endswith("is NULL") for strange in repaired["unrecognized"]):
            continue
        folders = repaired["missing"]
        names = [partition_of(f"{folder}/file", roots[table]) for folder in folders]
        claims.add(table, "partitions", command, sorted(names))


def from_propose(claims: Claims, command: str, table: str, proposed: Iterable[Json]) -> None:
    for proposal in proposed:
        claims.add(table, "opened", command, "yes")
        claims.add(table, "rows", command, proposal["rows"])
        if proposal["present"]:
            claims.add(table, "number of partitions", command, proposal["present"])
        for name in proposal["empty"]:
            claims.add(table, f"empty column {name}", command, "yes")

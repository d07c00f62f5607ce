"""The layout of a catalog's partitions, from their values and their folders below the table."""

from __future__ import annotations

import pytest

from dq.registry.importing.sources import layout_of_partitions

HOURS = [
    {"tenant": tenant, "hour": f"2026-11-20 {hour}:00:00"} for tenant in ("a", "b c") for hour in ("03", "17")
]
# The partitions, and the folder of each by its values and the parts of its time.
CASES = {
    "a template": (HOURS, "{tenant}/2026/11/20/{hh}", "{tenant}/{hour:%Y/%m/%d/%H}"),
    "time first": (HOURS, "2026/11/20/{hh}/{tenant}", ""),
    "a key with its name": (HOURS, "tenant={tenant}/20261120/{hh}", "tenant={tenant}/{hour:%Y%m%d/%H}"),
    "text above": (HOURS, "logs/{tenant}/2026112 0{hh}", ""),
    "text above a time": (HOURS, "logs/{tenant}/20261120{hh}", "logs/{tenant}/{hour:%Y%m%d%H}"),
    "one tenant": (HOURS[:2], "a/2026/11/20/{hh}", "{tenant}/{hour:%Y/%m/%d/%H}"),
    "Hive's": (HOURS, "tenant={tenant}/hour=2026-11-20 {hh}%3A00%3A00", ""),
    "days": (
        [{"day": "2026-11-20"}, {"day": "2026-11-21"}], "{day}", "{day:%F}",
    ),
    "values alone": ([{"region": "eu"}, {"region": "us"}], "by-region/{region}", "by-region/{region}"),
    "no layout": ([{"region": "eu"}, {"region": "us"}], "x/y", ""),
    "nothing": ([], "", ""),
}  # fmt: skip


@pytest.mark.parametrize(("values", "folder", "template"), CASES.values(), ids=CASES)
def test_a_layout_is_one_in_which_each_partition_has_its_folder(
    values: list[dict[str, str]], folder: str, template: str
) -> None:
    partitions = [
        (list(pairs.items()), folder.format(**pairs, hh=pairs.get("hour", "")[11:13])) for pairs in values
    ]

    assert layout_of_partitions(partitions).template == template

"""A small table against its contract in this process, with the verdict that Spark would give."""

from dq.dataquality.local.small.check import check, schema

__all__ = ["check", "schema"]

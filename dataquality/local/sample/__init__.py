"""A sample file against its contract, without Spark and Java."""

from dq.dataquality.local.sample.check import check
from dq.dataquality.local.sample.read import ENDINGS, read

__all__ = ["ENDINGS", "check", "read"]

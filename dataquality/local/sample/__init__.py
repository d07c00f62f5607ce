"""A sample file against its contract, without Spark and Java."""

from dq.dataquality.local.sample.check import check as check
from dq.dataquality.local.sample.read import ENDINGS as ENDINGS
from dq.dataquality.local.sample.read import read as read

"""Whether the Python of Spark's tasks can run ours."""

from __future__ import annotations

import functools
import shutil
import sys
from typing import TYPE_CHECKING

from dq.dataquality.model.metric import Failure
from dq.dataquality.spark.session import attempt

if TYPE_CHECKING:
    from pyspark import SparkContext


def unfit(context: SparkContext) -> str | None:
    """Why tasks of this application cannot run dq's functions, and what to do; None where they can.

    A task that lacks a module fails with its stack in the log of every executor, so that one is asked first
    that needs none of ours: a job, once for each application whose Python is not that of the driver.
    """
    python = str(context.pythonExec)
    return None if shutil.which(python) == sys.executable else _asked(context, context.applicationId, python)


@functools.lru_cache(64)
def _asked(context: SparkContext, _application: str, python: str) -> str | None:
    # Defined here, it travels as code and not by the name of its module.
    def lacks(_number: int) -> list[str]:
        from importlib.util import find_spec

        missing = []
        for name in ("dq", "dq.dataquality", "pyarrow", "numpy"):
            try:
                found = find_spec(name)
            except ImportError:
                found = None
            if found is None:
                missing.append(name)
        return missing

    answer = attempt(lambda: context.parallelize([0], 1).map(lacks).collect())
    if isinstance(answer, Failure):
        return f"the Python of Spark's tasks ({python}) does not run: {answer.message}. {_mend()}"
    (missing,) = answer
    return f"the Python of Spark's tasks ({python}) has no {missing[0]}. {_mend()}" if missing else None


def _mend() -> str:
    return f"Begin the session with PYSPARK_PYTHON={sys.executable}, or install dq with pyarrow there"

"""What is asked of other processes gets there, whatever it is made of."""

from __future__ import annotations

import os
import pickle
from types import MappingProxyType

import pytest

from dq.contracts.outcome import ReadError
from dq.portal import output


def test_what_is_frozen_goes_to_other_processes() -> None:
    # The subjects of an incident are: a build of several processes that had one failed.
    assert output.WorkerPool
    assert pickle.loads(pickle.dumps(MappingProxyType({"a": 1}))) == MappingProxyType({"a": 1})


def test_a_process_that_is_killed_is_no_bug_of_dq() -> None:
    with output.WorkerPool(2) as two, pytest.raises(ReadError, match="was killed"):
        list(two.run(os._exit, [1, 1, 1, 1]))

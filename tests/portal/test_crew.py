"""What is asked of other processes gets there, whatever it is made of."""

from __future__ import annotations

import pickle
from types import MappingProxyType

from dq.portal.writing import crew


def test_what_is_frozen_goes_to_other_processes() -> None:
    # The subjects of an incident are: a build of several processes that had one failed.
    assert crew.Crew
    assert pickle.loads(pickle.dumps(MappingProxyType({"a": 1}))) == MappingProxyType({"a": 1})

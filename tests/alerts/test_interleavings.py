"""All orders in which two senders can meet, a fault, a death, a lease's end and a resolve among them."""

from __future__ import annotations

import pytest
from fakes.interleaving import Budget, Walk, taken_for_a_refusal

QUICK = {
    "a fault and a resolve": (Budget(faults=1, deaths=0, waits=()), 100),
    "a death, the end of a lease and a resolve": (Budget(faults=0, deaths=1, waits=(61,)), 500),
    "a fault, a death and the end of a lease": (Budget(resolve=False, waits=(61,)), 200),
}


@pytest.mark.parametrize(("budget", "least"), QUICK.values(), ids=QUICK)
def test_whatever_happens_people_see_one_message_that_is_right(budget, least):
    walk = Walk()

    walk.through(budget)

    assert walk.wrong == []
    assert walk.states > least


def test_a_step_that_is_broken_is_found():
    walk = Walk(mislead=taken_for_a_refusal)

    walk.through(Budget(faults=1, deaths=0, waits=(), resolve=False))

    assert walk.wrong

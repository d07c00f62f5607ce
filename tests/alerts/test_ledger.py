"""What the ledger of incidents answers."""

from __future__ import annotations

import pytest
from fakes.breaches import breach

from dq.alerts import incident_store
from dq.contracts.incident import IncidentKey

OLDER = IncidentKey("orders", "lines", "daily")


@pytest.mark.parametrize("of", ["orders", "orders/lines", "orders/lines/daily"])
def test_the_newest_of_a_contract_are_found_behind_newer_ones_of_others(of, store, tell):
    tell(breach(1, key=OLDER))
    tell(breach(2, key=IncidentKey("sales", "sales", "daily")))

    with store.read() as tx:
        assert [one.key for one in incident_store.newest_of_all(tx, 1, of)] == [OLDER]
        assert incident_store.newest_of_all(tx, 1, f"{of}s") == []
        assert [one.key.contract for one in incident_store.newest_of_all(tx, 1)] == ["sales"]

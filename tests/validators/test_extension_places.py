"""What dq adds to ODCS stands where it belongs, and the gate knows all of it."""

from __future__ import annotations

import pytest

from dq.contracts.extension import MODELS

PLACES = {
    "delivery": """
slaProperties:
  - {property: frequency, value: 1, unit: d, element: orders, schedule: "0 6 * * *", customProperties: [@]}
""",
    "dataset": "schema:\n  - {name: orders, customProperties: [@]}\n",
    "layout": "servers:\n  - {server: s, type: local, path: x, format: csv, customProperties: [@]}\n",
    "csv": "servers:\n  - {server: s, type: local, path: x, format: csv, customProperties: [@]}\n",
    "scope": """
schema:
  - name: orders
    quality:
      - {metric: rowCount, mustBeGreaterThan: 0, customProperties: [@]}
""",
    "route": "support:\n  - {channel: '#a', tool: slack, customProperties: [@]}\n",
}
PLACES["identity"] = "schema:\n  - {name: orders, properties: [{name: id, customProperties: [@]}]}\n"
PLACES["retention"] = PLACES["delivery"]
VALUES = {
    "delivery": "{grace: 1h}",
    "csv": "{header: false}",
    "identity": "customer.id",
    "layout": "{path: '{day:%F}'}",
    "scope": "{rows: table}",
}


def unknown(lint_fragment, fragment):
    return [one.message for one in lint_fragment(fragment) if one.rule == "extension-unknown"]


@pytest.mark.parametrize("name", MODELS)
def test_each_extension_is_known_where_it_belongs_and_there_alone(lint_fragment, name):
    one = f"{{property: {name}, vendor: dq, value: {VALUES.get(name, '{}')}}}"

    assert unknown(lint_fragment, PLACES[name].replace("@", one)) == []
    for place in set(PLACES.values()) - {PLACES[name]}:
        assert unknown(lint_fragment, place.replace("@", one)) == [f"{name!r} is not allowed here."]


@pytest.mark.parametrize(
    "fragment",
    ["customProperties: [@]\n", PLACES["dataset"]],
)
def test_inputs_stand_on_the_contract_or_an_object(lint_fragment, fragment):
    assert unknown(lint_fragment, fragment.replace("@", "{property: inputs, vendor: dq, value: [x]}")) == []

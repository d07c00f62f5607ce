"""What consumers get: a CloudEvent of version 1.0 in JSON, and the texts that they filter by.

Source: CloudEvents 1.0.2, its JSON format in structured mode.
"""

from __future__ import annotations

from urllib.parse import quote

from dq.contracts.identity import identity
from dq.lake.paths import partition_folder
from dq.registry.publishing.publication import DeliveryEvent

JsonObject = dict[str, object]

_NOTHING = "none"


def cloud_event(event: DeliveryEvent) -> JsonObject:
    """The event as JSON values; docs/reference/delivery-event.schema.json is its schema."""
    one = event.publication
    data = event.as_json()
    # The envelope says both.
    del data["event_id"], data["at"]
    cycle = data["cycle"]
    what = partition_folder(one.values) or (f"cycle={cycle}" if cycle else "")
    _, major = identity(one.contract, one.contract_version)
    return {
        "specversion": "1.0",
        "id": event.id,
        "source": f"urn:dq:contract:{quote(one.contract, safe='')}:{quote(major, safe='')}",
        "type": f"dq.delivery.{event.name}",
        "time": event.at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "subject": f"{one.object}/{what}",
        "datacontenttype": "application/json",
        "data": data,
    }


def filter_texts(event: DeliveryEvent) -> dict[str, str]:
    """The five texts that subscriptions filter by; `none` for what is empty, which SNS does not take."""
    data = event.as_json()
    names = ("contract", "domain", "event", "major_version", "environment")
    return {name: str(data[name]) or _NOTHING for name in names}

"""What a table says of its contract: the `dq.*` parameters that people and tools read in a catalog."""

from __future__ import annotations

from dq.contracts import slo
from dq.contracts.extension import dataset
from dq.contracts.model import Contract, Property, SchemaObject, Team
from dq.registry.table import (
    CONTRACT,
    CONTRACT_VERSION,
    LIFECYCLE,
    OBJECT,
    PARTITION_INDEXES,
    REGISTRY,
    clip,
    index_text,
)

# The metastore of Hive keeps 4,000.
_LONGEST = 1_000


def facts(contract: Contract, one: SchemaObject, registry: str) -> dict[str, str]:
    """The facts of one object by parameter; "" for what the contract does not say."""
    made = {
        REGISTRY: registry,
        CONTRACT: contract.id,
        CONTRACT_VERSION: contract.version,
        OBJECT: one.name,
        "dq.owner": _owner(contract),
        "dq.domain": contract.domain or "",
        LIFECYCLE: contract.status or "",
        "dq.slo": "; ".join(_promises(contract, one)),
        "dq.channel": ", ".join(_channels(contract)),
        PARTITION_INDEXES: index_text(tuple(keys) for keys in dataset(one)[0].partition_indexes),
        "dq.classification": ", ".join(sorted(_classifications(one.properties))),
    }
    return made | {key: clip(made[key], _LONGEST) for key in ("dq.slo", "dq.channel", "dq.classification")}


def _owner(contract: Contract) -> str:
    if isinstance(contract.team, Team) and contract.team.name:
        return contract.team.name
    owners = (member for member in contract.members() if "owner" in (member.role or "").lower())
    return next((member.username for member in owners), "")


def _promises(contract: Contract, one: SchemaObject) -> list[str]:
    """Such as `daily: 0 6 * * * Europe/Berlin, 95%`. What cannot be understood is the gate's to say."""
    promised, _ = slo.read(contract)
    return [
        f"{each.id}: {each.sla.schedule} {each.delivery.timezone}, {each.delivery.objective}"
        for each in promised
        if each.object.name == one.name
    ]


def _channels(contract: Contract) -> list[str]:
    return [f"{each.tool}:{each.channel}" if each.tool else each.channel for each in contract.support]


def _classifications(properties: list[Property]) -> set[str]:
    """Every word by which a column of the object, or a part of one, is classified."""
    words: set[str] = set()
    for prop in properties:
        words |= {prop.classification} if prop.classification else set()
        words |= _classifications(prop.properties)
        if prop.items is not None:
            words |= _classifications([prop.items])
        if prop.map is not None:
            words |= _classifications([prop.map.key, prop.map.value])
    return words

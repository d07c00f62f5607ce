"""What a Data Contract Specification says beside its models: who, where, on what terms, how well."""

from __future__ import annotations

import re

from dq.contracts.servers import SERVER_TYPES
from dq.registry.importing.dcs.fields import links
from dq.registry.importing.documents import Mapped, listed, mapped, shown, text

_STATUS = {"in development": "draft"}
_KNOWN = ("proposed", "draft", "active", "deprecated", "retired")
_READ = {
    "dataContractSpecification", "id", "info", "servers", "terms", "models", "definitions", "servicelevels",
    "serviceLevels", "links", "tags",
}  # fmt: skip
_LENGTH = re.compile(r"P?T?(\d+)\s*([A-Za-z]+)")
_UNITS = {
    "s": "s", "second": "s", "m": "min", "min": "min", "minute": "min", "h": "h", "hour": "h", "d": "d",
    "day": "d", "w": "w", "week": "w", "mo": "mo", "month": "mo", "y": "y", "year": "y",
}  # fmt: skip
_INTERVALS = {"hourly": "h", "daily": "d", "weekly": "w", "monthly": "mo", "yearly": "y"}


def said(top: Mapped, lost: list[str]) -> dict[str, object]:
    """The top keys of ODCS; what has no place there goes to `lost`."""
    info, terms = mapped(top.get("info")), mapped(top.get("terms"))
    status = text(info.get("status")).lower()
    status = _STATUS.get(status, status)
    made: dict[str, object] = {"id": text(top.get("id")), "name": text(info.get("title"))}
    made["version"] = str(info.get("version") or "")
    made["status"] = status if status in _KNOWN else ""
    purpose = {"purpose": text(info.get("description"))}
    made["description"] = _full(
        {**purpose, **{key: text(terms.get(key)) for key in ("usage", "limitations")}}
    )
    made["tags"] = [str(one) for one in listed(top.get("tags"))]
    made["team"] = _full({"name": text(info.get("owner"))})
    made["servers"] = [_server(name, mapped(one), lost) for name, one in mapped(top.get("servers")).items()]
    made |= links(top)
    made["customProperties"] = [
        {"property": key, "value": text(terms[key])}
        for key in ("billing", "noticePeriod")
        if text(terms.get(key))
    ]
    made["slaProperties"] = _levels(
        {**mapped(top.get("serviceLevels")), **mapped(top.get("servicelevels"))}, lost
    )
    lost += [f"terms.{key} {shown(one)}" for key, one in terms.items()
             if key not in ("usage", "limitations", "billing", "noticePeriod")]  # fmt: skip
    lost += [f"info.{key} {shown(one)}" for key, one in info.items()
             if key not in ("title", "version", "status", "description", "owner")]  # fmt: skip
    if text(info.get("status")) and not made["status"]:
        lost.append(f"info.status {shown(info['status'])}")
    lost += [f"{key} {shown(one)}" for key, one in top.items() if key not in _READ]
    return _full(made)


def _full(one: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in one.items() if value not in ("", [], {}, None)}


def _server(name: str, one: Mapped, lost: list[str]) -> dict[str, object]:
    kind = text(one.pop("type", "")).lower()
    known = SERVER_TYPES.get(kind) or SERVER_TYPES["custom"]
    made: dict[str, object] = {"server": name, "type": kind if kind in SERVER_TYPES else "custom"}
    if kind not in SERVER_TYPES:
        lost.append(f"servers.{name} is of type {kind or 'nothing'}, which ODCS does not name")
    for key, value in one.items():
        if key == "roles":
            made[key] = [_role(mapped(role)) for role in listed(value)]
        elif key in (*known.required, *known.optional, "description", "environment"):
            made[key] = value
        else:
            lost.append(f"servers.{name}.{key} {shown(value)}")
    return made


def _role(one: Mapped) -> dict[str, object]:
    return _full({"role": text(one.get("name")), "description": text(one.get("description"))})


def _levels(levels: Mapped, lost: list[str]) -> list[dict[str, object]]:
    found = []
    for name, one in ((name, mapped(one)) for name, one in levels.items()):
        made, read = _level(name, one)
        if made:
            found.append({"property": name, **made, **_full({"description": text(one.get("description"))})})
        rest = {key: value for key, value in one.items() if key not in read and value not in (None, False)}
        if not made or rest:
            lost.append(f"servicelevels.{name} {shown(rest if made else one)}")
    return found


def _level(name: str, one: Mapped) -> tuple[dict[str, object], set[str]]:
    """A service level, and the keys that it was read from."""
    match name:
        case "availability":
            percent = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text(one.get("percentage")))
            made = {"value": float(percent[1]), "unit": "percent"} if percent else {}
            return made, {"percentage", "description"}
        case "retention" | "freshness" | "latency":
            key = "period" if name == "retention" else "threshold"
            field = "timestampField" if name != "latency" else "processedTimestampField"
            length = _LENGTH.fullmatch(text(one.get(key)))
            unit = (
                _UNITS.get(length[2].lower() if len(length[2]) == 1 else length[2].lower().rstrip("s"))
                if length
                else None
            )
            if length is not None and text(one.get(key)).startswith("P") and length[2] == "M":
                unit = "min" if "T" in text(one.get(key)) else "mo"
            made = {"value": int(length[1]), "unit": unit} if length and unit else {}
            return made and {**made, **_full({"element": text(one.get(field))})}, {key, field, "description"}
        case "frequency":
            unit = _INTERVALS.get(text(one.get("interval")).lower())
            cron = {"scheduler": "cron", "schedule": text(one.get("cron"))} if text(one.get("cron")) else {}
            return ({"value": 1, "unit": unit, **cron} if unit else {}), {"interval", "cron", "description"}
    return {}, set()

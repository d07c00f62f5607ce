"""Examples of the check `timezone`."""

from __future__ import annotations

from fakes.examples import Example


def _stamp(zone: str, more: str = "") -> str:
    return (
        f"properties: [{{name: v, logicalType: timestamp{more}, logicalTypeOptions: {{timezone: {zone}}}}}]"
    )


EXAMPLES = (
    Example("instants", _stamp("true"), "v timestamp", (), "pass", ("timestamp",)),
    Example("no instants", _stamp("true"), "v timestamp_ntz", (), "fail", ("timestamp_ntz",)),
    Example("civil times", _stamp("false"), "v timestamp_ntz", ((None,),), "pass"),
    Example("no civil times", _stamp("false"), "v timestamp", (), "fail"),
    Example("a physical type decides", _stamp("false", ", physicalType: timestamp"), "v timestamp", (), ""),
    Example("missing", _stamp("true"), "w timestamp", (), "error"),
    Example(
        "texts",
        "properties: [{name: v, logicalType: time, logicalTypeOptions: {timezone: true}}]",
        "v string",
        (),
        "",
    ),
    Example(
        "in a struct",
        "properties: [{name: s, logicalType: object, properties:"
        " [{name: v, logicalType: timestamp, logicalTypeOptions: {timezone: true}}]}]",
        "s struct<v: timestamp_ntz>",
        (),
        "fail",
    ),
)

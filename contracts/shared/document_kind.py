"""What a YAML document is, by its top keys: a data contract, or one of what people keep beside contracts.

A repository holds thousands of YAML files, so the first question is put to the bytes alone: a regular
expression for a line `kind: DataContract` at the depth of the top keys. Only what passes is parsed.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from typing import Any

CONTRACT = "DataContract"
OTHER = "of another kind"
ASIDE = "a subscription that lies outside of the registry's own folder subscriptions, and has no effect"

_KIND = rb"""["']?kind["']?[ \t]*:\s+(?:[!&]\S*[ \t]+)*["']?([^"'\s#,{}]+)"""
_VERSION = rb"""["']?apiVersion["']?[ \t]*:\s+["']?v?([0-9][^"'\s#,{}]*)"""
_FLOW_KIND = re.compile(rb"""[{,]\s*""" + _KIND.replace(rb":\s+", rb":\s*"))
_FIRST = re.compile(rb"^(?![ \t]*(?:\r?$|#|---|%))([ \t]*)(\S)", re.MULTILINE)
_KEY = re.compile(rb"""^["']?([A-Za-z$][\w.$-]*)["']?[ \t]*:(?:[ \t]+["']?([^"'\s#]+))?""", re.MULTILINE)
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_ODCS = re.compile(rb"[23]\.\d+(?:\.\d+)?")

# The top keys stand near the beginning of what people write; this is only asked to give a name to it.
_LOOKED_AT = 65_536


def is_contract(data: bytes) -> bool:
    """Whether the document says that it is a data contract, whatever the name of its file.

    So does a document with the version of ODCS whose `kind` is missing or misspelt: it is a mistake to be
    told, not a file to be passed over.
    """
    data = _as_utf8(data)
    if b"kind" not in data and b"apiVersion" not in data:
        return False
    first = _FIRST.search(data)
    if first is None:
        return False
    if first[2] == b"{":
        kinds = _FLOW_KIND.findall(data)
        return any(_near(kind) for kind in kinds)
    kind = _value(_KIND, first[1], data)
    if kind is not None:
        return _near(kind)
    version = _value(_VERSION, first[1], data)
    return version is not None and _ODCS.fullmatch(version) is not None and b"schema" in data


def looks_like(data: bytes) -> str:
    """What a document that is no contract seems to be, in the words of `foreign`; else `OTHER`."""
    keys = {match[1].decode(): _read(match[2]) for match in _KEY.finditer(_as_utf8(data[:_LOOKED_AT]))}
    return foreign(keys) or ("an older format of contracts" if OLD_KEY in keys else OTHER)


OLD_KEY = "dataContractSpecification"


def foreign(top: Mapping[str, Any]) -> str | None:
    """What a mapping with these top keys is, where it is something else that we know."""
    return next((name for name, is_one in _FOREIGN.items() if is_one(top)), None)


def _is_kubernetes(top: Mapping[str, Any]) -> bool:
    kind = top.get("kind")
    return "metadata" in top and isinstance(kind, str) and "apiVersion" in top and kind != CONTRACT


# What people keep beside contracts, and how it is known.
_FOREIGN: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "dbt": lambda top: top.get("version") == 2 and not top.keys().isdisjoint(("models", "sources", "seeds")),
    "a dbt project": lambda top: "model-paths" in top or "config-version" in top,
    "Kubernetes": _is_kubernetes,
    "the Open Data Product Specification": lambda top: "product" in top and "kind" not in top,
    ASIDE: lambda top: {"contract", "major", "consumer"} <= top.keys(),
    "the Open Data Product Standard": lambda top: top.get("kind") == "DataProduct",
    "OpenAPI": lambda top: "openapi" in top and "paths" in top,
    "JSON Schema": lambda top: "json-schema.org" in str(top.get("$schema")) and "kind" not in top,
}


def _value(key: bytes, indent: bytes, data: bytes) -> bytes | None:
    found = re.search(rb"^" + re.escape(indent) + key, data, re.MULTILINE)
    return None if found is None else found[1]


def _near(kind: bytes) -> bool:
    """Whether a word is `DataContract`, in any case and with the usual slips: one letter too many, say."""
    word = re.sub(r"[^a-z]", "", kind.decode("utf-8", "replace").lower())
    return word.startswith("datacontr") or (word.startswith("dat") and word.endswith("contract"))


def _read(value: bytes | None) -> str | int:
    text = (value or b"").decode("utf-8", "replace")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 5 else text


def _as_utf8(data: bytes) -> bytes:
    encoding = _UTF16.get(data[:2])
    if encoding is not None:
        return data.decode(encoding, "replace").encode("utf-8", "replace")
    return data.removeprefix(codecs.BOM_UTF8)

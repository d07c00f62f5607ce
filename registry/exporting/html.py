"""HTML: one page without script, to read, print and send."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dq.contracts.access.access_policy import WEB, web_address
from dq.contracts.escaping import html
from dq.contracts.model import Contract, Property, Quality, SchemaObject
from dq.contracts.types import catalog_type
from dq.contracts.yaml.insertion import commented
from dq.registry.exporting import Exported, ExportKind, words

# No script, picture or font is ever fetched; the one style stands in the page.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 0 auto; padding: 1rem;
       overflow-wrap: anywhere; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2rem; }
p { white-space: pre-line; } code { font-size: .9em; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: start; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid #8886; }
td:first-child { overflow-wrap: normal; }
dt { font-weight: 600; } dd { margin: 0 0 .5rem; white-space: pre-line; }
@media print { body { max-width: none; font-size: 10pt; } tr { break-inside: avoid; }
               .wide { overflow: visible; } }
"""
_MAIL = re.compile(r"mailto:[A-Za-z0-9.!#$%*+/=_~-]+@[A-Za-z0-9.-]+")


def write(contract: Contract, objects: list[SchemaObject]) -> Exported:
    """The page: who, where and what is promised, and a table for each object."""
    title = contract.name or contract.id
    lines = [
        "<!doctype html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{html(_POLICY)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{_text(title)}</title>", f"<style>{_STYLE}</style>", "</head>", "<body>",
        f"<h1>{_text(title)}</h1>", *_terms(_head(contract)),
        *(line for one in objects for line in _object(one)),
        *_table("Service levels", ("Level", "Value", "Of", "When"), _levels(contract)),
        *_table("Where it lies", ("Server", "Type", "Place"), _servers(contract)),
        "</body>", "</html>",
    ]  # fmt: skip
    return Exported("\n".join(lines) + "\n")


def _text(value: object) -> str:
    """A text that is nothing but a text: signs that steer the direction of reading are taken out."""
    return html("\n".join(commented(line) for line in str(value).splitlines()))


def _linked(value: str) -> str:
    if web_address(value, WEB) or _MAIL.fullmatch(value):
        return f'<a href="{html(value)}" rel="noopener noreferrer">{_text(value)}</a>'
    return _text(value)


def _terms(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield "<dl>"
    yield from (f"<dt>{name}</dt><dd>{_linked(value)}</dd>" for name, value in pairs if value)
    yield "</dl>"


def _head(contract: Contract) -> Iterator[tuple[str, str]]:
    said = contract.description
    yield "Contract", f"{contract.id} {contract.version}"
    yield "Status", contract.status or ""
    yield "Domain", contract.domain or ""
    yield "Owners", ", ".join(one.name or one.username for one in contract.members())
    if said is not None:
        yield "Purpose", said.purpose or ""
        yield "Usage", said.usage or ""
        yield "Limitations", said.limitations or ""
    for one in contract.support:
        yield "Support", one.url or one.channel
    for each in contract.authoritative_definitions:
        yield "Definition", each.url


def _object(one: SchemaObject) -> Iterator[str]:
    rows = [row for prop in one.properties for row in _rows(prop, "")]
    about = [one.description or "", *map(_rule, one.quality)]
    columns = ("Column", "Type", "Meaning", "Promises")
    yield from _table(one.name, columns, rows, [text for text in about if text])


def _rows(prop: Property, above: str) -> Iterator[tuple[str, str, str, str]]:
    name = f"{above}{prop.column}" if prop.column else above.rstrip(".")
    yield name, str(catalog_type(prop)), prop.description or "", ", ".join(_promises(prop))
    for inner in prop.properties:
        yield from _rows(inner, f"{name}.")
    parts = [(prop.items, "[]")]
    if prop.map is not None:
        parts.append((prop.map.value, ".*"))
    for part, sign in parts:
        if part is not None and (list(part.children()) or part.description or any(_promises(part))):
            yield from _rows(part, f"{name}{sign}.")


def _promises(prop: Property) -> Iterator[str]:
    if prop.primary_key:
        yield "primary key"
    if prop.partitioned:
        yield "partition key"
    if prop.required:
        yield "never empty"
    if prop.unique:
        yield "unique"
    if prop.enum:
        yield "one of " + ", ".join(str(one.value) for one in prop.enum)
    if prop.classification:
        yield prop.classification
    if prop.logical_type_options is not None:
        bounds = prop.logical_type_options.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)
        yield from (f"{name} {_value(value)}" for name, value in bounds.items())
    yield from map(_rule, prop.quality)


def _rule(rule: Quality) -> str:
    """A rule with its bounds, in the words of ODCS; its own description says what they mean."""
    bounds = [f"{name} {_value(value)}" for name, value in rule.operators()]
    told = " ".join(
        [rule.metric or rule.name or rule.type, *bounds, rule.unit or "" if bounds else ""]
    ).strip()
    return f"{rule.description} ({told})" if rule.description else told


def _value(value: object) -> str:
    if isinstance(value, list):
        return " and ".join(_value(one) for one in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _levels(contract: Contract) -> Iterator[tuple[str, str, str, str]]:
    for one in contract.sla_properties:
        value = "" if one.value is None else f"{one.value} {one.unit or ''}"
        yield one.property, value.strip(), one.element or "", one.schedule or ""


def _servers(contract: Contract) -> Iterator[tuple[str, str, str]]:
    for one in contract.servers:
        yield one.server, one.type, one.get("location") or one.get("path") or one.get("database") or ""


def _table(
    title: str, names: tuple[str, ...], rows: Iterable[tuple[str, ...]], about: Iterable[str] = ()
) -> Iterator[str]:
    written = ["".join(f"<td>{_text(cell)}</td>" for cell in row) for row in rows]
    if not written:
        return
    yield f"<h2>{_text(title)}</h2>"
    yield from (f"<p>{_text(text)}</p>" for text in about)
    yield '<div class="wide"><table><thead><tr>'
    yield "".join(f'<th scope="col">{name}</th>' for name in names)
    yield "</tr></thead><tbody>"
    yield from (f"<tr>{row}</tr>" for row in written)
    yield "</tbody></table></div>"


_SHOWN = "description primaryKey partitioned required unique enum classification logicalTypeOptions quality"
SAYS = words(
    _SHOWN, _SHOWN, _SHOWN, "description quality",
    "description team support servers slaProperties authoritativeDefinitions",
)  # fmt: skip
KIND = ExportKind("html", "one page to read, print and send", write, SAYS)
